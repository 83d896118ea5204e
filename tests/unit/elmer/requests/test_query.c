/* test_query.c - lists in slices, jobs by id, the history, waiting for an end, and what others are not shown. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/elmer/requests/bed.h"

static int bob;

static int setup(void **state)
{
    bed_setup(state);
    bob = bed_client(BOB);
    return 0;
}

static void query(bool running, bool queued, uint64_t *ids, size_t count)
{
    struct wire_message message = {
        .type = WIRE_query, .id = 3, .u.query = {.running = running, .queued = queued, .jobs = {ids, count}}};
    say(bob, &message);
}

static const struct wire_jobs *page(size_t count, bool more)
{
    const struct wire_message *message = heard(bob, WIRE_jobs);
    assert_int_equal(message->id, 3);
    assert_int_equal(message->u.jobs.jobs.count, count);
    assert_int_equal(message->u.jobs.more, more);
    return &message->u.jobs;
}

static void add_jobs(uint64_t count)
{
    for (uint64_t id = 1; id <= count; id++)
        fake_engine_add_job(id, ALICE, JOB_QUEUED);
}

static struct record *stored(uint64_t id)
{
    struct wire_message m = bed_submission("t");
    struct record *record = fake_store_record(id, ALICE, &m.u.submit);
    record->state = JOB_DONE;
    record->reason = REASON_EXITED;
    return record;
}

/* ---- lists ---- */

static void test_empty_list(void **state)
{
    (void)state;
    query(true, true, NULL, 0);
    page(0, false);
}

/* One slice in a turn of the loop. */
static void test_slices(void **state)
{
    (void)state;
    add_jobs(600);
    query(true, true, NULL, 0);
    assert_int_equal(page(256, true)->jobs.items[0].job, 1);
    heard_nothing();
    fake_time_fire();
    assert_int_equal(page(256, true)->jobs.items[0].job, 257);
    fake_engine_add_job(601, ALICE, JOB_QUEUED); /* comes meanwhile */
    fake_time_fire();
    assert_int_equal(page(89, false)->jobs.items[88].job, 601);
    assert_int_equal(fake_time_next(), -1);
}

/* Only while the client takes what was sent. */
static void test_congested(void **state)
{
    (void)state;
    add_jobs(300);
    links_set_unsent((size_t)bob, (1 << 20) + 1);
    query(true, true, NULL, 0);
    assert_int_equal(fake_time_next(), -1); /* no timer looks again */
    fake_time_pass(1000);
    heard_nothing();
    links_room((size_t)bob);
    fake_time_fire();
    page(256, true);
    fake_time_fire();
    page(44, false);
}

/* However many lists it asks for, one is answered at a time, and none is looked at while it does not read. */
static void test_many_lists(void **state)
{
    const char *full = getenv("ELMER_TEST_FULL");
    int lists = full && !*full ? 20 : 250; /* empty under valgrind, where more take more CPU time than a user has */
    (void)state;
    bed.settings.user_requests_burst = 1000;
    bed_again(3);
    bob = bed_client(BOB);
    add_jobs(300);
    links_set_unsent((size_t)bob, (1 << 20) + 1);
    for (int i = 0; i < lists; i++)
        query(true, true, NULL, 0);
    assert_int_equal(fake_time_next(), -1);
    links_room((size_t)bob);
    fake_time_fire();
    page(256, true);
    links_set_unsent((size_t)bob, (1 << 20) + 1);
    fake_time_pass(1000);
    assert_int_equal(fake_time_next(), -1);
    heard_nothing();
    links_room((size_t)bob);
    fake_time_pass(1000);
    page(44, false);
    for (int i = 1; i < lists; i++) {
        page(256, true);
        page(44, false);
    }
    heard_nothing();
}

/* A list in the middle goes with its client, and those behind it. */
static void test_gone_in_turn(void **state)
{
    (void)state;
    int other = bed_client(BOB);
    add_jobs(300);
    query(true, true, NULL, 0);
    query(true, true, NULL, 0);
    page(256, true);
    links_cut((size_t)bob);
    fake_time_pass(1000);
    heard_nothing();
    bob = other;
    query(true, true, NULL, 0);
    fake_time_pass(1000);
    page(256, true);
    page(44, false);
}

