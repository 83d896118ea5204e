/* polls.c - polls of the C library that ask for what is there now: each is a round of guard.c, whatever it is called.
 *
 * A round that sleeps is the same call with a short time-out, so that what it asks for ends it. A signal that comes
 * meanwhile has been handled, and is no more to the caller than one between two calls, so it is asked again: but where
 * a mask of signals comes with ppoll() or pselect() it is what the caller waits for, and is told.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "yield/yield.h"

enum { KERNEL_SIGNALS = 64 };

static const struct timespec at_once;

/* ---- the same calls, for who calls them before our constructor, or where the real ones cannot be found ---- */

/* Who waits in them can be cancelled there. */
static int plainly(long call, const long values[6])
{
    int kept, result;
    (void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &kept); /* NOLINT(cert-pos47-c): as C libraries do it */
    result = (int)syscall(call, values[0], values[1], values[2], values[3], values[4], values[5]);
    (void)pthread_setcanceltype(kept, NULL);
    return result;
}

static int ppoll_plainly(struct pollfd *fds, nfds_t number, const struct timespec *time, const sigset_t *mask)
{
    struct timespec copy = time ? *time : at_once; /* the kernel writes what is left */
    const long values[6] = {(intptr_t)fds, (long)number, time ? (intptr_t)&copy : 0, (intptr_t)mask,
                            KERNEL_SIGNALS / 8};
    return plainly(SYS_ppoll, values);
}

static int poll_plainly(struct pollfd *fds, nfds_t number, int timeout)
{
    struct timespec time = yield_timespec(timeout * INT64_C(1000000));
    return ppoll_plainly(fds, number, timeout < 0 ? NULL : &time, NULL);
}

static int pselect_plainly(int number, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *time,
                           const sigset_t *mask)
{
    struct timespec copy = time ? *time : at_once;
    const long signals[2] = {(intptr_t)mask, KERNEL_SIGNALS / 8};
    const long values[6] = {
        number, (intptr_t)reads, (intptr_t)writes, (intptr_t)others, time ? (intptr_t)&copy : 0, (intptr_t)signals};
    return plainly(SYS_pselect6, values);
}

/* The kernel writes what is left of the time. */
static int select_plainly(int number, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *timeout)
{
#ifdef SYS_select
    const long values[6] = {number, (intptr_t)reads, (intptr_t)writes, (intptr_t)others, (intptr_t)timeout};
    return plainly(SYS_select, values);
#else
    struct timespec time = {0};
    const long signals[2] = {0, KERNEL_SIGNALS / 8};
    const long values[6] = {
        number, (intptr_t)reads, (intptr_t)writes, (intptr_t)others, timeout ? (intptr_t)&time : 0, (intptr_t)signals};
    int result;
    if (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) {
        errno = EINVAL;
        return -1;
    }
    if (timeout)
        time = (struct timespec){timeout->tv_sec + timeout->tv_usec / 1000000, timeout->tv_usec % 1000000 * 1000};
    result = plainly(SYS_pselect6, values);
    if (timeout)
        *timeout = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return result;
#endif
}

static int epoll_pwait_plainly(int epoll, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
    const long values[6] = {epoll, (intptr_t)events, max, timeout, (intptr_t)mask, KERNEL_SIGNALS / 8};
    return plainly(SYS_epoll_pwait, values);
}

/* Newer than the oldest C library and kernel: who calls it has both, or finds out. */
int epoll_pwait2(int epoll, struct epoll_event *events, int max, const struct timespec *time, const sigset_t *mask);

static int epoll_pwait2_plainly(int epoll, struct epoll_event *events, int max, const struct timespec *time,
                                const sigset_t *mask)
{
#ifdef SYS_epoll_pwait2
    const long values[6] = {epoll, (intptr_t)events, max, (intptr_t)time, (intptr_t)mask, KERNEL_SIGNALS / 8};
    return plainly(SYS_epoll_pwait2, values);
#else
    (void)epoll, (void)events, (void)max, (void)time, (void)mask;
    errno = ENOSYS;
    return -1;
#endif
}

static int epoll_wait_plainly(int epoll, struct epoll_event *events, int max, int timeout)
{
    return epoll_pwait_plainly(epoll, events, max, timeout, NULL);
}

