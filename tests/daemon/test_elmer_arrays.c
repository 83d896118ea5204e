/* test_elmer_arrays.c - arrays in a whole elmer: what hosts are told of tasks, commands about some of them, kill -9 in
 * the middle, hosts from before there were arrays, and an array of 100,000. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/daemon/array_steps.h"

#define ONE_LEVEL LOCAL "levels = 1\n"

static void each_task_once_also_over_kills(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_holding holding = {0};
    struct host_options options = {.holdings = &holding, .nholdings = 1};
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    uint64_t array = array_submit(&host, "a", "3-9:2,20", "queued"), next;
    array_run_task(&host, array, 1, "3");
    array_expect(&host, array, "queued", "5-9:2,20", 0, 0);
    next = lab_submit(&host, &(struct wire_message){.type = WIRE_submit, .u.submit = lab_submission("b", 1).u.submit},
                      (char[20]){0}, 20);
    assert_int_equal(next, array + 6); /* its tasks have had their ids from the beginning */
    array_verb(&host, WIRE_cancel, array, "7", NULL);
    array_verb(&host, WIRE_cancel, array, "8", WIRE_CODE_REFUSED);
    array_verb(&host, WIRE_cancel, array, "7", WIRE_CODE_WRONG_STATE);
    array_verb(&host, WIRE_hold, array, "5", NULL);
    holding = (struct wire_holding){.job = array + 1, .attempt = 1};
    kill_and_begin(&lab, &host, &options);
    array_expect_task(&host, array, 1, "running", 3);
    array_expect_task(&host, array, 2, "held", 5);
    array_expect_task(&host, array, 3, "cancelled", 7);
    array_expect_task(&host, array, 4, "queued", 9);
    array_expect(&host, array, "queued", "9,20", 0, 0);
    array_end_task(&host, array + 1, 0);
    array_run_task(&host, array, 4, "9");
    holding.job = array + 4;
    array_expect_task(&host, array, 4, "running", 9);
    array_verb(&host, WIRE_release, array, "5", NULL); /* answered when all that is on disk */
    kill_and_begin(&lab, &host, &options);
    array_expect(&host, array, "queued", "20", 1, 0);
    array_end_task(&host, array + 4, 3);
    array_run_task(&host, array, 2, "5"); /* before the rest of its array */
    array_end_task(&host, array + 2, 0);
    array_run_task(&host, array, 5, "20");
    array_expect(&host, array, "running", "", 2, 1);
    holding.job = array + 5;
    array_expect_task(&host, array, 5, "running", 20);
    array_verb(&host, WIRE_cancel, array, "", WIRE_CODE_WRONG_STATE);
    kill_and_begin(&lab, &host, &options);
    array_end_task(&host, array + 5, 0);
    array_expect(&host, array, "done", "", 3, 1);
    struct wire_message answer;
    lab_query(&host, array, &answer);
    assert_string_equal(only(&answer)->reason_code, "tasks-failed");
    assert_int_equal(only(&answer)->exit_status, 3);
    assert_non_null(strstr(only(&answer)->reason, "[9]"));
    wire_message_fini(&answer);
    fake_expect(&host, WIRE_open, &answer); /* now who came later */
    assert_int_equal(answer.u.open.job, next);
    wire_message_fini(&answer);
    kill_and_begin(&lab, &host, NULL);
    array_expect(&host, array, "done", "", 3, 1); /* from the history */
    array_expect_task(&host, array, 4, "done", 9);
    assert_true(array_submit(&host, "c", "", NULL) > next);
    fake_close(&host);
    lab_destroy(&lab);
}

/* What ewait is told at once of one that has ended. */
static void expect_end(struct fake *host, uint64_t task, const char *state, int exit_status)
{
    struct wire_message m = {.type = WIRE_wait, .u.wait = {.job = task, .timeout_ms = 60000}}, answer;
    host_relay(host, 1, 2001, "alice", &m);
    host_expect_answer(host, 1, WIRE_jobs, &answer);
    assert_int_equal(only(&answer)->job, task);
    assert_string_equal(only(&answer)->state, state);
    assert_int_equal(only(&answer)->exit_status, exit_status);
    wire_message_fini(&answer);
}

/* Rows of tasks that have ended stay in the store, and their array is in memory. */
static void ends_of_before_a_restart(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message answer;
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    uint64_t array = array_submit(&host, "a", "1-6", "queued");
    array_run_task(&host, array, 1, "1");
    array_end_task(&host, array + 1, 0);
    array_run_task(&host, array, 2, "2");
    array_end_task(&host, array + 2, 3);
    array_verb(&host, WIRE_hold, array, "5", NULL);
    array_verb(&host, WIRE_cancel, array, "4-5", NULL); /* one has a row, and one has none */
    array_expect(&host, array, "queued", "6", 1, 1);
    kill_and_begin(&lab, &host, NULL);
    expect_end(&host, array + 1, "done", 0);
    expect_end(&host, array + 2, "done", 3);
    expect_end(&host, array + 4, "cancelled", -1);
    expect_end(&host, array + 5, "cancelled", -1);
    uint64_t ids[] = {array + 1, array + 2, array + 4, array + 5, array + 6};
    struct wire_message m = {.type = WIRE_query, .u.query.jobs = {ids, 5}};
    host_relay(&host, 1, 2001, "alice", &m);
    host_expect_answer(&host, 1, WIRE_jobs, &answer);
    const char *states[] = {"done", "done", "cancelled", "cancelled", "queued"};
    assert_int_equal(answer.u.jobs.jobs.count, 5);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 5; k++)
            if (answer.u.jobs.jobs.items[k].job == ids[i])
                assert_string_equal(answer.u.jobs.jobs.items[k].state, states[i]);
    wire_message_fini(&answer);
    fake_close(&host);
    lab_destroy(&lab);
}

