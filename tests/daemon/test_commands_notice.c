/* test_commands_notice.c - who is told: what esubmit --mail-at and --notify submit, and what elmer-notice does, as
 * processes with an elmer that the test plays and a sendmail of the test's. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

static char place[64]; /* what sendmail and commands leave */

static int begin(void **data)
{
    static char sendmail[80];
    char script[300];

    snprintf(place, sizeof(place), "/tmp/notice.XXXXXX");
    scratch_dir(place);
    snprintf(sendmail, sizeof(sendmail), "%s/sendmail", place);
    snprintf(script, sizeof(script), "#!/bin/sh\necho \"$@\" >%s/words; cat >%s/mail; exit ${STATUS:-0}\n", place,
             place);
    assert_true(scratch_put(place, "sendmail", script));
    assert_int_equal(chmod(sendmail, 0755), 0);
    setenv("ELMER_SENDMAIL", sendmail, 1);
    setenv("ELMER_JOB_ID", "58", 1);
    unsetenv("STATUS");
    return set_up(data);
}

static const char *left(const char *name)
{
    static char path[96], text[OUTPUT_MAX];

    snprintf(path, sizeof(path), "%s/%s", place, name);
    *text = '\0';
    if (access(path, F_OK) == 0)
        read_back(path, text);
    return text;
}

/* ---- esubmit ---- */

static void expect_words(const struct wire_strs *words, const char *const *expected)
{
    size_t count = 0;

    assert_non_null(strstr(words->items[0], "/elmer-notice"));
    for (; expected[count]; count++)
        assert_string_equal(words->items[count + 1], expected[count]);
    assert_int_equal(words->count, count + 1);
}
#define WORDS(m, ...) expect_words(&(m)->u.submit.command, (const char *const[]){__VA_ARGS__, NULL})

static bool has(const struct wire_strs *list, const char *begin)
{
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->items[i], begin, strlen(begin)) == 0)
            return true;
    return false;
}

static struct wire_message expect_notice(struct world *w, const char *after)
{
    struct wire_message m = peer_expect(&w->elmer, WIRE_submit);
    const struct wire_submit *s = &m.u.submit;

    assert_true(s->notice && s->requeue && !s->each && !s->pvm);
    assert_int_equal(s->nprocs, 1);
    assert_int_equal(s->time_limit_ms, 60000);
    assert_int_equal(s->hosts.count, 0); /* elmer knows where it was submitted */
    assert_int_equal(s->after.count, 1);
    assert_string_equal(s->after.items[0], after);
    assert_string_equal(s->name, "notice-of-42");
    assert_string_equal(s->dir, "/");
    assert_string_equal(s->output, "/dev/null");
    assert_true(has(&s->environment, "ELMER_SENDMAIL=") && has(&s->environment, "PATH="));
    assert_false(has(&s->environment, "ELMER_SCRIPT="));
    return m;
}

static void expect_job(struct world *w, const char *mail_at, const char *notify)
{
    struct wire_message m;

    accept_command(w);
    m = peer_expect(&w->elmer, WIRE_submit);
    assert_false(m.u.submit.notice);
    assert_string_equal(m.u.submit.mail_at, mail_at);
    assert_string_equal(m.u.submit.notify, notify);
    answer_submitted(w, m.id, "queued", -1, 3, "");
    wire_message_fini(&m);
}

static void test_both_notices(void **data)
{
    struct world *w = *data;
    char *here = get_current_dir_name();
    struct wire_message m;

    RUN(w, "esubmit", "--mail-at", "end,begin,fail", "--notify", "echo 'a b'", "/bin/true");
    expect_job(w, "begin,end,fail", "echo 'a b'");
    m = expect_notice(w, "start:42");
    WORDS(&m, "--mail-at", "begin");
    answer_submitted(w, m.id, "queued", -1, 0, "");
    wire_message_fini(&m);
    m = expect_notice(w, "any:42");
    WORDS(&m, "--mail-at", "end", "--dir", here, "--notify", "echo 'a b'");
    answer_submitted(w, m.id, "queued", -1, 0, "");
    wire_message_fini(&m);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "42\n");
    free(here);
}

/* One that ends well needs no process then. */
static void test_only_failures(void **data)
{
    struct world *w = *data;
    struct wire_message m;

    RUN(w, "esubmit", "--mail-at", "fail", "/bin/true");
    expect_job(w, "fail", "");
    m = expect_notice(w, "fail:42");
    WORDS(&m, "--mail-at", "fail");
    answer_submitted(w, m.id, "queued", -1, 0, "");
    wire_message_fini(&m);
    assert_int_equal(finish(w), 0);
}

