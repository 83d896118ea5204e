/* launchers.h - the launchers, for their table, and for one whose command starts as that of another. */
#ifndef ELMER_LAUNCH_LAUNCHERS_LAUNCHERS_H
#define ELMER_LAUNCH_LAUNCHERS_LAUNCHERS_H

#include "elmer/launch/launcher.h"

extern const struct launcher launcher_plain; /* the command once, on the first processor */
extern const struct launcher launcher_each;  /* the command on each processor */
extern const struct launcher launcher_pvm;   /* either, in a virtual machine of the job's own */

#endif
