/* test_commands_tail.c - etail as a process: which lines, from where, and what follows. The host of the output is this
 * one, or one that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

static char own[256];
static struct wire_processor here[] = {{own, 0}}, there[] = {{"far", 0}};

static void answer_query(struct world *w, struct wire_job_view *view)
{
    struct wire_message query = peer_expect(&w->elmer, WIRE_query);

    answer_jobs(w, query.id, view, view ? 1 : 0, false);
    wire_message_fini(&query);
}

static struct wire_job_view job(const char *state, struct wire_processor *where)
{
    struct wire_job_view view = view_of(5, "x", state);

    view.nprocs = 1;
    view.output = "out";
    view.started_ms = view.submitted_ms;
    view.processors.items = where;
    view.processors.count = where ? 1 : 0;
    return view;
}

/* ---- here ---- */

static void write_output(struct world *w, struct wire_job_view *view, const char *text, size_t copies)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/o", w->dir);
    file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < copies; i++)
        assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    view->dir = w->dir;
    view->output = "o";
}

static void test_lines(void **data)
{
    static const struct {
        const char *text, *lines, *shown;
    } table[] = {
        {"a\nb\nc\n", "2", "b\nc\n"},
        {"a\nb\nc", "2", "b\nc"},
        {"a\nb\nc\n", "3", "a\nb\nc\n"},
        {"a\nb\nc\n", "9", "a\nb\nc\n"},
        {"a\nb\nc\n", "0", ""},
        {"\n\n", "1", "\n"},
        {"", "5", ""},
        {"a\nb\n", "all", "a\nb\n"},
        {"x", "1", "x"},
    };
    struct world *w = *data;
    struct wire_job_view view = job("done", here);

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        write_output(w, &view, table[i].text, 1);
        RUN(w, "etail", "-n", table[i].lines, "5");
        accept_command(w);
        answer_query(w, &view);
        assert_int_equal(finish(w), 0);
        assert_string_equal(w->stderr_text, "");
        assert_string_equal(w->stdout_text, table[i].shown);
    }
}

/* Lines that begin in an earlier part. */
static void test_long(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = job("done", here);

    write_output(w, &view, "0123456789abcde\n", 3000); /* 48,000 bytes: three parts */
    RUN(w, "etail", "-n", "2500", "5");
    accept_command(w);
    answer_query(w, &view);
    assert_int_equal(finish(w), 0);
    assert_int_equal(strlen(w->stdout_text), 40000);
    assert_memory_equal(w->stdout_text, "0123456789abcde\n0", 17);
    view.output = "none";
    RUN(w, "etail", "5");
    accept_command(w);
    answer_query(w, &view);
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "/none cannot be read: No such file"));
}

/* ---- there ---- */

static void answer_part(struct world *w, uint64_t of, int64_t wanted, int64_t offset, int64_t size, const char *data)
{
    struct wire_message read = peer_expect(&w->elmer, WIRE_read_output);
    struct wire_message part = {
        .type = WIRE_output_part, .id = read.id, .u.output_part = {.offset = offset, .size = size, .data = data}};

    assert_int_equal(read.u.read_output.job, of);
    assert_int_equal(read.u.read_output.offset, wanted);
    wire_message_fini(&read);
    peer_send(&w->elmer, &part);
}

static void answer_error(struct world *w, enum wire_type type, const char *code, const char *text)
{
    struct wire_message asked = peer_expect(&w->elmer, type);
    struct wire_message error = {.type = WIRE_error, .id = asked.id, .u.error = {.code = code, .text = text}};

    wire_message_fini(&asked);
    peer_send(&w->elmer, &error);
}

static void test_far(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = job("running", there);

    RUN(w, "etail", "-n", "1", "5");
    accept_command(w);
    answer_query(w, &view);
    answer_part(w, 5, -16384, 0, 4, "610a620a"); /* "a\nb\n" */
    answer_part(w, 5, 2, 2, 4, "620a");
    answer_error(w, WIRE_read_output, WIRE_CODE_UNAVAILABLE, "another part is being read: try again");
    answer_part(w, 5, 4, 4, 4, "");
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "b\n");
    RUN(w, "etail", "5");
    accept_command(w);
    answer_query(w, &view);
    answer_error(w, WIRE_read_output, WIRE_CODE_REFUSED, "far: its output cannot be read by alice: Permission denied");
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "Permission denied"));
}

