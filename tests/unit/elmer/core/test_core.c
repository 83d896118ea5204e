/* test_core.c - contracts of core.h at their edges: options, submissions, clients, time and size; what happens in a
 * whole cluster is the matter of tests/sim. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "tests/unit/elmer/core/core_fixture.h"

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
    assert_string_equal(core_job(f.core, waits)->text, "by uid 2001"); /* whoever it was is named */
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, waits, 2001, false), ANSWER_WRONG_STATE);
    assert_int_equal(fixture_client(&f, EVENT_KILL, runs, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_client(&f, EVENT_KILL, runs, 2001, false), ANSWER_OK); /* it is ending */
    assert_int_equal(fixture_count(&f, ACTION_END), 0);
    fixture_empty(&f, runs);
    assert_string_equal(core_job(f.core, runs)->text, "by uid 2001");
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
    bool small = preload && strstr(preload, "vgpreload");
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
    while (core_next_job(core, &first))
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
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_down_hosts_count_as_existing),
        cmocka_unit_test(test_bad_events),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_nobody_waits_for_request_0),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_timer),
        cmocka_unit_test(test_level_time),
        cmocka_unit_test(test_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
