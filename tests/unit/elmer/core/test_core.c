/* test_core.c - contracts of core.h at their edges; what happens in a whole cluster is the matter of tests/sim. */
#include "tests/unit/elmer/core/core_fixture.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static const int one_each[] = {1, 1, 1, 1};

/* ---- options, names, hosts ---- */

static void test_options(void **state)
{
    struct core_options good, bad;
    struct core *core;

    (void)state;
    core_options_default(&good);
    assert_int_equal(good.levels, 3);
    assert_int_equal(good.allocator, ALLOCATOR_V2);
    assert_true(good.threshold == 0.75);
    core = core_create(&good);
    assert_non_null(core);
    core_destroy(core);
    core_destroy(NULL);
#define REFUSED(field, value)                                                                                          \
    do {                                                                                                               \
        bad = good;                                                                                                    \
        bad.field = value;                                                                                             \
        assert_null(core_create(&bad));                                                                                \
    } while (0)
    REFUSED(levels, 0);
    REFUSED(levels, 17);
    REFUSED(allocator, ALLOCATOR_COUNT);
    REFUSED(threshold, 0.0);
    REFUSED(threshold, 1.0);
    REFUSED(threshold, (double)NAN);
    REFUSED(fresh_ms, 0);
    REFUSED(settle_ms, -1);
    REFUSED(start_timeout_ms, 0);
    REFUSED(resend_ms, 0);
    REFUSED(gather_ms, -1);
}

/* The time in which the shell could neither hear nor tell is not a job's. */
static void test_stall(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, true);
    job = fixture_submit(&f, 1, NULL, 0, false);
    f.now_ms += 40000;
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_TICK, .u.stalled_ms = 39000}), 0);
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    f.now_ms += 28000;
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_TICK}), 0);
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    f.now_ms += 1500;
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_TICK}), 0);
    assert_int_equal(fixture_state(&f, job), JOB_ENDING);
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_TICK, .u.stalled_ms = -1}), -EINVAL);
    fixture_fini(&f);
}

/* What the store says of hosts: each once, before all else. */
static void test_restore_host(void **state)
{
    struct core_options options;
    struct core *core;
    struct core_host_row row = {.up = true, .ncpus = 2}, bad = {.up = true, .ncpus = CORE_MAX_CPUS + 1};

    (void)state;
    core_options_default(&options);
    core = core_create(&options);
    assert_int_equal(core_add_host(core, "ws1"), 0);
    assert_int_equal(core_restore_host(core, 1, &row, 0), -EINVAL);
    assert_int_equal(core_restore_host(core, 0, &bad, 0), -EINVAL);
    assert_int_equal(core_restore_host(core, 0, &row, 5), 0);
    assert_int_equal(core_host(core, 0)->state, CORE_HOST_AWAITED);
    assert_int_equal(core_host(core, 0)->row.ncpus, 2);
    assert_int_equal(core_restore_host(core, 0, &row, 5), -EINVAL);
    core_destroy(core);
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(job_state_name((enum job_state)i), job_state_name((enum job_state)k));
    for (int i = 0; i < REASON_COUNT; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(reason_name((enum reason)i), reason_name((enum reason)k));
    for (int i = 0; i < ALLOCATOR_COUNT; i++)
        assert_int_equal(core_allocator_by_name(core_allocator_name((enum core_allocator)i)), i);
    assert_int_equal(core_allocator_by_name("v3"), -1);
    assert_string_equal(job_state_name(JOB_STATE_COUNT), "unknown");
}

static void test_hosts(void **state)
{
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, false);
    assert_int_equal(core_add_host(f.core, "ws1"), -EEXIST);
    assert_int_equal(core_add_host(f.core, ""), -EINVAL);
    assert_int_equal(core_add_host(f.core, NULL), -EINVAL);
    assert_int_equal(core_host_by_name(f.core, "ws2"), 1);
    assert_int_equal(core_host_by_name(f.core, "ws3"), -1);
    assert_null(core_host(f.core, 2));
    assert_null(core_host(f.core, -1));
    assert_false(core_host_up(core_host(f.core, 0)) || core_host(f.core, 0)->known);
    assert_int_equal(fixture_up(&f, 0, 2, 41, NULL, 0), 0);
    assert_true(core_host_up(core_host(f.core, 0)) && core_host(f.core, 0)->known);
    assert_int_equal(core_host(f.core, 0)->ncpus, 2);
    assert_int_equal(fixture_find(&f, ACTION_ORDER, 0)->generation, 42); /* above what the host had */
    assert_int_equal(core_host(f.core, 0)->applied, 41);
    fixture_fini(&f);
}

