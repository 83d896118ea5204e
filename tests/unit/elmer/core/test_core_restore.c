/* test_core_restore.c - jobs that lost a host or come back after a restart, at each point of their life. What is made
 * of a row: test_restore.c. */
#include <errno.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdarg.h>
#include <cmocka.h>

#include "tests/unit/elmer/core/core_fixture.h"

static const int one_each[] = {1, 1, 1, 1};

/* ---- the lease ---- */

/* A host whose rsd cannot hold a lease takes the job, but then nobody knows when it cannot run there any more. */
static void test_no_lease_no_next_attempt(void **state)
{
    static const int cpus[] = {0};

    (void)state;
    for (int old = 0; old < 2; old++) {
        struct event up = {.type = EVENT_HOST_UP}, submit = {.type = EVENT_SUBMIT, .request = 1};
        struct fixture f;

        fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, false);
        up.u.up.cpus = cpus;
        up.u.up.ncpus = 1;
        up.u.up.no_lease = old;
        assert_int_equal(fixture_step(&f, up), 0);
        submit.u.submit.uid = 2001;
        submit.u.submit.nprocs = 1;
        submit.u.submit.requeue = true;
        assert_int_equal(fixture_step(&f, submit), 0);
        assert_int_equal(fixture_find(&f, ACTION_OPEN, 0)->lease_ms, old ? 0 : 120000);
        fixture_host(&f, EVENT_HOST_DOWN, 0, 0);
        assert_int_equal(fixture_state(&f, 1), old ? JOB_DONE : JOB_QUEUED);
        if (!old)
            assert_int_equal(core_job(f.core, 1)->lost_ms, core_lease_wait_ms(120000));
        fixture_fini(&f);
    }
}

/* A job that takes its hosts with it ends after so many attempts. */
static void test_last_attempt(void **state)
{
    struct fixture f;
    uint32_t attempt = 0;
    struct event submit = {.type = EVENT_SUBMIT, .request = 1};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, true);
    submit.u.submit.uid = 2001;
    submit.u.submit.nprocs = 1;
    submit.u.submit.requeue = true;
    assert_int_equal(fixture_step(&f, submit), 0);
    while (fixture_state(&f, 1) == JOB_STARTING) {
        assert_int_equal(core_job(f.core, 1)->attempt, ++attempt);
        fixture_run(&f, 1);
        fixture_host(&f, EVENT_HOST_DOWN, 0, 0);
        fixture_up(&f, 0, 1, 0, NULL, 0);
    }
    assert_int_equal(attempt, CORE_MAX_ATTEMPTS);
    assert_int_equal(fixture_state(&f, 1), JOB_DONE);
    assert_int_equal(core_job(f.core, 1)->reason, REASON_HOST_LOST);
    fixture_fini(&f);
}

/* A host that is up says that it has made an attempt which was thought to be over: the next one waits for its end. */
static void test_opened_after_all(void **state)
{
    struct fixture f;
    struct event event = {.type = EVENT_SUBMIT, .host = -1};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 2, true);
    event.u.submit.nprocs = 2;
    event.u.submit.requeue = true;
    fixture_step(&f, event);
    fixture_host(&f, EVENT_HOST_DOWN, 0, 1);
    fixture_host(&f, EVENT_EMPTY, 1, 0);
    fixture_host(&f, EVENT_OPENED, 1, 0);
    assert_int_equal(core_job(f.core, 1)->nlost, 2);
    fixture_up(&f, 1, 1, 0, NULL, 0);
    assert_int_equal(core_job(f.core, 1)->reason, REASON_LEASE);
    fixture_host(&f, EVENT_EMPTY, 1, 0);
    assert_int_equal(fixture_state(&f, 1), JOB_STARTING);
    fixture_fini(&f);
}

/* ---- forgetting, restoring ---- */