static int (*real_poll)(struct pollfd *, nfds_t, int) = poll_plainly;
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *) = ppoll_plainly;
static int (*real_select)(int, fd_set *, fd_set *, fd_set *, struct timeval *) = select_plainly;
static int (*real_pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *,
                           const sigset_t *) = pselect_plainly;
static int (*real_epoll_wait)(int, struct epoll_event *, int, int) = epoll_wait_plainly;
static int (*real_epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *) = epoll_pwait_plainly;
static int (*real_epoll_pwait2)(int, struct epoll_event *, int, const struct timespec *,
                                const sigset_t *) = epoll_pwait2_plainly;

#define FIND(name) real_##name = (__typeof__(real_##name))(uintptr_t)yield_next(#name, (void *)(uintptr_t)real_##name)

__attribute__((constructor)) static void begin(void)
{
    FIND(poll);
    FIND(ppoll);
    FIND(select);
    FIND(pselect);
    FIND(epoll_wait);
    FIND(epoll_pwait);
    FIND(epoll_pwait2);
}

int yield_wait_for(struct pollfd *asked, int64_t ns)
{
    struct timespec time = yield_timespec(ns);
    return real_ppoll(asked, 1, &time, NULL);
}

static bool is_at_once(const struct timespec *time)
{
    return time && time->tv_sec == 0 && time->tv_nsec == 0;
}

/* After a sleep: it has been interrupted, or could not be, and the caller is not told. */
static bool asks_again(int result, const sigset_t *mask, int kept)
{
    if (result >= 0 || (mask && errno == EINTR))
        return false;
    errno = kept;
    return true;
}

/* ---- poll(), ppoll() ---- */

/* time: NULL for poll(). */
static int poll_once(struct pollfd *fds, nfds_t number, const struct timespec *time, const sigset_t *mask)
{
    return time ? real_ppoll(fds, number, time, mask) : real_poll(fds, number, 0);
}

/* Only the kernel can tell whether there is memory behind fds: nothing is read there before it has done so. */
static int poll_now(struct pollfd *fds, nfds_t number, const struct timespec *time, const sigset_t *mask)
{
    int64_t due = yield_poll_begins((intptr_t)fds ^ (intptr_t)number << 32), began = due > 0 ? yield_now() : 0;
    int kept = errno, result = poll_once(fds, number, time, mask);
    if (result >= 0)
        due = yield_poll_asks(fds[0].fd, due);
    if (result == 0 && due > 0) {
        struct timespec sleep = yield_timespec(due);
        result = real_ppoll(fds, number, &sleep, mask);
        if (asks_again(result, mask, kept))
            result = poll_once(fds, number, time, mask);
    }
    yield_poll_ends(result, due, began);
    return result;
}

static int ask_poll(struct pollfd *fds, nfds_t number, int timeout)
{
    if (timeout == 0 && number > 0)
        return poll_now(fds, number, NULL, NULL);
    yield_blocks();
    return real_poll(fds, number, timeout);
}

static int ask_ppoll(struct pollfd *fds, nfds_t number, const struct timespec *timeout, const sigset_t *mask)
{
    if (is_at_once(timeout) && number > 0)
        return poll_now(fds, number, &at_once, mask);
    yield_blocks();
    return real_ppoll(fds, number, timeout, mask);
}

YIELD_PUBLIC int poll(struct pollfd *fds, nfds_t number, int timeout)
{
    return ask_poll(fds, number, timeout);
}

YIELD_PUBLIC int ppoll(struct pollfd *fds, nfds_t number, const struct timespec *timeout, const sigset_t *mask)
{
    return ask_ppoll(fds, number, timeout, mask);
}

/* Both of who is built with _FORTIFY_SOURCE; not by their names, which the program may have given to others. */
int __poll_chk(struct pollfd *fds, nfds_t number, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t number, const struct timespec *timeout, const sigset_t *mask, size_t size);
void __chk_fail(void) __attribute__((noreturn, weak)); /* only the GNU C library has it, and who calls these */

static void check(nfds_t number, size_t size)
{
    if (size / sizeof(struct pollfd) >= number)
        return;
    if (__chk_fail)
        __chk_fail();
    abort();
}

YIELD_PUBLIC int __poll_chk(struct pollfd *fds, nfds_t number, int timeout, size_t size)
{
    check(number, size);
    return ask_poll(fds, number, timeout);
}

