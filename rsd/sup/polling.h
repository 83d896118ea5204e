/* polling.h - what keeps the processes of a job from spinning while they wait, so that the jobs below get what it
 * leaves: the wait policies of runtimes, and libelmer-yield.so (yield/) for those who have none. */
#ifndef RSD_SUP_POLLING_H
#define RSD_SUP_POLLING_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/wire/wire.h"
#include "rsd/sup/environment.h"

#define POLLING_LIBRARY ELMER_LIBEXECDIR "/libelmer-yield.so"

enum { POLLING_SETTINGS = 6 };
struct polling {
    struct setting settings[POLLING_SETTINGS];
    size_t count;
    const char *library; /* what is preloaded; NULL: nothing */
};
bool polling_waits(const struct wire_strs *given); /* there is somebody to wait for */
/* For the command of a job of more than one processor. What the user has set is left alone. With ELMER_SPIN=1 everybody
 * spins as he likes, and the library only counts, beside MPICH's end (yield/finalize.c). */
void polling_set(struct polling *polling, const struct wire_strs *given, const char *library);

#endif