static void test_forget(void **state)
{
    struct fixture f;
    uint64_t cursor = 0, n = 0;
    const struct core_job *job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, true);
    for (uint64_t id = 1; id <= 1000; id++) {
        assert_int_equal(fixture_submit(&f, 1, NULL, 0, false), id);
        core_forget(f.core, id); /* not while it waits */
        assert_non_null(core_job(f.core, id));
        if (id % 10 != 1)
            fixture_client(&f, EVENT_CANCEL, id, 2001, false);
    }
    while ((job = core_next_job(f.core, &cursor))) {
        assert_int_equal(job->id, cursor);
        if (job->state == JOB_CANCELLED)
            core_forget(f.core, job->id);
    }
    for (cursor = 0; (job = core_next_job(f.core, &cursor)); n++)
        assert_int_equal(job->id, 10 * n + 1);
    assert_int_equal(n, 100);
    cursor = 55; /* a forgotten one */
    assert_int_equal(core_next_job(f.core, &cursor)->id, 61);
    fixture_fini(&f);
}

static void test_restore(void **state)
{
    static const int two[] = {2, 2};
    struct fixture f, g;
    uint64_t low, high, held;
    struct core_job bad;
    struct core_holding holdings[2] = {{1, 1}, {2, 1}};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 2, two, 2, true);
    high = fixture_submit(&f, 3, NULL, 0, true);
    low = fixture_submit(&f, 4, NULL, 0, false);
    held = fixture_submit(&f, 1, NULL, 0, false);
    fixture_client(&f, EVENT_HOLD, held, 2001, false);
    fixture_run(&f, high);
    fixture_exited(&f, high, core_job(f.core, high)->processors[1].host, 1, 4, 0);
    f.now_ms += 500;
    fixture_host(&f, EVENT_TICK, 0, 0);

    fixture_init(&g, ALLOCATOR_V1, 2, two, 2, false);
    g.now_ms = f.now_ms + 1000;
    assert_int_equal(core_restore_job(g.core, core_job(f.core, low), g.now_ms), 0);
    assert_int_equal(core_restore_job(g.core, core_job(f.core, high), g.now_ms), -EINVAL); /* allocated earlier */
    fixture_fini(&g);

    fixture_init(&g, ALLOCATOR_V1, 2, two, 2, false);
    g.now_ms = f.now_ms + 1000;
    assert_int_equal(core_restore_job(g.core, core_job(f.core, held), g.now_ms), 0);
    assert_int_equal(core_restore_job(g.core, core_job(f.core, high), g.now_ms), 0);
    assert_int_equal(core_restore_job(g.core, core_job(f.core, high), g.now_ms), -EEXIST);
    bad = *core_job(f.core, low);
    bad.state = JOB_DONE;
    assert_int_equal(core_restore_job(g.core, &bad, g.now_ms), -EINVAL);
    bad.state = JOB_RUNNING;
    bad.attempt = 0;
    assert_int_equal(core_restore_job(g.core, &bad, g.now_ms), -EINVAL);
    assert_int_equal(core_restore_job(g.core, core_job(f.core, low), g.now_ms), 0);
    assert_int_equal(core_next_id(g.core), held + 1);
    assert_int_equal(core_job(g.core, high)->level, 0);
    assert_int_equal(core_job(g.core, high)->failed_rank, 1);
    assert_int_equal(core_job(g.core, low)->level, 1);
    assert_int_equal(core_host(g.core, 0)->state, CORE_HOST_AWAITED);
    fixture_host(&g, EVENT_TICK, 0, 0);
    assert_int_equal(fixture_state(&g, high), JOB_RUNNING);
    fixture_up(&g, 0, 2, 7, holdings, 2);
    fixture_up(&g, 1, 2, 7, holdings, 2);
    assert_int_equal(fixture_find(&g, ACTION_ORDER, 1)->generation, 8);
    assert_int_equal(fixture_state(&g, high), JOB_RUNNING);
    assert_int_equal(fixture_state(&g, low), JOB_STARTING);
    fixture_run(&g, low);
    fixture_exited(&g, high, core_job(g.core, high)->processors[0].host, 0, 0, 0);
    fixture_exited(&g, high, core_job(g.core, high)->processors[2].host, 2, 0, 0);
    assert_int_equal(fixture_state(&g, high), JOB_ENDING); /* the exit of rank 1 was not forgotten */
    fixture_empty(&g, high);
    assert_int_equal(core_job(g.core, high)->exit_status, 4);
    assert_int_equal(core_job(g.core, low)->level, 0);
    fixture_fini(&g);
    fixture_fini(&f);
}

