/* guard.c - who polls while he waits sleeps between two rounds, so that those below him get what he leaves.
 *
 * In a real-time class sched_yield() gives nothing to lower classes, and a poll with a time-out of 0 never sleeps. Open
 * MPI waits in opal_progress(), which calls sched_yield() where a round has brought nothing (mpi_yield_when_idle), and
 * poll() where there is TCP; MPICH in ucp_worker_progress(), which says what a round has brought, and calls
 * epoll_wait() where there is TCP. Each of these calls is a round of wait.h, and a loop of a few of them is one wait.
 *
 * Where nobody is below, which the page of the job says (page.h), nobody sleeps; and with ELMER_SPIN=1 or a bound of 0
 * never. Rounds without progress are counted in the page all the same.
 *
 * A yield in a library's round is one that Elmer has asked for, to be told that the round has brought nothing, and as
 * a system call it costs as much as a round. So as long as there is a processor for each process that waits it is none,
 * but now and then in a longer wait: a processor for each process is not one for each thread, and one that works may
 * have its time from who waits.
 *
 * A call means what it has always meant. A poll that may sleep waits for what it asks, so that data wakes it at once,
 * and is asked again without a sleep where a signal has interrupted it. sched_yield() may last longer, as it may
 * wherever somebody else runs. The thread's state is its own, and a handler of a signal that comes in the middle of a
 * round at worst makes a wait begin anew.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "yield/wait.h"
#include "yield/yield.h"

#define YIELD_SETTING "OMPI_MCA_mpi_yield_when_idle"

enum {
    READY_NS = 5000,    /* who has something in that time has not waited for it */
    YIELD_NS = 50000,   /* a wait makes way for other threads so often, where a processor is there for each process */
    YIELD_ROUNDS = 500, /* the same where no clock is read */
    SPIN_ROUNDS = 1000  /* without progress, where no clock is read: somebody waits here */
};

static int64_t bound; /* ns; 0: nobody sleeps */
static int64_t most;  /* where sleeps are dear; who has said how long they are means it */

/* Of this thread. inside: a library's round, in which it yields and polls as it goes; the sleep of the round is due
 * there, or at its end. idle: it has said that the round has brought nothing. got: a poll of the round has found
 * something. asked: what rounds have asked for last; fds: the first ones that poll() was asked for, fd: the one that it
 * sleeps for. yielded: when it has made way last; kept: yields since then that were none. */
static __thread struct {
    struct wait wait;
    struct wait_few asked, fds;
    struct wait_turn fd;
    int64_t due, yielded;
    unsigned kept;
    bool inside, idle, got;
} own;

static void *kept_opal, *kept_ucp;

/* For who calls it before our constructor, or where the real one cannot be found. */
static int yield_plainly(void)
{
    return (int)syscall(SYS_sched_yield);
}
static int (*real_yield)(void) = yield_plainly;

/* A rank of Open MPI that spins says when it has nothing to do, so that its waits can be counted; unless the user does
 * not want that. In the rank alone, which has us: what else is executed would yield indeed. */
static void let_tell(void)
{
    static char setting[] = YIELD_SETTING "=1";
    if (getenv("OMPI_COMM_WORLD_RANK") && secure_getenv(PAGE_VARIABLE) && !getenv(YIELD_SETTING))
        putenv(setting);
}

__attribute__((constructor)) static void begin(void)
{
    const char *spin = secure_getenv("ELMER_SPIN");
    long us = yield_number(secure_getenv("ELMER_POLL_SLEEP"), WAIT_BOUND_MAX_US);
    if (spin && strcmp(spin, "1") == 0) {
        let_tell();
    } else {
        bound = (us < 0 ? WAIT_BOUND_US : us) * 1000;
        most = us < 0 ? WAIT_MOST_NS : bound;
    }
    real_yield = (int (*)(void))(uintptr_t)yield_next("sched_yield", (void *)(uintptr_t)yield_plainly);
}

/* No cancellation point: who is called is none. */
static void nap(int64_t ns)
{
    struct timespec time = yield_timespec(ns);
    int kept = errno;
    if (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL) < 0 && errno != EINTR && yield_slot)
        yield_slot->cannot_sleep = 1; /* a filter of system calls */
    errno = kept;
}

static bool is_alone(void)
{
    return yield_page && __atomic_load_n(&yield_page->head.alone, __ATOMIC_RELAXED);
}

/* Then who waits has to make way at once. */
static bool is_crowded(void)
{
    return !yield_page || __atomic_load_n(&yield_page->head.processes, __ATOMIC_RELAXED) >
                              __atomic_load_n(&yield_page->head.processors, __ATOMIC_RELAXED);
}