/* ---- submission ---- */

static void test_refused(void **state)
{
    struct fixture f;
    const int first[] = {0}, both[] = {1, 0, 1}, wrong[] = {2}, none[] = {0};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, false);
    assert_int_equal(fixture_submit(&f, 0, NULL, 0, false), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_REFUSED_SIZE);
    assert_int_equal(fixture_submit(&f, 100, NULL, 0, false), 1); /* nothing has ever been up: wait and see */
    assert_int_equal(core_job(f.core, 1)->reason, REASON_TOO_FEW_UP);
    assert_int_equal(fixture_submit(&f, 2 * CORE_MAX_CPUS + 1, NULL, 0, false), 0); /* more than any two hosts have */
    fixture_up(&f, 0, 2, 0, NULL, 0);
    assert_int_equal(fixture_submit(&f, 100, NULL, 0, false), 2); /* ws2 may be large */
    assert_int_equal(fixture_submit(&f, 3, first, 1, false), 0);  /* ws1 is known */
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_REFUSED_HOSTS);
    fixture_up(&f, 1, 1, 0, NULL, 0);
    assert_int_equal(fixture_submit(&f, 4, NULL, 0, false), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_REFUSED_SIZE);
    assert_int_equal(fixture_submit(&f, 4, both, 3, false), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_REFUSED_SIZE);
    assert_int_equal(fixture_submit(&f, 1, none, 0, false), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_REFUSED_HOSTS);
    assert_int_equal(fixture_submit(&f, 1, wrong, 1, false), 0);
    assert_int_equal(f.result, -EINVAL);
    assert_int_equal(fixture_submit(&f, 3, both, 3, false), 3);
    assert_int_equal(core_job(f.core, 3)->nhosts, 2); /* in order, without doubles */
    assert_int_equal(core_job(f.core, 3)->hosts[0], 0);
    assert_int_equal(core_next_id(f.core), 4);
    fixture_fini(&f);

    fixture_init(&f, ALLOCATOR_V1, 3, NULL, 0, false);
    assert_int_equal(fixture_submit(&f, 5, NULL, 0, false), 1); /* no host is configured yet */
    fixture_fini(&f);
}

static void test_down_hosts_count_as_existing(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, true);
    fixture_host(&f, EVENT_HOST_DOWN, 0, 1);
    job = fixture_submit(&f, 2, NULL, 0, false);
    assert_int_equal(core_job(f.core, job)->reason, REASON_TOO_FEW_UP);
    fixture_up(&f, 1, 1, 5, NULL, 0);
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    fixture_fini(&f);
}

static void test_bad_events(void **state)
{
    struct fixture f;
    struct event event = {.type = EVENT_TYPE_COUNT};
    const int twice[] = {1, 1}, negative[] = {-1}, large[] = {CORE_MAX_CPUS};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 1, true);
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    event = (struct event){.type = EVENT_DRAIN, .host = 1};
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    event.host = -1;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    f.now_ms--;
    event = (struct event){.type = EVENT_TICK};
    assert_int_equal(fixture_step(&f, event), -EINVAL); /* time runs backwards */
    f.now_ms++;
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_up(&f, 0, 0, 0, NULL, 0), -EINVAL);
    assert_int_equal(fixture_up(&f, 0, 1, UINT64_MAX, NULL, 0), -EINVAL);
    event = (struct event){.type = EVENT_HOST_UP, .host = 0};
    event.u.up.ncpus = 2;
    event.u.up.cpus = twice;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    event.u.up.ncpus = 1;
    event.u.up.cpus = negative;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    event.u.up.cpus = large;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    assert_int_equal(core_host(f.core, 0)->ncpus, 1);
    fixture_fini(&f);
}

/* ---- clients ---- */

