/* test_elmer_after.c - jobs that wait for others, in a whole elmer: what users are told, restarts in the middle, and a
 * history that forgets. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/daemon/elmer_lab.h"
#include "tests/daemon/elmer_steps.h"

#define ONE_LEVEL LOCAL "levels = 1\n"

static uint64_t submit(struct fake *host, const char *token, const char *after, bool keep, const char *state)
{
    const char *items[4];
    char copy[100], got[20], *rest = copy, *item;
    struct wire_message m = lab_submission(token, 1);
    size_t count = 0;
    snprintf(copy, sizeof(copy), "%s", after);
    while ((item = strsep(&rest, ",")) && *item && count < 4)
        items[count++] = item;
    m.u.submit.after = (struct wire_strs){items, count};
    m.u.submit.keep_never = keep;
    uint64_t id = lab_submit(host, &m, got, sizeof(got));
    if (state)
        assert_string_equal(got, state);
    return id;
}

static void expect(struct fake *host, uint64_t job, const char *state, const char *code, const char *reason)
{
    struct wire_message answer;
    lab_query_until(host, job, state, &answer);
    assert_string_equal(only(&answer)->reason_code, code);
    if (strcmp(only(&answer)->reason, reason) != 0)
        fail_msg("job %llu: \"%s\", not \"%s\"", (unsigned long long)job, only(&answer)->reason, reason);
    wire_message_fini(&answer);
}

static void test_told(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message answer;
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", "", false, "starting");
    submit(&host, "b", "ok:1", false, "queued");
    submit(&host, "c", "any:1,ok:2,fail:2,start:2", false, "queued");
    expect(&host, 2, "queued", "after", "waits for 1 to end well");
    expect(&host, 3, "queued", "after", "waits for 1 to end, 2 to end well, 2 to fail and 1 more");
    lab_query(&host, 3, &answer);
    assert_int_equal(only(&answer)->after.count, 4);
    assert_string_equal(only(&answer)->after.items[0], "any:1");
    assert_int_equal(only(&answer)->waits_for.count, 4);
    wire_message_fini(&answer);
    query_as(&host, 2002, "bob", 3, &answer); /* what a job waits for is its owner's */
    assert_int_equal(only(&answer)->after.count + only(&answer)->waits_for.count, 0);
    assert_string_equal(only(&answer)->reason, "waits for other jobs");
    wire_message_fini(&answer);
    finish_job(&host, 1, 0);
    lab_query_until(&host, 3, "queued", &answer);
    assert_int_equal(only(&answer)->after.count, 4);
    assert_int_equal(only(&answer)->waits_for.count, 3);
    wire_message_fini(&answer);
    finish_job(&host, 2, 0); /* which can not also fail */
    expect(&host, 3, "cancelled", "never", "it can never run: job 2 ended well");
    fake_close(&host);
    lab_destroy(&lab);
}

static void refuse(struct fake *host, const char *item, const char *words)
{
    struct wire_message m = lab_submission(item, 1);
    m.u.submit.after = (struct wire_strs){&item, 1};
    refused(host, 2001, &m, WIRE_CODE_REFUSED, words);
}

static void test_never(void **state)
{
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    refuse(&host, "ok:1", "there is no job 1"); /* it would be itself */
    submit(&host, "a", "", false, "starting");
    refuse(&host, "ok:2", "there is no job 2");
    refuse(&host, "ok:1[3]", "names tasks of an array");
    refuse(&host, "after:1", "does not begin with ok:");
    refuse(&host, "ok:01", "has no job id");
    refuse(&host, "ok:1x", "has something behind");
    submit(&host, "b", "ok:1", true, "queued");
    submit(&host, "c", "ok:2", false, "queued");
    submit(&host, "d", "ok:1", false, "queued");
    submit(&host, "e", "start:4", true, "queued");
    finish_job(&host, 1, 3);
    for (int round = 0; round < 2; round++) {
        expect(&host, 2, "queued", "never",
               "it can never run: it waits for 1 to end well, and that cannot happen any more");
        expect(&host, 3, "queued", "after", "waits for 2 to end well");
        expect(&host, 4, "cancelled", "never", "it can never run: job 1 did not end well");
        expect(&host, 5, "queued", "never",
               "it can never run: it waits for 4 to start, and that cannot happen any more");
        /* with the end long known, from memory and, after the restart, from the store */
        submit(&host, round ? "f" : "g", "ok:1", false, "cancelled");
        submit(&host, round ? "h" : "i", "fail:2,ok:1", true, "queued");
        kill_and_begin(&lab, &host, NULL);
    }
    submit(&host, "j", "fail:1,start:1,any:4", false, "starting");
    fake_close(&host);
    lab_destroy(&lab);
}