/* What a user's programs do not read or is not answered counts for all of them together. */
static void test_user_has_much(void **state)
{
    struct wire_message message = {.type = WIRE_query, .id = 3, .u.query = {.running = true, .queued = true}};
    (void)state;
    int first = bed_client(BOB), alice = bed_client(ALICE);
    struct budget *budget = links_budget((size_t)first);
    add_jobs(300);
    assert_ptr_equal(budget, links_budget((size_t)bob));
    assert_int_equal(budget->used, 0);
    assert_true(budget_take(budget, budget->max / 2 + 1)); /* as if the first did not read */
    query(true, true, NULL, 0);
    assert_int_equal(fake_time_next(), -1);
    heard_nothing();
    say(alice, &message); /* others do not mind */
    fake_time_pass(1000);
    heard(alice, WIRE_jobs);
    heard(alice, WIRE_jobs);
    budget_give(budget, budget->max / 2 + 1);
    links_room((size_t)first);
    fake_time_pass(1000);
    page(256, true);
    page(44, false);
    assert_int_equal(budget->used, 0);
    assert_true(budget_take(budget, budget->max));
    query(true, true, NULL, 0);
    heard_error(bob, "too much at once: elmer keeps 16 MiB");
    budget_give(budget, budget->max);
}

static void test_congested_host(void **state)
{
    struct wire_message message = {.type = WIRE_query, .id = 3, .u.query = {.queued = true}};
    (void)state;
    fake_hosts.hosts[WS1].congested = true;
    bed_relay(WS1, 1, BOB, "bob", &message);
    fake_time_pass(1000);
    heard_nothing();
    assert_int_equal(fake_time_next(), -1);
    requests_host_room(bed.requests, WS1); /* not enough yet */
    fake_time_pass(1000);
    heard_nothing();
    fake_hosts.hosts[WS1].congested = false;
    requests_host_room(bed.requests, WS2);
    heard_nothing();
    requests_host_room(bed.requests, WS1);
    fake_time_fire();
    bed_relayed(WS1, 1);
}

/* Its rsd says that much waits for it. */
static void test_slow_relayed(void **state)
{
    struct wire_message query = {.type = WIRE_query, .id = 3, .u.query = {.queued = true}},
                        room = {.type = WIRE_relay_room, .u.relay_room = {.client = 1}};
    (void)state;
    add_jobs(300);
    bed_relay(WS1, 1, BOB, "bob", &query);
    bed_relayed(WS1, 1);
    requests_relay(bed.requests, WS1, false, &room);
    fake_time_pass(1000);
    bed_relay(WS1, 2, BOB, "bob", &query); /* another does not mind */
    fake_time_pass(1000);
    bed_relayed(WS1, 2);
    bed_relayed(WS1, 2);
    heard_nothing();
    requests_host_room(bed.requests, WS1);
    fake_time_pass(1000);
    heard_nothing();
    room.u.relay_room.room = true;
    requests_relay(bed.requests, WS2, false, &room); /* nobody's */
    heard_nothing();
    requests_relay(bed.requests, WS1, false, &room);
    fake_time_pass(1000);
    bed_relayed(WS1, 1);
    heard_nothing();
}

static void test_wanted(void **state)
{
    (void)state;
    static const enum job_state states[] = {JOB_QUEUED, JOB_HELD, JOB_STARTING, JOB_RUNNING,
                                            JOB_ENDING, JOB_DONE, JOB_CANCELLED};
    for (uint64_t i = 0; i < 7; i++)
        fake_engine_add_job(i + 1, ALICE, states[i]);
    fake_engine_add_job(8, ALICE, JOB_QUEUED)->job.refused = true; /* there is no such job */
    fake_engine_add_job(9, ALICE, JOB_DONE)->settled = true;
    fake_engine_add_job(10, ALICE, JOB_CANCELLED)->settled = true;
    query(false, true, NULL, 0);
    assert_int_equal(page(2, false)->jobs.items[1].job, 2);
    query(true, false, NULL, 0);
    const struct wire_jobs *running = page(5, false);
    for (size_t i = 3; i < 5; i++) {
        assert_int_equal(running->jobs.items[i].job, i + 3);
        assert_string_equal(running->jobs.items[i].state, "ending"); /* its end is not on disk */
    }
}

