/* test_elmer_notice.c - notices in a whole elmer: what may be one, that the job says who tells about it, that they are
 * in no list and take no turn, and that restarts lose none and tell none twice. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/daemon/elmer_lab.h"
#include "tests/daemon/elmer_steps.h"

#define ONE_LEVEL LOCAL "levels = 1\n"

static struct wire_message notice(const char *token, const char **after)
{
    struct wire_message m = lab_submission(token, 1);

    m.u.submit.notice = m.u.submit.requeue = true;
    m.u.submit.time_limit_ms = 60000;
    m.u.submit.after = (struct wire_strs){after, 1};
    return m;
}

static uint64_t submit(struct fake *host, const char *token, const char *after)
{
    struct wire_message m = after ? notice(token, &after) : lab_submission(token, 1);
    char state[20];

    return lab_submit(host, &m, state, sizeof(state));
}

static void expect(struct fake *host, uint64_t job, const char *state)
{
    struct wire_message answer;

    lab_query_until(host, job, state, &answer);
    wire_message_fini(&answer);
}

static void expect_notices(struct fake *host, uint64_t job, uint64_t begin, uint64_t end)
{
    struct wire_message answer;

    lab_query(host, job, &answer);
    assert_int_equal(only(&answer)->begin_notice, begin);
    assert_int_equal(only(&answer)->end_notice, end);
    assert_false(only(&answer)->notice);
    wire_message_fini(&answer);
    query_as(host, 2002, "bob", job, &answer);
    assert_int_equal(only(&answer)->begin_notice + only(&answer)->end_notice, 0);
    wire_message_fini(&answer);
}

/* Jobs of a list without ids. */
static size_t listed(struct fake *host, enum wire_type type)
{
    struct wire_message m = {.type = type}, answer;
    size_t count;

    if (type == WIRE_query)
        m.u.query.running = m.u.query.queued = true;
    else if (type == WIRE_query_lines)
        m.u.query_lines.running = m.u.query_lines.queued = true;
    host_relay(host, 7, 2001, "alice", &m);
    host_expect_relayed(host, 7, type == WIRE_query_lines ? WIRE_lines : WIRE_jobs, &answer);
    count = type == WIRE_query_lines ? answer.u.lines.running.count + answer.u.lines.queued_jobs.count
                                     : answer.u.jobs.jobs.count;
    wire_message_fini(&answer);
    return count;
}

/* With the only processor taken and another job waiting for it. */
static void test_told(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message answer;

    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", NULL);
    submit(&host, "b", "start:1");
    submit(&host, "c", "any:1");
    submit(&host, "d", NULL);
    assert_int_equal(submit(&host, "c", "any:1"), 3); /* asked again */
    expect_notices(&host, 1, 2, 3);
    assert_int_equal(listed(&host, WIRE_query), 2);
    assert_int_equal(listed(&host, WIRE_query_lines), 2);
    lab_query(&host, 4, &answer);
    assert_int_equal(only(&answer)->ahead, 0);
    wire_message_fini(&answer);
    run_job(&host, &host, 1, 1);
    finish_job(&host, 2, 0);
    lab_query(&host, 2, &answer);
    assert_true(only(&answer)->notice);
    assert_string_equal(only(&answer)->processors.items[0].host, "ws1");
    wire_message_fini(&answer);
    expect(&host, 4, "queued");
    host_exited(&host, 1, 1, 0, "command", 0, 0);
    end_job(&host, 1, 1, 0.5);
    finish_job(&host, 3, 69);
    expect(&host, 4, "starting");
    expect_notices(&host, 1, 2, 3);
    assert_int_equal(listed(&host, WIRE_history), 1);
    fake_close(&host);
    lab_destroy(&lab);
}

