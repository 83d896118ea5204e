/* test_elmer_history.c - what elmer remembers of jobs that have ended: lists, tokens, limits, also after a restart. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/daemon/elmer_lab.h"
#include "lib/base/clock.h"

#define LOCAL "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 3s\nsettle = 0\nallocator = v1\nlevels = 1\n"

enum { JOBS = 600 };

static uint32_t owner(int i)
{
    return i % 3 ? 2001 : 2002;
}

/* Job 1 keeps the processor; the others are cancelled but for the last. */
static void make_jobs(struct fake *host)
{
    struct wire_message answer, m;
    for (int i = 1; i <= JOBS; i++) {
        char token[20];
        snprintf(token, sizeof(token), "t%d", i);
        m = lab_submission(token, 1);
        m.u.submit.comment = token;
        host_relay(host, owner(i), owner(i), i % 3 ? "alice" : "bob", &m);
        host_expect_relayed(host, owner(i), WIRE_submitted, &answer);
        assert_int_equal(answer.u.submitted.job, i);
        wire_message_fini(&answer);
    }
    for (int i = 2; i < JOBS; i++) {
        m = (struct wire_message){.type = WIRE_cancel, .u.cancel.job = (uint64_t)i};
        host_relay(host, owner(i), owner(i), i % 3 ? "alice" : "bob", &m);
        host_expect_relayed(host, owner(i), WIRE_done, &answer);
        wire_message_fini(&answer);
    }
}

/* Number of jobs in the answer; the first and the last id. */
static size_t ask(struct fake *host, const char *user, uint64_t count, uint64_t *first, uint64_t *last)
{
    struct wire_message m = {.type = WIRE_history, .u.history = {.user = user, .count = count}}, answer;
    size_t seen = 0;
    *first = *last = 0;
    host_relay(host, 2, 2001, "alice", &m);
    for (bool more = true; more; wire_message_fini(&answer)) {
        host_expect_relayed(host, 2, WIRE_jobs, &answer);
        for (size_t i = 0; i < answer.u.jobs.jobs.count; i++) {
            const struct wire_job_view *view = &answer.u.jobs.jobs.items[i];
            char comment[24];
            snprintf(comment, sizeof(comment), "t%llu", (unsigned long long)view->job);
            assert_string_equal(view->state, "cancelled");
            assert_string_equal(view->comment, view->uid == 2001 ? comment : ""); /* bob's is hidden */
            assert_true(!*last || view->job < *last);
            *last = view->job;
            *first = *first ? *first : view->job;
            seen++;
        }
        more = answer.u.jobs.more;
    }
    return seen;
}

static void test_lists(void **state)
{
    struct lab lab;
    struct fake host;
    uint64_t first, last;
    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    assert_int_equal(ask(&host, "", 0, &first, &last), 0);
    make_jobs(&host);
    for (int round = 0; round < 2; round++) { /* again after a restart: from the store alone */
        assert_int_equal(ask(&host, "", 0, &first, &last), JOBS - 2);
        assert_int_equal(first, JOBS - 1);
        assert_int_equal(last, 2);
        assert_int_equal(ask(&host, "", 256, &first, &last), 256);
        assert_int_equal(ask(&host, "", 300, &first, &last), 300);
        assert_int_equal(last, JOBS - 300);
        assert_int_equal(ask(&host, "bob", 0, &first, &last), JOBS / 3 - 1);
        assert_int_equal(ask(&host, "nobody", 5, &first, &last), 0);
        fake_close(&host);
        lab_stop(&lab, SIGKILL);
        lab_start(&lab);
        host_open(&host, &lab, "ws1", 1, NULL);
    }
    /* a retry finds its job there, another user's does not */
    struct wire_message again = lab_submission("t77", 1), answer;
    assert_int_equal(lab_submit(&host, &again, NULL, 0), 77);
    host_relay(&host, 9, 2002, "bob", &again);
    host_expect_relayed(&host, 9, WIRE_submitted, &answer);
    assert_int_equal(answer.u.submitted.job, JOBS + 1);
    wire_message_fini(&answer);
    fake_close(&host);
    lab_destroy(&lab);
}

/* Who sees the command sees the comment, before and after the end and a restart; what would move a cursor is refused.
 */
static void test_comment(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message m = lab_submission("t1", 1), answer;
    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    m.u.submit.comment = "a\nb";
    host_relay(&host, 7, 2001, "alice", &m);
    host_expect_relayed(&host, 7, WIRE_error, &answer);
    assert_string_equal(answer.u.error.code, WIRE_CODE_REFUSED);
    assert_string_equal(answer.u.error.text, "the comment contains control characters: \"a\\x0Ab\"");
    wire_message_fini(&answer);
    m.u.submit.comment = "f\xc3\xbcr \"Bob\"";
    assert_int_equal(lab_submit(&host, &m, NULL, 0), 1);
    for (int round = 0; round < 2; round++) {
        uint64_t id = 1;
        for (uint32_t uid = 2001; uid <= 2002; uid++) {
            struct wire_message query = {.type = WIRE_query, .u.query.jobs = {&id, 1}};
            host_relay(&host, 3, uid, uid == 2001 ? "alice" : "bob", &query);
            host_expect_relayed(&host, 3, WIRE_jobs, &answer);
            assert_int_equal(answer.u.jobs.jobs.count, 1);
            assert_string_equal(answer.u.jobs.jobs.items[0].comment, uid == 2001 ? "f\xc3\xbcr \"Bob\"" : "");
            wire_message_fini(&answer);
        }
        fake_close(&host);
        lab_stop(&lab, SIGKILL);
        lab_start(&lab);
        host_open(&host, &lab, "ws1", 1, NULL);
    }
    fake_close(&host);
    lab_destroy(&lab);
}

