/* program.c - see program.h. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/yield/program.h"

enum { ANSWERS = 9, MANY = 8 };

static char self[4096], library[4200], fakes[4200], slow_clock[4200];
bool yield_clock_is_slow;

const char *const yield_waiting[YIELD_WAITING] = {
    "poll",       "ppoll",     "select",   "pselect",   "epoll",     "epoll_pwait", "epoll_pwait2",
    "thrd_yield", "yield",     "opal",     "opal-tcp",  "ucp",       "ucp-tcp",     "poll-yield",
    "opal-yield", "ucp-yield", "poll-two", "turns-two", "epoll-two", "poll-call"};

/* ---- the program ---- */

static int ends[2];
static void *loaded;
static void *find(const char *name)
{
    void *found = dlsym(loaded, name);
    if (!found)
        exit(99);
    return found;
}

static void ignore(int signal)
{
    (void)signal;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void say(const char *what, long result)
{
    printf("%s %ld %d\n", what, result, result < 0 ? errno : 0);
}

/* A system call, which takes longer than WAIT_GAP_NS on some machines, and counts as work between two rounds then. */
enum { BETWEEN_LOOKS = 512 };
static int64_t used_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* It has got nothing and touched no errno, or a signal came, which the kernel says at a time-out of 0, too. */
static int unlike_nothing(int result)
{
    int said = errno;
    errno = 77;
    return !((result == 0 && said == 77) || (result == -1 && said == EINTR));
}

/* All of them more than once, so that the later ones are those of somebody who waits. */
static void calls(void)
{
    struct pollfd asked = {.fd = ends[0], .events = POLLIN}, wrong = {.fd = 1000, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 17}, got;
    struct itimerval soon = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = ignore};
    int epoll = epoll_create1(0), negative = 0;
    char byte;
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL); /* signals that are no reason for an end */
    errno = 77;
    for (int i = 0; i < 500; i++) {
        negative += unlike_nothing(poll(&asked, 1, 0)) || asked.revents != 0;
        negative += unlike_nothing(epoll_wait(epoll, &got, 1, 0));
        negative += sched_yield() != 0 || errno != 77;
    }
    for (int i = 0; i < 500; i++)
        negative += unlike_nothing(poll(&asked, 1, 0));
    for (int i = 0; i < 500; i++)
        negative += unlike_nothing(epoll_wait(epoll, &got, 1, 0));
    say("signals", negative);
    say("interrupted", poll(&asked, 1, 10000));
    say("interrupted", epoll_wait(epoll, &got, 1, 10000));
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < 500; i++)
        negative += poll(&wrong, 1, 0) != 1 || wrong.revents != POLLNVAL;
    say("no descriptor", negative);
    say("nothing", poll(NULL, 0, 0));
    say("no memory", poll((struct pollfd *)(uintptr_t)4096, 1, 10));
    say("no memory", poll((struct pollfd *)(uintptr_t)4096, 1, 0));
    for (int i = 0; i < 500; i++)
        negative += poll((struct pollfd *)(uintptr_t)4096, 1, 0) != -1 || errno != EFAULT;
    for (int i = 0; i < 500; i++)
        negative += epoll_wait(1000, &got, 1, 0) != -1 || errno != EBADF;
    for (int i = 0; i < 500; i++)
        negative += epoll_wait(epoll, &got, 0, 0) != -1 || errno != EINVAL;
    say("errors", negative);
    say("write", write(ends[1], "y", 1));
    say("poll", poll(&asked, 1, 0));
    say("revents", asked.revents);
    say("epoll", epoll_wait(epoll, &got, 1, 0));
    say("data", (long)got.data.u64);
    say("read", read(ends[0], &byte, 1));
    say("read", read(1000, &byte, 1));
}

static int new_epoll(int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    return epoll;
}

