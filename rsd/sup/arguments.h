/* arguments.h - the command line of a process. */
#ifndef RSD_SUP_ARGUMENTS_H
#define RSD_SUP_ARGUMENTS_H

#include <stdbool.h>

#include "lib/wire/wire.h"

/* For execve(2), to be freed; NULL: no memory, or they are longer than the kernel takes. In a task of an array each {}
 * is its index: the variable ELMER_ARRAY_INDEX, which elmer-tickets has compared with what was signed, if there are
 * tickets. Where it has a line (ELMER_ARRAY_LINE, the same), {} is that, and {1} {2} .. are its columns; one that it
 * does not have is nothing. index NULL: it is no task, and all stays as it is. terminal: what holds the terminal of the
 * command stands before it. */
char **arguments_make(const struct wire_strs *given, bool terminal, const char *index, const char *line);

#endif
