/* test_commands.c - esubmit, ekill and ecancel as processes, with an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

/* ---- what elmer says ---- */

static void answer_error(struct world *w, uint64_t id, const char *code, const char *text)
{
    struct wire_message message = {.type = WIRE_error, .id = id, .u.error = {.code = code, .text = text}};

    peer_send(&w->elmer, &message);
}

/* Accept, take the submission, answer that it runs. */
static void take_submission(struct world *w)
{
    struct wire_message submit;

    accept_command(w);
    submit = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, submit.id, "starting", 0, 0, "");
    wire_message_fini(&submit);
}

static void answer_wait(struct world *w, struct wire_job_view view)
{
    struct wire_message wait = peer_expect(&w->elmer, WIRE_wait);

    assert_int_equal(wait.u.wait.job, view.job);
    assert_true(wait.u.wait.timeout_ms > 0);
    answer_jobs(w, wait.id, &view, 1, false);
    wire_message_fini(&wait);
}

/* ---- esubmit ---- */

static bool has(const struct wire_strs *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

static bool has_name(const struct wire_strs *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->items[i], name, strlen(name)) == 0 && list->items[i][strlen(name)] == '=')
            return true;
    return false;
}

static void test_submission(void **data)
{
    struct world *w = *data;
    struct wire_message message;
    const struct wire_submit *submit = &message.u.submit;

    setenv("COPIED", "here", 1);
    setenv("PATH", "/usr/bin:/bin", 1);
    umask(027);
    RUN(w, "esubmit", "-J", "my job", "-o", "o.%j.%u.%x.%r.%%", "-e", "/dev/null", "-D", "/srv/x", "-v", "COPIED", "-v",
        "SET=a=b", "-v", "SET=second", "--hosts", "ws1,ws2,ws1", "--each", "--pvm", "--requeue", "--comment",
        "für \"Bob\"", "3", "prog", "-o", "--version", "");
    umask(022);
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    assert_int_equal(submit->nprocs, 3);
    assert_true(submit->each && submit->pvm && submit->requeue);
    assert_string_equal(submit->name, "my job");
    assert_string_equal(submit->comment, "für \"Bob\"");
    assert_string_equal(submit->output, "o.%j.%u.%x.%r.%%");
    assert_string_equal(submit->errors, "/dev/null");
    assert_string_equal(submit->dir, "/srv/x");
    assert_int_equal(submit->umask, 027);
    assert_int_equal(submit->command.count, 4);
    assert_string_equal(submit->command.items[1], "-o");
    assert_string_equal(submit->command.items[3], "");
    assert_int_equal(submit->hosts.count, 2);
    assert_true(has(&submit->environment, "COPIED=here") && has(&submit->environment, "SET=second"));
    assert_true(has(&submit->environment, "PATH=/usr/bin:/bin") && has(&submit->environment, "LC_ALL=C.UTF-8"));
    assert_false(has_name(&submit->environment, "HOME") || has_name(&submit->environment, "ELMER_SOCKET") ||
                 has(&submit->environment, "SET=a=b"));
    assert_true(strlen(submit->token) >= 16);
    answer_submitted(w, message.id, "starting", 1, 0, "");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "42\n");
    assert_string_equal(w->stderr_text, "job 42 allocated ws1 ws2 at level 1\n");
}

static void test_defaults(void **data)
{
    struct world *w = *data;
    struct wire_message message;
    char here[4096];

    unsetenv("PATH");
    RUN(w, "esubmit", "1", "/opt/some/tool.sh");
    setenv("PATH", "/usr/bin:/bin", 1);
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    assert_string_equal(message.u.submit.name, "tool.sh");
    assert_string_equal(message.u.submit.output, "elmer-%j.out");
    assert_string_equal(message.u.submit.errors, "");
    assert_string_equal(message.u.submit.dir, getcwd(here, sizeof(here)));
    assert_int_equal(message.u.submit.hosts.count, 0);
    assert_false(message.u.submit.requeue);
    assert_string_equal(message.u.submit.comment, "");
    assert_true(has_name(&message.u.submit.environment, "PATH"));
    answer_submitted(w, message.id, "queued", -1, 2, "");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "job 42 queued: 2 ahead\n");
    RUN(w, "esubmit", "--each", "-D", "sub", "1", "x");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    assert_string_equal(message.u.submit.output, "elmer-%j.%r.out");
    assert_string_equal(message.u.submit.dir + strlen(message.u.submit.dir) - 4, "/sub");
    assert_int_equal(message.u.submit.dir[0], '/');
    answer_submitted(w, message.id, "queued", -1, 0, "too few \033[31mprocessors");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "job 42 queued: 0 ahead; too few \\x1B[31mprocessors\n");
}

