/* test_ranks.c - orders, and who runs above whom: real classes, and jobs that fork, start and end below a spinning one.
 * Every spinning program bounds itself. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/root/bed.h"

enum { HELPER_SECONDS = 90, RT_SECONDS = 4, FORKING_THREADS = 200, CROWD = 2000 };

/* ---- the programs that the jobs run: this binary, as DIR/helper ---- */

static _Noreturn void spin(void)
{
    bed_bound_self(RT_SECONDS, HELPER_SECONDS);
    signal(SIGTERM, SIG_IGN);
    for (;;) {
    }
}

static void *fork_on(void *unused)
{
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        if (pid > 0)
            waitpid(pid, NULL, 0);
        usleep(20000);
    }
    return unused;
}

static _Noreturn void forking_threads(void)
{
    pthread_t thread;
    bed_bound_self(RT_SECONDS, HELPER_SECONDS);
    for (int i = 1; i < FORKING_THREADS; i++)
        pthread_create(&thread, NULL, fork_on, NULL);
    fork_on(NULL);
    exit(1);
}

/* Forks and exits, again and again: no process lives longer than it takes to have a child. */
static _Noreturn void chain(void)
{
    bed_bound_self(RT_SECONDS, HELPER_SECONDS);
    for (int i = 0; i < 1000000; i++) {
        if (fork() != 0)
            _exit(0);
        if (i % 64 == 0)
            alarm(HELPER_SECONDS);
    }
    _exit(0);
}

/* Many to kill. */
static _Noreturn void crowd(void)
{
    for (int i = 1; i < CROWD && fork() != 0; i++) {
    }
    sleep(HELPER_SECONDS);
    _exit(0);
}

/* As a pvmd: one line, then children. */
static _Noreturn void daemon_like(void)
{
    bed_bound_self(RT_SECONDS, HELPER_SECONDS);
    printf("/tmp/socket of it\nmore\n");
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            sleep(HELPER_SECONDS);
            _exit(0);
        }
    }
    sleep(HELPER_SECONDS);
    _exit(0);
}

/* Without exit(), where an address sanitizer looks for leaks: an agent would spin for a thread of the search, which has
 * the job's rank, below its own, and gets nothing of a CPU on which two agents do. */
static _Noreturn void say(void)
{
    _exit(write(STDOUT_FILENO, "x\n", 2) != 2);
}

static int helper(const char *what)
{
    if (strcmp(what, "spin") == 0)
        spin();
    if (strcmp(what, "threads") == 0)
        forking_threads();
    if (strcmp(what, "chain") == 0)
        chain();
    if (strcmp(what, "say") == 0)
        say();
    if (strcmp(what, "crowd") == 0)
        crowd();
    if (strcmp(what, "daemon") == 0)
        daemon_like();
    return 1;
}

/* ---- tests ---- */

static bool hears_opened(uint64_t job, int64_t until_ms)
{
    struct pollfd wait = {.fd = rig.channel.fd, .events = POLLIN};
    struct wire_message message;
    bool opened = false;
    while (!opened && rig_now_ms() < until_ms) {
        if (poll(&wait, 1, 20) > 0)
            assert_true(channel_fill(&rig.channel, NULL) >= 0);
        while (channel_next(&rig.channel, &message, NULL) > 0) {
            opened |= message.type == WIRE_opened && message.u.opened.job == job;
            wire_message_fini(&message);
        }
    }
    return opened;
}

static void test_open_waits_for_its_order(void **state)
{
    const struct level alone = {1, 0, true};
    struct wire_message message = {.type = WIRE_order}, answer;
    (void)state;
    rig_ask_open(&rig, 1, 9, 0);
    rig_expect_none(&rig, WIRE_opened, 100);
    rig_order(&rig, 9, &alone, 1);
    rig_expect(&rig, WIRE_opened, 1000, &answer);
    wire_message_fini(&answer);
    message.u.order.generation = 3; /* older: dropped, answered with the newest */
    rig_send(&rig, &message);
    rig_expect(&rig, WIRE_ordered, 1000, &answer);
    assert_int_equal(answer.u.ordered.generation, 9);
    wire_message_fini(&answer);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 2000);
}

