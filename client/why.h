/* why.h - equery --why: what keeps a job in the queue. */
#ifndef CLIENT_WHY_H
#define CLIENT_WHY_H

#include <stdbool.h>
#include <stddef.h>

#include "client/refs.h"

/* Of each job and task, one after the other; width: of the terminal, 0: there is none. Returns the exit code. */
int why_show(const struct ref *refs, size_t nrefs, bool json, size_t width);

#endif
