/* test_results.c - what became of a job is known on its host until elmer has it on disk, whoever of rsd dies when. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/root/bed.h"

static void forget(uint64_t job)
{
    struct wire_message message = {.type = WIRE_forget};
    message.u.forget.job = job;
    message.u.forget.attempt = 1;
    rig_send(&rig, &message);
}

static void start_again(int signal)
{
    rig_root_kill(&rig, signal);
    rig_root_start(&rig);
}

/* As after `end`, with the status of process 0 not taken. Returns its CPU seconds. */
static double end_a_job(uint64_t job, const char *script, int status)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    rig_open(&rig, job, 0);
    rig_run(&rig, job, argv);
    expect_exit(0, status, 0);
    rig_end(&rig, job, 1000);
    return rig_empty(&rig, job, 5000);
}

/* elmer's disk may be full for days: what it has not taken is told by every root half to come, until it is forgotten.
 */
static void test_outlives_the_root_half(void **state)
{
    double seconds = end_a_job(1, "exit 7", 7);
    (void)state;
    for (int i = 0; i < 3; i++) {
        start_again(i == 1 ? SIGTERM : SIGKILL);
        expect_holdings(1);
        expect_exit(0, 7, 0);
        assert_true(rig_empty(&rig, 1, 1000) == seconds);
    }
    acknowledge(1, 0);
    rig_end(&rig, 1, 1000);
    assert_true(rig_empty(&rig, 1, 1000) == seconds);
    forget(1);
    expect_holdings(0);
    start_again(SIGKILL);
    expect_holdings(0);
    rig_expect_none(&rig, WIRE_exited, 100);
}

/* Nor must a host be missed that had none of its processes. */
static void test_host_without_processes(void **state)
{
    (void)state;
    rig_open(&rig, 1, 0);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    start_again(SIGKILL);
    expect_holdings(1);
    rig_empty(&rig, 1, 1000);
}

static void test_lost_job(void **state)
{
    const char *const argv[] = {"sh", "-c", "exit 7", NULL}, *const other[] = {"sleep", "9", NULL};
    struct wire_message message;
    pid_t supervisor;
    (void)state;
    rig_open(&rig, 1, 0);
    rig_run(&rig, 1, argv);
    expect_exit(0, 7, 0);
    rig_start(&rig, 1, 1, "command", other);
    rig_started(&rig);
    assert_int_equal(rig_pids(&rig, 1, "sup", &supervisor, 1), 1);
    kill(supervisor, SIGKILL);
    rig_expect(&rig, WIRE_lost, 2000, &message);
    wire_message_fini(&message);
    for (int i = 0; i < 500 && rig_exists(&rig, 1); i++)
        poll(NULL, 0, 10);
    start_again(SIGKILL);
    expect_holdings(1);
    expect_exit(0, 7, 0);
    rig_expect(&rig, WIRE_lost, 1000, &message);
    assert_non_null(strstr(message.u.lost.text, "supervisor of job 1 was killed"));
    wire_message_fini(&message);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 1000);
}

/* At every moment somebody has the status: the supervisor until the root half has put it down. */
static void test_killed_while_a_job_ends(void **state)
{
    enum { TIMES = 40 };
    const char *const argv[] = {"sleep", "8", NULL};
    (void)state;
    for (uint64_t job = 1; job <= TIMES; job++) {
        struct timespec pause = {0, (long)job * 50000};
        rig_open(&rig, job, 0);
        rig_run(&rig, job, argv);
        rig_end(&rig, job, 1000);
        nanosleep(&pause, NULL);
        start_again(SIGKILL);
        expect_holdings(1);
        rig_end(&rig, job, 1000);
        expect_exit(0, -1, SIGTERM);
        rig_empty(&rig, job, 5000);
        forget(job);
    }
}

/* What ends first is told first, by each of those who tell it: a daemon that dies of its job's end is no reason. */
static void test_order_of_ends(void **state)
{
    const char *const slow[] = {"sh", "-c", "sleep 0.4; exit 3", NULL}, *const soon[] = {"sh", "-c", "exit 7", NULL};
    (void)state;
    rig_open(&rig, 1, 0);
    rig_run(&rig, 1, slow);
    rig_start(&rig, 1, 1, "command", soon);
    rig_started(&rig);
    expect_exit(1, 7, 0);
    expect_exit(0, 3, 0);
    start_again(SIGKILL); /* the supervisor tells */
    expect_holdings(1);
    expect_exit(1, 7, 0);
    expect_exit(0, 3, 0);
    expect_holdings(1); /* the root half */
    expect_exit(1, 7, 0);
    expect_exit(0, 3, 0);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    start_again(SIGKILL); /* what is kept */
    expect_holdings(1);
    expect_exit(1, 7, 0);
    expect_exit(0, 3, 0);
}

/* A file that was cut, or is of no rsd that we know, is no result and does no harm. */
static void test_damaged(void **state)
{
    char path[120];
    (void)state;
    end_a_job(1, "exit 7", 7);
    end_a_job(2, "exit 8", 8);
    rig_root_kill(&rig, SIGKILL);
    snprintf(path, sizeof(path), "%s/run/sup/1.1.ended", rig.dir);
    assert_int_equal(truncate(path, 100), 0);
    rig_root_start(&rig);
    expect_holdings(1);
    expect_exit(0, 8, 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)
        TEST(test_outlives_the_root_half), TEST(test_host_without_processes),  TEST(test_lost_job),
        TEST(test_order_of_ends),          TEST(test_killed_while_a_job_ends), TEST(test_damaged),
    };
    int possible;
    alarm(180); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("results", tests, NULL, NULL);
}
