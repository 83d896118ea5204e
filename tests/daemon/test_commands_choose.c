/* test_commands_choose.c - ekill and ecancel as processes: the jobs of a user or with a name, and signals. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/wire/queued_lines.h"
#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

static void answer_running(struct world *w)
{
    struct wire_running_line running[] = {
        {.job = 7, .user = "alice", .name = "solve-1", .state = "running", .nprocs = 1},
        {.job = 8, .user = "bob", .name = "solve-2", .state = "running", .nprocs = 1},
        {.job = 9, .user = "alice", .name = "solve-3", .state = "ending", .nprocs = 1},
        {.job = 10, .user = "alice", .name = "other", .state = "starting", .nprocs = 1}};
    struct wire_message query = peer_expect(&w->elmer, WIRE_query_lines);
    struct wire_message message = {.type = WIRE_lines, .id = query.id, .u.lines = {.running = {running, 4}}};

    assert_true(query.u.query_lines.running && !query.u.query_lines.queued);
    peer_send(&w->elmer, &message);
    wire_message_fini(&query);
}

static void answer_queued(struct world *w)
{
    struct queued_lines queued = {.count = 0};
    struct wire_message query = peer_expect(&w->elmer, WIRE_query_lines);
    struct wire_message message = {.type = WIRE_lines, .id = query.id};

    assert_true(!query.u.query_lines.running && query.u.query_lines.queued);
    queued_lines_add(&queued, &(struct queued_line){.job = 5, .user = "alice", .name = "a", .reason = "", .nprocs = 1});
    queued_lines_add(&queued, &(struct queued_line){
                                  .job = 6, .user = "alice", .name = "b", .reason = "", .held = true, .nprocs = 1});
    queued_lines_add(&queued, &(struct queued_line){.job = 7, .user = "bob", .name = "", .reason = "", .nprocs = 1});
    queued_lines_put(&queued, &message.u.lines);
    peer_send(&w->elmer, &message);
    wire_message_fini(&query);
}

static uint64_t answer_done(struct world *w, enum wire_type type)
{
    struct wire_message message = peer_expect(&w->elmer, type);
    struct wire_message done = {.type = WIRE_done, .id = message.id, .u.done = {.text = "so it is"}};
    uint64_t job = type == WIRE_kill     ? message.u.kill.job
                   : type == WIRE_cancel ? message.u.cancel.job
                                         : message.u.signal_job.job;

    if (type == WIRE_signal_job)
        assert_int_equal(message.u.signal_job.number, 10);
    wire_message_fini(&message);
    peer_send(&w->elmer, &done);
    return job;
}

/* Those that run, of one user or with a name; one that is ending has nothing to be done about. */
static void test_kill(void **data)
{
    struct world *w = *data;

    RUN(w, "ekill", "-u", "alice");
    accept_command(w);
    answer_running(w);
    accept_command(w);
    assert_int_equal(answer_done(w, WIRE_kill), 7);
    assert_int_equal(answer_done(w, WIRE_kill), 10);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "ekill: so it is\nekill: so it is\n");
    RUN(w, "ekill", "--user=alice", "--name", "so*");
    accept_command(w);
    answer_running(w);
    accept_command(w);
    assert_int_equal(answer_done(w, WIRE_kill), 7);
    assert_int_equal(finish(w), 0);
    RUN(w, "ekill", "-u", "nobody-such");
    accept_command(w);
    answer_running(w);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "ekill: no such job runs\n");
}

/* Two arrays of which tasks run, and one of which all end: the others would start in their place. */
static void answer_tasks(struct world *w)
{
    struct wire_running_line running[] = {
        {.job = 59, .user = "alice", .name = "x", .state = "running", .nprocs = 1, .array = 57, .index = 2},
        {.job = 60, .user = "alice", .name = "x", .state = "starting", .nprocs = 1, .array = 57, .index = 3},
        {.job = 80, .user = "alice", .name = "x", .state = "running", .nprocs = 1},
        {.job = 82, .user = "alice", .name = "x", .state = "running", .nprocs = 1, .array = 81, .index = 1},
        {.job = 92, .user = "alice", .name = "x", .state = "ending", .nprocs = 1, .array = 91, .index = 1}};
    struct wire_message query = peer_expect(&w->elmer, WIRE_query_lines);
    struct wire_message message = {.type = WIRE_lines, .id = query.id, .u.lines = {.running = {running, 5}}};

    peer_send(&w->elmer, &message);
    wire_message_fini(&query);
}