YIELD_PUBLIC int __ppoll_chk(struct pollfd *fds, nfds_t number, const struct timespec *timeout, const sigset_t *mask,
                             size_t size)
{
    check(number, size);
    return ask_ppoll(fds, number, timeout, mask);
}

/* ---- select(), pselect() ---- */

/* time: NULL for select(). The sets, however long, stay as they are where nothing is found out. */
static int select_once(int number, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *time,
                       const sigset_t *mask)
{
    struct timeval none = {0, 0};
    return time ? real_pselect(number, reads, writes, others, time, mask)
                : real_select(number, reads, writes, others, &none);
}

static int select_now(int number, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *time,
                      const sigset_t *mask)
{
    int64_t due = yield_poll_begins((intptr_t)reads ^ (intptr_t)writes << 8 ^ (intptr_t)others << 16 ^
                                    (intptr_t)number << 32),
            began = due > 0 ? yield_now() : 0;
    struct timespec sleep = yield_timespec(due);
    int kept = errno, result = -1;
    if (due > 0)
        result = real_pselect(number, reads, writes, others, &sleep, mask);
    if (due == 0 || asks_again(result, mask, kept))
        result = select_once(number, reads, writes, others, time, mask);
    yield_poll_ends(result, due, began);
    return result;
}

/* A time-out of 0 is what is left of it, too. */
YIELD_PUBLIC int select(int number, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *timeout)
{
    if (timeout && timeout->tv_sec == 0 && timeout->tv_usec == 0 && number > 0)
        return select_now(number, reads, writes, others, NULL, NULL);
    yield_blocks();
    return real_select(number, reads, writes, others, timeout);
}

YIELD_PUBLIC int pselect(int number, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *timeout,
                         const sigset_t *mask)
{
    if (is_at_once(timeout) && number > 0)
        return select_now(number, reads, writes, others, &at_once, mask);
    yield_blocks();
    return real_pselect(number, reads, writes, others, timeout, mask);
}

/* ---- epoll_wait(), epoll_pwait(), epoll_pwait2() ---- */

enum epoll_call { BY_WAIT, BY_PWAIT, BY_PWAIT2 };

static int epoll_once(int epoll, struct epoll_event *events, int max, const sigset_t *mask, enum epoll_call by)
{
    if (by == BY_WAIT)
        return real_epoll_wait(epoll, events, max, 0);
    return by == BY_PWAIT ? real_epoll_pwait(epoll, events, max, 0, mask)
                          : real_epoll_pwait2(epoll, events, max, &at_once, mask);
}

/* It sleeps in ppoll(), which knows parts of a millisecond wherever a program may run, and takes nothing; without the
 * mask, because the kernel looks for no signals where epoll_pwait() has a time-out of 0. */
static int epoll_now(int epoll, struct epoll_event *events, int max, const sigset_t *mask, enum epoll_call by)
{
    struct pollfd asked = {.fd = epoll, .events = POLLIN};
    int64_t due = yield_poll_begins((intptr_t)&real_epoll_wait ^ epoll), began = due > 0 ? yield_now() : 0;
    struct timespec sleep = yield_timespec(due);
    int kept = errno, result;
    if (due > 0)
        (void)real_ppoll(&asked, 1, &sleep, NULL);
    errno = kept;
    result = epoll_once(epoll, events, max, mask, by);
    yield_poll_ends(result, due, began);
    return result;
}

YIELD_PUBLIC int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
    if (timeout == 0)
        return epoll_now(epoll, events, max, NULL, BY_WAIT);
    yield_blocks();
    return real_epoll_wait(epoll, events, max, timeout);
}

YIELD_PUBLIC int epoll_pwait(int epoll, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
    if (timeout == 0)
        return epoll_now(epoll, events, max, mask, BY_PWAIT);
    yield_blocks();
    return real_epoll_pwait(epoll, events, max, timeout, mask);
}

YIELD_PUBLIC int epoll_pwait2(int epoll, struct epoll_event *events, int max, const struct timespec *timeout,
                              const sigset_t *mask)
{
    if (is_at_once(timeout))
        return epoll_now(epoll, events, max, mask, BY_PWAIT2);
    yield_blocks();
    return real_epoll_pwait2(epoll, events, max, timeout, mask);
}
