/* test_commands_jobs.c - esubmit --after, and the commands for jobs that are there: ewait, ehold, erelease, etop. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <string.h>

#include "lib/base/clock.h"
#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

static void expect_usage(struct world *w, const char *words)
{
    assert_int_equal(finish(w), 2);
    assert_string_equal(w->stdout_text, "");
    if (!strstr(w->stderr_text, words))
        fail_msg("\"%s\" does not contain \"%s\"", w->stderr_text, words);
}

static void test_after(void **data)
{
    struct world *w = *data;
    struct wire_message message;

    RUN(w, "esubmit", "--after", "ok:41,any:42", "--if-never", "keep", "--after", "7", "1", "x");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    assert_int_equal(message.u.submit.after.count, 3);
    assert_string_equal(message.u.submit.after.items[1], "any:42");
    assert_string_equal(message.u.submit.after.items[2], "ok:7");
    assert_true(message.u.submit.keep_never);
    answer_submitted(w, message.id, "queued", -1, 3, "waits for 41 to end well");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "job 42 queued: 3 ahead; waits for 41 to end well\n");
    RUN(w, "esubmit", "-a", "1-9:2%2", "x", "{}");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, message.id, "queued", -1, 0, "2 tasks of the array run at a time");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "array 42 (5 tasks) queued: 0 ahead; 2 tasks of the array run at a time\n");
    RUN(w, "esubmit", "--after", "ok:41", "--if-never", "cancel", "1", "x");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    assert_false(message.u.submit.keep_never);
    answer_submitted(w, message.id, "cancelled", -1, 0, "it can never run: job 41 did not end well");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "42\n");
    assert_string_equal(w->stderr_text, "job 42 cancelled: it can never run: job 41 did not end well\n");
    RUN(w, "esubmit", "--after", "ok:41", "1", "x"); /* it must not run at once because elmer does not understand */
    accept_command_of_minor(w, 5);
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "--after: the other side speaks version 1.5"));
}

static void test_after_usage(void **data)
{
    static const char *const wrong[][2] = {
        {"", "'' has no job id"},
        {"ok:", "'ok:' has no job id"},
        {"ok:41,", "'' has no job id"},
        {"ok:0", "has no job id"},
        {"ok:-1", "has no job id"},
        {"ok:99999999999999999999", "has no job id"},
        {"done:41", "'done:41' does not begin with ok:, fail:, any: or start:"},
        {"OK:41", "does not begin with"},
        {"ok:41 any:42", "has something behind"},
        {"any:42[*", "'42[*' has no ] at its end"},
        {"any:42[3,1]", "42[3,1]: '3,1' does not grow"},
        {"any:42[1%2]", "has something behind its tasks"},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        RUN(w, "esubmit", "--after", wrong[i][0], "1", "x");
        expect_usage(w, wrong[i][1]);
    }
    RUN(w, "esubmit", "--after", "ok:1", "--if-never", "run", "1", "x");
    expect_usage(w, "--if-never run: want cancel or keep");
}

/* ---- ewait ---- */

/* It asks first whether they are there. */
static void answer_query(struct world *w, struct wire_job_view *views, size_t count)
{
    struct wire_message query = peer_expect(&w->elmer, WIRE_query);

    answer_jobs(w, query.id, views, count, false);
    wire_message_fini(&query);
}

static void answer_wait(struct world *w, uint64_t job, struct wire_job_view view)
{
    struct wire_message wait = peer_expect(&w->elmer, WIRE_wait);

    assert_int_equal(wait.u.wait.job, job);
    answer_jobs(w, wait.id, &view, 1, false);
    wire_message_fini(&wait);
}

/* The first that is not 0, in the order given; each is asked for once, and the answer is awaited. */
static void test_wait(void **data)
{
    struct world *w = *data;
    struct wire_job_view views[3] = {view_of(5, "x", "running"), view_of(6, "x", "running"), view_of(7, "x", "queued")};

    RUN(w, "ewait", "6", "7", "5");
    accept_command(w);
    answer_query(w, views, 3);
    answer_wait(w, 6, done_view(6, 0, 0, "exited", ""));
    answer_wait(w, 7, done_view(7, 3, 0, "exited", ""));
    answer_wait(w, 5, done_view(5, 9, 0, "exited", ""));
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stdout_text, "");
    assert_string_equal(w->stderr_text, "");
    RUN(w, "ewait", "5");
    accept_command(w);
    answer_query(w, views, 1);
    answer_wait(w, 5, done_view(5, -1, 9, "killed", "ended by ekill"));
    assert_int_equal(finish(w), 128 + 9);
    RUN(w, "ewait", "5");
    accept_command(w);
    answer_query(w, views, 1);
    views[0] = done_view(5, -1, 9, "exited", "");
    views[0].array = 2;
    views[0].index = 12;
    answer_wait(w, 5, views[0]);
    assert_int_equal(finish(w), 128 + 9);
    assert_non_null(strstr(w->stderr_text, "job 2[12] died by signal 9"));
    RUN(w, "ewait", "5");
    accept_command(w);
    answer_query(w, views, 1);
    views[0] = view_of(5, "x", "cancelled");
    views[0].reason_code = "never";
    views[0].reason = "it can never run: job 4 did not end well";
    answer_wait(w, 5, views[0]);
    assert_int_equal(finish(w), 125);
    assert_non_null(strstr(w->stderr_text, "job 5 was cancelled: it can never run: job 4 did not end well"));
}