/* Things to ask for, one after the other: two, or many. turns: in the same place. */
static unsigned things_of(const char *how, struct pollfd asked[MANY], int epolls[MANY])
{
    for (int i = 0; i < MANY; i++) {
        asked[i] = (struct pollfd){.fd = dup(ends[0]), .events = POLLIN};
        epolls[i] = new_epoll(ends[0]);
    }
    return strstr(how, "-two") ? 2 : strstr(how, "-many") ? MANY : 1;
}

/* Rounds for some time of the CPU, however busy the machine is: how often it slept. */
static void wait_by(const char *how)
{
    struct pollfd asked[MANY], turns = {.events = POLLIN};
    int epolls[MANY];
    const unsigned things = things_of(how, asked, epolls);
    const bool yields = strstr(how, "-yield") != NULL;
    struct epoll_event event;
    struct rusage before, after;
    yield_poll *by = yield_poll_of(how, ends[0]);
    void (*opal)(void) = (void (*)(void))(uintptr_t)find("fake_call_opal");
    unsigned (*ucp)(void) = (unsigned (*)(void))(uintptr_t)find("fake_call_ucp");
    *(bool *)find("fake_idle") = strcmp(how, "opal-busy") != 0;
    *(unsigned *)find("fake_result") = strcmp(how, "ucp-busy") == 0;
    if (strcmp(how, "ucp-tcp") == 0)
        *(int *)find("fake_epoll") = epolls[0];
    if (strncmp(how, "opal-tcp", 8) == 0)
        *(int *)find("fake_poll") = ends[0];
    if (strcmp(how, "opal-tcp-busy") == 0 && write(ends[1], "y", 1) != 1)
        exit(94);
    getrusage(RUSAGE_SELF, &before);
    for (unsigned i = 0; i % BETWEEN_LOOKS || used_ms() < YIELD_ROUNDS_MS;
         i++) { /* between two rounds there is as little as can be */
        if (strncmp(how, "opal", 4) == 0)
            opal();
        else if (strncmp(how, "ucp", 3) == 0)
            (void)ucp();
        else if (strcmp(how, "yield") == 0)
            sched_yield();
        else if (strcmp(how, "thrd_yield") == 0)
            thrd_yield();
        else if (by)
            (void)by();
        else if (strncmp(how, "turns", 5) == 0) {
            turns.fd = asked[i % things].fd;
            poll(&turns, 1, 0);
        } else if (strncmp(how, "epoll", 5) == 0)
            (void)epoll_wait(epolls[i % things], &event, 1, 0);
        else
            poll(&asked[i % things], 1, 0);
        if (yields)
            sched_yield();
        if (strcmp(how, "poll-call") == 0)
            (void)getppid();
        if (strcmp(how, "poll-work") == 0) /* who reads the clock works, where that is slow */
            for (int64_t work = now_ns() + 5000; now_ns() < work;)
                ;
    }
    getrusage(RUSAGE_SELF, &after);
    printf("%ld\n", after.ru_nvcsw - before.ru_nvcsw);
}

/* Rounds of Open MPI for some time of the CPU: the time between two real yields, in rounds and in us. */
static void yields(void)
{
    void (*opal)(void) = (void (*)(void))(uintptr_t)find("fake_call_opal");
    const unsigned *rounds = find("fake_rounds"), *yielded = find("fake_yields");
    while (used_ms() < YIELD_ROUNDS_MS)
        for (int i = 0; i < BETWEEN_LOOKS; i++)
            opal();
    printf("%u %u\n", *rounds / (*yielded + 1), YIELD_ROUNDS_MS * 1000 / (*yielded + 1));
}

static void wait_by_ucp(int64_t ns)
{
    unsigned (*ucp)(void) = (unsigned (*)(void))(uintptr_t)find("fake_call_ucp");
    unsigned *result = find("fake_result");
    int64_t end = now_ns() + ns;
    *result = 0;
    while (now_ns() < end)
        for (int i = 0; i < 16; i++)
            (void)ucp();
    *result = 1;
    (void)ucp();
}

static long sleeps(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
}

/* Brief waits of MPICH, two by two, and a long one, after which it is as before: has it ever slept in the first one,
 * and made way in place of that in the other? A machine that is busy makes most of them longer. */