/* The history lets go of a task that has ended while its array lives: nothing is known of it any more, and nothing is
 * made up. */
static void ends_beyond_the_history(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message answer, m = {.type = WIRE_wait};
    size_t count = 1;
    (void)state;
    lab_create(&lab, ONE_LEVEL "history_jobs = 0\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    uint64_t array = array_submit(&host, "a", "1-4", "queued"), first = array + 1;
    array_run_task(&host, array, 1, "1");
    array_end_task(&host, first, 0);
    array_verb(&host, WIRE_cancel, array, "4", NULL);
    array_expect(&host, array, "queued", "3", 1, 0);
    kill_and_begin(&lab, &host, NULL); /* the history is looked at at the start */
    for (int64_t deadline = mono_ms(mono_now()) + LAB_WAIT_MS; count && mono_ms(mono_now()) < deadline;) {
        struct wire_message query = {.type = WIRE_query, .u.query.jobs = {&first, 1}};
        host_relay(&host, 1, 2001, "alice", &query);
        host_expect_answer(&host, 1, WIRE_jobs, &answer);
        count = answer.u.jobs.jobs.count;
        if (count)
            assert_string_equal(only(&answer)->state, "done");
        wire_message_fini(&answer);
    }
    assert_int_equal(count, 0);
    m.u.wait = (struct wire_wait){.job = first, .timeout_ms = 60000};
    host_relay(&host, 1, 2001, "alice", &m);
    host_expect_answer(&host, 1, WIRE_jobs, &answer);
    assert_int_equal(answer.type, WIRE_error);
    assert_string_equal(answer.u.error.code, WIRE_CODE_NO_SUCH_JOB);
    wire_message_fini(&answer);
    expect_end(&host, array + 4, "cancelled", -1);
    fake_close(&host);
    lab_destroy(&lab);
}

/* Why a task waits that is no job yet: as its array does. */
static void expect_why(struct fake *host, uint64_t task, const char *reason_code)
{
    struct wire_message m = {.type = WIRE_explain, .u.explain = {.job = task}}, answer;
    host_relay(host, 1, 2001, "alice", &m);
    host_expect_answer(host, 1, reason_code ? WIRE_explained : WIRE_error, &answer);
    if (reason_code) {
        assert_int_equal(answer.u.explained.job, task);
        assert_string_equal(answer.u.explained.state, "queued");
        assert_string_equal(answer.u.explained.reason_code, reason_code);
        assert_true(answer.u.explained.hosts.count > 0);
    }
    wire_message_fini(&answer);
}

static void so_many_at_a_time(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message answer;
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 2, NULL);
    uint64_t array = array_submit(&host, "a", "1-3%1", "queued");
    array_run_task(&host, array, 1, "1");
    lab_query(&host, array, &answer);
    assert_string_equal(only(&answer)->reason_code, "task-limit");
    wire_message_fini(&answer);
    expect_why(&host, array + 2, "task-limit");
    expect_why(&host, array + 4, NULL); /* no task of it */
    array_verb(&host, WIRE_cancel, array, "3", NULL);
    expect_why(&host, array + 3, NULL);                        /* has ended */
    uint64_t other = array_submit(&host, "b", "", "starting"); /* goes by */
    assert_int_equal(other, array + 4);
    fake_expect(&host, WIRE_open, &answer);
    assert_int_equal(answer.u.open.job, other);
    wire_message_fini(&answer);
    array_verb(&host, WIRE_kill, array, "", NULL);
    end_job(&host, array + 1, 1, 0.5);
    array_expect(&host, array, "done", "", 0, 1);
    fake_close(&host);
    lab_destroy(&lab);
}

static void a_host_of_before_gets_no_task(void **state)
{
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, "name = ws1\nhosts = ws2 ws1\nheartbeat = 1s\nallocator = v1\nlevels = 1\n");
    lab_start(&lab);
    lab.minor = WIRE_ARRAY_MINOR - 1;
    host_open(&host, &lab, "ws2", 4, NULL);
    lab.minor = WIRE_MINOR;
    struct fake newer;
    host_open(&newer, &lab, "ws1", 1, NULL);
    uint64_t array = array_submit(&newer, "a", "1-2", "queued");
    struct wire_message m;
    fake_expect(&newer, WIRE_open, &m);
    assert_int_equal(m.u.open.job, array + 1);
    wire_message_fini(&m);
    fake_expect_none(&host, WIRE_open, 300);
    fake_close(&host);
    fake_close(&newer);
    lab_destroy(&lab);
}

static void what_is_refused(void **state)
{
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    static const char *const bad[] = {"0", "1-100001", "x", "3-1", "1%0"};
    for (size_t i = 1; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wire_message m = lab_submission(bad[i], 1);
        m.u.submit.tasks = bad[i];
        refused(&host, 2001, &m, WIRE_CODE_REFUSED, "the tasks of an array");
    }
    uint64_t id = array_submit(&host, "plain", "", "starting");
    array_verb(&host, WIRE_cancel, id, "1", WIRE_CODE_REFUSED);
    fake_close(&host);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_once_also_over_kills), cmocka_unit_test(ends_of_before_a_restart),
        cmocka_unit_test(ends_beyond_the_history),        cmocka_unit_test(so_many_at_a_time),
        cmocka_unit_test(a_host_of_before_gets_no_task),  cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