/* Threads that count at once may lose one of each other's; the slot is nobody else's. */
static void count(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

/* what: 0 for a yield, which is part of any wait. */
static int64_t round_begins(intptr_t what)
{
    int64_t due, now;
    if (what != 0 && !wait_knows(&own.asked, what))
        wait_forget(&own.wait);
    if (wait_is_young(&own.wait) || bound == 0)
        return 0;
    now = yield_now();
    if (!yield_page_asked && wait_is_long(&own.wait, now))
        yield_page_open(false);
    due = wait_round(&own.wait, now, what,
                     (struct wait_limits){.bound = is_alone() ? 0 : bound, .most = most, .call = yield_call_ns()});
    if (own.wait.spun > 0 && yield_slot)
        count(&yield_slot->spun_ns, (uint64_t)own.wait.spun);
    own.wait.spun = 0;
    return due;
}

/* When the thread goes on: where reading the clock takes microseconds that is time of ours, and not work of its own. */
static int64_t leaves(void)
{
    int64_t clock_ns = yield_clock_ns();
    return yield_now() + clock_ns;
}

static void round_ends(bool progress)
{
    if (progress) {
        wait_forget(&own.wait);
        return;
    }
    if (yield_slot)
        count(&yield_slot->rounds, 1);
    if (wait_is_young(&own.wait))
        own.wait.rounds++;
    else if (bound > 0)
        own.wait.left = leaves();
    else if (!yield_page_asked && ++own.wait.rounds == SPIN_ROUNDS)
        yield_page_open(true);
}

/* In a library's round that is not due for a sleep. */
static bool makes_way(void)
{
    if (is_crowded() || own.wait.way)
        return true;
    if (bound == 0)
        return ++own.kept >= YIELD_ROUNDS;
    return own.wait.seen - own.wait.began >= WAIT_SPEED_NS && own.wait.seen - own.yielded >= YIELD_NS;
}

/* What others have used meanwhile has not been spun. */
static void make_way(void)
{
    real_yield(); /* it cannot fail */
    own.kept = 0;
    if (own.wait.seen == 0)
        return;
    own.yielded = yield_now();
    if (own.yielded - own.wait.seen > READY_NS)
        own.wait.seen = own.yielded;
}

/* ---- what libraries call, or anybody ---- */

YIELD_PUBLIC int sched_yield(void)
{
    int64_t due = own.inside ? own.due : round_begins(0);
    own.due = 0;
    own.idle = true;
    if (due > 0)
        nap(due);
    else if (!own.inside || makes_way())
        make_way();
    if (!own.inside)
        round_ends(false);
    return 0;
}

/* The C library's own does not call the one above. */
YIELD_PUBLIC void thrd_yield(void)
{
    (void)sched_yield();
}

int64_t yield_poll_begins(intptr_t what)
{
    return own.inside ? own.due : round_begins(what);
}

void yield_poll_ends(int result, int64_t due, int64_t began)
{
    int kept = errno;
    if (!own.inside)
        round_ends(result != 0);
    else if (result > 0)
        own.got = true;
    if (own.inside && due > 0 && (result == 0 || yield_now() - began > READY_NS))
        own.due = 0; /* the round has had its sleep */
    errno = kept;
}

int64_t yield_poll_asks(int fd, int64_t due)
{
    if (own.inside)
        return due;
    if (wait_knows(&own.fds, fd))
        return due > 0 && wait_sleeps_at(&own.fd, fd) ? due : 0;
    wait_forget(&own.wait);
    return 0;
}

void yield_blocks(void)
{
    if (!own.inside)
        wait_forget(&own.wait);
}

/* ---- the rounds of libraries ---- */

static void library_begins(intptr_t what)
{
    own.due = round_begins(what);
    own.inside = true;
    own.idle = own.got = false;
}

static void library_ends(bool progress)
{
    own.inside = false;
    if (!progress && own.due > 0)
        nap(own.due);
    else if (!progress && own.wait.way && !own.idle)
        make_way();
    if (progress && !own.got && wait_has_stayed(&own.wait))
        wait_stays_awake(&own.wait, yield_now());
    own.due = 0;
    round_ends(progress);
}

/* Where it does not yield it has had something to do; so it has where what comes by TCP does not count for it. */
YIELD_PUBLIC void opal_progress(void)
{
    void (*real)(void) = (void (*)(void))(uintptr_t)YIELD_REAL(kept_opal, opal_progress);
    if (!real)
        return;
    if (own.inside) {
        real();
        return;
    }
    library_begins((intptr_t)&kept_opal);
    real();
    library_ends(!own.idle || own.got);
}

unsigned yield_progress(void *worker)
{
    unsigned (*real)(void *) = (unsigned (*)(void *))(uintptr_t)kept_ucp;
    return real ? real(worker) : 0;
}

YIELD_PUBLIC unsigned ucp_worker_progress(void *worker)
{
    unsigned (*real)(void *) = (unsigned (*)(void *))(uintptr_t)YIELD_REAL(kept_ucp, ucp_worker_progress);
    unsigned got;
    if (!real)
        return 0;
    yield_knows_worker(worker);
    if (own.inside)
        return real(worker);
    library_begins((intptr_t)&kept_ucp);
    got = real(worker);
    library_ends(got > 0);
    return got;
}
