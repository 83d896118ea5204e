/* test_commands_history.c - equery --history as a process. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

/* It comes latest first, in pages, and is shown latest last. */
static void test_history(void **data)
{
    struct world *w = *data;
    struct wire_job_view views[2] = {done_view(9, 0, -1, "exited", ""), done_view(5, -1, 9, "killed", "by alice")};
    struct wire_message history;

    RUN(w, "equery", "--history", "-n", "2", "-u", "alice");
    accept_command(w);
    history = peer_expect(&w->elmer, WIRE_history);
    assert_string_equal(history.u.history.user, "alice");
    assert_int_equal(history.u.history.count, 2);
    answer_jobs(w, history.id, views, 1, true);
    answer_jobs(w, history.id, views + 1, 1, false);
    wire_message_fini(&history);
    assert_int_equal(finish(w), 0);
    assert_string_equal(
        w->stdout_text,
        "Ended jobs:\n"
        "JOB  NAME  USER   NPROCS     TIME    CPU  LEVELS   HOSTS      ENDED                RESULT    REASON\n"
        "  5  prog  alice       3  1:02:03  2.25s  L0 1.5s  ws1*2,ws2  2026-01-01 01:02:03  signal 9  by alice\n"
        "  9  prog  alice       3  1:02:03  2.25s  L0 1.5s  ws1*2,ws2  2026-01-01 01:02:03  exit 0    exited\n");
    RUN(w, "equery", "--history", "--json");
    accept_command(w);
    history = peer_expect(&w->elmer, WIRE_history);
    assert_string_equal(history.u.history.user, "");
    assert_int_equal(history.u.history.count, 100);
    assert_int_equal(history.u.history.since_ms, 0);
    answer_jobs(w, history.id, NULL, 0, false);
    wire_message_fini(&history);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "{\"schema\":\"elmer.jobs/1\",\"jobs\":[]}\n");
}

/* All since then, unless -n says how many; an elmer that does not know of that sends the others, too. */
static void test_since(void **data)
{
    static const struct {
        const char *words[7];
        int64_t since_s; /* 0: it depends on the clock */
        uint64_t count;
    } table[] = {
        {{"equery", "--history", "--since", "2026-01-01 01:00"}, 1767229200, 0},
        {{"equery", "--history", "--since", "2026-01-01"}, 1767225600, 0},
        {{"equery", "--history", "--since=2026-01-01 01:02:03", "-n", "7"}, 1767229323, 7},
        {{"equery", "--history", "--since", "yesterday"}, 0, 0},
        {{"equery", "--history", "--since=today"}, 0, 0},
        {{"equery", "--history", "--since", "36h"}, 0, 0},
    };
    struct world *w = *data;
    struct wire_job_view views[2] = {done_view(9, 0, -1, "exited", ""), done_view(5, 0, -1, "exited", "")};
    int64_t now_ms = wall_now().ms;

    views[0].ended_ms = now_ms;
    views[1].ended_ms = 1767225599999; /* before all of these */
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        int64_t since_ms;
        struct wire_message history;

        run(w, table[i].words);
        accept_command(w);
        history = peer_expect(&w->elmer, WIRE_history);
        since_ms = history.u.history.since_ms;
        if (table[i].since_s)
            assert_int_equal(since_ms, table[i].since_s * 1000);
        else
            assert_true(since_ms > now_ms - 49 * INT64_C(3600000) && since_ms <= wall_now().ms);
        assert_int_equal(history.u.history.count, table[i].count);
        answer_jobs(w, history.id, views, 2, false);
        wire_message_fini(&history);
        assert_int_equal(finish(w), 0);
        assert_non_null(strstr(w->stdout_text, "\n  9  prog"));
        assert_null(strstr(w->stdout_text, "\n  5  prog"));
    }
}

int main(void)
{
#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_history),
        WITH_ELMER(test_since),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
