/* test_decide.c - what a person decides is kept together with what follows from it, before it is answered. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "elmer/engine/internal.h"
#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"

static const struct decision *last_decision(void)
{
    for (size_t i = fake_store.nputs; i-- > 0;)
        if (*fake_store.puts[i].decision.what)
            return &fake_store.puts[i].decision;
    return NULL;
}

static const struct host_row *last_host(void)
{
    for (size_t i = fake_store.nputs; i-- > 0;)
        if (*fake_store.puts[i].host.name)
            return &fake_store.puts[i].host;
    return NULL;
}

static const struct decision ended = {
    .what = "ended", .job = 1, .user = "alice", .by = "carol", .from = "ws3", .uid = 9, .admin = true};

static void test_kill(void **state)
{
    (void)state;
    bed_begin(1);
    bed_running(1);
    struct event event = {.type = EVENT_KILL, .request = 12, .job = 1};
    event.u.by.admin = true;
    snprintf(event.u.by.text, sizeof(event.u.by.text), "ended by carol, an administrator");
    engine_decide(bed.engine, &event, &ended);
    assert_true(bed_told("end ws1 1.1")); /* at once */
    assert_false(bed_told("answer"));
    const struct decision *row = last_decision();
    assert_non_null(row);
    assert_string_equal(row->by, "carol");
    assert_int_equal(row->at_ms, FAKE_WALL_MS);
    assert_int_equal(fake_store.wanted, fake_store.nputs); /* the answer waits for the row, too */
    assert_string_equal(fake_store_last(1)->text, "ended by carol, an administrator");
    fake_store_commit();
    assert_true(bed_told("answer 12 ok 1"));
}

/* What is refused, or is no decision of anybody, leaves nothing. */
static void test_nothing(void **state)
{
    (void)state;
    bed_begin(1);
    bed_running(1);
    struct event event = {.type = EVENT_KILL, .request = 12, .job = 1, .u.by.uid = 6};
    engine_decide(bed.engine, &event, &ended);
    bed_expect("answer 12 not permitted 1");
    assert_null(last_decision());
    bed_event(EVENT_KILL, 13, 1, 0, 0);
    assert_null(last_decision());
    assert_string_equal(fake_store_last(1)->text, "");
}

static void drain(bool drained, const char *text)
{
    struct event event = {.type = drained ? EVENT_DRAIN : EVENT_UNDRAIN, .request = 5, .host = 0};
    struct decision decision = {.host = "ws1", .by = "carol", .from = "queue"};
    snprintf(decision.what, sizeof(decision.what), "%s", drained ? "drained" : "resumed");
    snprintf(decision.text, sizeof(decision.text), "%s", text);
    engine_decide(bed.engine, &event, &decision);
    fake_store_commit();
}

static void test_drain(void **state)
{
    (void)state;
    bed_begin(1);
    assert_null(engine_drain(bed.engine, 0));
    drain(true, "disk");
    const struct host_drain *known = engine_drain(bed.engine, 0);
    assert_string_equal(known->by, "carol");
    assert_string_equal(known->text, "disk");
    assert_true(last_host()->row.drained);
    assert_string_equal(last_host()->drain.text, "disk");
    drain(true, "memory"); /* it is drained already: for another reason now */
    assert_string_equal(engine_drain(bed.engine, 0)->text, "memory");
    assert_string_equal(last_host()->drain.text, "memory");
    drain(false, "");
    assert_null(engine_drain(bed.engine, 0));
    assert_string_equal(last_host()->drain.text, "");
    assert_string_equal(last_decision()->what, "resumed");
}

/* Who has drained it is known after a restart; a host that others have drained before that was kept is drained only. */
static void test_restart(void **state)
{
    (void)state;
    fake_store.hosts[0] = (struct host_row){
        .name = "ws1", .row = {.drained = true}, .drain = {.by = "carol", .text = "disk", .at_ms = 5}};
    fake_store.hosts[1] = (struct host_row){.name = "ws2", .row = {.drained = true}};
    fake_store.nhosts = 2;
    assert_int_equal(bed_create(), 0);
    assert_string_equal(engine_drain(bed.engine, 0)->text, "disk");
    assert_null(engine_drain(bed.engine, 1));
    assert_true(core_host(engine_core(bed.engine), 1)->drained);
}

static void test_held(void **state)
{
    struct decision held = ended;
    (void)state;
    bed_begin(1);
    bed_running(1);
    for (uint64_t i = 2; i <= 4; i++)
        bed_submit(i, 1, false); /* the last finds all levels taken */
    held.job = 4;
    struct event event = {.type = EVENT_HOLD, .request = 9, .job = 4};
    event.u.by.admin = true;
    snprintf(event.u.by.text, sizeof(event.u.by.text), "held by carol, an administrator");
    engine_decide(bed.engine, &event, &held);
    assert_int_equal(bed_state(4), JOB_HELD);
    assert_string_equal(fake_store_last(4)->text, "held by carol, an administrator");
    bed_event(EVENT_RELEASE, 10, 4, 0, 0);
    assert_string_equal(fake_store_last(4)->text, "");
}

static void test_lines(void **state)
{
    char line[300];
    struct decision set = {.what = "set", .by = "root", .from = "ws1", .text = "allocator v1, it was v2"};
    const struct decision drained_ws2 = {
        .what = "drained", .host = "ws2", .by = "carol", .from = "ws1", .text = "the \"disk\""};
    (void)state;
    decision_line(&ended, line, sizeof(line));
    assert_string_equal(line, "job=1 user=alice ended by=carol host=ws3");
    decision_line(&drained_ws2, line, sizeof(line));
    assert_string_equal(line, "host=ws2 drained by=carol reason=\"the 'disk'\" from=ws1");
    decision_line(&set, line, sizeof(line));
    assert_string_equal(line, "set by=root to=\"allocator v1, it was v2\" from=ws1");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_kill),    TEST(test_nothing), TEST(test_drain),
                                       TEST(test_restart), TEST(test_held),    TEST(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