/* The last exit made us send END, and we died before any of it was written: the host where it was says so again. */
static void test_restored_before_its_last_exit(void **state)
{
    for (int empty_comes = 0; empty_comes < 2; empty_comes++) {
        struct fixture f, g;
        uint64_t job;

        (void)state;
        fixture_init(&f, ALLOCATOR_V1, 2, one_each, 2, true);
        job = fixture_submit(&f, 2, NULL, 0, true);
        fixture_run(&f, job);
        fixture_exited(&f, job, 0, 0, 3, 0);
        fixture_init(&g, ALLOCATOR_V1, 2, one_each, 2, false);
        assert_int_equal(core_restore_job(g.core, core_job(f.core, job), g.now_ms), 0);
        fixture_up(&g, 0, 1, 3, &(struct core_holding){job, 1}, empty_comes);
        if (empty_comes)
            fixture_host(&g, EVENT_EMPTY, job, 0);
        assert_int_equal(fixture_state(&g, job), JOB_RUNNING);
        fixture_up(&g, 1, 1, 3, &(struct core_holding){job, 1}, 1);
        fixture_exited(&g, job, 1, 1, 0, 0);
        assert_int_equal(fixture_state(&g, job), JOB_ENDING);
        fixture_empty(&g, job);
        assert_int_equal(core_job(g.core, job)->reason, REASON_EXITED);
        assert_int_equal(core_job(g.core, job)->exit_status, 3);
        fixture_fini(&g);
        fixture_fini(&f);
    }
}

/* We died before even the launch was known to have worked, but after END: a host that had no process of the job ends it
 * first. What became of the job is known where it ran. */
static void test_restored_before_it_ran(void **state)
{
    struct fixture f, g;
    struct core_job saved;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 2, one_each, 2, true);
    job = fixture_submit(&f, 2, NULL, 0, false);
    fixture_host(&f, EVENT_OPENED, job, 0);
    fixture_host(&f, EVENT_OPENED, job, 1);
    assert_int_equal(fixture_count(&f, ACTION_LAUNCH), 1);
    saved = *core_job(f.core, job);
    assert_int_equal(saved.state, JOB_STARTING);
    assert_true(saved.launched);
    fixture_init(&g, ALLOCATOR_V1, 2, one_each, 2, false);
    assert_int_equal(core_restore_job(g.core, &saved, g.now_ms), 0);
    fixture_up(&g, 1, 1, 3, &(struct core_holding){job, 1}, 1);
    fixture_host(&g, EVENT_EMPTY, job, 1);
    assert_int_equal(fixture_state(&g, job), JOB_STARTING);
    fixture_up(&g, 0, 1, 3, &(struct core_holding){job, 1}, 1);
    fixture_exited(&g, job, 0, 0, 3, 0);
    assert_int_equal(fixture_state(&g, job), JOB_ENDING);
    fixture_empty(&g, job);
    assert_int_equal(core_job(g.core, job)->reason, REASON_EXITED);
    assert_int_equal(core_job(g.core, job)->exit_status, 3);
    fixture_fini(&g);
    fixture_fini(&f);
}

static void test_restored_host_stays_away(void **state)
{
    struct fixture f, g;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 2, one_each, 2, true);
    job = fixture_submit(&f, 2, NULL, 0, false);
    fixture_run(&f, job);
    fixture_init(&g, ALLOCATOR_V1, 2, one_each, 2, false);
    assert_int_equal(core_restore_job(g.core, core_job(f.core, job), g.now_ms), 0);
    fixture_up(&g, 0, 1, 3, &(struct core_holding){job, 1}, 1);
    fixture_client(&g, EVENT_KILL, job, 2001, false);
    fixture_host(&g, EVENT_EMPTY, job, 0);
    assert_int_equal(fixture_state(&g, job), JOB_ENDING); /* ws2 is awaited: perhaps it still runs there */
    fixture_host(&g, EVENT_HOST_DOWN, 0, 1);
    assert_int_equal(fixture_state(&g, job), JOB_DONE);
    fixture_fini(&g);
    fixture_fini(&f);
}

