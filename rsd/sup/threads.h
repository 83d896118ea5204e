/* threads.h - how many threads the runtimes of a process make: as many as it has processors here. */
#ifndef RSD_SUP_THREADS_H
#define RSD_SUP_THREADS_H

#include <stddef.h>

#include "lib/wire/wire.h"
#include "rsd/sup/environment.h"

enum { THREADS_VARIABLES = 5, THREADS_SETTINGS = THREADS_VARIABLES + 1, THREADS_TEXT = 512 };
/* The variables, and their names and values, as they are added. */
struct threads {
    char number[24], added[THREADS_TEXT];
    struct setting settings[THREADS_SETTINGS];
    size_t count;
};
/* For a process with so many processors that was given such an environment; 0 processors: none. What the user has set
 * is left alone. */
void threads_set(struct threads *threads, const struct wire_strs *given, size_t processors);

#endif
