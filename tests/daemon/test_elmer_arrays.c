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
#include "tests/daemon/elmer_lab.h"
#include "tests/daemon/elmer_steps.h"

#define ONE_LEVEL LOCAL "levels = 1\n"

static uint64_t submit(struct fake *host, const char *token, const char *tasks, const char *state)
{
    static const char *command[] = {"/bin/echo", "{}"};
    struct wire_message m = lab_submission(token, 1);
    char got[20];
    m.u.submit.tasks = tasks;
    m.u.submit.command = (struct wire_strs){command, 2};
    m.u.submit.ticket = "abc";
    m.u.submit.output = "o.%A.%a";
    uint64_t id = lab_submit(host, &m, got, sizeof(got));
    if (state)
        assert_string_equal(got, state);
    return id;
}

static void again(struct lab *lab, struct fake *host, const struct host_options *options)
{
    fake_close(host);
    lab_stop(lab, SIGKILL);
    lab_start(lab);
    host_open(host, lab, "ws1", 1, options);
}

static const char *value_of(const struct wire_start *start, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < start->environment.count; i++)
        if (!strncmp(start->environment.items[i], name, length) && start->environment.items[i][length] == '=')
            return start->environment.items[i] + length + 1;
    return "";
}

/* Opens and starts as it should, with this index. */
static void run_task(struct fake *host, uint64_t array, unsigned number, const char *index)
{
    struct wire_message m;
    char text[40];
    fake_expect(host, WIRE_open, &m);
    assert_int_equal(m.u.open.job, array + number);
    snprintf(text, sizeof(text), "abc/%u", number);
    assert_string_equal(m.u.open.ticket, text);
    wire_message_fini(&m);
    host_event(host, WIRE_opened, array + number, 1);
    fake_expect(host, WIRE_start, &m);
    assert_int_equal(m.u.start.job, array + number);
    assert_string_equal(m.u.start.argv.items[1], "{}"); /* as it was signed */
    assert_string_equal(value_of(&m.u.start, "ELMER_ARRAY_INDEX"), index);
    snprintf(text, sizeof(text), "%" PRIu64, array);
    assert_string_equal(value_of(&m.u.start, "ELMER_ARRAY_ID"), text);
    snprintf(text, sizeof(text), "o.%" PRIu64 ".%s", array, index);
    assert_string_equal(m.u.start.output, text);
    wire_message_fini(&m);
    host_started(host, array + number, 1, 0);
}

static void end_task(struct fake *host, uint64_t task, int status)
{
    host_exited(host, task, 1, 0, "command", status, 0);
    end_job(host, task, 1, 0.5);
}

static void expect_array(struct fake *host, uint64_t array, const char *state, const char *waiting, unsigned ok,
                         unsigned failed)
{
    struct wire_message answer;
    lab_query_until(host, array, state, &answer);
    assert_string_equal(only(&answer)->tasks_waiting, waiting);
    assert_int_equal(only(&answer)->tasks_ok, ok);
    assert_int_equal(only(&answer)->tasks_failed, failed);
    wire_message_fini(&answer);
}

static void expect_task(struct fake *host, uint64_t array, unsigned number, const char *state, int index)
{
    struct wire_message answer;
    lab_query_until(host, array + number, state, &answer);
    assert_int_equal(only(&answer)->array, array);
    assert_int_equal(only(&answer)->index, index);
    wire_message_fini(&answer);
}

