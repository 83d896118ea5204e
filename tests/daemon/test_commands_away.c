/* test_commands_away.c - commands that wait for hours go on where elmer is away, or cannot answer, for a while. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

static const char away[] = "elmer cannot read its store: I/O error";

static void answer_error(struct world *w, enum wire_type type, const char *code, const char *text)
{
    struct wire_message asked = peer_expect(&w->elmer, type);
    struct wire_message error = {.type = WIRE_error, .id = asked.id, .u.error = {.code = code, .text = text}};

    wire_message_fini(&asked);
    peer_send(&w->elmer, &error);
}

static void answer_done(struct world *w, enum wire_type type)
{
    struct wire_message asked = peer_expect(&w->elmer, type);
    struct wire_message done = {.type = WIRE_done, .id = asked.id, .u.done = {.text = ""}};

    wire_message_fini(&asked);
    peer_send(&w->elmer, &done);
}

static void answer_query(struct world *w, const struct wire_job_view *view)
{
    struct wire_message query = peer_expect(&w->elmer, WIRE_query);
    struct wire_job_view shown = *view;

    answer_jobs(w, query.id, &shown, 1, false);
    wire_message_fini(&query);
}

static void answer_wait(struct world *w, const struct wire_job_view *view)
{
    struct wire_message wait = peer_expect(&w->elmer, WIRE_wait);
    struct wire_job_view shown = *view;

    answer_jobs(w, wait.id, &shown, 1, false);
    wire_message_fini(&wait);
}

static void expect_words(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not contain \"%s\"", text, words);
}

/* ---- ewait ---- */

/* Nobody answers: that is no end before the time that was given. */
static void test_wait_for_a_task(void **data)
{
    struct world *w = *data;
    int64_t began = mono_ms(mono_now());

    close(w->listening);
    unlink(w->socket);
    RUN(w, "ewait", "-t", "1s", "57[3]");
    assert_int_equal(finish(w), 124);
    assert_in_range(mono_ms(mono_now()) - began, 900, 60000);
    w->listening = peer_listen(w->socket);
}

/* At each step; not without a pause. */
static void test_wait_unavailable(void **data)
{
    struct world *w = *data;
    struct wire_job_view array = view_of(57, "x", "running"), task = view_of(60, "x", "running"),
                         done = done_view(60, 7, 0, "exited", "");
    int64_t began = mono_ms(mono_now());

    array.tasks = "1-3";
    array.ntasks = 3;
    RUN(w, "ewait", "57[3]");
    accept_command(w);
    answer_error(w, WIRE_query, WIRE_CODE_UNAVAILABLE, away);
    answer_query(w, &array);
    answer_error(w, WIRE_query, WIRE_CODE_UNAVAILABLE, away);
    answer_query(w, &task);
    answer_error(w, WIRE_wait, WIRE_CODE_UNAVAILABLE, away);
    answer_wait(w, &done);
    assert_int_equal(finish(w), 7);
    assert_in_range(mono_ms(mono_now()) - began, 1400, 60000);
    assert_string_equal(w->stderr_text, "ewait: elmer cannot read its store: I/O error; asking until it can answer\n");
}

static void test_submit_and_wait_unavailable(void **data)
{
    struct world *w = *data;
    struct wire_job_view running = view_of(42, "x", "running"), done = done_view(42, 3, 0, "exited", "");
    struct wire_message submit;

    RUN(w, "esubmit", "-w", "x");
    accept_command(w);
    submit = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, submit.id, "queued", -1, 0, "");
    wire_message_fini(&submit);
    answer_error(w, WIRE_wait, WIRE_CODE_UNAVAILABLE, away);
    answer_wait(w, &running);
    answer_wait(w, &done);
    assert_int_equal(finish(w), 3);
    expect_words(w->stderr_text, "elmer is back, still waiting for job 42\n");
}

/* ---- eadmin drain --wait ---- */