static void test_permissions(void **state)
{
    static const enum event_type types[] = {EVENT_CANCEL, EVENT_KILL, EVENT_HOLD, EVENT_RELEASE};
    struct fixture f;
    uint64_t runs, waits;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, true);
    runs = fixture_submit(&f, 1, NULL, 0, false);
    waits = fixture_submit(&f, 1, NULL, 0, false);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        assert_int_equal(fixture_client(&f, types[i], runs, 2002, false), ANSWER_NOT_PERMITTED);
        assert_int_equal(fixture_client(&f, types[i], waits, 2002, false), ANSWER_NOT_PERMITTED);
        assert_int_equal(fixture_client(&f, types[i], 99, 2001, true), ANSWER_NO_SUCH_JOB);
    }
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, runs, 2001, false), ANSWER_WRONG_STATE);
    assert_int_equal(fixture_client(&f, EVENT_HOLD, runs, 2001, false), ANSWER_WRONG_STATE);
    assert_int_equal(fixture_client(&f, EVENT_KILL, waits, 2001, false), ANSWER_WRONG_STATE);
    assert_int_equal(fixture_client(&f, EVENT_RELEASE, waits, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_client(&f, EVENT_HOLD, waits, 2003, true), ANSWER_OK);
    assert_int_equal(fixture_client(&f, EVENT_HOLD, waits, 2001, false), ANSWER_OK);
    assert_int_equal(core_job(f.core, waits)->reason, REASON_HELD);
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, waits, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_state(&f, waits), JOB_CANCELLED);
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, waits, 2001, false), ANSWER_WRONG_STATE);
    assert_int_equal(fixture_client(&f, EVENT_KILL, runs, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_client(&f, EVENT_KILL, runs, 2001, false), ANSWER_OK); /* it is ending */
    assert_int_equal(fixture_count(&f, ACTION_END), 0);
    fixture_empty(&f, runs);
    assert_int_equal(fixture_client(&f, EVENT_KILL, runs, 2001, false), ANSWER_WRONG_STATE);
    fixture_fini(&f);
}

static void test_nobody_waits_for_request_0(void **state)
{
    struct fixture f;
    struct event event = {.type = EVENT_DRAIN, .host = 0};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, true);
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_count(&f, ACTION_ANSWER), 0);
    event.request = 3;
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_count(&f, ACTION_ANSWER), 1);
    fixture_fini(&f);
}

static void test_ahead(void **state)
{
    struct fixture f;
    uint64_t jobs[6];

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, true);
    for (int i = 0; i < 6; i++) /* the first runs */
        jobs[i] = fixture_submit(&f, 1, NULL, 0, false);
    for (uint32_t i = 1; i < 6; i++)
        assert_int_equal(core_job(f.core, jobs[i])->ahead, i - 1);
    fixture_client(&f, EVENT_HOLD, jobs[1], 2001, false);
    assert_int_equal(core_job(f.core, jobs[5])->ahead, 4); /* a held job keeps its place */
    fixture_client(&f, EVENT_CANCEL, jobs[3], 2001, false);
    assert_int_equal(core_job(f.core, jobs[5])->ahead, 3);
    fixture_client(&f, EVENT_KILL, jobs[0], 2001, false);
    fixture_empty(&f, jobs[0]);
    assert_int_equal(fixture_state(&f, jobs[2]), JOB_STARTING);
    assert_int_equal(core_job(f.core, jobs[2])->ahead, 0);
    assert_int_equal(core_job(f.core, jobs[4])->ahead, 1);
    fixture_client(&f, EVENT_CANCEL, jobs[5], 2001, false);
    jobs[5] = fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(core_job(f.core, jobs[5])->ahead, 2);
    fixture_fini(&f);
}

/* ---- exits ---- */

static void test_exits(void **state)
{
    static const int two[] = {2, 2};
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 2, true);
    job = fixture_submit(&f, 4, NULL, 0, true);
    fixture_run(&f, job);
    assert_int_equal(core_job(f.core, job)->exit_status, -1);
    fixture_exited(&f, job, 1, 3, 5, 0);
    assert_int_equal(fixture_count(&f, ACTION_TAKEN), 1);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 1);
    assert_int_equal(fixture_find(&f, ACTION_TAKEN, 1)->rank, 3);
    fixture_exited(&f, job, 1, 3, 6, 0); /* again, and differently: taken, but the first counts */
    assert_int_equal(fixture_count(&f, ACTION_TAKEN), 1);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 0);
    assert_int_equal(core_job(f.core, job)->exit_status, 5);
    fixture_exited(&f, job, 1, 0, 9, 0); /* rank 0 is not on ws2 */
    fixture_exited(&f, job, 1, 4, 9, 0); /* nobody is rank 4 */
    assert_int_equal(fixture_count(&f, ACTION_TAKEN), 1);
    assert_int_equal(core_job(f.core, job)->exits, 1);
    fixture_exited(&f, job, 0, 0, 0, 0);
    fixture_exited(&f, job, 0, 1, -1, 15);
    assert_int_equal(core_job(f.core, job)->signal, 15);
    assert_int_equal(core_job(f.core, job)->exit_status, -1);
    assert_int_equal(core_job(f.core, job)->failed_rank, 1);
    assert_int_equal(core_job(f.core, job)->exited[0], 0x0b);
    assert_int_equal(fixture_state(&f, job), JOB_RUNNING);
    fixture_exited(&f, job, 1, 2, 0, 0);
    assert_int_equal(fixture_count(&f, ACTION_END), 2);
    fixture_empty(&f, job);
    assert_int_equal(core_job(f.core, job)->reason, REASON_EXITED);
    assert_non_null(core_job(f.core, job)->processors);
    fixture_exited(&f, job, 1, 2, 0, 0); /* past */
    assert_int_equal(fixture_count(&f, ACTION_TAKEN), 1);
    core_forget(f.core, job);
    assert_null(core_job(f.core, job));
    fixture_exited(&f, job, 1, 2, 0, 0); /* unknown */
    assert_int_equal(fixture_count(&f, ACTION_TAKEN), 1);
    fixture_fini(&f);
}