/* A verb about tasks, as alice. */
static void about(struct fake *host, enum wire_type type, uint64_t array, const char *tasks, const char *code)
{
    struct wire_message m = {.type = type}, answer;
    /* the five have the same fields */
    m.u.cancel.job = array;
    m.u.cancel.tasks = tasks;
    host_relay(host, 1, 2001, "alice", &m);
    host_expect_answer(host, 1, WIRE_done, &answer);
    if (code && (answer.type != WIRE_error || strcmp(answer.u.error.code, code) != 0))
        fail_msg("%s: not refused so: %s", tasks, answer.type == WIRE_error ? answer.u.error.text : "done");
    if (!code && answer.type != WIRE_done)
        fail_msg("%s: %s", tasks, answer.u.error.text);
    wire_message_fini(&answer);
}

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
    uint64_t array = submit(&host, "a", "3-9:2,20", "queued"), next;
    run_task(&host, array, 1, "3");
    expect_array(&host, array, "queued", "5-9:2,20", 0, 0);
    next = lab_submit(&host, &(struct wire_message){.type = WIRE_submit, .u.submit = lab_submission("b", 1).u.submit},
                      (char[20]){0}, 20);
    assert_int_equal(next, array + 6); /* its tasks have had their ids from the beginning */
    about(&host, WIRE_cancel, array, "7", NULL);
    about(&host, WIRE_cancel, array, "8", WIRE_CODE_REFUSED);
    about(&host, WIRE_cancel, array, "7", WIRE_CODE_WRONG_STATE);
    about(&host, WIRE_hold, array, "5", NULL);
    holding = (struct wire_holding){.job = array + 1, .attempt = 1};
    again(&lab, &host, &options);
    expect_task(&host, array, 1, "running", 3);
    expect_task(&host, array, 2, "held", 5);
    expect_task(&host, array, 3, "cancelled", 7);
    expect_task(&host, array, 4, "queued", 9);
    expect_array(&host, array, "queued", "9,20", 0, 0);
    end_task(&host, array + 1, 0);
    run_task(&host, array, 4, "9");
    holding.job = array + 4;
    expect_task(&host, array, 4, "running", 9);
    about(&host, WIRE_release, array, "5", NULL); /* answered when all that is on disk */
    again(&lab, &host, &options);
    expect_array(&host, array, "queued", "20", 1, 0);
    end_task(&host, array + 4, 3);
    run_task(&host, array, 2, "5"); /* before the rest of its array */
    end_task(&host, array + 2, 0);
    run_task(&host, array, 5, "20");
    expect_array(&host, array, "running", "", 2, 1);
    holding.job = array + 5;
    expect_task(&host, array, 5, "running", 20);
    about(&host, WIRE_cancel, array, "", WIRE_CODE_WRONG_STATE);
    again(&lab, &host, &options);
    end_task(&host, array + 5, 0);
    expect_array(&host, array, "done", "", 3, 1);
    struct wire_message answer;
    lab_query(&host, array, &answer);
    assert_string_equal(only(&answer)->reason_code, "tasks-failed");
    assert_int_equal(only(&answer)->exit_status, 3);
    assert_non_null(strstr(only(&answer)->reason, "[9]"));
    wire_message_fini(&answer);
    fake_expect(&host, WIRE_open, &answer); /* now who came later */
    assert_int_equal(answer.u.open.job, next);
    wire_message_fini(&answer);
    again(&lab, &host, NULL);
    expect_array(&host, array, "done", "", 3, 1); /* from the history */
    expect_task(&host, array, 4, "done", 9);
    assert_true(submit(&host, "c", "", NULL) > next);
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
    uint64_t array = submit(&host, "a", "1-6", "queued");
    run_task(&host, array, 1, "1");
    end_task(&host, array + 1, 0);
    run_task(&host, array, 2, "2");
    end_task(&host, array + 2, 3);
    about(&host, WIRE_hold, array, "5", NULL);
    about(&host, WIRE_cancel, array, "4-5", NULL); /* one has a row, and one has none */
    expect_array(&host, array, "queued", "6", 1, 1);
    again(&lab, &host, NULL);
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
    uint64_t array = submit(&host, "a", "1-4", "queued"), first = array + 1;
    run_task(&host, array, 1, "1");
    end_task(&host, first, 0);
    about(&host, WIRE_cancel, array, "4", NULL);
    expect_array(&host, array, "queued", "3", 1, 0);
    again(&lab, &host, NULL); /* the history is looked at at the start */
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
    uint64_t array = submit(&host, "a", "1-3%1", "queued");
    run_task(&host, array, 1, "1");
    lab_query(&host, array, &answer);
    assert_string_equal(only(&answer)->reason_code, "task-limit");
    wire_message_fini(&answer);
    expect_why(&host, array + 2, "task-limit");
    expect_why(&host, array + 4, NULL); /* no task of it */
    about(&host, WIRE_cancel, array, "3", NULL);
    expect_why(&host, array + 3, NULL);                  /* has ended */
    uint64_t other = submit(&host, "b", "", "starting"); /* goes by */
    assert_int_equal(other, array + 4);
    fake_expect(&host, WIRE_open, &answer);
    assert_int_equal(answer.u.open.job, other);
    wire_message_fini(&answer);
    about(&host, WIRE_kill, array, "", NULL);
    end_job(&host, array + 1, 1, 0.5);
    expect_array(&host, array, "done", "", 0, 1);
    fake_close(&host);
    lab_destroy(&lab);
}

static long peak_kb(const struct lab *lab)
{
    char path[64], line[200];
    long kb = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)lab->pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        (void)sscanf(line, "VmHWM: %ld", &kb);
    fclose(file);
    return kb;
}

/* An array with a long command, of which each task becomes a job that is held. */
static void tasks_take_no_memory_each(void **state)
{
    enum { TASKS = 300, LONG = 200000, GROWTH_KB = 24 << 10 }; /* all of them: 60 MB */
    static char text[LONG + 1];
    const char *command[] = {"/bin/echo", text};
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab.memory_counts = true;
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "first", "", "starting");
    memset(text, 'x', LONG);
    struct wire_message m = lab_submission("a", 1);
    m.u.submit.tasks = "1-301";
    m.u.submit.command = (struct wire_strs){command, 2};
    char got[20];
    long before_kb = peak_kb(&lab);
    uint64_t array = lab_submit(&host, &m, got, sizeof(got));
    about(&host, WIRE_hold, array, "1-150", NULL);
    about(&host, WIRE_hold, array, "151-300", NULL);
    expect_array(&host, array, "queued", "301", 0, 0);
    long held_kb = peak_kb(&lab);
    again(&lab, &host, NULL);
    expect_array(&host, array, "queued", "301", 0, 0);
    expect_task(&host, array, TASKS, "held", TASKS);
    long again_kb = peak_kb(&lab);
    print_message("at most %ld kB, with the tasks held %ld kB, after a restart %ld kB\n", before_kb, held_kb, again_kb);
    assert_true(held_kb < before_kb + GROWTH_KB);
    assert_true(again_kb < before_kb + GROWTH_KB);
    about(&host, WIRE_kill, array, "", NULL);
    expect_array(&host, array, "cancelled", "", 0, 0);
    fake_close(&host);
    lab_destroy(&lab);
}