/* With a command there is one in any case, which judges for itself whether there is mail. */
static void test_a_command_and_failures(void **data)
{
    struct world *w = *data;
    struct wire_message m;

    RUN(w, "esubmit", "--mail-at", "fail", "--notify", "x", "/bin/true");
    expect_job(w, "fail", "x");
    m = expect_notice(w, "any:42");
    answer_submitted(w, m.id, "queued", -1, 0, "");
    wire_message_fini(&m);
    assert_int_equal(finish(w), 0);
}

static void test_a_notice_is_refused(void **data)
{
    struct world *w = *data;
    struct wire_message m, error = {.type = WIRE_error, .u.error = {.code = "refused", .text = "too many"}};

    RUN(w, "esubmit", "--notify", "x", "/bin/true");
    expect_job(w, "", "x");
    m = expect_notice(w, "any:42");
    error.id = m.id;
    peer_send(&w->elmer, &error);
    wire_message_fini(&m);
    assert_int_equal(finish(w), 1);
    assert_string_equal(w->stdout_text, "42\n");
    assert_non_null(strstr(w->stderr_text, "esubmit: job 42 is submitted and goes on, but nobody will be told of its "
                                           "end: too many\n"));
    RUN(w, "esubmit", "--mail-at", "begin,end", "/bin/true"); /* the end is not tried then */
    expect_job(w, "begin,end", "");
    m = expect_notice(w, "start:42");
    error.id = m.id;
    peer_send(&w->elmer, &error);
    wire_message_fini(&m);
    assert_int_equal(finish(w), 1);
    assert_string_equal(w->stdout_text, "42\n");
    assert_non_null(strstr(w->stderr_text, "nobody will be told of its begin and its end: too many\n"));
}

/* With -w the job is waited for all the same. */
static void test_a_notice_is_refused_of_one_that_is_waited_for(void **data)
{
    struct world *w = *data;
    struct wire_message m, error = {.type = WIRE_error, .u.error = {.code = "refused", .text = "too many"}};

    for (int status = 0; status < 4; status += 3) {
        struct wire_job_view done = done_view(42, status, -1, "exited", "");

        RUN(w, "esubmit", "-w", "--notify", "x", "/bin/true");
        expect_job(w, "", "x");
        m = expect_notice(w, "any:42");
        error.id = m.id;
        peer_send(&w->elmer, &error);
        wire_message_fini(&m);
        m = peer_expect(&w->elmer, WIRE_wait);
        answer_jobs(w, m.id, &done, 1, false);
        wire_message_fini(&m);
        assert_int_equal(finish(w), status ? status : 1);
    }
}

static void expect_usage(struct world *w, int code, const char *words)
{
    assert_int_equal(finish(w), code);
    if (!strstr(w->stderr_text, words))
        fail_msg("\"%s\" is not in: %s", words, w->stderr_text);
}

static void test_wrong_words(void **data)
{
    struct world *w = *data;

    RUN(w, "esubmit", "--mail-at", "start", "/bin/true");
    expect_usage(w, 2, "--mail-at: 'start' is none of begin, end, fail; several are separated by commas");
    RUN(w, "esubmit", "--mail-at", "", "/bin/true");
    expect_usage(w, 2, "--mail-at: '' is none");
    RUN(w, "esubmit", "--notify", "", "/bin/true");
    expect_usage(w, 2, "--notify: want a line of shell, of at most 1000 bytes");
    RUN(w, "esubmit", "--notify", "a\nb", "/bin/true");
    expect_usage(w, 2, "--notify: want a line of shell");
    setenv("ELMER_SENDMAIL", "/nowhere/sendmail", 1);
    RUN(w, "esubmit", "--mail-at", "end", "/bin/true");
    expect_usage(w, 1, "--mail-at: ELMER_SENDMAIL=/nowhere/sendmail is no program that can be run");
    unsetenv("ELMER_SENDMAIL");
    if (access("/usr/sbin/sendmail", X_OK) == 0 || access("/usr/lib/sendmail", X_OK) == 0)
        return;
    RUN(w, "esubmit", "--mail-at", "end", "/bin/true");
    expect_usage(w, 1, "--mail-at: this host cannot send mail, as it has no /usr/sbin/sendmail");
}

/* ---- elmer-notice ---- */

static void answer_query(struct world *w, uint64_t id, struct wire_job_view *view)
{
    struct wire_message query = peer_expect(&w->elmer, WIRE_query);

    assert_int_equal(query.u.query.jobs.items[0], id);
    answer_jobs(w, query.id, view, 1, false);
    wire_message_fini(&query);
}

