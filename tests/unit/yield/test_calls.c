/* test_calls.c - libelmer-yield.so in a program: what calls return is the same with it and without, and who polls while
 * he waits sleeps. The program is this one, executed again with a word that says what it does. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "yield/page.h"

enum { SLEPT = 20, ROUNDS_MS = 100, ANSWERS = 9 };

static char self[4096], library[4200], fakes[4200];

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

static int64_t used_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void *poll_for_ever(void *none)
{
    struct pollfd asked = {.fd = ends[0], .events = POLLIN};
    while (poll(&asked, 1, 0) >= 0)
        ;
    return none;
}

static void *poll_epoll_for_ever(void *none)
{
    struct epoll_event got;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    while (epoll_wait(epoll, &got, 1, 0) >= 0)
        ;
    return none;
}

static void cancel(void *(*polls)(void *))
{
    pthread_t thread;
    void *end = NULL;
#ifdef __SANITIZE_ADDRESS__ /* which takes what the cancelled functions have left on the stack for a fault */
    end = PTHREAD_CANCELED;
    (void)thread, (void)polls;
#else
    if (pthread_create(&thread, NULL, polls, NULL) != 0)
        exit(98);
    poll(NULL, 0, 20);
    say("cancel", pthread_cancel(thread));
    say("join", pthread_join(thread, &end));
#endif
    say("cancelled", end == PTHREAD_CANCELED);
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
    cancel(poll_for_ever);
    cancel(poll_epoll_for_ever);
}

/* Rounds for some time of the CPU, however busy the machine is: how often it slept. */
static void wait_by(const char *how)
{
    struct pollfd asked[2] = {{.fd = ends[0], .events = POLLIN}, {.fd = ends[1], .events = POLLIN}};
    struct epoll_event event = {.events = EPOLLIN}, got;
    struct rusage before, after;
    int epoll = epoll_create1(0);
    void (*opal)(void) = (void (*)(void))(uintptr_t)find("fake_call_opal");
    unsigned (*ucp)(void) = (unsigned (*)(void))(uintptr_t)find("fake_call_ucp");
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    *(bool *)find("fake_idle") = strcmp(how, "opal-busy") != 0;
    *(unsigned *)find("fake_result") = strcmp(how, "ucp-busy") == 0;
    if (strcmp(how, "ucp-tcp") == 0)
        *(int *)find("fake_epoll") = epoll;
    if (strncmp(how, "opal-tcp", 8) == 0)
        *(int *)find("fake_poll") = ends[0];
    if (strcmp(how, "opal-tcp-busy") == 0 && write(ends[1], "y", 1) != 1)
        exit(94);
    getrusage(RUSAGE_SELF, &before);
    for (unsigned i = 0; i % 64 || used_ms() < ROUNDS_MS; i++) { /* between two rounds there is as little as can be */
        if (strncmp(how, "opal", 4) == 0)
            opal();
        else if (strncmp(how, "ucp", 3) == 0)
            (void)ucp();
        else if (strcmp(how, "yield") == 0)
            sched_yield();
        else if (strcmp(how, "epoll") == 0)
            (void)epoll_wait(epoll, &got, 1, 0);
        else
            poll(strcmp(how, "poll-many") == 0 ? &asked[i % 2] : asked, 1, 0);
        for (int64_t work = now_ns() + 5000; strcmp(how, "poll-work") == 0 && now_ns() < work;)
            ;
    }
    getrusage(RUSAGE_SELF, &after);
    printf("%ld\n", after.ru_nvcsw - before.ru_nvcsw);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Somebody writes when, and we poll for it: the median of what lies between, in us. */
static void answers(void)
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
        while (poll(&asked, 1, 0) == 0)
            ;
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

static int program(const char *what)
{
    if (strcmp(what, "absent") == 0) {
        absent();
        return 0;
    }
    if (strcmp(what, "beside") == 0 && pipe(ends) == 0)
        beside();
    loaded = dlopen(getenv("TEST_FAKES"), RTLD_NOW | RTLD_LOCAL);
    if (!loaded || pipe(ends) < 0 || (strcmp(what, "finalize") == 0 && (dup2(ends[0], 50) < 0 || (ends[0] = 50) < 0)))
        return 96;
    if (strcmp(what, "calls") == 0)
        calls();
    else if (strcmp(what, "answers") == 0)
        answers();
    else if (strcmp(what, "finalize") == 0)
        finalize();
    else
        wait_by(what);
    return 0;
}

/* ---- the tests ---- */

/* Its output in text; its status as waitpid() has it. */
static int run(const char *what, bool with, const char *variable, const char *value, char *text, size_t size)
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
            setenv("LD_PRELOAD", library, 1);
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

static long number(const char *what, bool with, const char *variable, const char *value)
{
    char text[256];
    assert_int_equal(run(what, with, variable, value, text, sizeof(text)), 0);
    return strtol(text, NULL, 10);
}

static void test_calls_mean_the_same(void **state)
{
    char without[4096], with[4096];
    (void)state;
    assert_int_equal(run("calls", false, NULL, NULL, without, sizeof(without)), 0);
    assert_int_equal(run("calls", true, NULL, NULL, with, sizeof(with)), 0);
    assert_string_equal(with, without);
    assert_non_null(strstr(with, "interrupted -1 4\ninterrupted -1 4\n"));
    assert_non_null(strstr(with, "signals 0 0\n"));
    assert_non_null(strstr(with, "cancelled 1 0\n"));
}

static const char *const waiting[] = {"poll", "epoll", "yield", "opal", "opal-tcp", "ucp", "ucp-tcp"};

static void test_who_waits_sleeps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
        long slept = number(waiting[i], true, NULL, NULL);
        if (slept < SLEPT)
            fail_msg("%s slept %ld times", waiting[i], slept);
    }
}

