/* wait.h - when a thread that asks again and again has waited long enough to sleep between two rounds. Times in ns.
 *
 * A round is a call that finds out whether there is something to do. A wait begins with the first of them, and ends
 * with progress, or when the thread has done something else between two rounds. Nothing here makes a system call, and
 * the first rounds of a wait do not even read the clock: most messages come in that time. */
#ifndef YIELD_WAIT_H
#define YIELD_WAIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WAIT_ROUNDS = 8,       /* without progress before the clock is read: the caller counts them */
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
    int64_t seen, spun;  /* the last round's begin; rounds at full speed that the caller has not counted yet */
    intptr_t what;       /* is asked */
    unsigned rounds;     /* of this wait, as far as the caller counts */
    bool slept;          /* the last round might */
};

static inline void wait_forget(struct wait *wait)
{
    *wait = (struct wait){.began = 0};
}

/* Another wait, if another thing is asked. Is it so young that the clock is not read? */
static inline bool wait_is_young(struct wait *wait, intptr_t what)
{
    if (wait->what != what)
        *wait = (struct wait){.what = what};
    return wait->rounds < WAIT_ROUNDS;
}

static inline bool wait_is_long(const struct wait *wait, int64_t now)
{
    return wait->left != 0 && now - wait->began >= WAIT_SPEED_NS;
}

/* A round begins at now; what: the same thing has the same number. How long it may sleep, 0: at full speed. bound: the
 * longest sleep; 0: none. */
static inline int64_t wait_round(struct wait *wait, int64_t now, intptr_t what, int64_t bound)
{
    int64_t gap = wait->sleep > 0 ? WAIT_GAP_SLEPT_NS : WAIT_GAP_NS;
    if (wait->left == 0 || now - wait->left > gap || wait->what != what)
        *wait = (struct wait){.began = now, .seen = now, .what = what, .spun = wait->spun, .rounds = wait->rounds};
    if (!wait->slept)
        wait->spun += now - wait->seen;
    wait->seen = now;
    wait->slept = bound > 0 && now - wait->began >= WAIT_SPEED_NS;
    if (!wait->slept)
        return 0;
    wait->sleep = wait->sleep == 0 ? WAIT_SLEEP_NS : wait->sleep * 2;
    if (wait->sleep > bound)
        wait->sleep = bound;
    return wait->sleep;
}

#endif