static void tell(struct world *w, const char *after, struct wire_job_view *told)
{
    struct wire_job_view own = view_of(58, "notice-of-5", "running");

    own.after = (struct wire_strs){&after, 1};
    accept_command(w);
    answer_query(w, 58, &own);
    answer_query(w, told->job, told);
}

static void expect_left(const char *name, const char *words)
{
    if (!strstr(left(name), words))
        fail_msg("\"%s\" is not in %s: %s", words, name, left(name));
}

static void test_mail_at_the_end(void **data)
{
    struct world *w = *data;
    struct wire_job_view told = done_view(5, 1, -1, "exited", "the command ended with status 1");
    char command[200];

    told.mail_at = "end,fail";
    told.output = "o";
    snprintf(command, sizeof(command), "env >%s/env; exit 3", place);
    RUN(w, "../elmer-notice", "--mail-at", "fail", "--dir", place, "--notify", command);
    tell(w, "any:5", &told);
    assert_int_equal(finish(w), 3); /* that of the command */
    assert_string_equal(w->stderr_text, "");
    assert_int_equal(strncmp(left("words"), "-i -- ", 6), 0);
    assert_int_equal(strncmp(left("mail"), "To: ", 4), 0);
    expect_left("mail", "\nSubject: Elmer: job 5 (prog) ended: exit 1\n");
    expect_left("mail", "\nAuto-Submitted: auto-generated\n");
    expect_left("mail", "\n\nJob 5 prog, alice's: done, exit 1\n  command     ./prog");
    expect_left("mail", "  output      ws1:/home/alice/o\n");
    expect_left("mail", "  reason      the command ended with status 1\n");
    expect_left("mail", ": --mail-at end,fail. 'equery 5' shows it, too.\n");
    expect_left("env", "ELMER_JOB_ID=5\n");
    expect_left("env", "ELMER_JOB_NAME=prog\n");
    expect_left("env", "ELMER_STATE=done\n");
    expect_left("env", "ELMER_REASON=exited\n");
    expect_left("env", "ELMER_EXIT=1\n");
    expect_left("env", "ELMER_SIGNAL=\n");
    expect_left("env", "ELMER_RAN_ON=ws1*2,ws2\n");
    expect_left("env", "ELMER_OUTPUT=/home/alice/o\n");
    expect_left("env", "PWD=");
}

/* A sendmail that hangs, until the command has run. */
static void test_mail_that_hangs(void **data)
{
    struct world *w = *data;
    struct wire_job_view told = done_view(5, 1, -1, "exited", "");
    char script[300], command[200];

    snprintf(script, sizeof(script), "#!/bin/sh\nwhile [ ! -e %s/env ]; do sleep 0.05; done\nexit 71\n", place);
    assert_true(scratch_put(place, "sendmail", script));
    snprintf(command, sizeof(command), "echo told >%s/env", place);
    RUN(w, "../elmer-notice", "--mail-at", "end", "--dir", place, "--notify", command);
    tell(w, "any:5", &told);
    assert_int_equal(finish(w), 71);
    expect_left("env", "told\n");
}

static void test_no_mail_is_needed(void **data)
{
    struct world *w = *data;
    struct wire_job_view told = done_view(5, 0, -1, "exited", "the command ended with status 0");

    RUN(w, "../elmer-notice", "--mail-at", "fail");
    tell(w, "any:5", &told);
    assert_int_equal(finish(w), 0);
    assert_string_equal(left("mail"), "");
}

static void test_at_the_begin(void **data)
{
    struct world *w = *data;
    struct wire_job_view told = view_of(5, "pr\303\266g", "running");

    told.nprocs = 3;
    told.processors.items = view_processors;
    told.processors.count = 3;
    RUN(w, "../elmer-notice", "--mail-at", "begin");
    tell(w, "start:5", &told);
    assert_int_equal(finish(w), 0);
    expect_left("mail", "\nSubject: Elmer: =?UTF-8?Q?job=205=20=28pr=C3=B6g=29=20has=20beg?=\n"
                        " =?UTF-8?Q?un=20on=20ws1=2A2=2Cws2?=\n");
}

