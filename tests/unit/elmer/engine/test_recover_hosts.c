/* test_recover_hosts.c - jobs of the store that may only use some hosts, when these are no longer in the configuration,
 * or stand there in another order. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"

/* Queued, for one processor; on: what its submission says of hosts, or NULL. */
static struct record *found(uint64_t id, const char *on)
{
    static const char *command[] = {"/bin/true"};
    char token[30];
    snprintf(token, sizeof(token), "t%d", (int)id);
    struct wire_submit submit = {.nprocs = 1,
                                 .requeue = true,
                                 .name = "x",
                                 .dir = "/d",
                                 .token = token,
                                 .hosts = {&on, on ? 1 : 0},
                                 .command = {command, 1}};
    struct record *r = fake_store_record(id, 5, &submit);
    r->state = JOB_QUEUED;
    r->reason = REASON_WAITING;
    fake_store.jobs[fake_store.njobs++] = r;
    fake_store.next_job = id + 1;
    return r;
}

static struct record *found_running(uint64_t id, const char *host)
{
    struct record *r = found(id, NULL);
    struct record_processor *processors = arena_array(&r->memory, 1, sizeof(*processors));
    processors[0] = (struct record_processor){host, 0};
    r->state = JOB_RUNNING;
    r->reason = REASON_NONE;
    r->attempt = 1;
    r->allocation = id;
    r->level = 0;
    r->processors = processors;
    r->nprocessors = 1;
    r->exited = arena_alloc(&r->memory, 1);
    r->exited_size = 1;
    r->launched = true;
    r->lease_ms = 120000;
    fake_store.next_allocation = id + 1;
    return r;
}

static void create(void)
{
    if (bed_create())
        fail_msg("%s", bed.err.text);
}

static const struct core_job *state_of(uint64_t id)
{
    return core_job(engine_core(bed.engine), id);
}

/* Its list of hosts, from two names; the second may be NULL. */
static void may_use(struct record *r, const char *first, const char *second)
{
    const char **hosts = arena_array(&r->memory, 2, sizeof(*hosts));
    hosts[0] = first;
    hosts[1] = second;
    r->hosts = hosts;
    r->nhosts = second ? 2 : 1;
}

/* None of them is there any more: it waits for them, also through a change and another restart, and in its place. */
static void test_no_name_left(void **state)
{
    (void)state;
    may_use(found(1, NULL), "gone", "lost");
    found(2, NULL);
    create();
    engine_begin(bed.engine);
    bed_up(0, 1, NULL, 0);
    assert_int_equal(bed_state(1), JOB_QUEUED);
    assert_int_equal(state_of(1)->reason, REASON_TOO_FEW_UP);
    assert_non_null(state_of(1)->hosts);
    assert_int_equal(state_of(1)->nhosts, 0);
    assert_int_equal(bed_state(2), JOB_STARTING); /* as if it were not there */
    bed_event(EVENT_HOLD, 0, 1, 0, 0);
    bed_event(EVENT_RELEASE, 0, 1, 0, 0);
    assert_int_equal(bed_state(1), JOB_QUEUED);
    const struct record *put = fake_store_last(1);
    assert_int_equal(put->nhosts, 2);
    assert_string_equal(put->hosts[0], "gone");
    assert_string_equal(put->hosts[1], "lost");
}

/* A host that is not configured any more and has a job comes back as a host that leaves: its job runs on, and then it
 * is gone. */
static void test_host_retired(void **state)
{
    (void)state;
    found_running(1, "gone");
    create();
    engine_begin(bed.engine);
    int host = core_host_by_name(engine_core(bed.engine), "gone");
    assert_int_equal(host, 3);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    assert_int_equal(core_member_by_name(engine_core(bed.engine), "gone"), -1);
    assert_false(core_host_gone(engine_core(bed.engine), host));
    struct event event = {.type = EVENT_HOST_DOWN, .host = host};
    engine_event(bed.engine, &event);
    assert_int_equal(bed_state(1), JOB_QUEUED); /* it has --requeue */
    assert_int_equal(state_of(1)->nlost, 1);
    assert_true(core_host_gone(engine_core(bed.engine), host));
}

/* One that has joined is a host as before. */
static void test_host_joined(void **state)
{
    (void)state;
    struct host_row *row = &fake_store.hosts[fake_store.nhosts++];
    *row = (struct host_row){.name = "ws7", .row.joined = true};
    create();
    int host = core_member_by_name(engine_core(bed.engine), "ws7");
    assert_int_equal(host, 3);
    assert_true(core_host(engine_core(bed.engine), host)->joined);
}