/* Descriptor 1 must not become the connection: the id would go into it. */
static void test_closed_output(void **data)
{
    struct world *w = *data;
    struct wire_message message;
    char byte;

    w->closed = true;
    RUN(w, "esubmit", "1", "x");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, message.id, "queued", -1, 2, "");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 1);
    assert_int_equal(recv(w->elmer.fd, &byte, 1, 0), 0);
}

static void test_same_token(void **data)
{
    struct world *w = *data;
    struct wire_message first, second;

    RUN(w, "esubmit", "1", "x");
    accept_command(w);
    first = peer_expect(&w->elmer, WIRE_submit);
    accept_command(w); /* the first connection is lost before the answer */
    second = peer_expect(&w->elmer, WIRE_submit);
    assert_string_equal(first.u.submit.token, second.u.submit.token);
    answer_error(w, second.id, WIRE_CODE_UNREACHABLE, "no link to elmer");
    wire_message_fini(&second);
    second = peer_expect(&w->elmer, WIRE_submit); /* again, on the same connection */
    assert_string_equal(first.u.submit.token, second.u.submit.token);
    answer_submitted(w, second.id, "running", 0, 0, "");
    wire_message_fini(&first);
    wire_message_fini(&second);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "42\n");
}

static void test_refusals(void **data)
{
    static const struct {
        const char *code;
        int exit;
    } table[] = {
        {WIRE_CODE_REFUSED, 1}, {WIRE_CODE_USAGE, 2}, {WIRE_CODE_NOT_PERMITTED, 5}, {WIRE_CODE_BAD_MESSAGE, 1}};
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wire_message message;

        RUN(w, "esubmit", "9", "x");
        accept_command(w);
        message = peer_expect(&w->elmer, WIRE_submit);
        answer_error(w, message.id, table[i].code, "asks for 9 processors, there are 4");
        wire_message_fini(&message);
        assert_int_equal(finish(w), table[i].exit);
        assert_string_equal(w->stdout_text, "");
        assert_non_null(strstr(w->stderr_text, "esubmit: asks for 9 processors, there are 4"));
    }
}

static void test_unreachable(void **data)
{
    struct world *w = *data;

    close(w->listening);
    unlink(w->socket);
    RUN(w, "equery");
    assert_int_equal(finish(w), 4);
    assert_non_null(strstr(w->stderr_text, w->socket));
    assert_non_null(strstr(w->stderr_text, "No such file"));
    assert_non_null(strstr(w->stderr_text, "; waiting for it\n"));
    assert_non_null(strstr(w->stderr_text, "; given up after ")); /* no line twice */
    w->listening = peer_listen(w->socket);
}

static void test_usage(void **data)
{
    static const char *const wrong[][6] = {{"esubmit"},
                                           {"esubmit", "1"},
                                           {"esubmit", "0", "x"},
                                           {"esubmit", "+1", "x"},
                                           {"esubmit", "1x", "x"},
                                           {"esubmit", "", "x"},
                                           {"esubmit", "1000001", "x"},
                                           {"esubmit", "-J", "a/b", "1", "x"},
                                           {"esubmit", "-J", "a\nb", "1", "x"},
                                           {"esubmit", "-J", "", "1", "x"},
                                           {"esubmit", "-o", "%q", "1", "x"},
                                           {"esubmit", "-e", "x%", "1", "x"},
                                           {"esubmit", "-o", "", "1", "x"},
                                           {"esubmit", "-v", "NO_SUCH_VARIABLE", "1", "x"},
                                           {"esubmit", "-v", "=x", "1", "x"},
                                           {"esubmit", "-v", "HOME=/", "1", "x"},
                                           {"esubmit", "--hosts", "ws1,,ws2", "1", "x"},
                                           {"esubmit", "--hosts=", "1", "x"},
                                           {"esubmit", "--nonsense", "1", "x"},
                                           {"esubmit", "-z", "1", "x"},
                                           {"esubmit", "-o"},
                                           {"esubmit", "1", ""},
                                           {"esubmit", "1", "\xff"},
                                           {"esubmit", "--each=1", "1", "x"},
                                           {"esubmit", "-D", "", "1", "x"},
                                           {"equery", "x"},
                                           {"equery", "-1"},
                                           {"equery", "0"},
                                           {"equery", "18446744073709551616"},
                                           {"ekill", "9223372036854775808"},
                                           {"equery", "--jsonx"},
                                           {"equery", "-n", "3"},
                                           {"equery", "--state", "runing"},
                                           {"equery", "--state", "done"},
                                           {"equery", "-r", "--json", "--state=cancelled,done"},
                                           {"equery", "--history", "--state", "running,held"},
                                           {"equery", "--me", "-u", "bob"},
                                           {"equery", "--history", "-n", "x"},
                                           {"equery", "--history", "-r"},
                                           {"equery", "--history", "7"},
                                           {"ekill"},
                                           {"ekill", "1", "x"},
                                           {"ecancel"},
                                           {"ecancel", "-r"}};
    static const char *const commands[] = {"esubmit", "equery", "ekill", "ecancel"};
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *newline;

        run(w, wrong[i]);
        if (finish(w) != 2)
            fail_msg("%s %s: not exit 2; %s", wrong[i][0], wrong[i][1] ? wrong[i][1] : "", w->stderr_text);
        assert_string_equal(w->stdout_text, "");
        newline = strchr(w->stderr_text, '\n'); /* one line */
        assert_non_null(newline);
        assert_int_equal(newline[1], '\0');
        assert_int_equal(strncmp(w->stderr_text, wrong[i][0], strlen(wrong[i][0])), 0);
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        RUN(w, commands[i], "--help");
        assert_int_equal(finish(w), 0);
        assert_int_equal(strncmp(w->stdout_text, "Usage: ", 7), 0);
        RUN(w, commands[i], "--version");
        assert_int_equal(finish(w), 0);
        assert_non_null(strstr(w->stdout_text, PACKAGE_VERSION));
        assert_string_equal(w->stderr_text, "");
    }
}

