/* test_commands_comment.c - esubmit --comment and what equery shows of it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <string.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

#define COMMENT_OF_50  "12345678901234567890123456789012345678901234567890"
#define COMMENT_OF_200 COMMENT_OF_50 COMMENT_OF_50 COMMENT_OF_50 COMMENT_OF_50

/* The longest comment is carried; one that elmer would not understand is refused here, and nothing is submitted. */
static void test_comment(void **data)
{
    struct world *w = *data;
    struct wire_message message;

    RUN(w, "esubmit", "--comment", COMMENT_OF_200, "1", "x");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    assert_string_equal(message.u.submit.comment, COMMENT_OF_200);
    answer_submitted(w, message.id, "running", 0, 0, "");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    RUN(w, "esubmit", "--comment", "c", "1", "x");
    accept_command_of_minor(w, 3);
    assert_int_equal(finish(w), 1);
    assert_string_equal(w->stdout_text, "");
    assert_non_null(strstr(w->stderr_text, "--comment: the other side speaks version 1.3"));
    RUN(w, "esubmit", "--mesh", "4x6", "x");
    accept_command_of_minor(w, 4);
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "--mesh: the other side speaks version 1.4"));
    RUN(w, "esubmit", "--mesh", "4x6", "x", "1");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    assert_int_equal(message.u.submit.nprocs, 24);
    assert_int_equal(message.u.submit.mesh_rows, 4);
    assert_int_equal(message.u.submit.command.count, 2);
    answer_submitted(w, message.id, "running", 0, 0, "");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    RUN(w, "esubmit", "1", "x");
    accept_command_of_minor(w, 3);
    message = peer_expect(&w->elmer, WIRE_submit);
    assert_string_equal(message.u.submit.comment, "");
    answer_submitted(w, message.id, "running", 0, 0, "");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
}

static void test_usage(void **data)
{
    static const char *const wrong[][6] = {
        {"esubmit", "--comment", "a\nb", "1", "x"},
        {"esubmit", "--comment", "a\x7f", "1", "x"},
        {"esubmit", "--comment", "\xff", "1", "x"},
        {"esubmit", "--comment", COMMENT_OF_200 "x", "1", "x"},
        {"esubmit", "--comment"},
        {"esubmit", "--mesh", "4", "x"},
        {"esubmit", "--mesh", "0x6", "x"},
        {"esubmit", "--mesh", "4x6x2", "x"},
        {"esubmit", "--mesh", "300x300", "x"},
        {"esubmit", "--mesh", "4x6"},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        run(w, wrong[i]);
        assert_int_equal(finish(w), 2);
        assert_string_equal(w->stdout_text, "");
        assert_non_null(strstr(w->stderr_text, i < 5 ? "comment" : i < 9 ? "mesh" : "COMMAND"));
    }
}

/* Below the table where jobs are asked for one by one, for programs in JSON; what could move the cursor is written out.
 */
static void test_comment_shown(void **data)
{
    struct world *w = *data;
    struct wire_job_view views[2] = {done_view(5, 0, -1, "exited", ""), view_of(6, "x", "queued")};
    static const char *const asked[] = {"5", "--json"};

    views[0].comment = "first\033[2J";
    for (size_t i = 0; i < 2; i++) {
        struct wire_message query;

        RUN(w, "equery", asked[i], i == 0 ? "6" : "5");
        accept_command(w);
        query = peer_expect(&w->elmer, WIRE_query);
        answer_jobs(w, query.id, views, i == 0 ? 2 : 1, false);
        wire_message_fini(&query);
        assert_int_equal(finish(w), 0);
        if (i == 0) {
            assert_non_null(strstr(w->stdout_text, "\nComment of job 5: first\\x1B[2J\n"));
            assert_null(strstr(w->stdout_text, "Comment of job 6"));
        } else {
            assert_non_null(
                strstr(w->stdout_text,
                       ",\"dir\":\"/home/"
                       "alice\",\"comment\":\"first\\u001B[2J\",\"output\":[{\"rank\":0,\"host\":\"ws1\","
                       "\"path\":null,\"errors\":null}],\"mesh_rows\":0,\"time_"
                       "limit_ms\":0,\"cpu_limit_ms\":0,\"warning_signal\":null,\"warning_ms\":null,\"after\":[],"
                       "\"waits_for\":[],\"tasks\":null,\"array\":null,\"index\":"
                       "null,\"tasks_waiting\":\"\",\"ntasks\":null,\"tasks_ok\":0,\"tasks_failed\":0,\"submitted\""));
        }
    }
}

#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_comment),
        WITH_ELMER(test_usage),
        WITH_ELMER(test_comment_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