static void accept_submit(struct world *w, struct wire_message message)
{
    struct wire_message submitted = {
        .type = WIRE_submitted, .id = message.id, .u.submitted = {.job = 6, .state = "starting", .reason = ""}};

    wire_message_fini(&message);
    peer_send(&w->elmer, &submitted);
}

/* The job that reads after the end of the other; notice: beside the queue, for which it may do nothing. */
static void serve_helper_as(struct world *w, bool notice, int64_t from, int64_t size, const char *data)
{
    struct wire_message message = peer_expect(&w->elmer, WIRE_submit);
    struct wire_job_view helper = view_of(6, "output-of-5", "starting");

    assert_string_equal(message.u.submit.output, "/home/alice/100%%");
    assert_string_equal(message.u.submit.hosts.items[0], "far");
    assert_string_equal(message.u.submit.name, "output-of-5");
    assert_int_equal(message.u.submit.nprocs, 1);
    assert_int_equal(message.u.submit.notice, notice);
    assert_int_equal(message.u.submit.time_limit_ms, 60000);
    assert_string_equal(message.u.submit.command.items[0], "/bin/sleep");
    assert_int_equal(message.u.submit.environment.count, 0);
    accept_submit(w, message);
    answer_query(w, &helper);
    helper.state = "running"; /* which is waited for */
    answer_query(w, &helper);
    answer_part(w, 6, from, from < 0 ? 0 : from, size, data);
}

static void serve_helper(struct world *w, int64_t from, int64_t size, const char *data)
{
    serve_helper_as(w, true, from, size, data);
}

static void expect_end(struct world *w, enum wire_type type)
{
    struct wire_message message = peer_expect(&w->elmer, type);
    struct wire_message done = {.type = WIRE_done, .id = message.id, .u.done = {.text = ""}};

    assert_int_equal(type == WIRE_kill ? message.u.kill.job : message.u.cancel.job, 6);
    wire_message_fini(&message);
    peer_send(&w->elmer, &done);
}

static void test_far_after_the_end(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = job("done", there);

    view.output = "100%%";
    RUN(w, "etail", "-n", "all", "5");
    accept_command(w);
    answer_query(w, &view);
    serve_helper(w, 0, 2, "610a");
    answer_part(w, 6, 2, 2, 2, "");
    expect_end(w, WIRE_kill);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "a\n");
}

/* As an elmer that knows notices, and none of these. */
static void test_far_of_an_older_elmer(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = job("done", there);

    view.output = "100%%";
    RUN(w, "etail", "-n", "all", "5");
    accept_command(w);
    answer_query(w, &view);
    answer_error(w, WIRE_submit, WIRE_CODE_REFUSED, "a notice runs on the host where it was submitted");
    serve_helper_as(w, false, 0, 2, "610a");
    answer_part(w, 6, 2, 2, 2, "");
    expect_end(w, WIRE_kill);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "a\n");
}

/* A signal that ends etail ends the job that reads for it, too: while it reads, and while that job still waits. */
static void test_ended_by_a_signal(void **data)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct world *w = *data;
    struct wire_job_view view = job("done", there);
    struct wire_message read,
        part = {.type = WIRE_output_part, .u.output_part = {.offset = 2, .size = 4, .data = "620a"}};

    view.output = "100%%";
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        void (*before)(int) = signal(ends[i], SIG_DFL); /* the command inherits it; nohup ignores SIGHUP */
        signal(SIGPIPE, SIG_DFL);
        RUN(w, "etail", "-n", "all", "5");
        signal(ends[i], before);
        signal(SIGPIPE, SIG_IGN);
        accept_command(w);
        answer_query(w, &view);
        serve_helper(w, 0, 2, "610a");
        read = peer_expect(&w->elmer, WIRE_read_output); /* it waits for the answer */
        part.id = read.id;
        wire_message_fini(&read);
        kill(w->pid, ends[i]);
        peer_send(&w->elmer, &part);
        expect_end(w, WIRE_kill);
        assert_int_equal(finish(w), 128 + ends[i]);
    }
}