/* The same new token many times at once: one job. */
static void test_one_token_at_once(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message m, answer;
    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    for (int i = 0; i < 50; i++) {
        m = lab_submission("same", 1);
        host_relay(&host, (uint64_t)i % 5, 2001, "alice", &m);
    }
    for (int i = 0; i < 50; i++) {
        host_expect_relayed(&host, (uint64_t)i % 5, WIRE_submitted, &answer);
        assert_int_equal(answer.u.submitted.job, 1);
        wire_message_fini(&answer);
    }
    fake_close(&host);
    lab_destroy(&lab);
}

static void test_limit(void **state)
{
    struct lab lab;
    struct fake host;
    uint64_t first, last;
    (void)state;
    lab_create(&lab, LOCAL "history_jobs = 40\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    make_jobs(&host);
    fake_close(&host);
    lab_stop(&lab, SIGTERM);
    lab_start(&lab); /* a start looks after the limits */
    host_open(&host, &lab, "ws1", 1, NULL);
    int64_t begin = mono_ms(mono_now());
    while (ask(&host, "", 0, &first, &last) != 40)
        assert_true(mono_ms(mono_now()) - begin < LAB_WAIT_MS);
    assert_int_equal(first, JOBS - 1);
    fake_close(&host);
    lab_destroy(&lab);
}

/* The start's own CPU time: that of its main thread, which what it does beside (the check of a large store) is not in.
 */
static double start_seconds(struct lab *lab)
{
    char path[60];
    unsigned long long ns = 0;
    struct fake host;
    uint64_t first, last;
    lab_start(lab);
    host_open(&host, lab, "ws1", 1, NULL);
    assert_int_equal(ask(&host, "nobody", 1, &first, &last), 0);
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)lab->pid, (int)lab->pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu", &ns), 1);
    fclose(file);
    fake_close(&host);
    lab_stop(lab, SIGKILL);
    return (double)ns / 1e9;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The rows of ended job 2, many times; without asking what columns there are. */
static void make_history(const struct lab *lab, unsigned count)
{
    static const char *const tables[][2] = {{"job", "id"}, {"state", "job"}};
    char path[100], sql[800], *text = NULL;
    sqlite3 *db = NULL;
    snprintf(path, sizeof(path), "%s/elmer.db", lab->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA temp_store = MEMORY; PRAGMA synchronous = OFF", NULL, NULL, NULL),
                     SQLITE_OK);
    for (int t = 0; t < 2; t++) {
        snprintf(
            sql, sizeof(sql),
            "CREATE TEMP TABLE one AS SELECT * FROM main.%s WHERE %s = 2;"
            "CREATE TEMP TABLE many AS WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < %u)"
            " SELECT n.i AS n, one.* FROM n, one; UPDATE many SET %s = n;%s ALTER TABLE many DROP COLUMN n;"
            "INSERT INTO main.%s SELECT * FROM many; DROP TABLE one; DROP TABLE many",
            tables[t][0], tables[t][1], count + 999, tables[t][1],
            t == 0 ? "UPDATE many SET token = 'copy-' || n;" : "", tables[t][0]);
        if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
            fail_msg("%s", text);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* What a start costs does not grow with what has ended: with 40,000 jobs at most half more than an empty one. */
static void test_start_with_much(void **state)
{
    enum { STARTS = 7, ENDED = 40000 };
    struct lab lab[2];
    double seconds[2][STARTS];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fake host;
        lab_create(&lab[i], LOCAL);
        lab_start(&lab[i]);
        host_open(&host, &lab[i], "ws1", 1, NULL);
        for (int job = 1; job <= 2; job++) {
            struct wire_message m = lab_submission(job == 1 ? "t1" : "t2", 1), answer;
            lab_submit(&host, &m, NULL, 0);
            m = (struct wire_message){.type = WIRE_cancel, .u.cancel.job = (uint64_t)job};
            host_relay(&host, 2, 2001, "alice", &m);
            if (job == 2) {
                host_expect_relayed(&host, 2, WIRE_done, &answer);
                wire_message_fini(&answer);
            }
        }
        fake_close(&host);
        lab_stop(&lab[i], SIGTERM);
    }
    make_history(&lab[1], ENDED);
    for (int n = 0; n < STARTS; n++)
        for (int i = 0; i < 2; i++)
            seconds[i][n] = start_seconds(&lab[i]);
    for (int i = 0; i < 2; i++)
        qsort(seconds[i], STARTS, sizeof(double), compare);
    double empty = seconds[0][STARTS / 2], much = seconds[1][STARTS / 2];
    print_message("a start costs %.1f ms of CPU time, with %d ended jobs %.1f ms\n", empty * 1000, ENDED, much * 1000);
    assert_true(much <= 1.5 * empty);
    for (int i = 0; i < 2; i++)
        lab_destroy(&lab[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comment),           cmocka_unit_test(test_lists),
        cmocka_unit_test(test_one_token_at_once), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_start_with_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