/* One job runs, there. */
static void answer_lines(struct world *w, const char *host)
{
    struct wire_message query = peer_expect(&w->elmer, WIRE_query_lines);
    struct wire_processor processors[] = {{host, 0}};
    struct wire_running_line running[] = {{.job = 5,
                                           .attempt = 1,
                                           .name = "x",
                                           .user = "alice",
                                           .state = "running",
                                           .nprocs = 1,
                                           .started_ms = 1,
                                           .processors = {processors, 1}}};
    struct wire_message lines = {.type = WIRE_lines, .id = query.id, .u.lines = {.running = {running, 1}}};

    peer_send(&w->elmer, &lines);
    wire_message_fini(&query);
}

static void test_drain(void **data)
{
    struct world *w = *data;

    RUN(w, "eadmin", "drain", "--kill-after", "1s", "ws1");
    accept_command(w);
    answer_done(w, WIRE_drain);
    answer_error(w, WIRE_query_lines, WIRE_CODE_UNAVAILABLE, away);
    answer_lines(w, "ws1");
    answer_error(w, WIRE_kill, WIRE_CODE_UNAVAILABLE, away);
    answer_lines(w, "ws1");
    answer_done(w, WIRE_kill);
    answer_lines(w, "ws2");
    assert_int_equal(finish(w), 0);
    expect_words(w->stdout_text, "host ws1 has no jobs\n");
    expect_words(w->stderr_text, "eadmin: elmer cannot read its store: I/O error; asking until it can answer\n"
                                 "eadmin: elmer is back, still waiting until there are no jobs\n");
}

/* ---- the connection breaks after a refusal ---- */

/* The greatest status, 6, is not lost by 4; about the third nobody is asked. */
static void test_greatest_status(void **data)
{
    struct world *w = *data;

    for (int i = 0; i < 2; i++) {
        if (i == 0)
            RUN(w, "ehold", "5", "6", "7");
        else
            RUN(w, "eadmin", "hold", "5", "6", "7");
        accept_command(w);
        answer_error(w, WIRE_hold, WIRE_CODE_UNAVAILABLE, "not now");
        peer_expect_gone(&w->elmer, WIRE_hold);
        close(w->listening);
        unlink(w->socket);
        channel_fini(&w->elmer);
        w->elmer.fd = -1;
        assert_int_equal(finish(w), 6);
        expect_words(w->stderr_text, "given up after");
        w->listening = peer_listen(w->socket);
    }
}

/* ---- etail -f ---- */

static void answer_part(struct world *w, int64_t wanted, int64_t size, const char *data)
{
    struct wire_message read = peer_expect(&w->elmer, WIRE_read_output);
    struct wire_message part = {
        .type = WIRE_output_part, .id = read.id, .u.output_part = {.offset = wanted, .size = size, .data = data}};

    assert_int_equal(read.u.read_output.offset, wanted);
    wire_message_fini(&read);
    peer_send(&w->elmer, &part);
}

/* What elmer has not answered within its time, 5 s, is asked again. */
static void test_follow(void **data)
{
    static struct wire_processor there[] = {{"far", 0}};
    struct world *w = *data;
    struct wire_job_view view = view_of(5, "x", "running");

    view.nprocs = 1;
    view.output = "out";
    view.started_ms = view.submitted_ms;
    view.processors.items = there;
    view.processors.count = 1;
    RUN(w, "etail", "-f", "-n", "all", "5");
    accept_command(w);
    answer_query(w, &view);
    answer_part(w, 0, 2, "610a"); /* "a\n" */
    peer_expect_gone(&w->elmer, WIRE_read_output);
    close(w->listening);
    unlink(w->socket);
    channel_fini(&w->elmer);
    w->elmer.fd = -1;
    usleep(6500000); /* longer than a call waits, 5 s: that one has been given up cannot be seen from here */
    w->listening = peer_listen(w->socket);
    accept_command(w);
    answer_part(w, 2, 2, "");
    answer_query(w, &view);
    answer_error(w, WIRE_read_output, WIRE_CODE_REFUSED, "that is all");
    assert_int_equal(finish(w), 1);
    assert_string_equal(w->stdout_text, "a\n");
    expect_words(w->stderr_text, "; waiting for it\netail: that is all\n");
}

#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_wait_for_a_task),
        WITH_ELMER(test_wait_unavailable),
        WITH_ELMER(test_submit_and_wait_unavailable),
        WITH_ELMER(test_drain),
        WITH_ELMER(test_follow),
        WITH_ELMER(test_greatest_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