static void test_wait_any(void **data)
{
    struct world *w = *data;
    struct wire_job_view views[2] = {view_of(5, "x", "running"), view_of(6, "x", "running")};
    struct wire_message wait;

    RUN(w, "ewait", "--any", "6", "5");
    accept_command(w);
    answer_query(w, views, 2);
    wait = peer_expect(&w->elmer, WIRE_wait_any);
    assert_int_equal(wait.u.wait_any.jobs.count, 2);
    assert_int_equal(wait.u.wait_any.jobs.items[0], 6);
    views[0] = done_view(5, 4, 0, "exited", "");
    answer_jobs(w, wait.id, views, 1, false);
    wire_message_fini(&wait);
    assert_int_equal(finish(w), 4);
}

/* The daemon goes away in the middle, and comes back. */
static void test_wait_restart(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = view_of(5, "x", "running");
    struct wire_message wait;

    RUN(w, "ewait", "5");
    accept_command(w);
    answer_query(w, &view, 1);
    wait = peer_expect(&w->elmer, WIRE_wait);
    wire_message_fini(&wait);
    accept_command(w); /* closes the first link */
    answer_wait(w, 5, done_view(5, 0, 0, "exited", ""));
    assert_int_equal(finish(w), 0);
}

/* An elmer that says at once, each time, that it goes on does not make it ask without a pause. */
static void test_wait_time(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = view_of(5, "x", "running");
    int64_t began = mono_ms(mono_now());

    RUN(w, "ewait", "-t", "1s", "5");
    accept_command(w);
    answer_query(w, &view, 1);
    for (int i = 0; i < 2; i++)
        answer_wait(w, 5, view);
    answer_query(w, &view, 1); /* the last look */
    assert_int_equal(finish(w), 124);
    assert_in_range(mono_ms(mono_now()) - began, 900, 60000);
    RUN(w, "ewait", "-t", "1", "5");
    accept_command(w);
    answer_query(w, &view, 1);
    answer_wait(w, 5, done_view(5, 7, 0, "exited", ""));
    assert_int_equal(finish(w), 7);
}

static void test_wait_unknown(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = view_of(5, "x", "running");

    RUN(w, "ewait", "5", "6");
    accept_command(w);
    answer_query(w, &view, 1);
    assert_int_equal(finish(w), 125); /* before it waits for 5 */
    assert_string_equal(w->stderr_text, "ewait: there is no job 6\n");
    RUN(w, "ewait");
    expect_usage(w, "the id of a job is missing");
    RUN(w, "ewait", "x");
    expect_usage(w, "'x' is no job id");
    RUN(w, "ewait", "[3]");
    expect_usage(w, "'[3]' is no job id");
    RUN(w, "etop", "--", "1", "2");
    expect_usage(w, "one job at a time");
    static const char *const times[] = {"", "0", "x", "1x", "1h2h", "1s2m", "-1", "1h 2m", "2m30", "9999999999"};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        RUN(w, "ewait", "-t", times[i], "5");
        expect_usage(w, "want a time like");
    }
}

/* ---- arrays of more tasks than a message has ids ---- */

enum { TASKS = 5000, AT_ONCE = 4096, PAGE = 256 };

static void answer_piece(struct world *w, size_t from, size_t count)
{
    static struct wire_job_view views[TASKS];
    struct wire_message query = peer_expect(&w->elmer, WIRE_query);

    assert_int_equal(query.u.query.jobs.count, count);
    for (size_t i = from; i < from + count; i++) {
        assert_int_equal(query.u.query.jobs.items[i - from], 58 + i);
        views[i] = done_view(58 + i, 0, 0, "exited", "");
        views[i].array = 57;
        views[i].index = (int)i + 1;
    }
    for (size_t i = from; i < from + count; i += PAGE)
        answer_jobs(w, query.id, &views[i], from + count - i < PAGE ? from + count - i : PAGE, i + PAGE < from + count);
    wire_message_fini(&query);
}