static void test_arrays(void **data)
{
    static const uint64_t arrays[] = {57, 80, 81}, tasks[] = {59, 60, 80, 82};
    struct world *w = *data;

    RUN(w, "ekill", "--name", "x");
    accept_command(w);
    answer_tasks(w);
    accept_command(w);
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        assert_int_equal(answer_done(w, WIRE_kill), arrays[i]);
    assert_int_equal(finish(w), 0);
    RUN(w, "ekill", "-s", "USR1", "--name", "x"); /* who waits gets no signal */
    accept_command(w);
    answer_tasks(w);
    accept_command(w);
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
        assert_int_equal(answer_done(w, WIRE_signal_job), tasks[i]);
    assert_int_equal(finish(w), 0);
}

static void test_cancel(void **data)
{
    struct world *w = *data;

    RUN(w, "ecancel", "--name", "[ab]");
    accept_command(w);
    answer_queued(w);
    accept_command(w);
    assert_int_equal(answer_done(w, WIRE_cancel), 5);
    assert_int_equal(answer_done(w, WIRE_cancel), 6);
    assert_int_equal(finish(w), 0);
    RUN(w, "ecancel", "-u", "carol");
    accept_command(w);
    answer_queued(w);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "ecancel: no such job waits\n");
}

/* Ids as before, more than ten, too: a script is not asked. */
static void test_ids(void **data)
{
    struct world *w = *data;

    RUN(w, "ekill", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11");
    accept_command(w);
    for (uint64_t id = 1; id <= 11; id++)
        assert_int_equal(answer_done(w, WIRE_kill), id);
    assert_int_equal(finish(w), 0);
}

/* ---- at a terminal ---- */

static uint64_t task_of;

/* What is asked before the question: an array of so many tasks, of which some have ended. */
static void answer_array(struct world *w, uint64_t id, uint64_t ntasks, uint64_t ok, uint64_t failed)
{
    struct wire_job_view views[] = {view_of(id, "x", "running"), view_of(6, "x", "running")};
    struct wire_message query;

    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    views[0].ntasks = ntasks;
    views[1].array = task_of;
    views[0].tasks_ok = ok;
    views[0].tasks_failed = failed;
    answer_jobs(w, query.id, views, query.u.query.jobs.count, false);
    wire_message_fini(&query);
}

/* Tasks count, not words. */
static void test_asked(void **data)
{
    struct world *w = *data;
    int terminal = RUN_AT_TERMINAL(w, "n\n", "ekill", "57", "6");

    answer_array(w, 57, 1000, 100, 1);
    assert_int_equal(finish(w), 1);
    expect_said(terminal, "end 900 jobs and tasks? [y/N]");
    terminal = RUN_AT_TERMINAL(w, "n\n", "ekill", "-s", "USR1", "57[*]");
    answer_array(w, 57, 12, 0, 0);
    assert_int_equal(finish(w), 1);
    expect_said(terminal, "signal 12 jobs and tasks? [y/N]");
    terminal = RUN_AT_TERMINAL(w, "n\n", "ecancel", "57[1-500]", "58[3]");
    assert_int_equal(finish(w), 1);
    expect_said(terminal, "cancel 501 jobs and tasks? [y/N]");
    terminal = RUN_AT_TERMINAL(w, "n\n", "ekill", "57", "6");
    answer_array(w, 57, 20, 0, 0);
    assert_int_equal(finish(w), 1);
    expect_said(terminal, "end 21 jobs and tasks? [y/N]");
    task_of = 57; /* job 6 is one of its tasks */
    terminal = RUN_AT_TERMINAL(w, "n\n", "ekill", "57", "6");
    answer_array(w, 57, 20, 0, 0);
    assert_int_equal(finish(w), 1);
    expect_said(terminal, "end 20 jobs and tasks? [y/N]");
    task_of = 0;
    terminal = RUN_AT_TERMINAL(w, "y\n", "ekill", "57");
    answer_array(w, 57, 11, 0, 0);
    accept_command(w);
    assert_int_equal(answer_done(w, WIRE_kill), 57);
    assert_int_equal(finish(w), 0);
    expect_said(terminal, "so it is");
    terminal = RUN_AT_TERMINAL(w, "", "ekill", "57"); /* ten are left: no question */
    answer_array(w, 57, 1000, 900, 90);
    accept_command(w);
    assert_int_equal(answer_done(w, WIRE_kill), 57);
    assert_int_equal(finish(w), 0);
    close(terminal);
    terminal = RUN_AT_TERMINAL(w, "", "ekill", "--yes", "57");
    accept_command(w);
    assert_int_equal(answer_done(w, WIRE_kill), 57);
    assert_int_equal(finish(w), 0);
    close(terminal);
    terminal = RUN_AT_TERMINAL(w, "", "ekill", "57[3-1]");
    assert_int_equal(finish(w), 2);
    close(terminal);
}

static void test_signal(void **data)
{
    static const char *const names[] = {"USR1", "sigusr1", "10"};
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        RUN(w, "ekill", "--signal", names[i], "7", "8");
        accept_command(w);
        assert_int_equal(answer_done(w, WIRE_signal_job), 7);
        assert_int_equal(answer_done(w, WIRE_signal_job), 8);
        assert_int_equal(finish(w), 0);
    }
    RUN(w, "ekill", "-s", "USR1", "7"); /* nothing else is done where it is not known */
    accept_twice_of_minor(w, 6);
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "1.6"));
}

