/* test_part.c - what a host says of jobs counts for its own part of them only, and is bounded. */
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const int one_each[] = {1, 1, 1};

static void lost(struct fixture *f, uint64_t job, uint32_t attempt, int host)
{
    struct event event = {.type = EVENT_ABORT, .job = job, .attempt = attempt, .host = host};

    event.u.failed.reason = REASON_LOST;
    event.u.failed.text = "its supervisor died";
    assert_int_equal(fixture_step(f, event), 0);
}

static uint64_t submit_again(struct fixture *f, uint32_t nprocs, const int *hosts, int nhosts)
{
    struct event event = {.type = EVENT_SUBMIT, .request = 1, .host = -1};

    event.u.submit.uid = 2001;
    event.u.submit.nprocs = nprocs;
    event.u.submit.hosts = hosts;
    event.u.submit.nhosts = nhosts;
    event.u.submit.requeue = true;
    assert_int_equal(fixture_step(f, event), 0);
    return core_next_id(f->core) - 1;
}

static void test_lost(void **state)
{
    static const int first[] = {0};
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 3, true);
    job = fixture_submit(&f, 1, first, 1, false);
    fixture_run(&f, job);
    lost(&f, job, 1, 1); /* it runs elsewhere */
    assert_int_equal(fixture_state(&f, job), JOB_RUNNING);
    lost(&f, job, 2, 0); /* another attempt */
    lost(&f, job + 1, 1, 0);
    fixture_host(&f, EVENT_HOST_DOWN, 0, 1);
    lost(&f, job, 1, 1);
    assert_int_equal(fixture_state(&f, job), JOB_RUNNING);
    lost(&f, job, 1, 0);
    assert_int_equal(fixture_state(&f, job), JOB_ENDING);
    assert_int_equal(core_job(f.core, job)->reason, REASON_LOST);
    fixture_fini(&f);
}

/* A process that was never told to start cannot have ended. */
static void test_exited_before_start(void **state)
{
    static const int both[] = {0, 1};
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 3, true);
    job = fixture_submit(&f, 2, both, 2, false);
    assert_int_equal(fixture_exited(&f, job, 0, 0, 0, 0), 0);
    assert_int_equal(fixture_count(&f, ACTION_ACKNOWLEDGE), 1); /* it need not be said again */
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    assert_int_equal(core_job(f.core, job)->exits, 0);
    fixture_run(&f, job);
    fixture_exited(&f, job, 1, 0, 0, 0); /* of the other host's rank */
    assert_int_equal(fixture_state(&f, job), JOB_RUNNING);
    fixture_exited(&f, job, 0, 0, 0, 0);
    assert_int_equal(fixture_state(&f, job), JOB_ENDING);
    fixture_fini(&f);
}

/* The store of an elmer from before schema 4 does not say that a running job was told to start. */
static void test_exited_of_before(void **state)
{
    static const int first[] = {0};
    struct fixture f, g;
    struct core_job saved;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 3, true);
    uint64_t job = fixture_submit(&f, 1, first, 1, false);
    fixture_run(&f, job);
    saved = *core_job(f.core, job);
    saved.launched = false;
    fixture_init(&g, ALLOCATOR_V1, 1, one_each, 3, false);
    g.now_ms = f.now_ms;
    assert_int_equal(core_restore_job(g.core, &saved, g.now_ms), 0);
    fixture_up(&g, 0, 1, 0, (struct core_holding[]){{job, 1}}, 1);
    fixture_exited(&g, job, 0, 0, 7, 0);
    assert_int_equal(fixture_state(&g, job), JOB_ENDING);
    assert_int_equal(core_job(g.core, job)->exit_status, 7);
    fixture_fini(&g);
    fixture_fini(&f);
}

/* A host that was not in the last attempt cannot keep the next one waiting. */
static void test_opened_elsewhere(void **state)
{
    static const int first[] = {0};
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 3, true);
    job = submit_again(&f, 1, first, 1);
    fixture_run(&f, job);
    fixture_host(&f, EVENT_HOST_DOWN, 0, 0);
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    fixture_up(&f, 0, 1, 0, (struct core_holding[]){{job, 1}}, 1); /* it still has it: its claim waits for its EMPTY */
    assert_int_equal(core_job(f.core, job)->nlost, 1);
    fixture_host(&f, EVENT_DRAIN, 0, 0);
    fixture_host(&f, EVENT_EMPTY, job, 0);
    assert_int_equal(core_job(f.core, job)->nlost, 0);
    fixture_host(&f, EVENT_OPENED, job, 1);
    assert_int_equal(core_job(f.core, job)->nlost, 0);
    fixture_host(&f, EVENT_OPENED, job, 0); /* this one was */
    assert_int_equal(core_job(f.core, job)->nlost, 1);
    fixture_host(&f, EVENT_EMPTY, job, 0);
    fixture_host(&f, EVENT_UNDRAIN, 0, 0);
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    fixture_fini(&f);
}

/* Of jobs that were invented: no more than a bound, and the host is still told to end those. */
static void test_leftovers(void **state)
{
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 1, true);
    for (uint64_t i = 1; i <= 3 * (uint64_t)CORE_MAX_LEFTOVERS; i++) {
        fixture_step(&f, (struct event){.type = EVENT_OPENED, .job = 1000 + i, .attempt = 1});
        assert_int_equal(fixture_count(&f, ACTION_END), i <= CORE_MAX_LEFTOVERS);
    }
    assert_int_equal(core_host(f.core, 0)->leftovers, CORE_MAX_LEFTOVERS);
    fixture_step(&f, (struct event){.type = EVENT_EMPTY, .job = 1001, .attempt = 1});
    fixture_step(&f, (struct event){.type = EVENT_OPENED, .job = 5, .attempt = 1});
    assert_int_equal(fixture_count(&f, ACTION_END), 1);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_exited_before_start),
        cmocka_unit_test(test_exited_of_before),
        cmocka_unit_test(test_opened_elsewhere),
        cmocka_unit_test(test_leftovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