static void test_and_does_not_without(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
        assert_in_range(number(waiting[i], false, NULL, NULL), 0, SLEPT / 2);
        assert_in_range(number(waiting[i], true, "ELMER_SPIN", "1"), 0, SLEPT / 2);
        assert_in_range(number(waiting[i], true, "ELMER_POLL_SLEEP", "0"), 0, SLEPT / 2);
    }
}

static void test_who_works_does_not_sleep(void **state)
{
    static const char *const working[] = {"poll-work", "poll-many", "opal-busy", "opal-tcp-busy", "ucp-busy"};
    (void)state;
    for (size_t i = 0; i < sizeof(working) / sizeof(working[0]); i++) {
        long slept = number(working[i], true, NULL, NULL);
        if (slept > SLEPT / 2)
            fail_msg("%s slept %ld times", working[i], slept);
    }
}

/* A sleep may last 10 ms, but what comes meanwhile ends it. */
static void test_data_wakes_at_once(void **state)
{
    (void)state;
    assert_in_range(number("answers", true, "ELMER_POLL_SLEEP", "10000"), 0, 3000);
}

static void test_mpich_ends(void **state)
{
    char text[256];
    int status = run("finalize", false, "PMI_FD", "50", text, sizeof(text));
    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM); /* as it hangs without us */
    assert_int_equal(run("finalize", true, "PMI_FD", "50", text, sizeof(text)), 0);
    assert_string_equal(text, "1 x 77\n");
    status = run("finalize", true, "PMI_FD", "51", text, sizeof(text)); /* other descriptors are none of our business */
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

static void test_without_mpi(void **state)
{
    char text[256];
    (void)state;
    assert_int_equal(run("absent", true, NULL, NULL, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "ucp_worker_progress: 1\n")); /* or this is no test */
}

static void test_first_calls_beside_dlopen(void **state)
{
    char text[16];
    (void)state;
    assert_int_equal(run("beside", true, NULL, NULL, text, sizeof(text)), 0);
}

/* ---- the page ---- */

static char page_path[4200];

static struct page *make_page(uint32_t alone)
{
    static const char zeros[sizeof(struct page)];
    int fd = open(page_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct page *page;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(page != MAP_FAILED);
    close(fd);
    page->head = (struct page_head){.version = PAGE_VERSION, .alone = alone, .processors = 2};
    setenv(PAGE_VARIABLE, page_path, 1);
    return page;
}

static void drop_page(struct page *page)
{
    munmap(page, sizeof(*page));
    unlink(page_path);
    unsetenv(PAGE_VARIABLE);
}

static void test_who_is_alone_does_not_sleep(void **state)
{
    struct page *page = make_page(1);
    (void)state;
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++)
        assert_in_range(number(waiting[i], true, NULL, NULL), 0, SLEPT / 2);
    page->head.alone = 0;
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++)
        assert_true(number(waiting[i], true, NULL, NULL) >= SLEPT);
    drop_page(page);
}

