/* wait.h - when a thread that asks again and again has waited long enough to sleep between two rounds. Times in ns.
 *
 * A round is a call that finds out whether there is something to do. A wait begins with the first of them, and ends
 * with progress, or when the thread has done something else between two rounds. Its rounds may ask for a few things in
 * turn, and yield between them; who asks for one thing after the other serves many, and does not wait. Nothing here
 * makes a system call, and the first rounds of a wait do not even read the clock: most messages come in that time.
 *
 * Nothing wakes who sleeps when a message comes through shared memory. So who sleeps lets the other one wait, who then
 * sleeps too and lets the first one wait: two that have nothing to wait for would go on so for ever after one of them
 * has been late once, and the kernel, which sees two that sleep, would leave both on one processor. Therefore who has
 * slept in a brief wait stays awake for twice as long and a while more, in which it handles a message of the same size
 * and waits for the next one, and goes on so as long as that suffices. It makes way in each round, because the one that
 * it waits for may have no other processor. Longer waits are not made of others' sleeps.
 *
 * What a sleep costs nobody else gets: 5 us, but 20 in many virtual machines, which of 100 us is too much. There the
 * sleeps of a wait that has lasted become longer, by a small part of what it has lasted. */
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
    WAIT_MOST_NS = 200000, /* the longest one where a sleep is dear: so many times what it costs, */
    WAIT_WORTH = 10,
    WAIT_PART = 16,         /* if that is no more than such a part of the wait so far */
    WAIT_COST_NS = 100000,  /* who comes back later has not been there for other reasons */
    WAIT_COSTS = 8,         /* sleeps that its mean is of */
    WAIT_BRIEF_NS = 500000, /* a wait of less may be made of others' sleeps */
    WAIT_WAY_NS = 1000,     /* who stays awake makes way from then on: who answers has done so before */
    WAIT_AWAKE_NS = 200000, /* no more in one wait: 1 MB has come, others have woken up or need this processor */
    WAIT_FEW = 4,           /* things that one wait may ask for */
    WAIT_ELSEWHERE = 8,     /* rounds that ask for other things than the one with the sleep, until one of them has it */
    WAIT_GAP_NS = 1000,     /* who is longer away from the rounds, beyond one system call, has worked */
    WAIT_GAP_SLEPT_NS = 10000 /* after a sleep caches are cold */
};

/* One sleep in a turn of several things: what the others ask for waits for no more. */
struct wait_turn {
    intptr_t at;        /* rounds for this may sleep; 0: yields */
    unsigned elsewhere; /* rounds since the last one for it */
};

struct wait {
    int64_t began, left; /* of this wait; of the round before: 0, none */
    int64_t sleep;       /* the last one; 0: none yet */
    int64_t cost;        /* of a sleep, beyond itself: the mean of the last ones */
    int64_t awake;       /* it stays so until then */
    int64_t seen, spun;  /* the last round's begin; rounds at full speed that the caller has not counted yet */
    struct wait_turn turn;
    unsigned rounds; /* of this wait, as far as the caller counts */
    bool slept;      /* the last round might */
    bool way, made;  /* it makes way, in place of a sleep; some round of this wait has */
};

/* The longest sleep, 0: none; the longest one where sleeps are dear; what a system call costs. */
struct wait_limits {
    int64_t bound, most, call;
};

struct wait_few {
    intptr_t whats[WAIT_FEW];
    unsigned oldest;
};

static inline void wait_forget(struct wait *wait)
{
    *wait = (struct wait){.awake = wait->awake, .cost = wait->cost};
}

/* Has its end anything to say of the next ones? */
static inline bool wait_has_stayed(const struct wait *wait)
{
    return wait->sleep > 0 || wait->made;
}

/* It ends with progress that no sleep could have heard of. */
static inline void wait_stays_awake(struct wait *wait, int64_t now)
{
    int64_t took = now - wait->began;
    if (took < (wait->sleep > 0 ? WAIT_BRIEF_NS : WAIT_AWAKE_NS))
        wait->awake = now + 2 * took + WAIT_AWAKE_NS;
}

/* Is it one of the last few? It is from now on, in place of the oldest. */
static inline bool wait_knows(struct wait_few *few, intptr_t what)
{
    for (unsigned i = 0; i < WAIT_FEW; i++) {
        if (few->whats[i] == what)
            return true;
    }
    few->whats[few->oldest] = what;
    few->oldest = (few->oldest + 1) % WAIT_FEW;
    return false;
}

/* The clock is not read. */
static inline bool wait_is_young(const struct wait *wait)
{
    return wait->rounds < WAIT_ROUNDS;
}

static inline bool wait_is_long(const struct wait *wait, int64_t now)
{
    return wait->left != 0 && now - wait->began >= WAIT_SPEED_NS;
}

/* A poll has it before a yield, since what comes ends it there. */
static inline bool wait_sleeps_at(struct wait_turn *turn, intptr_t what)
{
    if (turn->at != what && (turn->at != 0 || what == 0) && ++turn->elsewhere <= WAIT_ELSEWHERE)
        return false;
    *turn = (struct wait_turn){.at = what};
    return true;
}

/* Of the sleep of the round before. One that data has ended tells nothing. */
static inline void wait_learns_cost(struct wait *wait)
{
    int64_t late = wait->left - wait->seen - wait->sleep;
    if (wait->slept && late > 0 && late < WAIT_COST_NS)
        wait->cost += (late - wait->cost) / WAIT_COSTS;
}

static inline int64_t wait_longest(const struct wait *wait, int64_t waited, const struct wait_limits *limits)
{
    int64_t worth = wait->cost * WAIT_WORTH;
    if (worth > waited / WAIT_PART)
        worth = waited / WAIT_PART;
    if (worth > limits->most)
        worth = limits->most;
    return worth > limits->bound ? worth : limits->bound;
}

/* A round begins at now; what: the same thing has the same number, 0 is a yield. How long it may sleep, 0: at full
 * speed. Before it sleeps it makes way once. */
static inline int64_t wait_round(struct wait *wait, int64_t now, intptr_t what, struct wait_limits limits)
{
    int64_t gap = (wait->sleep > 0 ? WAIT_GAP_SLEPT_NS : WAIT_GAP_NS) + limits.call, waited, longest;
    bool due, stays, makes_way;
    wait_learns_cost(wait);
    if (wait->left == 0 || now - wait->left > gap)
        *wait = (struct wait){.began = now,
                              .awake = wait->awake,
                              .cost = wait->cost,
                              .seen = now,
                              .spun = wait->spun,
                              .rounds = wait->rounds};
    if (!wait->slept)
        wait->spun += now - wait->seen;
    wait->seen = now;
    due = wait_sleeps_at(&wait->turn, what) && limits.bound > 0;
    waited = now - wait->began;
    stays = now < wait->awake && waited < WAIT_AWAKE_NS;
    makes_way = stays ? waited >= WAIT_WAY_NS : waited >= WAIT_SPEED_NS && !wait->made;
    wait->way = due && makes_way;
    wait->made |= wait->way;
    wait->slept = due && !stays && !makes_way && waited >= WAIT_SPEED_NS;
    if (!wait->slept)
        return 0;
    longest = wait_longest(wait, waited, &limits);
    wait->sleep = wait->sleep == 0 ? WAIT_SLEEP_NS : wait->sleep * 2;
    if (wait->sleep > longest)
        wait->sleep = longest;
    return wait->sleep;
}

#endif
