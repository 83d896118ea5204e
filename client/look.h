/* look.h - esubmit --pty and eattach: the terminal of a job at one's own. */
#ifndef CLIENT_LOOK_H
#define CLIENT_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "libelmer/elmer.h"

struct look_options {
    bool all;  /* show all that is kept, also what somebody has seen */
    bool keep; /* the terminal stays when nobody looks */
    bool own;  /* we have submitted it: it is taken back if we are interrupted before there is something to see */
};

/* Who looks needs a pass from elmer-tickets of this host, and would learn only when the job is there that he gets none.
 * False: it has said so, and what to do. keep: of the terminal. */
bool look_possible(bool keep);
/* Until the command of the job has ended, or the user leaves. Returns the exit code: the job's status, 0: he has left,
 * 128 + the signal that ends us, or another one, and it has said why. */
int look_at(struct elmer *elmer, uint64_t job, const struct look_options *options);

#endif