/* A slot is free again when its process has ended, and what it has counted stays until the next one takes it. */
static void test_rounds_are_counted(void **state)
{
    static const struct {
        const char *variable, *value;
        bool alone, cannot_sleep, spun;
    } cases[] = {{"ELMER_SPIN", "1", false, true, false},
                 {"ELMER_POLL_SLEEP", "0", false, true, false},
                 {"OMPI_COMM_WORLD_RANK", "7", true, false, true}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t k = 0; k < sizeof(waiting) / sizeof(waiting[0]); k++) {
            struct page *page = make_page(cases[i].alone);
            const struct page_slot *slot = &page->slots[0];
            (void)number(waiting[k], true, cases[i].variable, cases[i].value);
            if (slot->rounds < 1000)
                fail_msg("%s has counted %llu", waiting[k], (unsigned long long)slot->rounds);
            assert_int_equal(slot->cannot_sleep, cases[i].cannot_sleep);
            assert_int_equal(slot->rank, cases[i].alone ? 7 : PAGE_NO_RANK);
            assert_in_range(slot->spun_ns, cases[i].spun ? ROUNDS_MS * 200000 : 0,
                            cases[i].spun ? INT64_C(1000000000000) : 0);
            assert_int_equal(slot->pid, 0);
            assert_int_equal(page->head.processes, 0);
            drop_page(page);
        }
    }
}

static void test_work_is_not_counted(void **state)
{
    struct page *page = make_page(1);
    (void)state;
    (void)number("opal-busy", true, NULL, NULL);
    (void)number("ucp-busy", true, NULL, NULL);
    assert_int_equal(page->slots[0].rounds, 0);
    (void)number("poll-work", true, NULL, NULL); /* rounds, but no waits */
    assert_in_range(page->slots[0].spun_ns, 0, ROUNDS_MS * 100000);
    drop_page(page);
}

/* The slots of processes that were killed are taken, those of others are not. */
static void test_slots_of_the_dead(void **state)
{
    struct page *page = make_page(0);
    pid_t dead = fork();
    (void)state;
    if (dead == 0)
        _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    for (size_t i = 0; i < PAGE_SLOTS; i++)
        page->slots[i].pid = i == 17 ? dead : getpid();
    (void)number("poll", true, NULL, NULL);
    assert_true(page->slots[17].rounds > 0);
    for (size_t i = 0; i < PAGE_SLOTS; i++)
        assert_true(i == 17 || (page->slots[i].pid == getpid() && page->slots[i].rounds == 0));
    page->slots[17].pid = getpid();
    page->slots[17].rounds = 0;
    assert_true(number("poll", true, NULL, NULL) >= SLEPT); /* nothing is free: it does without */
    assert_int_equal(page->slots[17].rounds, 0);
    drop_page(page);
}

/* What is no page is none, and ends nobody. */
static void test_what_is_no_page(void **state)
{
    (void)state;
    drop_page(make_page(1));
    for (int i = 0; i < 5; i++) {
        struct page *page = i > 0 ? make_page(1) : NULL;
        if (i == 1)
            assert_int_equal(truncate(page_path, 4096), 0);
        else if (i == 2)
            page->head.version = PAGE_VERSION + 1;
        else if (i == 3)
            assert_true(truncate(page_path, 0) == 0 && truncate(page_path, sizeof(*page)) == 0); /* no memory behind */
        else if (i == 4)
            assert_true(unlink(page_path) == 0 && mkfifo(page_path, 0600) == 0);
        assert_true(number("poll", true, PAGE_VARIABLE, page_path) >= SLEPT);
        if (page)
            drop_page(page);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_mean_the_same),
        cmocka_unit_test(test_who_waits_sleeps),
        cmocka_unit_test(test_and_does_not_without),
        cmocka_unit_test(test_who_works_does_not_sleep),
        cmocka_unit_test(test_data_wakes_at_once),
        cmocka_unit_test(test_mpich_ends),
        cmocka_unit_test(test_without_mpi),
        cmocka_unit_test(test_first_calls_beside_dlopen),
        cmocka_unit_test(test_who_is_alone_does_not_sleep),
        cmocka_unit_test(test_rounds_are_counted),
        cmocka_unit_test(test_work_is_not_counted),
        cmocka_unit_test(test_slots_of_the_dead),
        cmocka_unit_test(test_what_is_no_page),
    };
    if (argc == 3 && strcmp(argv[1], "--program") == 0)
        return program(argv[2]);
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length < 0)
        return 1;
    snprintf(library, sizeof(library), "%.*s/../../../yield/.libs/libelmer-yield.so", (int)(strrchr(self, '/') - self),
             self);
    snprintf(page_path, sizeof(page_path), "%s.%d.page", self, (int)getpid());
    snprintf(fakes, sizeof(fakes), "%.*s/.libs/fakes.so", (int)(strrchr(self, '/') - self), self);
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