static void test_gone_between_slices(void **state)
{
    (void)state;
    add_jobs(300);
    query(true, true, NULL, 0);
    page(256, true);
    links_cut((size_t)bob);
    assert_int_equal(fake_time_next(), -1);
    heard_nothing();
}

static void test_lines(void **state)
{
    struct wire_message message = {
        .type = WIRE_query_lines, .id = 3, .u.query_lines = {.running = true, .queued = true}};
    (void)state;
    add_jobs(299);
    fake_engine_add_job(300, ALICE, JOB_RUNNING);
    say(bob, &message);
    const struct wire_lines *lines = &heard(bob, WIRE_lines)->u.lines;
    assert_int_equal(lines->queued_jobs.count, 256);
    assert_true(lines->more);
    fake_time_fire();
    lines = &heard(bob, WIRE_lines)->u.lines;
    assert_int_equal(lines->queued_jobs.count, 43);
    assert_int_equal(lines->running.count, 1);
    assert_int_equal(lines->running.items[0].job, 300);
    assert_false(lines->more);
}

/* ---- by id ---- */

static void test_ids(void **state)
{
    uint64_t ids[] = {5, 2, 99, 0, 3};
    (void)state;
    fake_engine_add_job(2, ALICE, JOB_RUNNING);
    fake_engine_add_job(3, ALICE, JOB_QUEUED)->job.refused = true;
    fake_engine.next_id = 9;
    query(false, false, ids, 5);
    heard_nothing();
    assert_int_equal(fake_store.nreads, 1);
    assert_int_equal(fake_store.reads[0].count, 2); /* that are no longer in memory; not those that never were */
    assert_int_equal(fake_store.reads[0].ids[0], 5);
    assert_int_equal(fake_store.reads[0].ids[1], 3);
    struct record *record = stored(5);
    fake_store_answer(&record, 1, NULL);
    const struct wire_jobs *jobs = page(2, false);
    assert_int_equal(jobs->jobs.items[0].job, 2);
    assert_int_equal(jobs->jobs.items[1].job, 5);
}

static void test_many_ids(void **state)
{
    static uint64_t ids[300];
    (void)state;
    add_jobs(300);
    for (uint64_t i = 0; i < 300; i++)
        ids[i] = i + 1;
    query(false, false, ids, 300);
    page(256, true);
    fake_time_fire();
    assert_int_equal(page(44, false)->jobs.items[43].job, 300);
}

static void test_ids_fail(void **state)
{
    uint64_t ids[] = {5, 2};
    (void)state;
    fake_engine_add_job(2, ALICE, JOB_RUNNING);
    fake_engine.next_id = 9;
    query(false, false, ids, 2);
    fake_store_answer(NULL, 0, "I/O error");
    heard_error(bob, "cannot read its store: I/O error");
    query(false, false, ids, 2);
    links_cut((size_t)bob); /* while the store is asked */
    struct record *record = stored(5);
    fake_store_answer(&record, 1, NULL);
    heard_nothing();
}

/* ---- history ---- */

static void history(const char *user, uint64_t count)
{
    struct wire_message message = {
        .type = WIRE_history, .id = 3, .u.history = {.user = user, .count = count, .since_ms = 77}};
    say(bob, &message);
}

static void answer_history(uint64_t from, size_t count)
{
    struct record *records[256];
    for (size_t i = 0; i < count; i++)
        records[i] = stored(from - i);
    fake_store_answer(records, count, NULL);
}

static void test_history(void **state)
{
    (void)state;
    history("alice", 300);
    assert_int_equal(fake_store.reads[0].type, FAKE_READ_HISTORY);
    assert_string_equal(fake_store.reads[0].text, "alice");
    assert_int_equal(fake_store.reads[0].before, INT64_MAX);
    assert_int_equal(fake_store.reads[0].since_ms, 77);
    assert_int_equal(fake_store.reads[0].count, 256);
    answer_history(1000, 256);
    page(256, true);
    fake_time_fire();
    assert_int_equal(fake_store.reads[0].before, 745);
    assert_int_equal(fake_store.reads[0].count, 44);
    answer_history(744, 44);
    page(44, false);

    history("", 256); /* exactly a slice */
    answer_history(1000, 256);
    page(256, false);
    history("", 0); /* all that there are */
    answer_history(1000, 256);
    page(256, true);
    fake_time_fire();
    answer_history(0, 0);
    page(0, false);
    history("", 3);
    assert_int_equal(fake_store.reads[0].count, 3);
    links_cut((size_t)bob);
    answer_history(10, 3);
    heard_nothing();
}