/* The queue of a user is bounded, also if his jobs are one array that he takes apart. */
static void tasks_alone_are_jobs_in_the_queue(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message m = {.type = WIRE_hold}, answer;
    (void)state;
    lab_create(&lab, ONE_LEVEL "user_queued = 10\nadmin_hosts = ws1\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    uint64_t array = submit(&host, "a", "1-100", "queued");
    run_task(&host, array, 1, "1");
    about(&host, WIRE_hold, array, "11-20", WIRE_CODE_REFUSED); /* the array is one */
    expect_array(&host, array, "queued", "2-100", 0, 0);
    about(&host, WIRE_hold, array, "1,11-19", NULL);
    about(&host, WIRE_release, array, "20", WIRE_CODE_REFUSED);
    about(&host, WIRE_top, array, "30-40", WIRE_CODE_REFUSED);
    m.u.hold.job = array + 20; /* by its own id */
    host_relay(&host, 1, 2001, "alice", &m);
    host_expect_answer(&host, 1, WIRE_done, &answer);
    assert_int_equal(answer.type, WIRE_error);
    assert_non_null(strstr(answer.u.error.text, "alice has 10 jobs in the queue and may have 10"));
    wire_message_fini(&answer);
    about(&host, WIRE_release, array, "11-19", NULL); /* they are jobs already */
    about(&host, WIRE_hold, array, "", NULL);         /* as one */
    about(&host, WIRE_release, array, "", NULL);
    about(&host, WIRE_cancel, array, "30-40", NULL);
    expect_array(&host, array, "queued", "2-10,20-29,41-100", 0, 0);
    host_relay(&host, 2, 0, "root", &m); /* administrators have no limit */
    host_expect_answer(&host, 2, WIRE_done, &answer);
    if (answer.type != WIRE_done)
        fail_msg("%s", answer.u.error.text);
    wire_message_fini(&answer);
    expect_task(&host, array, 20, "held", 20);
    fake_close(&host);
    lab_destroy(&lab);
}

static void a_host_of_before_gets_no_task(void **state)
{
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, "name = ws1\nhosts = ws1 ws2\nheartbeat = 1s\nallocator = v1\nlevels = 1\n");
    lab_start(&lab);
    lab.minor = WIRE_ARRAY_MINOR - 1;
    host_open(&host, &lab, "ws1", 4, NULL);
    lab.minor = WIRE_MINOR;
    struct fake newer;
    host_open(&newer, &lab, "ws2", 1, NULL);
    uint64_t array = submit(&newer, "a", "1-2", "queued");
    struct wire_message m;
    fake_expect(&newer, WIRE_open, &m);
    assert_int_equal(m.u.open.job, array + 1);
    wire_message_fini(&m);
    fake_expect_none(&host, WIRE_open, 300);
    fake_close(&host);
    fake_close(&newer);
    lab_destroy(&lab);
}

static void a_hundred_thousand(void **state)
{
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "first", "", "starting");
    int64_t begin = mono_ms(mono_now());
    uint64_t array = submit(&host, "a", "1-100000", "queued");
    expect_array(&host, array, "queued", "1-100000", 0, 0);
    expect_task(&host, array, 100000, "queued", 100000);
    again(&lab, &host, NULL);
    expect_array(&host, array, "queued", "1-100000", 0, 0);
    about(&host, WIRE_cancel, array, "2-99999", NULL);
    expect_array(&host, array, "queued", "1,100000", 0, 0);
    about(&host, WIRE_cancel, array, "", NULL);
    expect_array(&host, array, "cancelled", "", 0, 0);
    if (mono_ms(mono_now()) - begin > LAB_WAIT_MS) /* one row, whatever is done to all of it */
        fail_msg("it has taken %" PRId64 " ms", mono_ms(mono_now()) - begin);
    fake_close(&host);
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
    uint64_t id = submit(&host, "plain", "", "starting");
    about(&host, WIRE_cancel, id, "1", WIRE_CODE_REFUSED);
    fake_close(&host);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_once_also_over_kills),
        cmocka_unit_test(ends_of_before_a_restart),
        cmocka_unit_test(ends_beyond_the_history),
        cmocka_unit_test(so_many_at_a_time),
        cmocka_unit_test(tasks_take_no_memory_each),
        cmocka_unit_test(tasks_alone_are_jobs_in_the_queue),
        cmocka_unit_test(a_host_of_before_gets_no_task),
        cmocka_unit_test(a_hundred_thousand),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