static void test_ended_while_the_helper_waits(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = job("done", there), helper = view_of(6, "output-of-5", "queued");
    struct wire_message message;

    RUN(w, "etail", "5");
    accept_command(w);
    answer_query(w, &view);
    message = peer_expect(&w->elmer, WIRE_submit);
    kill(w->pid, SIGINT);
    accept_submit(w, message);
    answer_query(w, &helper);
    answer_error(w, WIRE_kill, WIRE_CODE_WRONG_STATE, "job 6 does not run");
    expect_end(w, WIRE_cancel);
    assert_int_equal(finish(w), 128 + SIGINT);
}

/* Nobody reads what it writes. */
static void test_no_reader(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = job("done", there);

    view.output = "100%%";
    assert_int_equal(symlink("/dev/full", w->out), 0);
    RUN(w, "etail", "-n", "all", "5");
    accept_command(w);
    answer_query(w, &view);
    serve_helper(w, 0, 2, "610a");
    answer_part(w, 6, 2, 2, 2, "");
    expect_end(w, WIRE_kill);
    assert_int_equal(finish(w), 1);
}

/* Where it lay cannot be written to any more: its directory is gone, say. */
static void test_far_no_helper(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = job("done", there), helper = done_view(6, -1, 0, "start-failed", "far: no such place");

    RUN(w, "etail", "5");
    accept_command(w);
    answer_query(w, &view);
    accept_submit(w, peer_expect(&w->elmer, WIRE_submit));
    answer_query(w, &helper);
    assert_int_equal(finish(w), 1);
    assert_string_equal(w->stderr_text,
                        "etail: far: the job that reads the output there has ended: far: no such place\n");
    RUN(w, "etail", "5");
    accept_command(w);
    answer_query(w, &view);
    answer_error(w, WIRE_submit, WIRE_CODE_UNAVAILABLE, "far has no link now: try again"); /* not by etail */
    assert_int_equal(finish(w), 6);
}

/* What is written between the last look and the end is seen. */
static void test_follow(void **data)
{
    struct world *w = *data;
    struct wire_job_view queued = job("queued", NULL), view = job("running", there), ended = job("done", there);

    view.output = ended.output = "100%%";
    RUN(w, "etail", "-f", "-n", "all", "5");
    accept_command(w);
    answer_query(w, &queued);
    answer_query(w, &view);
    answer_part(w, 5, 0, 0, 2, "610a");
    answer_part(w, 5, 2, 2, 2, "");
    answer_query(w, &view);
    answer_part(w, 5, 2, 2, 2, "");
    answer_query(w, &ended);
    serve_helper(w, 2, 4, "620a");
    answer_part(w, 6, 4, 4, 4, "");
    expect_end(w, WIRE_kill);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "a\nb\n");
    assert_string_equal(w->stderr_text, "etail: job 5 is queued; waiting for it\n");
}

/* A job that writes faster than it is read: what was there at the first look. */
static void test_writes_on(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = job("running", there);

    RUN(w, "etail", "-n", "all", "5");
    accept_command(w);
    answer_query(w, &view);
    answer_part(w, 5, 0, 0, 4, "610a");
    answer_part(w, 5, 2, 2, 6, "620a");
    answer_part(w, 5, 4, 4, 8, "630a");
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "a\nb\nc\n");
}