static void awake(void)
{
    enum { PAIRS = 2000, BRIEF_NS = 50000, LONG_NS = 1000000 };
    const unsigned *yielded = find("fake_yields");
    bool both = false;
    for (int i = 0; i < PAIRS && !both; i++) {
        long before = sleeps(), first;
        unsigned ways;
        wait_by_ucp(BRIEF_NS);
        first = sleeps();
        ways = *yielded;
        wait_by_ucp(BRIEF_NS);
        both = first > before && sleeps() == first && *yielded - ways > 10;
        wait_by_ucp(LONG_NS);
    }
    printf("%d\n", both);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Somebody writes when, and we poll for it: the median of what lies between, in us. yields: between two polls. */
static void answers(bool yields)
{
    struct pollfd asked = {.fd = ends[0], .events = POLLIN};
    int64_t took[ANSWERS], sent;
    pid_t writer = fork();
    for (int i = 0; writer == 0 && i < ANSWERS; i++) {
        poll(NULL, 0, 50);
        sent = now_ns();
        if (write(ends[1], &sent, sizeof(sent)) != sizeof(sent))
            _exit(1);
    }
    if (writer == 0)
        _exit(0);
    for (int i = 0; i < ANSWERS; i++) {
        while (poll(&asked, 1, 0) == 0) {
            if (yields)
                sched_yield();
        }
        if (read(ends[0], &sent, sizeof(sent)) != sizeof(sent))
            exit(97);
        took[i] = now_ns() - sent;
    }
    qsort(took, ANSWERS, sizeof(took[0]), by_size);
    printf("%ld\n", (long)(took[ANSWERS / 2] / 1000));
}

/* As MPICH ends: it has closed its connections, and waits in PMI's barrier. */
static void finalize(void)
{
    char byte = 0;
    alarm(2);
    *(unsigned *)find("fake_result") = 0;
    *(unsigned *)find("fake_rounds") = 0;
    (void)((unsigned (*)(void))(uintptr_t)find("fake_call_ucp"))();
    *(int *)find("fake_pipe") = ends[1];
    ((void (*)(void))(uintptr_t)find("fake_close"))();
    errno = 77;
    printf("%ld", (long)read(ends[0], &byte, 1));
    printf(" %c %d\n", byte, errno);
}

/* A process that prints what comes by the other end of descriptor 50, until nobody has that end any more. */
static void read_for_it(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        exit(92);
    pid_t pid = fork();
    if (pid == 0) {
        char text[256];
        ssize_t got;
        close(pair[1]);
        while ((got = read(pair[0], text, sizeof(text))) > 0)
            (void)!write(1, text, (size_t)got);
        _exit(0);
    }
    dup2(pair[1], 50);
    close(pair[0]);
    close(pair[1]);
}

/* As a rank of MPICH that exits without MPI_Finalize(), or after it. */
static int exits(const char *how)
{
    read_for_it();
    if (strcmp(how, "exits-forked") == 0) {
        pid_t pid = fork();
        if (pid == 0)
            exit(5);
        waitpid(pid, NULL, 0);
        return 0;
    }
    *(int *)find("fake_initialized") = strcmp(how, "exits-before") != 0;
    *(int *)find("fake_finalized") = strcmp(how, "exits-after") == 0;
    if (strcmp(how, "exits-at-once") == 0)
        _exit(5);
    printf("said ");
    return strcmp(how, "exits-well") == 0 ? 0 : 5;
}

/* Names of MPI that a program without MPI looks for, and finds. */
static void absent(void)
{
    static const char *const names[] = {"opal_progress", "ucp_worker_progress", "ucp_disconnect_nb",
                                        "ucp_worker_destroy"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *(*found)(void *) = (void *(*)(void *))(uintptr_t)dlsym(RTLD_DEFAULT, names[i]);
        printf("%s: %d\n", names[i], found != NULL);
        if (found)
            (void)found(&loaded);
    }
}

static void *load(void *none)
{
    dlopen(getenv("TEST_FAKES"), RTLD_NOW | RTLD_LOCAL); /* which does not come back */
    return none;
}

/* The first calls of a thread while another one is in dlopen(): nobody waits for the loader's lock. */
static void beside(void)
{
    struct pollfd asked = {.fd = ends[0], .events = POLLIN};
    struct epoll_event got;
    char byte, number[16];
    struct iovec into = {&byte, 1};
    pthread_t thread;
    snprintf(number, sizeof(number), "%d", ends[1]);
    setenv("TEST_HOLD", number, 1);
    if (pthread_create(&thread, NULL, load, NULL) != 0 || readv(ends[0], &into, 1) != 1)
        exit(93);
    alarm(5);
    sched_yield();
    poll(&asked, 1, 0);
    (void)epoll_wait(1000, &got, 1, 0);
    _exit(read(1000, &byte, 1) == -1 ? 0 : 1);
}

int yield_program(const char *what)
{
    if (strcmp(what, "absent") == 0) {
        absent();
        return 0;
    }
    if (strcmp(what, "beside") == 0 && pipe(ends) == 0)
        beside();
    loaded = dlopen(getenv("TEST_FAKES"), RTLD_NOW | (strncmp(what, "exits", 5) == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!loaded || pipe(ends) < 0 || (strcmp(what, "finalize") == 0 && (dup2(ends[0], 50) < 0 || (ends[0] = 50) < 0)))
        return 96;
    if (strcmp(what, "calls") == 0)
        calls();
    else if (strcmp(what, "yields") == 0)
        yields();
    else if (strcmp(what, "awake") == 0)
        awake();
    else if (strcmp(what, "polls") == 0)
        yield_polls(ends);
    else if (strncmp(what, "answers", 7) == 0)
        answers(strcmp(what, "answers-yield") == 0);
    else if (strcmp(what, "finalize") == 0)
        finalize();
    else if (strncmp(what, "exits", 5) == 0)
        return exits(what);
    else
        wait_by(what);
    return 0;
}

/* ---- and who executes it ---- */

int yield_slow_clock(void **state)
{
    (void)state;
    yield_clock_is_slow = true;
    return 0;
}

int yield_own_clock(void **state)
{
    (void)state;
    yield_clock_is_slow = false;
    return 0;
}

static void preload(const char *what)
{
    char list[13000];
    bool yields = strcmp(what, "yields") == 0 || strcmp(what, "awake") == 0; /* and says so */
    snprintf(list, sizeof(list), "%s%s%s%s%s", library, yields ? ":" : "", yields ? fakes : "",
             yield_clock_is_slow ? ":" : "", yield_clock_is_slow ? slow_clock : "");
    setenv("LD_PRELOAD", list, 1);
}

int yield_run(const char *what, bool with, const char *variable, const char *value, char *text, size_t size)
{
    int out[2], status = -1;
    size_t used = 0;
    ssize_t got;
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
        setenv("TEST_FAKES", fakes, 1);
        if (with)
            preload(what);
        if (variable)
            setenv(variable, value, 1);
        execl(self, self, "--program", what, (char *)NULL);
        _exit(95);
    }
    close(out[1]);
    while ((got = read(out[0], text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

long yield_number_of(const char *what, bool with, const char *variable, const char *value)
{
    char text[256];
    assert_int_equal(yield_run(what, with, variable, value, text, sizeof(text)), 0);
    return strtol(text, NULL, 10);
}

int yield_find(void)
{
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length < 0)
        return -1;
    snprintf(library, sizeof(library), "%.*s/../../../yield/.libs/libelmer-yield.so", (int)(strrchr(self, '/') - self),
             self);
    snprintf(fakes, sizeof(fakes), "%.*s/.libs/fakes.so", (int)(strrchr(self, '/') - self), self);
    snprintf(slow_clock, sizeof(slow_clock), "%.*s/.libs/clock.so", (int)(strrchr(self, '/') - self), self);
    return 0;
}