static void answer_three_tasks(struct world *w)
{
    struct wire_message query = peer_expect(&w->elmer, WIRE_query);
    struct wire_job_view view = view_of(57, "array", "started");

    assert_int_equal(query.u.query.jobs.items[0], 57);
    view.tasks = "1-3";
    view.ntasks = 3;
    answer_jobs(w, query.id, &view, 1, false);
    wire_message_fini(&query);
}

static void answer_refused(struct world *w, uint64_t job, const char *code, const char *text)
{
    struct wire_message message = peer_expect(&w->elmer, WIRE_signal_job);
    struct wire_message error = {.type = WIRE_error, .id = message.id};

    assert_int_equal(message.u.signal_job.job, job);
    error.u.error.code = code;
    error.u.error.text = text;
    wire_message_fini(&message);
    peer_send(&w->elmer, &error);
}

/* Tasks that do not run are left out where others of them do; an array is one request, whatever runs of it. */
static void test_signal_tasks(void **data)
{
    struct world *w = *data;

    RUN(w, "ekill", "--signal", "USR1", "57[1-3]");
    accept_command(w);
    answer_three_tasks(w);
    answer_refused(w, 58, WIRE_CODE_WRONG_STATE, "job 58 has ended already");
    assert_int_equal(answer_done(w, WIRE_signal_job), 59);
    answer_refused(w, 60, WIRE_CODE_WRONG_STATE, "task 57[3] waits");
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "ekill: so it is\n");
    RUN(w, "ekill", "--signal", "USR1", "57[1,3]");
    accept_command(w);
    answer_three_tasks(w);
    answer_refused(w, 58, WIRE_CODE_WRONG_STATE, "job 58 has ended already");
    answer_refused(w, 60, WIRE_CODE_WRONG_STATE, "task 57[3] waits");
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "ekill: none of the tasks 57[1,3] runs: no process can get a signal\n");
    RUN(w, "ekill", "--signal", "USR1", "57[2-3]");
    accept_command(w);
    answer_three_tasks(w);
    answer_refused(w, 59, WIRE_CODE_REFUSED, "not for this one");
    answer_refused(w, 60, WIRE_CODE_WRONG_STATE, "task 57[3] waits");
    assert_int_equal(finish(w), 1);
    assert_string_equal(w->stderr_text, "ekill: not for this one\n");
    RUN(w, "ekill", "--signal", "USR1", "57[3]");
    accept_command(w);
    answer_three_tasks(w);
    answer_refused(w, 60, WIRE_CODE_WRONG_STATE, "task 57[3] waits");
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "ekill: task 57[3] waits\n");
    RUN(w, "ekill", "--signal", "USR1", "57[*]");
    accept_command(w);
    assert_int_equal(answer_done(w, WIRE_signal_job), 57);
    assert_int_equal(finish(w), 0);
}

static void test_usage(void **data)
{
    static const struct {
        const char *words[6], *text;
    } wrong[] = {
        {{"ekill", "--signal", "NONE", "5"}, "--signal NONE: want a signal, like USR1 or 10"},
        {{"ekill", "--signal", "0", "5"}, "--signal 0: want a signal"},
        {{"ekill", "--signal", "65", "5"}, "--signal 65: want a signal"},
        {{"ekill", "-u", "alice", "5"}, "exclude each other"},
        {{"ekill", "--name", "x", "5"}, "exclude each other"},
        {{"ekill", "--me", "-u", "alice"}, "--me and -u USER exclude each other"},
        {{"ekill", "--yes"}, "the id of a job is missing"},
        {{"ecancel", "--signal", "USR1", "5"}, "unrecognized option '--signal'"},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        run(w, wrong[i].words);
        assert_int_equal(finish(w), 2);
        assert_non_null(strstr(w->stderr_text, wrong[i].text));
    }
}

#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_kill),   WITH_ELMER(test_arrays),       WITH_ELMER(test_cancel), WITH_ELMER(test_ids),
        WITH_ELMER(test_signal), WITH_ELMER(test_signal_tasks), WITH_ELMER(test_usage),  WITH_ELMER(test_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