static void drained_before(const char *name, const char *text)
{
    struct host_row *row = &fake_store.hosts[fake_store.nhosts++];
    *row = (struct host_row){.row = {.up = true, .drained = true, .ncpus = 1}, .drain = {.by = "carol", .at_ms = 5}};
    snprintf(row->name, sizeof(row->name), "%s", name);
    snprintf(row->drain.text, sizeof(row->drain.text), "%s", text);
}

static const struct host_row *last_host(const char *name)
{
    const struct host_row *found = NULL;
    for (size_t i = 0; i < fake_store.nputs; i++)
        if (strcmp(fake_store.puts[i].host.name, name) == 0)
            found = &fake_store.puts[i].host;
    return found;
}

static void add(const char *name)
{
    struct event event = {.type = EVENT_HOST_ADD, .host = -1, .u.add.name = name};
    engine_event(bed.engine, &event);
}

/* One that was drained, and is no host of the cluster now, is drained when it is one again; by whom is known, too. */
static void test_host_drained_before(void **state)
{
    (void)state;
    drained_before("ws8", "fan");
    drained_before("gone", "disk");
    found_running(1, "gone");
    create();
    engine_begin(bed.engine);
    bed_up(core_host_by_name(engine_core(bed.engine), "gone"), 1, NULL, 0);
    assert_true(last_host("gone")->row.drained);
    assert_string_equal(last_host("gone")->drain.text, "disk");
    add("ws8");
    add("ws9");
    add("gone");
    int ws8 = core_member_by_name(engine_core(bed.engine), "ws8");
    assert_string_equal(engine_drain(bed.engine, ws8)->text, "fan");
    assert_string_equal(engine_drain(bed.engine, ws8)->by, "carol");
    assert_string_equal(last_host("ws8")->drain.text, "fan");
    assert_true(last_host("ws8")->row.drained);
    assert_false(core_host(engine_core(bed.engine), core_host_by_name(engine_core(bed.engine), "ws9"))->drained);
    int gone = core_member_by_name(engine_core(bed.engine), "gone");
    assert_string_equal(engine_drain(bed.engine, gone)->text, "disk");
}

/* The same of a job that was running there, and goes back into the queue. */
static void test_no_name_left_requeue(void **state)
{
    (void)state;
    may_use(found_running(1, "gone"), "gone", NULL);
    create();
    engine_begin(bed.engine);
    struct event down = {.type = EVENT_HOST_DOWN, .host = core_host_by_name(engine_core(bed.engine), "gone")};
    engine_event(bed.engine, &down);
    fake_time_pass(1000000); /* its lease is over */
    bed_up(0, 1, NULL, 0);
    assert_int_equal(bed_state(1), JOB_QUEUED);
    assert_int_equal(state_of(1)->nlost, 0);
    assert_int_equal(state_of(1)->reason, REASON_TOO_FEW_UP);
    assert_int_equal(fake_store_last(1)->nhosts, 1);
    assert_string_equal(fake_store_last(1)->hosts[0], "gone");
}

/* Some are left: the others are kept for the day on which they are back. Their order in the configuration, or that of
 * the store, does not matter. */
static void test_some_names_left(void **state)
{
    (void)state;
    may_use(found(1, NULL), "ws3", "ws1");
    may_use(found(3, NULL), "ws3", "ws3");
    may_use(found(2, NULL), "gone", "ws2");
    create();
    engine_begin(bed.engine);
    assert_int_equal(state_of(1)->nhosts, 2);
    assert_int_equal(state_of(1)->hosts[0], 0);
    assert_int_equal(state_of(1)->hosts[1], 2);
    assert_int_equal(state_of(2)->nhosts, 1);
    assert_int_equal(state_of(3)->nhosts, 1);
    bed_event(EVENT_HOLD, 0, 2, 0, 0);
    const struct record *put = fake_store_last(2);
    assert_int_equal(put->nhosts, 2);
    assert_string_equal(put->hosts[0], "ws2");
    assert_string_equal(put->hosts[1], "gone");
}

/* An elmer before this one dropped the names of the list that were not in its configuration. */
static void test_names_of_submission(void **state)
{
    (void)state;
    found(1, "ws2");
    create();
    assert_int_equal(state_of(1)->nhosts, 1);
    assert_int_equal(state_of(1)->hosts[0], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_host_drained_before), TEST(test_no_name_left), TEST(test_no_name_left_requeue),
        TEST(test_host_retired),        TEST(test_host_joined),  TEST(test_some_names_left),
        TEST(test_names_of_submission),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