static void test_move_up(void **state)
{
    const char *const argv[] = {"sleep", "120", NULL};
    const struct level three[] = {{1, 0, false}, {2, 1, false}, {3, 2, true}}, two[] = {{2, 0, false}, {3, 1, true}};
    size_t count;
    (void)state;
    rig_order(&rig, 1, three, 3);
    for (uint64_t job = 1; job <= 3; job++) {
        rig_open(&rig, job, 1);
        rig_run(&rig, job, argv);
    }
    assert_int_equal(rig_wrong(&rig, 1, SCHED_FIFO, 49, &count), 0);
    assert_int_equal(rig_wrong(&rig, 2, SCHED_FIFO, 46, &count), 0);
    assert_int_equal(rig_wrong(&rig, 3, SCHED_OTHER, 0, &count), 0);
    assert_int_equal(count, 1);
    rig_end(&rig, 1, 500);
    rig_empty(&rig, 1, 3000);
    rig_order(&rig, 2, two, 2);
    assert_int_equal(rig_wrong(&rig, 2, SCHED_FIFO, 49, &count), 0);
    assert_int_equal(rig_wrong(&rig, 3, SCHED_OTHER, 0, &count), 0);
    rig_end(&rig, 2, 500);
    rig_empty(&rig, 2, 3000);
    rig_end(&rig, 3, 500);
    rig_empty(&rig, 3, 3000);
}

/* While orders go on, each of which begins the walk over the many processes of the job above it anew: who comes below
 * is not kept out. */
static void test_open_below_many(void **state)
{
    enum { MANY = 1000, ORDER_MS = 300 };
    const char *const argv[] = {"sleep", "120", NULL}, *const many[] = {
                                                           "sh", "-c",
                                                           "for i in $(seq 1000); do sleep 120 & done; wait", NULL};
    const struct level three[] = {{1, 0, false}, {2, 1, false}, {3, 2, true}}, two[] = {{1, 0, false}, {2, 1, true}};
    static pid_t pids[MANY];
    const struct level *levels = three;
    uint64_t generation = 2;
    int64_t begun;
    bool opened = false;
    (void)state;
    rig_order(&rig, 1, two, 2);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv); /* whom the walks are not to disturb */
    rig_open(&rig, 2, 1);
    rig_run(&rig, 2, many);
    rig_until(rig_pids(&rig, 2, "job", pids, MANY) == MANY);
    rig_ask_order(&rig, generation, three, 3);
    rig_ask_open(&rig, 3, generation, 0);
    for (begun = rig_now_ms(); !opened && rig_now_ms() - begun < 2 * RIG_WAIT_MS;
         levels = levels == two ? three : two) {
        rig_ask_order(&rig, ++generation, levels, levels == two ? 2 : 3);
        opened = hears_opened(3, rig_now_ms() + ORDER_MS);
    }
    print_message("opened after %d ms\n", (int)(rig_now_ms() - begun));
    assert_true(opened);
    for (uint64_t job = 3; job >= 1; job--) {
        rig_end(&rig, job, 0);
        rig_empty(&rig, job, 10000);
    }
}

/* Orders that come between fork and exec change the class of a process that has its own on the way. */
static void test_starts_among_orders(void **state)
{
    enum { STARTS = 40, LINE = 2 };
    const char *const argv[] = {helper_path, "say", NULL};
    const struct level top[] = {{1, 0, false}, {2, 1, true}}, alone[] = {{1, 0, true}};
    char text[1000];
    (void)state;
    rig_order(&rig, 1, top, 2);
    rig_open(&rig, 1, 1);
    for (uint32_t i = 0; i < STARTS; i++) {
        rig_start(&rig, 1, i, i % 2 ? "agent" : "command", argv);
        rig_order(&rig, 2 + i, i % 2 ? top : alone, i % 2 ? 2 : 1);
    }
    rig_until((read_output(text, sizeof(text)), strlen(text) >= STARTS * LINE));
    assert_int_equal(strlen(text), STARTS * LINE); /* each of them has started, once */
    rig_end(&rig, 1, 500);
    rig_empty(&rig, 1, 3000);
}

static void test_helpers(void **state)
{
    const char *const argv[] = {helper_path, "daemon", NULL};
    const struct level shared[] = {{1, 0, false}, {2, 1, false}, {3, 2, true}};
    struct wire_message message;
    struct sched_param param;
    size_t threads = 0, wrong = 9;
    pid_t pid;
    (void)state;
    rig_order(&rig, 1, shared, 3);
    rig_open(&rig, 2, 1);
    rig_start(&rig, 2, 1000, "pvmd", argv);
    pid = rig_started(&rig);
    rig_expect(&rig, WIRE_line, 5000, &message);
    assert_string_equal(message.u.line.line, "/tmp/socket of it");
    wire_message_fini(&message);
    assert_int_equal(sched_getscheduler(pid), SCHED_FIFO | SCHED_RESET_ON_FORK);
    assert_int_equal(sched_getparam(pid, &param), 0);
    assert_int_equal(param.sched_priority, 47);
    rig_until((wrong = rig_wrong(&rig, 2, -1, 46, &threads)) == 1 && threads == 4); /* wrong: the pvmd itself */
    assert_int_equal(kill(pid, SIGSTOP), 0);
    expect_exit(1000, -1, SIGSTOP);
    rig_end(&rig, 2, 0);
    rig_empty(&rig, 2, 2000);
}