/* ---- esubmit -w ---- */

static void test_wait_status(void **data)
{
    static const struct {
        int status, signal;
        const char *code, *reason;
        int exit;
        const char *said;
    } table[] = {
        {0, 0, "exited", "", 0, NULL},
        {3, 0, "exited", "", 3, NULL},
        {-1, 11, "exited", "", 139, "job 42 died by signal 11"},
        {-1, 15, "killed", "ekill by alice", 143, "ekill by alice"},
        {-1, 0, "host-lost", "host ws2 went down", 125, "host ws2 went down"},
        {-1, 0, "start-failed", "prog: no such file", 125, "prog: no such file"},
        {-1, 9, "host-lost", "host ws2 went down", 125, "host ws2 went down"},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        RUN(w, "esubmit", "-w", "1", "x");
        take_submission(w);
        answer_wait(w, view_of(42, "x", "running")); /* the round ended before the job */
        answer_wait(w, done_view(42, table[i].status, table[i].signal, table[i].code, table[i].reason));
        assert_int_equal(finish(w), table[i].exit);
        assert_string_equal(w->stdout_text, "42\n");
        if (table[i].said)
            assert_non_null(strstr(w->stderr_text, table[i].said));
        else
            assert_string_equal(w->stderr_text, "job 42 allocated ws1 ws2 at level 0\n"
                                                "runs on ws1 only: --each, --pvm or mpirun use the others\n");
    }
}

static void test_wait_cancelled(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = view_of(42, "x", "cancelled");

    RUN(w, "esubmit", "-w", "1", "x");
    take_submission(w);
    view.reason_code = "cancelled";
    answer_wait(w, view);
    assert_int_equal(finish(w), 125);
    assert_non_null(strstr(w->stderr_text, "job 42 was cancelled"));
}

static void test_wait_reconnects(void **data)
{
    struct world *w = *data;

    RUN(w, "esubmit", "-w", "1", "x");
    take_submission(w);
    peer_expect_gone(&w->elmer, WIRE_wait);
    accept_command(w); /* closes the first connection; the command comes again */
    answer_wait(w, done_view(42, 7, 0, "exited", ""));
    assert_int_equal(finish(w), 7);
}

static void test_wait_interrupted(void **data)
{
    struct world *w = *data;

    RUN(w, "esubmit", "-w", "1", "x");
    take_submission(w);
    peer_expect_gone(&w->elmer, WIRE_wait);
    kill(w->pid, SIGINT);
    assert_int_equal(finish(w), 130);
    assert_non_null(strstr(w->stderr_text, "job 42 goes on"));
    assert_non_null(strstr(w->stderr_text, "ekill 42"));
}

/* ---- ekill, ecancel ---- */