static void test_first_reason_stays(void **state)
{
    struct fixture f;
    struct event event = {.type = EVENT_ABORT, .host = -1};
    char text[3000];
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 1, true);
    job = fixture_submit(&f, 1, NULL, 0, false);
    fixture_run(&f, job);
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    event.job = job;
    event.attempt = 1;
    event.u.failed.reason = REASON_HELPER_FAILED;
    event.u.failed.text = text;
    fixture_step(&f, event);
    assert_int_equal(fixture_state(&f, job), JOB_ENDING);
    assert_int_equal(strlen(core_job(f.core, job)->text), 1000); /* bounded */
    fixture_client(&f, EVENT_KILL, job, 2001, false);
    fixture_exited(&f, job, 0, 0, -1, 9);
    fixture_empty(&f, job);
    assert_int_equal(core_job(f.core, job)->reason, REASON_HELPER_FAILED);
    assert_int_equal(core_job(f.core, job)->signal, 9); /* recorded all the same */
    fixture_fini(&f);
}

/* ---- hosts that return ---- */

static void test_holdings(void **state)
{
    struct fixture f;
    uint64_t job;
    struct core_holding holdings[5] = {{77, 1}, {0, 0}, {77, 1}, {78, 2}, {0, 0}};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 1, true);
    job = fixture_submit(&f, 1, NULL, 0, false);
    fixture_run(&f, job);
    holdings[1] = holdings[4] = (struct core_holding){job, 1}; /* said twice: still the same job */
    assert_int_equal(fixture_up(&f, 0, 1, 9, holdings, 5), 0);
    assert_int_equal(fixture_state(&f, job), JOB_RUNNING);
    assert_int_equal(fixture_count(&f, ACTION_END), 2); /* 77.1 and 78.2 */
    assert_int_equal(core_host(f.core, 0)->leftovers, 2);
    assert_int_equal(fixture_find(&f, ACTION_ORDER, 0)->nentries, 1);
    fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(fixture_state(&f, job + 1), JOB_QUEUED); /* no work while there are leftovers */
    fixture_host(&f, EVENT_EMPTY, 77, 0);
    assert_int_equal(fixture_state(&f, job + 1), JOB_QUEUED);
    fixture_step(&f, (struct event){.type = EVENT_EMPTY, .job = 78, .attempt = 2});
    assert_int_equal(fixture_state(&f, job + 1), JOB_STARTING);
    holdings[0] = (struct core_holding){job, 2}; /* another attempt is another thing */
    assert_int_equal(fixture_up(&f, 0, 1, 10, holdings, 1), 0);
    assert_int_equal(fixture_state(&f, job), JOB_ENDING);
    assert_int_equal(core_job(f.core, job)->reason, REASON_LOST);
    fixture_fini(&f);
}

static void test_cpus_change(void **state)
{
    static const int two[] = {2};
    struct fixture f;
    struct core_holding holdings[2];
    uint64_t small, wide;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 1, true);
    wide = fixture_submit(&f, 2, NULL, 0, false);
    fixture_run(&f, wide);
    holdings[0] = (struct core_holding){wide, 1};
    assert_int_equal(fixture_up(&f, 0, 1, 3, holdings, 1), 0); /* one CPU has gone */
    assert_int_equal(core_job(f.core, wide)->reason, REASON_LOST);
    small = fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(core_job(f.core, small)->level, 1);
    fixture_empty(&f, wide);
    assert_int_equal(core_job(f.core, small)->level, 0);
    assert_int_equal(fixture_submit(&f, 2, NULL, 0, false), 0); /* refused: only one exists now */
    fixture_fini(&f);
}