/* Killed when each has been told, elmer knows all of it again; also that the first has ended while it was away. */
static void test_restarts(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.holdings = &holding, .nholdings = 1};
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", "", false, "starting");
    submit(&host, "b", "ok:1", false, "queued");
    submit(&host, "c", "start:1", false, "queued");
    submit(&host, "d", "fail:1", false, "queued");
    run_job(&host, &host, 1, 1);
    kill_and_begin(&lab, &host, &holds);
    expect(&host, 2, "queued", "after", "waits for 1 to end well");
    host_exited(&host, 1, 1, 0, "command", 0, 0);
    end_job(&host, 1, 1, 0.5);
    expect(&host, 4, "cancelled", "never", "it can never run: job 1 ended well");
    fake_close(&host);
    lab_stop(&lab, SIGKILL);
    lab_start(&lab);
    holding.job = 2; /* it was allocated in the moment in which 1 ended */
    host_open(&host, &lab, "ws1", 1, NULL);
    finish_job(&host, 2, 0);
    finish_job(&host, 3, 0);
    fake_close(&host);
    lab_destroy(&lab);
}

static int64_t in_store(const struct lab *lab, const char *sql)
{
    char path[100];
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    snprintf(path, sizeof(path), "%s/elmer.db", lab->dir);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return value;
}

/* Nothing of a job stays but what others need: after the restart 1 is known because 3 waits for it, 2 is not; and 4
 * remembers what it has seen of it. */
static void test_history_forgets(void **state)
{
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, ONE_LEVEL "history_jobs = 0\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", "", false, "starting");
    submit(&host, "b", "", false, "queued");
    submit(&host, "c", "ok:1,ok:2", true, "queued");
    finish_job(&host, 1, 0);
    submit(&host, "d", "ok:1,fail:2", true, "queued"); /* that 1 is met is in its row */
    run_job(&host, &host, 2, 1);
    struct wire_holding holding = {2, 1};
    struct host_options holds = {.holdings = &holding, .nholdings = 1};
    kill_and_begin(&lab, &host, &holds); /* trims at its start */
    expect(&host, 3, "queued", "after", "waits for 2 to end well");
    expect(&host, 4, "queued", "after", "waits for 2 to fail");
    assert_int_equal(in_store(&lab, "SELECT count(*) FROM job"), 4);
    host_exited(&host, 2, 1, 0, "command", 0, 0);
    end_job(&host, 2, 1, 0.5);
    finish_job(&host, 3, 0);
    kill_and_begin(&lab, &host, NULL);
    expect(&host, 4, "queued", "never", "it can never run: it waits for 2 to fail, and that cannot happen any more");
    /* 2 is kept for 4; nobody waits for 1 and 3 any more */
    for (int64_t end = mono_ms(mono_now()) + LAB_WAIT_MS;
         mono_ms(mono_now()) < end && in_store(&lab, "SELECT count(*) FROM job") > 2;) {
        struct wire_message answer;
        lab_query(&host, 4, &answer);
        wire_message_fini(&answer);
    }
    assert_int_equal(in_store(&lab, "SELECT count(*) FROM job WHERE id IN (2, 4)"), 2);
    assert_int_equal(in_store(&lab, "SELECT count(*) FROM job"), 2);
    submit(&host, "e", "ok:1", false, "cancelled");
    expect(&host, 5, "cancelled", "never", "it can never run: how job 1 ended is not known any more");
    submit(&host, "f", "any:3", false, "starting"); /* it is not there, so it has ended */
    fake_close(&host);
    lab_destroy(&lab);
}

static void verb(struct fake *host, struct wire_message m)
{
    struct wire_message answer;
    host_relay(host, 7, 2001, "alice", &m);
    host_expect_relayed(host, 7, WIRE_done, &answer);
    wire_message_fini(&answer);
}

/* Held, and in another order: also after elmer was killed as soon as that was confirmed. */
static void test_held_and_moved(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message bobs = lab_submission("bob", 1), answer;
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.holdings = &holding, .nholdings = 1};
    static const uint64_t order[] = {5, 3, 2, 6, 4}; /* 3 is bob's */
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submit(&host, "a", "", false, "starting");
    submit(&host, "b", "", false, "queued");
    host_relay(&host, 9, 2002, "bob", &bobs);
    host_expect_relayed(&host, 9, WIRE_submitted, &answer);
    wire_message_fini(&answer);
    for (int i = 0; i < 3; i++)
        submit(&host, (const char *[]){"d", "e", "f"}[i], "", false, "queued");
    run_job(&host, &host, 1, 1);
    verb(&host, (struct wire_message){.type = WIRE_top, .u.top.job = 6});
    verb(&host, (struct wire_message){.type = WIRE_hold, .u.hold.job = 4});
    verb(&host, (struct wire_message){.type = WIRE_top, .u.top.job = 2});
    verb(&host, (struct wire_message){.type = WIRE_top, .u.top.job = 5});
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5; i++) {
            lab_query(&host, order[i], &answer);
            assert_int_equal(only(&answer)->ahead, i);
            assert_string_equal(only(&answer)->state, order[i] == 4 ? "held" : "queued");
            wire_message_fini(&answer);
        }
        kill_and_begin(&lab, &host, &holds);
    }
    verb(&host, (struct wire_message){.type = WIRE_release, .u.release.job = 4});
    host_exited(&host, 1, 1, 0, "command", 0, 0);
    end_job(&host, 1, 1, 0.5);
    for (uint32_t i = 0; i < 5; i++)
        finish_job(&host, order[i], 0);
    fake_close(&host);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_told), cmocka_unit_test(test_never),
                                       cmocka_unit_test(test_restarts), cmocka_unit_test(test_history_forgets),
                                       cmocka_unit_test(test_held_and_moved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