/* With an address sanitizer processes are large, and their forks take longer than a walk waits for them (walks.c): one
 * that was under way shows up in the old class, and the next sweep finds it. Soon there are none. */
static void await_late_forks(void)
{
#ifdef __SANITIZE_ADDRESS__
    size_t count;
    int right = 0; /* times in turn, 2 ms apart */
    rig_until((right = rig_wrong(&rig, 1, -1, 49, &count) == 0 ? right + 1 : 0) == 50);
#endif
}

static void test_forking_threads_change_class(void **state)
{
    const char *const threads[] = {helper_path, "threads", NULL};
    const struct level alone[] = {{1, 0, true}}, shared[] = {{1, 0, false}, {2, 1, true}};
    size_t count = 0, wrong;
    int64_t begin;
    (void)state;
    rig_order(&rig, 1, alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, threads);
    rig_until(rig_wrong(&rig, 1, SCHED_OTHER, 0, &count) > 0 || count >= FORKING_THREADS);
    assert_int_equal(rig_wrong(&rig, 1, SCHED_OTHER, 0, &count), 0);
    begin = rig_now_ms();
    rig_order(&rig, 2, shared, 2);
    await_late_forks();
    wrong = rig_wrong(&rig, 1, -1, 49, &count);
    print_message("%zu threads that keep forking are in the real-time class after %d ms\n", count,
                  (int)(rig_now_ms() - begin));
    assert_int_equal(wrong, 0);
    assert_true(count >= FORKING_THREADS);
    assert_int_equal(rig_wrong(&rig, 1, SCHED_RR, 49, &count), 0); /* more threads than processors */
    rig_end(&rig, 1, 200);
    rig_empty(&rig, 1, 4000);
}

/* A fork that is held up in the middle while the order is carried out gives the child the class of before: the sweeps
 * that follow the order find it. */
static void test_chain_of_forks_changes_class(void **state)
{
    enum { SWEPT_MS = 60 };
    const char *const argv[] = {helper_path, "chain", NULL};
    const struct level alone[] = {{1, 0, true}}, shared[] = {{1, 0, false}, {2, 1, true}};
    size_t count = 0, late = 0, wrong = 0, seen = 0;
    pid_t first, now = 0;
    int64_t ordered;
    (void)state;
    rig_order(&rig, 1, alone, 1);
    rig_open(&rig, 1, 1);
    rig_start(&rig, 1, 0, "command", argv);
    first = rig_started(&rig);
    rig_until(rig_pids(&rig, 1, "job", &now, 1) == 1 && now != first); /* it has begun to fork */
    rig_order(&rig, 2, shared, 2);
    ordered = rig_now_ms();
    await_late_forks();
    for (int i = 0; i < 200; i++) {
        bool swept = rig_now_ms() - ordered > SWEPT_MS;
        size_t out = rig_wrong(&rig, 1, -1, 49, &count);
        *(swept ? &wrong : &late) += out;
        seen += count;
        poll(NULL, 0, 1);
    }
    print_message(
        "a chain of forks was seen %zu times, out of its class %zu times in the first %d ms, then %zu times\n", seen,
        late, SWEPT_MS, wrong);
    assert_int_equal(wrong, 0);
    assert_true(seen > 0);
    rig_end(&rig, 1, 100);
    rig_empty(&rig, 1, 4000);
}

static void test_kill_below_a_spinner(void **state)
{
    const char *const argv[] = {helper_path, "spin", NULL};
    const struct level shared[] = {{1, 0, false}, {2, 1, false}, {3, 2, true}};
    int64_t begin;
    int took;
    (void)state;
    rig_order(&rig, 1, shared, 3);
    rig_open(&rig, 1, 1);
    rig_open(&rig, 2, 1);
    rig_run(&rig, 2, argv);
    rig_until(rig_signals(&rig, 2, "SigIgn", SIGTERM) == 1); /* it spins, and TERM does not end it */
    rig_run(&rig, 1, argv);
    rig_until(rig_signals(&rig, 1, "SigIgn", SIGTERM) == 1);
    begin = rig_now_ms();
    rig_end(&rig, 2, 1000);
    rig_empty(&rig, 2, 2000);
    took = (int)(rig_now_ms() - begin);
    print_message("a job that ignores TERM, below a spinning one: empty after %d ms\n", took);
    assert_in_range(took, 900, RIG_WAIT_MS); /* below one that spins it would never be */
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 1000);
}