static void test_unasked_empty(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, true);
    job = fixture_submit(&f, 2, NULL, 0, true);
    fixture_run(&f, job);
    fixture_host(&f, EVENT_EMPTY, job, 1); /* with a rank that has not exited */
    assert_int_equal(fixture_state(&f, job), JOB_ENDING);
    assert_int_equal(core_job(f.core, job)->reason, REASON_LOST);
    assert_non_null(fixture_find(&f, ACTION_END, 0));
    assert_non_null(fixture_find(&f, ACTION_END, 1)); /* an OPEN may be under way: END is final */
    fixture_empty(&f, job);
    fixture_fini(&f);
}

static void test_down_hosts_are_not_heard(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, true);
    job = fixture_submit(&f, 2, NULL, 0, false);
    fixture_run(&f, job);
    fixture_host(&f, EVENT_HOST_DOWN, 0, 1);
    assert_int_equal(fixture_count(&f, ACTION_END), 1);
    fixture_exited(&f, job, 1, 0, 0, 0);
    assert_int_equal(f.actions.count, 0);
    fixture_host(&f, EVENT_OPENED, job, 1);
    assert_int_equal(f.actions.count, 0);
    fixture_host(&f, EVENT_EMPTY, job, 0);
    assert_int_equal(fixture_state(&f, job), JOB_DONE);
    fixture_fini(&f);
}

/* ---- the lease ---- */

/* A job of the store with a host that is not in the configuration any more: it goes back into the queue only if it was
 * submitted so, may go again, and no host that is left can still run it. */
static void test_restored_without_host(void **state)
{
    struct fixture f;
    const struct core_processor processors[] = {{-1, 0}, {1, 0}, {1, 1}};
    const uint8_t exited[1] = {0};
    struct core_job saved = {.id = 7,
                             .attempt = 3,
                             .allocation = 9,
                             .nprocs = 3,
                             .state = JOB_RUNNING,
                             .lease_ms = 5000,
                             .processors = processors,
                             .exited = exited,
                             .exit_status = -1,
                             .failed_rank = UINT32_MAX};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, true);
    fixture_host(&f, EVENT_HOST_DOWN, 0, 1); /* no host has said anything yet when a job is restored */
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), CORE_LOST);
    saved.requeue = true;
    saved.attempt = CORE_MAX_ATTEMPTS;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), CORE_LOST);
    saved.attempt = 3;
    saved.state = JOB_ENDING;
    saved.reason = REASON_EXITED;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), CORE_LOST);
    assert_null(core_job(f.core, 7));
    saved.reason = REASON_HOST_LOST;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), CORE_PUT_BACK);
    assert_int_equal(core_job(f.core, 7)->state, JOB_QUEUED);
    assert_int_equal(core_job(f.core, 7)->reason, REASON_LEASE);
    assert_int_equal(core_job(f.core, 7)->nlost, 2);
    assert_int_equal(core_job(f.core, 7)->lost[0], -1);
    assert_int_equal(core_job(f.core, 7)->lost[1], 1);
    assert_null(core_job(f.core, 7)->processors);
    char text[200] = "";
    assert_int_equal(core_check(f.core, text, sizeof(text)), 0);
    fixture_fini(&f);
}

/* A job of the store that lost hosts had: one of them has been taken out of the configuration, so only time helps. */
static void test_restored_claims(void **state)
{
    struct fixture f;
    int lost[] = {-1, 1};
    struct core_job saved = {.id = 7,
                             .attempt = 3,
                             .allocation = 9,
                             .nprocs = 1,
                             .requeue = true,
                             .lease_ms = 5000,
                             .lost = lost,
                             .nlost = 2,
                             .exit_status = -1,
                             .failed_rank = UINT32_MAX};
    int64_t from_ms;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, true);
    saved.requeue = false;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), -EINVAL);
    saved.requeue = true;
    lost[1] = 2;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), -EINVAL);
    lost[1] = 1;
    fixture_host(&f, EVENT_HOST_DOWN, 0, 1);
    from_ms = f.now_ms;
    assert_int_equal(core_restore_job(f.core, &saved, from_ms), 0);
    assert_int_equal(core_job(f.core, 7)->reason, REASON_LEASE);
    assert_int_equal(core_job(f.core, 7)->nlost, 2);
    fixture_up(&f, 1, 1, 0, NULL, 0);
    assert_int_equal(core_job(f.core, 7)->nlost, 1);
    assert_int_equal(core_job(f.core, 7)->lost[0], -1);
    f.now_ms = from_ms + core_lease_wait_ms(5000) - 1;
    fixture_step(&f, (struct event){.type = EVENT_TICK});
    assert_int_equal(fixture_state(&f, 7), JOB_QUEUED);
    f.now_ms = from_ms + core_lease_wait_ms(5000);
    fixture_step(&f, (struct event){.type = EVENT_TICK});
    assert_int_equal(fixture_state(&f, 7), JOB_STARTING);
    assert_int_equal(core_job(f.core, 7)->attempt, 4);
    assert_int_equal(fixture_find(&f, ACTION_OPEN, -1)->lease_ms, 120000); /* the one of now */
    fixture_fini(&f);
}

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

