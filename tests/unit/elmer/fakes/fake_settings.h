/* fake_settings.h - in place of core/setting.c. */
#ifndef TESTS_UNIT_ELMER_FAKES_FAKE_SETTINGS_H
#define TESTS_UNIT_ELMER_FAKES_FAKE_SETTINGS_H

#include "elmer/core/core.h"

extern struct fake_settings {
    int set[SETTING_COUNT];
    int impossible; /* an allocator */
} fake_settings;

void fake_settings_begin(void);

#endif