static void test_large_array(void **data)
{
    struct world *w = *data;
    struct wire_job_view array = view_of(57, "x", "running");
    struct wire_message query;
    size_t lines = 0;

    array.tasks = "1-5000";
    array.ntasks = TASKS;
    RUN(w, "equery", "--format", "id", "57[*]", "60");
    accept_command(w);
    answer_query(w, &array, 1);
    answer_piece(w, 0, AT_ONCE);
    query = peer_expect(&w->elmer, WIRE_query); /* and the connection breaks: all of it once more */
    wire_message_fini(&query);
    accept_command(w);
    answer_piece(w, 0, AT_ONCE);
    answer_piece(w, AT_ONCE, TASKS - AT_ONCE);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "");
    for (const char *at = w->stdout_text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, TASKS + 1);
    assert_non_null(strstr(w->stdout_text, "\n57[5000]\n"));
    array.tasks = "1-100000";
    array.ntasks = 100000;
    RUN(w, "equery", "57[*]", "57");
    accept_command(w);
    answer_query(w, &array, 1);
    assert_int_equal(finish(w), 2);
    assert_non_null(strstr(w->stderr_text, "more than 100000 jobs and tasks; name fewer at a time, like 57[1-100000]"));
}

/* ---- ehold, erelease, etop ---- */

static void answer_done(struct world *w, uint64_t id, const char *text)
{
    struct wire_message message = {.type = WIRE_done, .id = id, .u.done = {.text = text}};

    peer_send(&w->elmer, &message);
}

static void test_verbs(void **data)
{
    struct world *w = *data;
    struct wire_message message;

    RUN(w, "ehold", "5", "6");
    accept_command(w);
    for (uint64_t id = 5; id <= 6; id++) {
        message = peer_expect(&w->elmer, WIRE_hold);
        assert_int_equal(message.u.hold.job, id);
        answer_done(w, message.id, id == 5 ? "job 5 is held" : "job 6 is held");
        wire_message_fini(&message);
    }
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "ehold: job 5 is held\nehold: job 6 is held\n");
    RUN(w, "erelease", "5");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_release);
    assert_int_equal(message.u.release.job, 5);
    answer_done(w, message.id, "");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    RUN(w, "etop", "5");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_top);
    assert_int_equal(message.u.top.job, 5);
    peer_send(&w->elmer, &(struct wire_message){.type = WIRE_error,
                                                .id = message.id,
                                                .u.error = {.code = WIRE_CODE_WRONG_STATE, .text = "it runs"}});
    wire_message_fini(&message);
    assert_int_equal(finish(w), 3);
    assert_string_equal(w->stderr_text, "etop: it runs\n");
    RUN(w, "etop", "5");
    accept_twice_of_minor(w, 5);
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "1.5"));
    RUN(w, "etop", "5", "6");
    expect_usage(w, "one job at a time");
    RUN(w, "etop");
    expect_usage(w, "the id of a job is missing");
}

/* The same of eadmin: tasks, too. */
static void test_admin_verbs(void **data)
{
    static const struct {
        const char *id, *tasks;
    } table[] = {{"57", ""}, {"57[3]", "3"}, {"57[3-9,12]", "3-9,12"}, {"57[*]", ""}};
    struct world *w = *data;
    struct wire_message message;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        RUN(w, "eadmin", "hold", table[i].id);
        accept_command(w);
        message = peer_expect(&w->elmer, WIRE_hold);
        assert_int_equal(message.u.hold.job, 57);
        assert_string_equal(message.u.hold.tasks, table[i].tasks);
        answer_done(w, message.id, "held");
        wire_message_fini(&message);
        assert_int_equal(finish(w), 0);
        assert_string_equal(w->stdout_text, "held\n");
    }
    RUN(w, "eadmin", "release", "5", "57[3]");
    accept_command(w);
    for (int i = 0; i < 2; i++) {
        message = peer_expect(&w->elmer, WIRE_release);
        assert_int_equal(message.u.release.job, i == 0 ? 5 : 57);
        assert_string_equal(message.u.release.tasks, i == 0 ? "" : "3");
        answer_done(w, message.id, "");
        wire_message_fini(&message);
    }
    assert_int_equal(finish(w), 0);
    RUN(w, "eadmin", "hold", "5", "57[3");
    expect_usage(w, "has no ] at its end");
    RUN(w, "eadmin", "release", "x");
    expect_usage(w, "'x' is no job id");
}

#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_after),       WITH_ELMER(test_after_usage),  WITH_ELMER(test_wait),
        WITH_ELMER(test_large_array), WITH_ELMER(test_wait_any),     WITH_ELMER(test_wait_restart),
        WITH_ELMER(test_wait_time),   WITH_ELMER(test_wait_unknown), WITH_ELMER(test_verbs),
        WITH_ELMER(test_admin_verbs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