/* ---- reports ---- */

static void test_reports(void **state)
{
    struct fixture f;
    struct event event = {.type = EVENT_REPORT, .host = 0};
    double busy[2] = {0, 0}, jobs[2] = {0, 0};
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 3, one_each, 1, true);
    job = fixture_submit(&f, 1, NULL, 0, false);
    event.u.report =
        (struct core_report){.begin_ms = f.now_ms - 10, .end_ms = f.now_ms, .busy = busy, .jobs = jobs, .ncpus = 2};
    fixture_step(&f, event); /* of another number of CPUs */
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    event.u.report.ncpus = 1;
    event.u.report.end_ms = f.now_ms + 1;
    fixture_step(&f, event); /* of the future */
    event.u.report.end_ms = event.u.report.begin_ms;
    fixture_step(&f, event); /* of no time */
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    event.u.report.end_ms = f.now_ms;
    busy[0] = (double)NAN;
    fixture_step(&f, event); /* of nonsense */
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    f.now_ms += 1000;
    fixture_report(&f, 0, 0.76, 0, 500);
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    event.u.report.end_ms = f.now_ms - 1;
    busy[0] = 0;
    fixture_step(&f, event); /* ends before the last one */
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    f.now_ms += 1000;
    fixture_report(&f, 0, 0.75, 0, 500); /* at most the threshold */
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    fixture_fini(&f);
}

static void test_settle_counts_from_launch(void **state)
{
    struct fixture f;
    uint64_t first, second;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 3, one_each, 1, true);
    fixture_report(&f, 0, 0, 0, 100);
    first = fixture_submit(&f, 1, NULL, 0, false);
    second = fixture_submit(&f, 1, NULL, 0, false);
    f.now_ms += 20000;
    fixture_report(&f, 0, 0, 0, 2000); /* it starts slowly, and shows nothing yet */
    assert_int_equal(fixture_state(&f, second), JOB_QUEUED);
    fixture_run(&f, first);
    f.now_ms += 3999;
    fixture_report(&f, 0, 0, 0, 2000);
    assert_int_equal(fixture_state(&f, second), JOB_QUEUED);
    f.now_ms += 1;
    fixture_report(&f, 0, 0, 0, 2000);
    assert_int_equal(fixture_state(&f, second), JOB_STARTING);
    fixture_fini(&f);
}

static void test_survey_says_why_the_head_waits(void **state)
{
    const int ncpus[] = {1, 1, 1, 1};
    struct core_survey survey;
    struct fixture f;
    uint64_t sharer, behind;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 1, ncpus, 4, true);
    fixture_report(&f, 0, 0, 0, 100);
    sharer = fixture_submit(&f, 1, NULL, 0, false); /* ws1 is full */
    fixture_report(&f, 1, 0.9, 0, 100);             /* ws2 is too busy */
    fixture_report(&f, 2, 0.1, 0, 100);             /* ws3 would do; ws4 has not reported */
    assert_false(core_survey(f.core, sharer, &survey));
    sharer = fixture_submit(&f, 2, NULL, 0, false);
    behind = fixture_submit(&f, 1, NULL, 0, false);
    assert_true(core_survey(f.core, sharer, &survey));
    assert_int_equal(survey.up, 4);
    assert_int_equal(survey.full, 1);
    assert_int_equal(survey.busy, 1);
    assert_int_equal(survey.unmeasured, 1);
    assert_int_equal(survey.allocator, ALLOCATOR_V2);
    assert_false(core_survey(f.core, behind, &survey));
    assert_false(core_survey(f.core, 99, &survey));
    fixture_fini(&f);
}