/* Not permitted, and no administrator either: the first answer is what is told. */
static void refuse_challenge(struct world *w, uint64_t id, const char *text)
{
    struct wire_message ask;

    answer_error(w, id, WIRE_CODE_NOT_PERMITTED, text);
    ask = peer_expect(&w->elmer, WIRE_challenge_ask);
    answer_error(w, ask.id, WIRE_CODE_NOT_PERMITTED, "there is nothing to sign");
    wire_message_fini(&ask);
}

static void test_many_ids(void **data)
{
    struct world *w = *data;
    struct wire_message message, done = {.type = WIRE_done, .u.done = {.text = "job 1 is being ended"}};

    RUN(w, "ekill", "1", "2", "3", "4");
    accept_command(w);
    for (uint64_t job = 1; job <= 4; job++) {
        message = peer_expect(&w->elmer, WIRE_kill);
        assert_int_equal(message.u.kill.job, job);
        done.id = message.id;
        if (job == 2)
            refuse_challenge(w, message.id, "job 2 belongs to bob");
        else if (job == 3)
            answer_error(w, message.id, WIRE_CODE_NO_SUCH_JOB, "there is no job 3");
        else
            peer_send(&w->elmer, &done);
        wire_message_fini(&message);
    }
    assert_int_equal(finish(w), 5);
    assert_non_null(strstr(w->stderr_text, "job 2 belongs to bob"));
    assert_non_null(strstr(w->stderr_text, "there is no job 3"));
    assert_string_equal(w->stdout_text, "");
}

static void test_wrong_state(void **data)
{
    struct world *w = *data;
    struct wire_message message;

    RUN(w, "ecancel", "8");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_cancel);
    answer_error(w, message.id, WIRE_CODE_WRONG_STATE, "job 8 is running: use ekill");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "ecancel: job 8 is running: use ekill\n");
}

/* The answer of the first request was lost: that the job is cancelled already is what was wanted. */
static void test_cancel_twice(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = view_of(8, "x", "cancelled");
    struct wire_message message;

    RUN(w, "ecancel", "8");
    accept_command(w);
    peer_expect_gone(&w->elmer, WIRE_cancel);
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_cancel);
    answer_error(w, message.id, WIRE_CODE_WRONG_STATE, "job 8 is cancelled");
    wire_message_fini(&message);
    message = peer_expect(&w->elmer, WIRE_query);
    answer_jobs(w, message.id, &view, 1, false);
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
}

/* The same for erelease and etop: the job has had its turn meanwhile. One that somebody has cancelled has not. */
static void test_release_twice(void **data)
{
    static const struct {
        const char *command, *state;
        enum wire_type type;
        int code;
    } table[] = {
        {"erelease", "running", WIRE_release, 0},   {"etop", "starting", WIRE_top, 0},
        {"erelease", "done", WIRE_release, 0},      {"etop", "held", WIRE_top, 3},
        {"erelease", "cancelled", WIRE_release, 3}, {"ehold", "running", WIRE_hold, 3},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wire_job_view view = view_of(8, "x", table[i].state);
        struct wire_message message;

        RUN(w, table[i].command, "8");
        accept_command(w);
        peer_expect_gone(&w->elmer, table[i].type);
        accept_command(w);
        message = peer_expect(&w->elmer, table[i].type);
        answer_error(w, message.id, WIRE_CODE_WRONG_STATE, "job 8 cannot be moved");
        wire_message_fini(&message);
        if (table[i].type != WIRE_hold) {
            message = peer_expect(&w->elmer, WIRE_query);
            answer_jobs(w, message.id, &view, 1, false);
            wire_message_fini(&message);
        }
        assert_int_equal(finish(w), table[i].code);
        assert_int_equal(*w->stderr_text != '\0', table[i].code != 0);
    }
    RUN(w, "erelease", "8"); /* asked once: then it is as elmer says */
    accept_command(w);
    struct wire_message message = peer_expect(&w->elmer, WIRE_release);
    answer_error(w, message.id, WIRE_CODE_WRONG_STATE, "job 8 is running: it cannot be released");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 3);
}

int main(void)
{
#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_submission),      WITH_ELMER(test_defaults),         WITH_ELMER(test_closed_output),
        WITH_ELMER(test_same_token),      WITH_ELMER(test_refusals),         WITH_ELMER(test_unreachable),
        WITH_ELMER(test_usage),           WITH_ELMER(test_wait_status),      WITH_ELMER(test_wait_cancelled),
        WITH_ELMER(test_wait_reconnects), WITH_ELMER(test_wait_interrupted), WITH_ELMER(test_many_ids),
        WITH_ELMER(test_wrong_state),     WITH_ELMER(test_cancel_twice),     WITH_ELMER(test_release_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
