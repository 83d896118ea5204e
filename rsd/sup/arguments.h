/* arguments.h - the command line of a process. */
#ifndef RSD_SUP_ARGUMENTS_H
#define RSD_SUP_ARGUMENTS_H

#include "lib/wire/wire.h"

/* For execve(2), to be freed; NULL: no memory. In a task of an array each {} is its index: the variable
 * ELMER_ARRAY_INDEX, which elmer-tickets has compared with what was signed, if there are tickets. index NULL: it is
 * none, and all stays as it is. */
char **arguments_make(const struct wire_strs *given, const char *index);

#endif
