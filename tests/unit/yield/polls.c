/* polls.c - a program that polls by any call of the C library: part of program.c. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/yield/program.h"

enum { TIMES = 500, FAR_FD = 1500 }; /* above FD_SETSIZE */

static sigset_t nothing_blocked; /* and so any signal ends it */
static const sigset_t *mask;
static const struct timespec at_once;
static int fd, epoll;
static volatile sig_atomic_t handled;

static int by_poll(void)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN};
    int result = poll(&asked, 1, 0);
    return result == 1 ? asked.revents : result;
}

static int by_ppoll(void)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN};
    int result = ppoll(&asked, 1, &at_once, mask);
    return result == 1 ? asked.revents : result;
}

/* 100: the set says it; 200: it has something, and nothing was found. */
static int of_set(int result, const fd_set *set)
{
    return result < 0 ? result : result * 100 + (!!FD_ISSET(fd, set) != (result > 0)) * 200;
}

static int by_select(void)
{
    struct timeval none = {0, 0};
    fd_set set;
    int result;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    result = select(fd + 1, &set, NULL, NULL, &none);
    return of_set(result, &set) + (none.tv_sec != 0 || none.tv_usec != 0);
}

static int by_pselect(void)
{
    fd_set set;
    int result;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    result = pselect(fd + 1, &set, NULL, NULL, &at_once, mask);
    return of_set(result, &set);
}

static int by_epoll(void)
{
    struct epoll_event got = {.events = 0};
    int result = epoll_wait(epoll, &got, 1, 0);
    return result == 1 ? (int)got.data.u64 : result;
}

static int by_epoll_pwait(void)
{
    struct epoll_event got = {.events = 0};
    int result = epoll_pwait(epoll, &got, 1, 0, mask);
    return result == 1 ? (int)got.data.u64 : result;
}

/* A C library of before 2.35 does not have it. */
int epoll_pwait2(int, struct epoll_event *, int, const struct timespec *, const sigset_t *) __attribute__((weak));

static int by_epoll_pwait2(void)
{
    struct epoll_event got = {.events = 0};
    int result = epoll_pwait2 ? epoll_pwait2(epoll, &got, 1, &at_once, mask) : by_epoll_pwait();
    return result == 1 ? (int)got.data.u64 : result;
}

static const struct {
    const char *name;
    yield_poll *poll;
    bool masks, told; /* of signals */
} ways[] = {{"poll", by_poll, false, false},
            {"ppoll", by_ppoll, true, true},
            {"select", by_select, false, false},
            {"pselect", by_pselect, true, true},
            {"epoll", by_epoll, false, false},
            {"epoll_pwait", by_epoll_pwait, true, false},
            {"epoll_pwait2", by_epoll_pwait2, true, false}};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

yield_poll *yield_poll_of(const char *name, int of)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 17};
    fd = of;
    epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    sigemptyset(&nothing_blocked);
    for (size_t i = 0; i < WAYS; i++) {
        if (strcmp(name, ways[i].name) == 0)
            return ways[i].poll;
    }
    return NULL;
}

static void handle(int signal)
{
    (void)signal;
    handled++;
}

