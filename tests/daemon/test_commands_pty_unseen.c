/* test_commands_pty_unseen.c - esubmit --pty and eattach where no terminal is seen: what is refused, who waits, and who
 * does not come that far. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>

#include "lib/job/terminal.h"
#include "tests/daemon/commands_lab.h"
#include "tests/daemon/terminal_elmer.h"
#include "tests/daemon/terminal_lab.h"
#include "tests/unit/peer.h"

static struct terminal_lab lab;

static void test_refused(void **data)
{
    static const struct {
        const char *state, *terminal, *says;
        bool hidden;
        int code;
    } table[] = {
        {"running", "", "job 7 has no terminal", false, 1},
        {"running", "", "job 7 belongs to alice", true, 5},
        {"done", TERMINAL_KEEP, "job 7 has ended", false, 3},
    };
    struct world *w = *data;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wire_job_view shown = terminal_view(table[i].state, table[i].terminal);
        shown.hidden = table[i].hidden;
        RUN(w, "eattach", "7");
        accept_command(w);
        terminal_answer_query(w, shown);
        assert_int_equal(finish(w), table[i].code);
        assert_non_null(strstr(w->stderr_text, table[i].says));
    }
    RUN(w, "eattach", "7"); /* by way of an rsd or elmer of before, which knows none */
    accept_command_of_minor(w, 9);
    terminal_answer_query(w, terminal_view("running", ""));
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "is of version 1.9 and knows no terminals: that takes 1.10"));
    RUN(w, "eattach", "7", "8");
    assert_int_equal(finish(w), 2);
    RUN(w, "eattach");
    assert_int_equal(finish(w), 2);
}

static void test_options(void **data)
{
    static const char *const wrong[][6] = {
        {"esubmit", "--keep", "true"},
        {"esubmit", "--pty", "--each", "2", "true"},
        {"esubmit", "--pty", "-a", "1-3", "true"},
        {"esubmit", "--pty", "--requeue", "true"},
        {"esubmit", "--detach", "--pty", "true"},
        {"esubmit", "--pty", "-"},
    };
    struct world *w = *data;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        run(w, wrong[i]);
        assert_int_equal(finish(w), 2);
        assert_non_null(strstr(w->stderr_text, wrong[i][1]));
    }
    RUN(w, "esubmit", "--pty", "-t", "1h", "--signal", "TERM@60", "true");
    assert_int_equal(finish(w), 2);
    assert_non_null(strstr(w->stderr_text, "--signal TERM would end the terminal at once"));
    RUN(w, "esubmit", "--pty", "true"); /* where nobody gives passes */
    assert_int_equal(finish(w), 6);
    assert_non_null(strstr(w->stderr_text, "a terminal cannot be looked at from here: elmer-tickets of this host"));
}

/* Only its id. */
static void test_detach(void **data)
{
    struct world *w = *data;
    struct wire_message submit;
    RUN(w, "esubmit", "--pty", "--keep", "--detach", "2", "/bin/sh");
    accept_command(w);
    submit = peer_expect(&w->elmer, WIRE_submit);
    assert_string_equal(submit.u.submit.terminal, TERMINAL_KEEP);
    answer_submitted(w, submit.id, "starting", 0, 0, "");
    wire_message_fini(&submit);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "42\n");
}

/* Interrupted while the job waits: it is taken back. */
static void test_taken_back(void **data)
{
    struct world *w = *data;
    struct wire_message submit, cancel, done = {.type = WIRE_done, .u.done = {.text = ""}};
    struct wire_job_view waits = view_of(42, "sh", "queued");
    waits.terminal = TERMINAL_PTY;
    terminal_desk_up(&lab, w->dir);
    RUN(w, "esubmit", "--pty", "2", "/bin/sh");
    accept_command(w);
    submit = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, submit.id, "queued", -1, 3, "");
    wire_message_fini(&submit);
    terminal_refuse_reach(w, WIRE_CODE_WRONG_STATE);
    assert_int_equal(kill(w->pid, SIGINT), 0);
    terminal_answer_query(w, waits);
    cancel = peer_expect(&w->elmer, WIRE_cancel);
    assert_int_equal(cancel.u.cancel.job, 42);
    done.id = cancel.id;
    peer_send(&w->elmer, &done);
    wire_message_fini(&cancel);
    assert_int_equal(finish(w), 128 + SIGINT);
    assert_non_null(strstr(w->stderr_text, "job 42 is taken back"));
    terminal_desk_down(&lab);
}