/* Elmer has had no address for longer than a start may take: the host cannot have heard of the job. */
static void test_restored_start_is_put_off(void **state)
{
    struct fixture f, g;
    struct core_holding holding = {1, 1};
    uint64_t job;
    const int64_t timeout_ms = 30000;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 2, one_each, 2, true);
    job = fixture_submit(&f, 2, NULL, 0, false);
    fixture_init(&g, ALLOCATOR_V1, 2, one_each, 2, false);
    assert_int_equal(core_restore_job(g.core, core_job(f.core, job), g.now_ms), 0);
    fixture_up(&g, 0, 1, 3, &holding, 1);
    for (int i = 0; i < 5; i++) {
        g.now_ms += timeout_ms;
        fixture_step(&g, (struct event){.type = EVENT_TICK});
        assert_int_equal(fixture_state(&g, job), JOB_STARTING);
    }
    g.now_ms += timeout_ms - 1;
    fixture_up(&g, 1, 1, 3, &holding, 1);
    g.now_ms += timeout_ms - 1;
    fixture_step(&g, (struct event){.type = EVENT_TICK});
    assert_int_equal(fixture_state(&g, job), JOB_STARTING);
    assert_int_equal(fixture_find(&g, ACTION_TIMER, -1)->at_ms, g.now_ms + 1);
    g.now_ms++;
    fixture_step(&g, (struct event){.type = EVENT_TICK});
    assert_int_equal(fixture_state(&g, job), JOB_ENDING);
    assert_int_equal(core_job(g.core, job)->reason, REASON_START_TIMEOUT);
    fixture_fini(&g);
    fixture_fini(&f);
}

/* Hosts can link only later: from then on they are gathered once more, as long as any is awaited. */
static void test_gather_again(void **state)
{
    const struct core_host_row row = {.ncpus = 1, .up = true};
    const int64_t gather_ms = 10000;

    (void)state;
    for (int all = 0; all < 2; all++) {
        struct fixture f;
        uint64_t job;

        fixture_init(&f, ALLOCATOR_V1, 2, one_each, 2, false);
        for (int host = 0; host < 2; host++)
            assert_int_equal(core_restore_host(f.core, host, &row, f.now_ms), 0);
        f.now_ms += 5 * gather_ms;
        fixture_step(&f, (struct event){.type = EVENT_TICK});
        fixture_step(&f, (struct event){.type = EVENT_GATHER});
        assert_int_equal(fixture_find(&f, ACTION_TIMER, -1)->at_ms, f.now_ms + gather_ms);
        job = fixture_submit(&f, 1, NULL, 0, false);
        fixture_up(&f, 0, 1, 0, NULL, 0);
        assert_int_equal(core_job(f.core, job)->reason, REASON_AWAITING_HOSTS);
        if (all) {
            fixture_up(&f, 1, 1, 0, NULL, 0);
            assert_int_equal(fixture_state(&f, job), JOB_STARTING);
        } else {
            f.now_ms += gather_ms;
            fixture_step(&f, (struct event){.type = EVENT_TICK});
            assert_int_equal(fixture_state(&f, job), JOB_STARTING);
        }
        fixture_step(&f, (struct event){.type = EVENT_GATHER}); /* of no use, and harmless */
        fixture_fini(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_lease_no_next_attempt),
        cmocka_unit_test(test_last_attempt),
        cmocka_unit_test(test_opened_after_all),
        cmocka_unit_test(test_forget),
        cmocka_unit_test(test_restore),
        cmocka_unit_test(test_restored_before_its_last_exit),
        cmocka_unit_test(test_restored_before_it_ran),
        cmocka_unit_test(test_restored_host_stays_away),
        cmocka_unit_test(test_restored_start_is_put_off),
        cmocka_unit_test(test_gather_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