static void tick(long us)
{
    struct itimerval timer = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Signals come: it gets nothing and touches no errno, or is told of one. */
static int nothing_comes(size_t way)
{
    int wrong = 0;
    tick(700);
    for (int i = 0; i < TIMES; i++) {
        errno = 77;
        int result = ways[way].poll();
        wrong += !((result == 0 && errno == 77) || (result == -1 && errno == EINTR));
    }
    tick(0);
    return wrong;
}

/* Signals that can come nowhere else: it is told of each. Of epoll_pwait() none comes so. */
static int signals_come(size_t way)
{
    sigset_t alarm;
    int told = 0;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    mask = &nothing_blocked;
    handled = 0;
    tick(700);
    for (int i = 0; i < TIMES || (ways[way].told && handled < 50 && i < 100 * TIMES * TIMES); i++)
        told += ways[way].poll() == -1 && errno == EINTR;
    told -= handled;
    if (ways[way].told != (handled > 0))
        told = -1000;
    tick(0);
    mask = NULL;
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    return told;
}

static void *poll_for_ever(void *way)
{
    while (ways[(uintptr_t)way].poll() >= 0)
        ;
    return NULL;
}

static bool is_cancelled(size_t way)
{
    void *end = NULL;
#ifdef __SANITIZE_ADDRESS__ /* which takes what the cancelled functions have left on the stack for a fault */
    end = PTHREAD_CANCELED;
    (void)way, (void)poll_for_ever;
#else
    pthread_t thread;
    if (pthread_create(&thread, NULL, poll_for_ever, (void *)(uintptr_t)way) != 0)
        exit(98);
    poll(NULL, 0, 20);
    pthread_cancel(thread);
    pthread_join(thread, &end);
#endif
    return end == PTHREAD_CANCELED;
}

/* Each often enough to be one of somebody who waits. */
static void faults(void)
{
    void *nowhere = (void *)(uintptr_t)4096;
    int wrong = 0;
    for (int i = 0; i < TIMES; i++)
        wrong += poll(nowhere, 1, 0) != -1 || errno != EFAULT;
    for (int i = 0; i < TIMES; i++)
        wrong += ppoll(nowhere, 1, &at_once, NULL) != -1 || errno != EFAULT;
    for (int i = 0; i < TIMES; i++)
        wrong += select(1, nowhere, NULL, NULL, &(struct timeval){0, 0}) != -1 || errno != EFAULT;
    for (int i = 0; i < TIMES; i++)
        wrong += pselect(1, NULL, nowhere, NULL, &at_once, NULL) != -1 || errno != EFAULT;
    for (int i = 0; i < TIMES; i++)
        wrong += select(-1, NULL, NULL, NULL, &(struct timeval){0, 0}) != -1 || errno != EINVAL;
    for (int i = 0; i < TIMES; i++)
        wrong += epoll_pwait(1000, &(struct epoll_event){0}, 1, 0, NULL) != -1 || errno != EBADF;
    printf("faults %d, none %d %d\n", wrong, ppoll(NULL, 0, &at_once, NULL),
           select(0, NULL, NULL, NULL, &(struct timeval){0, 0}));
}

/* Sets may be longer than the type says. */
static void far(void)
{
    unsigned long sets[2][2 * FD_SETSIZE / 8 / sizeof(long)];
    struct rlimit limit = {4096, 4096};
    const size_t at = FAR_FD / (8 * sizeof(long));
    int wrong = 0;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || dup2(fd, FAR_FD) < 0) {
        printf("far: it may not\n");
        return;
    }
    for (int i = 0; i < TIMES; i++) {
        memset(sets, 0, sizeof(sets));
        sets[0][at] = 1UL << FAR_FD % (8 * sizeof(long));
        wrong += select(FAR_FD + 1, (fd_set *)(void *)sets[0], (fd_set *)(void *)sets[1], NULL,
                        &(struct timeval){0, 0}) != 0 ||
                 sets[0][at] != 0;
    }
    printf("far %d\n", wrong);
    close(FAR_FD);
}

void yield_polls(const int ends[2])
{
    struct sigaction action = {.sa_handler = handle};
    char byte = 'y';
    sigaction(SIGALRM, &action, NULL);
    (void)yield_poll_of("", ends[0]);
    faults();
    far();
    for (size_t i = 0; i < WAYS; i++) {
        printf("%s: nothing %d", ways[i].name, nothing_comes(i));
        printf(", signals %d", ways[i].masks ? signals_come(i) : 0);
        if (write(ends[1], &byte, 1) != 1)
            exit(91);
        printf(", something %d", ways[i].poll());
        if (read(ends[0], &byte, 1) != 1)
            exit(91);
        printf(", cancelled %d\n", is_cancelled(i));
    }
}