/* It is first only when it is being killed already: the job above has ended meanwhile. So it ends before the one below,
 * which spins as long as it may; below that it would have what the kernel keeps from real time. */
static void test_first_while_it_is_killed(void **state)
{
    static pid_t pids[CROWD + 100];
    const char *const spin_argv[] = {helper_path, "spin", NULL}, *const crowd_argv[] = {helper_path, "crowd", NULL};
    const struct level before[] = {{1, 0, false}, {2, 1, false}, {3, 2, false}, {4, 3, true}},
                       after[] = {{2, 0, false}, {3, 1, false}, {4, 2, true}};
    int64_t begin;
    int took;
    (void)state;
    rig_order(&rig, 1, before, 4);
    rig_open(&rig, 2, 1);
    rig_open(&rig, 3, 1);
    rig_run(&rig, 2, crowd_argv);
    rig_until(rig_pids(&rig, 2, "job", pids, sizeof(pids) / sizeof(pids[0])) >= CROWD);
    rig_run(&rig, 3, spin_argv);
    rig_until(rig_signals(&rig, 3, "SigIgn", SIGTERM) == 1);
    begin = rig_now_ms();
    rig_end(&rig, 2, 0);
    rig_order(&rig, 2, after, 3);
    rig_empty(&rig, 2, 2000);
    took = (int)(rig_now_ms() - begin);
    print_message("%d processes that are killed when their job becomes the first, above one that spins: %d ms\n", CROWD,
                  took);
    assert_int_equal(rig_pids(&rig, 3, "job", pids, sizeof(pids) / sizeof(pids[0])), 1);
    rig_end(&rig, 3, 0);
    rig_empty(&rig, 3, 1000);
}

static int by_time(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

static void stop_job(uint64_t job)
{
    rig_end(&rig, job, 0);
    rig_empty(&rig, job, 1000);
}

/* Started below a spinning job it gets to exec nevertheless, and not above its rank. The median, as a disk may hold up
 * each of them. */
static void test_start_below_a_spinner(void **state)
{
    enum { STARTS = 5, BAR_MS = 500 };
    const char *const argv[] = {helper_path, "spin", NULL};
    struct level shared[] = {{1, 0, false}, {2, 1, false}, {3, 2, true}};
    int64_t took_ms[STARTS];
    size_t count;
    (void)state;
    rig_order(&rig, 1, shared, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    for (uint64_t i = 0; i < STARTS; i++) {
        const uint64_t second = 2 + 2 * i, third = second + 1, generation = 2 + i;
        shared[1].job = second;
        shared[2].job = third;
        rig_order(&rig, generation, shared, 3);
        rig_open(&rig, second, generation);
        rig_open(&rig, third, generation);
        took_ms[i] = -rig_now_ms();
        rig_run(&rig, second, argv);
        rig_run(&rig, third, argv);
        took_ms[i] += rig_now_ms();
        assert_int_equal(rig_wrong(&rig, second, SCHED_FIFO, 46, &count), 0);
        assert_int_equal(rig_wrong(&rig, third, SCHED_OTHER, 0, &count), 0);
        stop_job(second);
        stop_job(third);
    }
    qsort(took_ms, STARTS, sizeof(took_ms[0]), by_time);
    print_message("two starts below a spinning job: %d ms in the median, %d at most, of %d\n", (int)took_ms[STARTS / 2],
                  (int)took_ms[STARTS - 1], STARTS);
    assert_true(took_ms[STARTS / 2] < BAR_MS);
    stop_job(1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)
        TEST(test_open_waits_for_its_order),
        TEST(test_move_up),
        TEST(test_open_below_many),
        TEST(test_starts_among_orders),
        TEST(test_helpers),
        TEST(test_forking_threads_change_class),
        TEST(test_chain_of_forks_changes_class),
        TEST(test_kill_below_a_spinner),
        TEST(test_first_while_it_is_killed),
        TEST(test_start_below_a_spinner),
    };
    int possible;
    if (argc == 2)
        return helper(argv[1]);
    alarm(600); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("ranks", tests, NULL, NULL);
}