/* There are two of a job at most, and none of others. */
static void test_no_way_around_the_queue(void **state)
{
    static const struct {
        uint32_t uid;
        const char *after, *words;
    } bad[] = {{2001, "any:1", "the end of job 1 is told already, by job 2"},
               {2001, "fail:1", "is told already"},
               {2001, "any:2", "job 2 is none"}, /* a notice about a notice */
               {2002, "start:1", "job 1 is none"}};
    struct lab lab;
    struct fake host;

    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", NULL);
    assert_int_equal(submit(&host, "b", "any:1"), 2);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char token[8];
        const char *after = bad[i].after;
        struct wire_message m;

        snprintf(token, sizeof(token), "c%zu", i);
        m = notice(token, &after);
        refused(&host, bad[i].uid, &m, WIRE_CODE_REFUSED, bad[i].words);
    }
    const char *begin = "start:1";
    struct wire_message m = notice("d", &begin);
    m.u.submit.requeue = m.u.submit.limit_requeue = true;
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "not run again");
    fake_close(&host);
    lab_destroy(&lab);
}

/* Killed after each step: who was to be told is told, once. */
static void test_restarts(void **state)
{
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.holdings = &holding, .nholdings = 1};
    struct lab lab;
    struct fake host;

    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", NULL);
    submit(&host, "b", "fail:1");
    run_job(&host, &host, 1, 1);
    kill_and_begin(&lab, &host, &holds); /* it waits */
    expect_notices(&host, 1, 0, 2);
    host_exited(&host, 1, 1, 0, "command", 3, 0);
    end_job(&host, 1, 1, 0.5);
    expect(&host, 1, "done");
    kill_and_begin(&lab, &host, NULL); /* it was to be started, or was already */
    run_job(&host, &host, 2, 1);
    holding.job = 2;
    kill_and_begin(&lab, &host, &holds); /* it runs */
    host_exited(&host, 2, 1, 0, "command", 0, 0);
    end_job(&host, 2, 1, 0.1);
    expect(&host, 2, "done");
    kill_and_begin(&lab, &host, NULL);
    fake_expect_none(&host, WIRE_open, 1500);
    expect_notices(&host, 1, 0, 2);
    fake_close(&host);
    lab_destroy(&lab);
}

static void test_of_one_that_never_ran(void **state)
{
    struct wire_message m = {.type = WIRE_cancel, .u.cancel = {.job = 2, .tasks = ""}}, answer;
    struct lab lab;
    struct fake host;

    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", NULL);
    submit(&host, "b", NULL);
    submit(&host, "c", "start:2");
    submit(&host, "d", "any:2");
    host_relay(&host, 7, 2001, "alice", &m);
    host_expect_relayed(&host, 7, WIRE_done, &answer);
    wire_message_fini(&answer);
    expect(&host, 3, "cancelled"); /* not needed */
    open_job(&host, 1, 1, &answer);
    wire_message_fini(&answer);
    finish_job(&host, 4, 0);
    fake_close(&host);
    lab_destroy(&lab);
}

/* It is no way around the queue. */
static void test_what_is_refused(void **state)
{
    const char *after = "any:1", *hosts[] = {"ws1"};
    struct lab lab;
    struct fake host;

    (void)state;
    lab_create(&lab, ONE_LEVEL "[host ws1]\n[host ws2]\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", NULL);
    for (int i = 0; i < 8; i++) {
        static const char *const words[] = {"one process",         "one process",   "one process", "one process",
                                            "leave the hosts out", "about one job", "time limit",  "time limit"};
        struct wire_message m = notice((const char *[]){"0", "1", "2", "3", "4", "5", "6", "7"}[i], &after);
        struct wire_submit *s = &m.u.submit;
        s->nprocs = i == 0 ? 2 : 1;
        s->each = i == 1;
        s->pvm = i == 2;
        s->tasks = i == 3 ? "1-2" : "";
        if (i == 4)
            s->hosts = (struct wire_strs){hosts, 1};
        if (i == 5)
            s->after.count = 0;
        s->time_limit_ms = i == 6 ? 0 : i == 7 ? 60001 : 60000;
        refused(&host, 2001, &m, WIRE_CODE_REFUSED, words[i]);
    }
    fake_close(&host);
    lab_destroy(&lab);
}