/* Nothing of its name becomes a header of its own. */
static void test_of_one_that_did_not_run(void **data)
{
    struct world *w = *data;
    struct wire_job_view told = view_of(5, "x\nBcc: all", "cancelled");

    told.reason_code = "cancelled";
    told.reason = "removed from the queue by ecancel";
    RUN(w, "../elmer-notice", "--mail-at", "end");
    tell(w, "any:5", &told);
    assert_int_equal(finish(w), 0);
    expect_left("mail", "\nSubject: Elmer: job 5 (x\\x0ABcc: all) did not run: cancelled\n");
}

static void test_of_an_array(void **data)
{
    struct world *w = *data;
    struct wire_job_view told = done_view(5, 1, -1, "tasks-failed", "2 of 3 tasks failed");

    told.tasks = "1-3";
    told.ntasks = 3;
    told.tasks_ok = 1;
    told.tasks_failed = 2;
    RUN(w, "../elmer-notice", "--mail-at", "end");
    tell(w, "any:5", &told);
    assert_int_equal(finish(w), 0);
    expect_left("mail", "\nSubject: Elmer: job 5 (prog) ended: 2 of 3 tasks failed\n");
}

/* Its own job is told by the status, which elmer keeps. */
static void test_what_fails(void **data)
{
    struct world *w = *data;
    struct wire_job_view told = done_view(5, 0, -1, "exited", "");
    struct wire_message query;

    setenv("STATUS", "70", 1);
    RUN(w, "../elmer-notice", "--mail-at", "end", "--notify", "true");
    tell(w, "any:5", &told);
    assert_int_equal(finish(w), 70);
    setenv("ELMER_SENDMAIL", "/nowhere", 1);
    RUN(w, "../elmer-notice", "--mail-at", "end");
    tell(w, "any:5", &told);
    assert_int_equal(finish(w), 69);
    assert_non_null(strstr(w->stderr_text, "there is no sendmail here any more"));
    RUN(w, "../elmer-notice", "--dir", "/nowhere", "--notify", "true");
    tell(w, "any:5", &told);
    assert_int_equal(finish(w), 66);
    RUN(w, "../elmer-notice", "--notify", "true");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    answer_jobs(w, query.id, NULL, 0, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 75);
    assert_non_null(strstr(w->stderr_text, "nothing is known of job 58 any more"));
}

/* ---- the page ---- */

static void test_page(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = done_view(5, 0, -1, "exited", "");
    struct wire_job_view notices[] = {done_view(58, 0, -1, "exited", ""), done_view(59, 69, -1, "exited", "status 69")};
    struct wire_message query;

    view.mail_at = "begin,end";
    view.notify = "./x";
    view.begin_notice = 58;
    view.end_notice = 59;
    for (int i = 0; i < 2; i++) {
        RUN(w, "equery", "5");
        accept_command(w);
        answer_query(w, 5, &view);
        query = peer_expect(&w->elmer, WIRE_query);
        assert_int_equal(query.u.query.jobs.count, 2);
        answer_jobs(w, query.id, notices, 2, false);
        wire_message_fini(&query);
        assert_int_equal(finish(w), 0);
        assert_non_null(strstr(w->stdout_text, "\n  mail at     begin,end\n  notify      ./x\n"));
        if (i == 0)
            assert_non_null(strstr(w->stdout_text, "  told        of its begin: 2026-01-01 01:02:03 (job 58)\n"
                                                   "  told        of its end: failed (job 59): status 69\n"));
        else
            assert_non_null(strstr(w->stdout_text, "  told        of its begin: not needed (job 58)\n"
                                                   "  told        of its end: not yet (job 59): waits\n"));
        notices[0].state = "cancelled";
        notices[0].reason_code = "never";
        notices[1] = view_of(59, "n", "queued");
        notices[1].reason = "waits";
    }
}

static void test_json(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = done_view(5, 0, -1, "exited", "");

    view.mail_at = "end";
    view.end_notice = 59;
    RUN(w, "equery", "--json", "5");
    accept_command(w);
    answer_query(w, 5, &view);
    assert_int_equal(finish(w), 0);
    assert_non_null(strstr(w->stdout_text, "\"notice\":false,\"mail_at\":\"end\",\"notify\":null,\"begin_notice\":null,"
                                           "\"end_notice\":59"));
    check_schema(w, TOP_SRCDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_notices, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_only_failures, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_a_command_and_failures, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_a_notice_is_refused, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_a_notice_is_refused_of_one_that_is_waited_for, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_words, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_mail_at_the_end, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_mail_that_hangs, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_no_mail_is_needed, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_at_the_begin, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_of_one_that_did_not_run, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_of_an_array, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_what_fails, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_page, begin, tear_down),
        cmocka_unit_test_setup_teardown(test_json, begin, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
