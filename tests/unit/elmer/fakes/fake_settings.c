/* fake_settings.c - in place of core/setting.c: one policy, and two allocators of which the second is configured. */
#include "tests/unit/elmer/fakes/fake_settings.h"

#include <string.h>

struct fake_settings fake_settings;

static const char *const names[SETTING_COUNT] = {"allocator", "policy"};
static const char *const values[SETTING_COUNT][2] = {{"first", "second"}, {"only", NULL}};
static const int counts[SETTING_COUNT] = {2, 1};

void fake_settings_begin(void)
{
    fake_settings = (struct fake_settings){.set = {SETTING_UNSET, SETTING_UNSET}, .impossible = SETTING_UNSET};
}

const char *core_setting_name(enum core_setting setting)
{
    return names[setting];
}

int core_setting_by_name(const char *name)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

const char *core_setting_names(void)
{
    return "allocator policy";
}

const char *core_setting_value_name(enum core_setting setting, int value)
{
    return values[setting][value];
}

int core_setting_count(enum core_setting setting)
{
    return counts[setting];
}

int core_setting_value_by_name(enum core_setting setting, const char *name)
{
    for (int i = 0; i < counts[setting]; i++)
        if (strcmp(name, values[setting][i]) == 0)
            return i;
    return -1;
}

const char *core_setting_value_names(enum core_setting setting)
{
    return setting == SETTING_ALLOCATOR ? "first second" : "only";
}

int core_setting_default(const struct core *core, enum core_setting setting)
{
    (void)core;
    return counts[setting] - 1;
}

int core_setting_stored(const struct core *core, enum core_setting setting)
{
    (void)core;
    return fake_settings.set[setting];
}

bool core_setting_possible(const struct core *core, enum core_setting setting, int value)
{
    (void)core;
    return setting != SETTING_ALLOCATOR || value != fake_settings.impossible;
}

int core_setting_value(const struct core *core, enum core_setting setting)
{
    return fake_settings.set[setting] == SETTING_UNSET ? core_setting_default(core, setting)
                                                       : fake_settings.set[setting];
}