/* What reads output for its user, which can do nothing else. */
static struct wire_message reader(const char *token, const char **host)
{
    static const char *const command[] = {"/bin/sleep", "60"};
    struct wire_message m = lab_submission(token, 1);

    m.u.submit.notice = true;
    m.u.submit.time_limit_ms = 60000;
    m.u.submit.command = (struct wire_strs){(const char **)(uintptr_t)command, 2};
    m.u.submit.environment.count = 0;
    m.u.submit.hosts = (struct wire_strs){host, 1};
    return m;
}

/* With the only processor of its host taken, another job waiting, and its user at his limit. */
static void test_reader(void **state)
{
    const char *there = "ws2";
    struct wire_message m, answer;
    struct fake hosts[2];
    struct lab lab;
    char began[20];

    (void)state;
    lab_create(&lab, ONE_LEVEL "hosts = ws1 ws2 ws3\nuser_queued = 1\n");
    lab_start(&lab);
    host_open(&hosts[0], &lab, "ws1", 1, NULL);
    host_open(&hosts[1], &lab, "ws2", 1, NULL);
    m = lab_submission("a", 1);
    m.u.submit.hosts = (struct wire_strs){&there, 1};
    lab_submit(&hosts[0], &m, NULL, 0);
    run_job(&hosts[1], &hosts[1], 1, 1);
    m.u.submit.token = "b";
    lab_submit(&hosts[0], &m, NULL, 0);
    m.u.submit.token = "c";
    refused(&hosts[0], 2001, &m, WIRE_CODE_REFUSED, "user_queued");
    m = reader("d", &there);
    assert_int_equal(lab_submit(&hosts[0], &m, began, sizeof(began)), 3);
    assert_string_equal(began, "starting");
    run_job(&hosts[1], &hosts[1], 3, 1);
    expect(&hosts[0], 2, "queued");
    assert_int_equal(listed(&hosts[0], WIRE_query), 2);
    lab_query(&hosts[0], 3, &answer);
    assert_string_equal(only(&answer)->state, "running");
    assert_string_equal(only(&answer)->processors.items[0].host, "ws2");
    wire_message_fini(&answer);
    there = "ws3"; /* which was never up */
    m = reader("e", &there);
    refused(&hosts[0], 2001, &m, WIRE_CODE_UNAVAILABLE, "ws3, where the output is, has no link now");
    there = "ws4";
    m = reader("e", &there);
    refused(&hosts[0], 2001, &m, WIRE_CODE_REFUSED, "there is no host \"ws4\"");
    fake_close(&hosts[1]);
    fake_close(&hosts[0]);
    lab_destroy(&lab);
}

/* Who could have more run by it would not wait in the queue. */
static void test_reader_does_no_work(void **state)
{
    static const char *works[] = {"/bin/sleep", "61"}, *longer[] = {"/bin/sleep", "60", "60"},
                      *other[] = {"sleep", "60"}, *variable[] = {"LD_PRELOAD=/home/alice/work.so"},
                      *two[] = {"ws1", "ws2"}, *after = "any:1";
    struct fake host;
    struct lab lab;

    (void)state;
    lab_create(&lab, ONE_LEVEL "[host ws1]\n[host ws2]\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", NULL);
    for (int i = 0; i < 7; i++) {
        struct wire_message m = reader((const char *[]){"0", "1", "2", "3", "4", "5", "6"}[i], two);
        struct wire_submit *s = &m.u.submit;
        if (i < 3)
            s->command = (struct wire_strs){i == 0 ? works : i == 1 ? longer : other, i == 1 ? 3 : 2};
        if (i == 3)
            s->environment = (struct wire_strs){variable, 1};
        if (i == 4)
            s->hosts.count = 2;
        if (i == 5)
            s->after = (struct wire_strs){&after, 1};
        if (i == 6)
            s->time_limit_ms = 60001;
        refused(&host, 2001, &m, WIRE_CODE_REFUSED, i == 6 ? "time limit" : "its command is /bin/sleep 60");
    }
    fake_close(&host);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_no_way_around_the_queue),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_of_one_that_never_ran),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_reader),
        cmocka_unit_test(test_reader_does_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