/* ---- waiting ---- */

static void test_wait_end(void **state)
{
    (void)state;
    struct fake_job *job = fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int other = bed_client(CAROL);
    bed_say(bob, WIRE_wait, 7);
    bed_say(other, WIRE_wait, 7);
    assert_int_equal(job->job.watchers, 2); /* so the engine hurries */
    heard_nothing();
    fake_time_pass(4999);
    heard_nothing();
    job->state.state = JOB_DONE;
    job->settled = true;
    fake_engine.requests.ended(&job->job, fake_engine.requests_data);
    assert_string_equal(page(1, false)->jobs.items[0].state, "done");
    heard(other, WIRE_jobs);
    assert_int_equal(job->job.watchers, 0);
    assert_int_equal(fake_time_next(), -1);
    bed_say(bob, WIRE_wait, 7); /* it has ended: at once */
    page(1, false);
}

static void test_wait_timeout(void **state)
{
    (void)state;
    struct fake_job *job = fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed_say(bob, WIRE_wait, 7);
    fake_time_pass(5000);
    assert_string_equal(page(1, false)->jobs.items[0].state, "running");
    assert_int_equal(job->job.watchers, 0);
}

static void test_wait_gone(void **state)
{
    (void)state;
    struct fake_job *job = fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int other = bed_client(CAROL);
    bed_say(bob, WIRE_wait, 7);
    bed_say(other, WIRE_wait, 7);
    links_cut((size_t)bob);
    assert_int_equal(job->job.watchers, 1);
    job->settled = true;
    fake_engine.requests.ended(&job->job, fake_engine.requests_data);
    heard(other, WIRE_jobs);
    heard_nothing();
}

static void test_wait_in_store(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_QUEUED)->job.refused = true;
    bed_say(bob, WIRE_wait, 8);
    assert_string_equal(heard_error(bob, "there is no job 8"), WIRE_CODE_NO_SUCH_JOB);
    bed_say(bob, WIRE_wait, 5);
    struct record *record = stored(5);
    fake_store_answer(&record, 1, NULL);
    assert_string_equal(page(1, false)->jobs.items[0].state, "done");
    bed_say(bob, WIRE_wait, 7);
    fake_store_answer(NULL, 0, NULL);
    assert_string_equal(heard_error(bob, "it is not in the store"), WIRE_CODE_NO_SUCH_JOB);
    bed_say(bob, WIRE_wait, 5);
    fake_store_answer(NULL, 0, "I/O error");
    heard_error(bob, "I/O error");
    bed_say(bob, WIRE_wait, 5);
    links_cut((size_t)bob);
    record = stored(5);
    fake_store_answer(&record, 1, NULL);
    heard_nothing();
}

/* ---- what others are shown ---- */

static bool hidden_for(uint32_t uid)
{
    struct wire_message message = {.type = WIRE_query, .id = 3, .u.query = {.running = true}};
    int reader = bed_client(uid);
    say(reader, &message);
    fake_work_run();
    const struct wire_job_view *view = &heard(reader, WIRE_jobs)->u.jobs.jobs.items[0];
    assert_int_equal(view->hidden, !*view->name && !*view->dir);
    links_cut((size_t)reader);
    return view->hidden;
}

static void test_private_jobs(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    assert_false(hidden_for(BOB));
    bed.settings.private_jobs = true;
    assert_true(hidden_for(BOB));
    assert_false(hidden_for(ALICE));
    assert_false(hidden_for(CAROL));
    assert_false(hidden_for(ROOT));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_empty_list),     TEST(test_slices),
        TEST(test_congested),      TEST(test_many_lists),
        TEST(test_gone_in_turn),   TEST(test_user_has_much),
        TEST(test_congested_host), TEST(test_slow_relayed),
        TEST(test_wanted),         TEST(test_gone_between_slices),
        TEST(test_lines),          TEST(test_ids),
        TEST(test_many_ids),       TEST(test_ids_fail),
        TEST(test_history),        TEST(test_wait_end),
        TEST(test_wait_timeout),   TEST(test_wait_gone),
        TEST(test_wait_in_store),  TEST(test_private_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