/* Its host is lost while it is followed, and it goes back into the queue. */
static void test_follow_again(void **data)
{
    struct world *w = *data;
    struct wire_job_view queued = job("queued", NULL), view = job("running", there), ended = job("done", there),
                         ending = job("ending", there), again;

    view.output = ended.output = "100%%";
    again = view;
    again.attempt = ended.attempt = 2;
    RUN(w, "etail", "-f", "-n", "all", "5");
    accept_command(w);
    answer_query(w, &view);
    answer_part(w, 5, 0, 0, 2, "610a");
    answer_part(w, 5, 2, 2, 2, "");
    answer_query(w, &view);
    answer_error(w, WIRE_read_output, WIRE_CODE_WRONG_STATE, "job 5 is ending");
    answer_query(w, &ending);
    answer_error(w, WIRE_read_output, WIRE_CODE_WRONG_STATE, "job 5 is queued");
    answer_query(w, &queued);
    answer_query(w, &queued);
    answer_query(w, &again);
    answer_part(w, 5, 0, 0, 2, "620a");
    answer_part(w, 5, 2, 2, 2, "");
    answer_query(w, &ended);
    serve_helper(w, 2, 2, "");
    expect_end(w, WIRE_kill);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "a\nb\n");
    assert_string_equal(w->stderr_text, "etail: job 5 is run again; its output from the beginning\n"
                                        "etail: job 5 is queued; waiting for it\n");
    RUN(w, "etail", "5"); /* without -f */
    accept_command(w);
    answer_query(w, &view);
    answer_error(w, WIRE_read_output, WIRE_CODE_WRONG_STATE, "job 5 is queued");
    answer_query(w, &queued);
    answer_query(w, &queued);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "etail: job 5 has written nothing: it is queued\n");
}

static void test_nothing(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = job("queued", NULL);

    view.reason = "waits: 2 ahead";
    RUN(w, "etail", "5");
    accept_command(w);
    answer_query(w, &view);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "etail: job 5 has written nothing: it is queued: waits: 2 ahead\n");
    view = job("running", there);
    RUN(w, "etail", "-r", "1", "5");
    accept_command(w);
    answer_query(w, &view);
    assert_int_equal(finish(w), 1);
    assert_string_equal(w->stderr_text, "etail: job 5 has no rank 1; its last is 0\n");
    view.hidden = true;
    RUN(w, "etail", "5");
    accept_command(w);
    answer_query(w, &view);
    assert_int_equal(finish(w), 5);
    assert_non_null(strstr(w->stderr_text, "belongs to alice"));
    RUN(w, "etail", "5");
    accept_command(w);
    answer_query(w, NULL);
    assert_int_equal(finish(w), 3);
}

/* One task is to be named, and how is said. */
static void test_array(void **data)
{
    static const struct {
        const char *name, *said;
        int exit, queries;
    } table[] = {
        {"5", "is an array; its tasks write, each for itself: name one, like 5[3]", 3, 1},
        {"5[*]", "is an array; its tasks write, each for itself: name one, like 5[3]", 3, 2},
        {"5[4-6]", "one task at a time, and these are 3: name one, like 5[4]", 2, 1},
    };
    struct world *w = *data;
    struct wire_job_view view = job("running", NULL);

    view.tasks = "3-9";
    view.ntasks = 7;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        RUN(w, "etail", table[i].name);
        accept_command(w);
        for (int k = 0; k < table[i].queries; k++)
            answer_query(w, &view);
        assert_int_equal(finish(w), table[i].exit);
        if (!strstr(w->stderr_text, table[i].said))
            fail_msg("%s: %s", table[i].name, w->stderr_text);
    }
}

static void test_usage(void **data)
{
    static const struct {
        const char *words[6], *text;
    } wrong[] = {
        {{"etail"}, "the id of a job is missing"},
        {{"etail", "5", "6"}, "one job at a time"},
        {{"etail", "-n", "x", "5"}, "-n x: want a number of lines, or 'all'"},
        {{"etail", "-r", "-1", "5"}, "-r -1: want a rank"},
        {{"etail", "x"}, "'x' is no job id"},
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
        WITH_ELMER(test_lines),
        WITH_ELMER(test_long),
        WITH_ELMER(test_far),
        WITH_ELMER(test_far_after_the_end),
        WITH_ELMER(test_far_of_an_older_elmer),
        WITH_ELMER(test_far_no_helper),
        WITH_ELMER(test_follow),
        WITH_ELMER(test_writes_on),
        WITH_ELMER(test_follow_again),
        WITH_ELMER(test_ended_by_a_signal),
        WITH_ELMER(test_ended_while_the_helper_waits),
        WITH_ELMER(test_no_reader),
        WITH_ELMER(test_nothing),
        WITH_ELMER(test_array),
        WITH_ELMER(test_usage),
    };

    if (gethostname(own, sizeof(own) - 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
