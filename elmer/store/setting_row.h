/* setting_row.h - what an administrator has set while elmer ran, in the place of what elmer.conf says. Plain data. */
#ifndef ELMER_STORE_SETTING_ROW_H
#define ELMER_STORE_SETTING_ROW_H

enum { SETTING_MAX_BYTES = 32 };

struct setting_row {
    char name[SETTING_MAX_BYTES + 1];
    char value[SETTING_MAX_BYTES + 1]; /* "": nothing, elmer.conf counts again */
};

#endif
