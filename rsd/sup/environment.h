/* environment.h - the environment of a job's process on this host. */
#ifndef RSD_SUP_ENVIRONMENT_H
#define RSD_SUP_ENVIRONMENT_H

#include <stdbool.h>

#include "lib/wire/wire.h"
#include "rsd/sup/sup.h"

/* Of a variable, NULL if it is not there. */
const char *environment_value(const struct wire_strs *environment, const char *name);
/* Does an entry make a program load or write something before its main() has begun, or without its doing? */
bool environment_loads_something(const char *entry);

/* Goes over what came with the job. */
struct setting {
    const char *name, *value;
};
/* What came with the job, with what only this host knows; NULL: no memory. For free with environment_free().
 * processors: that the process has here; 0: not known. */
char **environment_make(const struct sup *sup, enum job_role role, const struct wire_strs *given, const char *hostfile,
                        size_t processors);
void environment_free(char **environment);

#endif