/* ---- the allocator's choice ---- */

static void test_choice_is_even(void **state)
{
    struct core_options options;
    int counts[4][4] = {{0}};
    uint64_t seed;

    (void)state;
    core_options_default(&options);
    for (seed = 1; seed <= 3000; seed++) {
        struct fixture f;
        uint64_t job;
        fixture_init(&f, ALLOCATOR_V1, 1, one_each, 0, false);
        core_destroy(f.core);
        options.allocator = ALLOCATOR_V1;
        options.seed = seed;
        f.core = core_create(&options);
        core_add_host(f.core, "ws1");
        fixture_up(&f, 0, 4, 0, NULL, 0);
        job = fixture_submit(&f, 2, NULL, 0, false);
        counts[core_job(f.core, job)->processors[0].cpu][core_job(f.core, job)->processors[1].cpu]++;
        fixture_fini(&f);
    }
    for (int a = 0; a < 4; a++)
        for (int b = a + 1; b < 4; b++) /* 500 expected, standard deviation 20 */
            assert_in_range(counts[a][b], 400, 600);
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
    while ((job = core_next_job(f.core, &cursor)) != NULL) {
        assert_int_equal(job->id, cursor);
        if (job->state == JOB_CANCELLED)
            core_forget(f.core, job->id);
    }
    for (cursor = 0; (job = core_next_job(f.core, &cursor)) != NULL; n++)
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

/* ---- time ---- */

static void test_timer(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 2, one_each, 1, true); /* an order is out: looked after in 2 s */
    assert_int_equal(fixture_find(&f, ACTION_TIMER, -1)->at_ms, f.now_ms + 2000);
    job = fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(fixture_count(&f, ACTION_TIMER), 0); /* one is armed already */
    fixture_host(&f, EVENT_TICK, 0, 0);                   /* too early: nothing but the timer again */
    assert_int_equal(f.actions.count, 1);
    assert_int_equal(f.actions.items[0].at_ms, f.now_ms + 2000);
    f.now_ms += 2000;
    fixture_host(&f, EVENT_TICK, 0, 0);
    assert_int_equal(fixture_count(&f, ACTION_ORDER), 1);
    assert_int_equal(fixture_count(&f, ACTION_OPEN), 1);
    fixture_step(&f, (struct event){.type = EVENT_ORDERED, .u.generation = core_host(f.core, 0)->generation});
    fixture_run(&f, job);
    f.now_ms += 2000;
    fixture_host(&f, EVENT_TICK, 0, 0);
    assert_int_equal(f.actions.count, 0); /* all is confirmed, nothing to wait for */
    fixture_fini(&f);
}

static void test_level_time(void **state)
{
    struct fixture f;
    uint64_t first, second;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 1, true);
    first = fixture_submit(&f, 1, NULL, 0, false);
    f.now_ms += 100;
    second = fixture_submit(&f, 1, NULL, 0, false);
    fixture_run(&f, first);
    fixture_run(&f, second);
    f.now_ms += 1000;
    fixture_client(&f, EVENT_KILL, first, 2001, false);
    f.now_ms += 50;
    fixture_empty(&f, first);
    f.now_ms += 500;
    fixture_exited(&f, second, 0, 0, 0, 0);
    fixture_empty(&f, second);
    f.now_ms += 500;
    fixture_host(&f, EVENT_TICK, 0, 0);
    assert_int_equal(core_job(f.core, first)->level_ms[0], 1150);
    assert_int_equal(core_job(f.core, second)->level_ms[1], 1050);
    assert_int_equal(core_job(f.core, second)->level_ms[0], 500);
    fixture_fini(&f);
}

/* ---- size ---- */

static int64_t cpu_ms(void)
{
    return (int64_t)clock() / (CLOCKS_PER_SEC / 1000);
}

/* Steps that do not depend on the size of everything. Bounds are wide: a slow machine must pass, an O(n) per event must
 * not. */
