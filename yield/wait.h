/* wait.h - when a thread that asks again and again has waited long enough to sleep between two rounds. Times in ns.
 *
 * A round is a call that finds out whether there is something to do. A wait begins with the first of them, and ends
 * with progress, or when the thread has done something else between two rounds. Nothing here makes a system call. */
#ifndef YIELD_WAIT_H
#define YIELD_WAIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WAIT_SPEED_NS = 20000, /* so long at full speed: a message that comes soon is worth more than the cycles */
    WAIT_SLEEP_NS = 20000, /* the first sleep: what a kernel needs for less gives nothing to others */
    WAIT_BOUND_US = 100,   /* the longest sleep, unless ELMER_POLL_SLEEP says another one */
    WAIT_BOUND_MAX_US = 10000,
    WAIT_GAP_NS = 1000,       /* who is longer away from the rounds has worked */
    WAIT_GAP_SLEPT_NS = 10000 /* after a sleep caches are cold */
};

struct wait {
    int64_t began, left; /* of this wait; of the round before: 0, none */
    int64_t sleep;       /* the last one; 0: none yet */
    intptr_t what;       /* is asked */
};

static inline void wait_forget(struct wait *wait)
{
    *wait = (struct wait){.began = 0};
}

/* A round begins at now; what: the same thing has the same number. How long it may sleep, 0: at full speed. */
static inline int64_t wait_round(struct wait *wait, int64_t now, intptr_t what, int64_t bound)
{
    int64_t gap = wait->sleep > 0 ? WAIT_GAP_SLEPT_NS : WAIT_GAP_NS;
    if (wait->left == 0 || now - wait->left > gap || wait->what != what)
        *wait = (struct wait){.began = now, .what = what};
    if (now - wait->began < WAIT_SPEED_NS)
        return 0;
    wait->sleep = wait->sleep == 0 ? WAIT_SLEEP_NS : wait->sleep * 2;
    if (wait->sleep > bound)
        wait->sleep = bound;
    return wait->sleep;
}

#endif
