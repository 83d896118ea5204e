/* parameters.h - the files in which users and administrators set what Open MPI reads. */
#ifndef RSD_SUP_PARAMETERS_H
#define RSD_SUP_PARAMETERS_H

#include "lib/wire/wire.h"
#include "rsd/sup/environment.h"

/* In the process that is going to be the command, as the user: takes out of the environment what launchers.c has set,
 * and Open MPI would not have beside what is in those files. given: what came with the job, which is left alone. */
void parameters_obey(char **environment, const struct wire_strs *given, const char *home);

#endif