/* With --keep it stays, and how to see it is said. */
static void test_kept(void **data)
{
    struct world *w = *data;
    struct wire_message submit;
    struct wire_job_view waits = view_of(42, "sh", "queued");
    waits.terminal = TERMINAL_KEEP;
    terminal_desk_up(&lab, w->dir);
    RUN(w, "esubmit", "--pty", "--keep", "2", "/bin/sh");
    accept_command(w);
    submit = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, submit.id, "queued", -1, 3, "");
    wire_message_fini(&submit);
    terminal_refuse_reach(w, WIRE_CODE_WRONG_STATE);
    assert_int_equal(kill(w->pid, SIGINT), 0);
    terminal_answer_query(w, waits);
    assert_int_equal(finish(w), 128 + SIGINT);
    assert_non_null(strstr(w->stderr_text, "job 42 stays: eattach 42 shows its terminal"));
    terminal_desk_down(&lab);
}

/* Nobody will be told of it, which is the exit status where the job's is 0. */
static void test_notice_refused(void **data)
{
    struct world *w = *data;
    struct wire_job_view done = done_view(42, 0, -1, "exited", "");
    struct wire_message message;
    terminal_desk_up(&lab, w->dir);
    RUN(w, "esubmit", "--pty", "--notify", "true", "2", "/bin/sh");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, message.id, "queued", -1, 3, "");
    wire_message_fini(&message);
    message = peer_expect(&w->elmer, WIRE_submit);
    peer_send(&w->elmer, &(struct wire_message){.type = WIRE_error,
                                                .id = message.id,
                                                .u.error = {.code = WIRE_CODE_REFUSED, .text = "too many jobs"}});
    wire_message_fini(&message);
    terminal_refuse_reach(w, WIRE_CODE_WRONG_STATE);
    done.terminal = TERMINAL_PTY;
    terminal_answer_query(w, done);
    message = peer_expect(&w->elmer, WIRE_wait);
    answer_jobs(w, message.id, &done, 1, false);
    wire_message_fini(&message);
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "too many jobs"));
    terminal_desk_down(&lab);
}

/* It ends before it was seen: why that was is not forgotten. */
static void test_never_seen(void **data)
{
    struct world *w = *data;
    struct wire_job_view running, done = done_view(42, 1, -1, "exited", "");
    struct wire_message wait;
    RUN(w, "eattach", "42");
    accept_command(w);
    running = view_of(42, "sh", "running");
    running.terminal = TERMINAL_KEEP;
    terminal_answer_query(w, running);
    terminal_refuse_reach(w, WIRE_CODE_UNAVAILABLE);
    terminal_refuse_reach(w, WIRE_CODE_UNAVAILABLE);
    terminal_refuse_reach(w, WIRE_CODE_WRONG_STATE);
    terminal_answer_query(w, done);
    wait = peer_expect(&w->elmer, WIRE_wait);
    answer_jobs(w, wait.id, &done, 1, false);
    wire_message_fini(&wait);
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "the terminal of job 42 cannot be seen yet (not so): trying again"));
    assert_non_null(strstr(w->stderr_text, "the terminal of job 42 was not seen: not so"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_refused), TEST(test_options),    TEST(test_detach),         TEST(test_taken_back),
        TEST(test_kept),    TEST(test_never_seen), TEST(test_notice_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