static void test_size(void **state)
{
    const char *preload = getenv("LD_PRELOAD");
    bool small = preload != NULL && strstr(preload, "vgpreload") != NULL;
    int nhosts = small ? 200 : 10000, njobs = small ? 2000 : 100000;
    struct core_options options;
    struct core *core;
    struct actions actions;
    struct event event;
    double busy[4] = {1, 1, 1, 1}, jobs[4] = {1, 1, 1, 1};
    static const int cpus[4] = {0, 1, 2, 3};
    char name[16], text[200];
    int64_t begin;
    uint64_t first = 0;

    (void)state;
    core_options_default(&options);
    core = core_create(&options);
    actions_init(&actions);
    for (int h = 0; h < nhosts; h++) {
        snprintf(name, sizeof(name), "ws%d", h);
        core_add_host(core, name);
        event = (struct event){.type = EVENT_HOST_UP, .host = h};
        event.u.up.cpus = cpus;
        event.u.up.ncpus = 4;
        assert_int_equal(core_step(core, &event, &actions), 0);
        event = (struct event){.type = EVENT_REPORT, .now_ms = 0, .host = h};
        event.u.report = (struct core_report){.begin_ms = -1, .end_ms = 0, .busy = jobs, .jobs = jobs, .ncpus = 4};
        assert_int_equal(core_step(core, &event, &actions), 0);
        actions_clear(&actions);
    }
    begin = cpu_ms();
    for (int i = 0; i < njobs; i++) {
        event = (struct event){.type = EVENT_SUBMIT, .request = 1, .host = -1};
        event.u.submit.nprocs = i < 10 ? (uint32_t)nhosts / 3 : 4;
        assert_int_equal(core_step(core, &event, &actions), 0);
        actions_clear(&actions);
        assert_non_null(core_job(core, (uint64_t)i + 1));
    }
    print_message("%d submissions: %lld ms\n", njobs, (long long)(cpu_ms() - begin));
    assert_true(small || cpu_ms() - begin < 20000);
    begin = cpu_ms();
    for (int round = 0; round < 3; round++)
        for (int h = 0; h < nhosts; h++) { /* a round of reports that let nobody in */
            event = (struct event){.type = EVENT_REPORT, .now_ms = 1000 * (round + 1), .host = h};
            event.u.report = (struct core_report){
                .begin_ms = 1000 * round, .end_ms = 1000 * (round + 1), .busy = busy, .jobs = jobs, .ncpus = 4};
            assert_int_equal(core_step(core, &event, &actions), 0);
            actions_clear(&actions);
        }
    print_message("%d reports: %lld ms\n", 3 * nhosts, (long long)(cpu_ms() - begin));
    assert_true(small || cpu_ms() - begin < 5000);
    begin = cpu_ms();
    event = (struct event){.type = EVENT_KILL, .now_ms = 4000, .job = 1, .host = -1, .u.by.admin = true};
    assert_int_equal(core_job(core, 1)->state, JOB_STARTING);
    assert_int_equal(core_step(core, &event, &actions), 0);
    for (uint32_t i = 0; core_job(core, 1)->state == JOB_ENDING; i++) {
        event = (struct event){.type = EVENT_EMPTY, .now_ms = 4000, .job = 1, .attempt = 1};
        event.host = core_job(core, 1)->processors[i].host;
        actions_clear(&actions);
        assert_int_equal(core_step(core, &event, &actions), 0);
    }
    print_message("the end of a job of %d processors: %lld ms\n", nhosts / 3, (long long)(cpu_ms() - begin));
    assert_true(small || cpu_ms() - begin < 5000);
    while (core_next_job(core, &first) != NULL)
        ;
    assert_int_equal(first, njobs);
    assert_int_equal(core_check(core, text, sizeof(text)), 0);
    actions_fini(&actions);
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_restore_host),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_down_hosts_count_as_existing),
        cmocka_unit_test(test_bad_events),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_nobody_waits_for_request_0),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_first_reason_stays),
        cmocka_unit_test(test_holdings),
        cmocka_unit_test(test_cpus_change),
        cmocka_unit_test(test_unasked_empty),
        cmocka_unit_test(test_down_hosts_are_not_heard),
        cmocka_unit_test(test_restored_claims),
        cmocka_unit_test(test_restored_without_host),
        cmocka_unit_test(test_no_lease_no_next_attempt),
        cmocka_unit_test(test_last_attempt),
        cmocka_unit_test(test_opened_after_all),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_settle_counts_from_launch),
        cmocka_unit_test(test_survey_says_why_the_head_waits),
        cmocka_unit_test(test_choice_is_even),
        cmocka_unit_test(test_forget),
        cmocka_unit_test(test_restore),
        cmocka_unit_test(test_restored_before_its_last_exit),
        cmocka_unit_test(test_restored_before_it_ran),
        cmocka_unit_test(test_restored_host_stays_away),
        cmocka_unit_test(test_timer),
        cmocka_unit_test(test_level_time),
        cmocka_unit_test(test_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
