/* options.h - the options of rsd. What begins with RSD_OPTION_ADMIN is handed over to elmer-rsd-admin, which reads all
 * of them again. */
#ifndef RSD_OPTIONS_H
#define RSD_OPTIONS_H

#include "lib/options/options.h"

enum {
    RSD_OPTION_ADMIN = OPTION_FIRST_FREE,
    RSD_OPTION_JOIN = RSD_OPTION_ADMIN,
    RSD_OPTION_NAME,
    RSD_OPTION_FORCE,
    RSD_OPTION_NOW,
    RSD_OPTION_RELOAD
};
extern const struct command rsd_command;

#endif
