/* test_wait.c - waiting for the first end of several jobs. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/requests/bed.h"

static int bob;

static int setup(void **state)
{
    bed_setup(state);
    bob = bed_client(BOB);
    return 0;
}

static void wait_any(uint64_t first, uint64_t second, uint64_t third)
{
    uint64_t ids[] = {first, second, third};
    struct wire_message message = {.type = WIRE_wait_any,
                                   .id = 3,
                                   .u.wait_any = {.jobs = {ids, third    ? 3
                                                                : second ? 2
                                                                         : 0},
                                                  .timeout_ms = 5000}};
    say(bob, &message);
}

static void expect(uint64_t job, const char *state)
{
    const struct wire_message *message = heard(bob, WIRE_jobs);
    assert_int_equal(message->id, 3);
    assert_int_equal(message->u.jobs.jobs.count, 1);
    assert_int_equal(message->u.jobs.jobs.items[0].job, job);
    assert_string_equal(message->u.jobs.jobs.items[0].state, state);
}

static void end(struct fake_job *job)
{
    job->state.state = JOB_DONE;
    job->settled = true;
    fake_engine.requests.ended(&job->job, fake_engine.requests_data);
}

static struct record *stored(uint64_t id)
{
    struct wire_message m = bed_submission("t");
    struct record *record = fake_store_record(id, ALICE, &m.u.submit);
    record->state = JOB_DONE;
    record->reason = REASON_EXITED;
    return record;
}

/* Of three the second ends; nothing is left on the others, also where one is named twice. */
static void test_first_end(void **state)
{
    (void)state;
    struct fake_job *a = fake_engine_add_job(7, ALICE, JOB_RUNNING), *b = fake_engine_add_job(8, ALICE, JOB_QUEUED);
    wait_any(7, 8, 7);
    bed_say(bob, WIRE_wait, 7);
    assert_int_equal(a->job.watchers, 3);
    assert_int_equal(b->job.watchers, 1);
    heard_nothing();
    end(b);
    expect(8, "done");
    assert_int_equal(a->job.watchers, 1); /* the other request */
    assert_int_equal(b->job.watchers, 0);
    heard_nothing();
    end(a);
    expect(7, "done");
    assert_int_equal(fake_time_next(), -1);
}

static void test_ended_already(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    end(fake_engine_add_job(8, ALICE, JOB_RUNNING));
    end(fake_engine_add_job(9, ALICE, JOB_RUNNING));
    wait_any(7, 9, 8); /* the first in this order */
    expect(9, "done");
    wait_any(7, 5, 8); /* one that is in the store only */
    struct record *record = stored(5);
    fake_store_answer(&record, 1, NULL);
    expect(5, "done");
    wait_any(7, 5, 8);
    fake_store_answer(NULL, 0, NULL);
    assert_string_equal(heard_error(bob, "job 5 cannot be found: it is not in the store"), WIRE_CODE_NO_SUCH_JOB);
    wait_any(7, 5, 8);
    fake_store_answer(NULL, 0, "I/O error");
    assert_string_equal(heard_error(bob, "job 5 cannot be found: I/O error"), WIRE_CODE_UNAVAILABLE);
}

static void test_timeout(void **state)
{
    (void)state;
    struct fake_job *a = fake_engine_add_job(7, ALICE, JOB_RUNNING);
    fake_engine_add_job(8, ALICE, JOB_QUEUED);
    wait_any(7, 8, 0);
    fake_time_pass(4999);
    heard_nothing();
    fake_time_pass(1);
    expect(7, "running");
    assert_int_equal(a->job.watchers, 0);
}

static void test_refused(void **state)
{
    (void)state;
    struct fake_job *a = fake_engine_add_job(7, ALICE, JOB_RUNNING);
    wait_any(0, 0, 0);
    assert_string_equal(heard_error(bob, "no job is named"), WIRE_CODE_REFUSED);
    wait_any(7, 8, 0);
    assert_string_equal(heard_error(bob, "there is no job 8"), WIRE_CODE_NO_SUCH_JOB);
    wait_any(7, 7, 0);
    assert_int_equal(a->job.watchers, 2);
    links_cut((size_t)bob);
    assert_int_equal(a->job.watchers, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_first_end), TEST(test_ended_already), TEST(test_timeout),
                                       TEST(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
