/* test_restore.c - what a core makes of the rows of a store: hosts, and jobs, also those whose hosts are not in the
 * configuration any more. */
#include <errno.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdarg.h>
#include <cmocka.h>

#include "tests/unit/elmer/core/core_fixture.h"

static const int one_each[] = {1, 1, 1, 1};

/* ---- hosts ---- */

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

/* By its name: who is a host of the cluster, and why, says the configuration, and then that it has joined. */
static void test_restore_host_row(void **state)
{
    const struct core_host_row joined = {.up = true, .drained = true, .joined = true, .ncpus = 2}, other = {.up = true},
                               bad = {.ncpus = -1};
    struct fixture f;

    (void)state;
    for (int cube = 0; cube < 2; cube++) {
        fixture_init(&f, cube > 0 ? ALLOCATOR_CUBE_AFL : ALLOCATOR_V1, 1, one_each, 2, false);
        assert_int_equal(core_restore_host_row(f.core, "ws1", &joined, 0), 0);
        assert_int_equal(core_host(f.core, 0)->state, CORE_HOST_AWAITED);
        assert_true(core_host(f.core, 0)->drained);
        assert_false(core_host(f.core, 0)->joined); /* it is configured now */
        assert_int_equal(core_restore_host_row(f.core, "ws2", &bad, 0), -EINVAL);
        assert_int_equal(core_restore_host_row(f.core, "ws8", &other, 0), -ENOENT);
        assert_int_equal(core_restore_host_row(f.core, "ws9", &joined, 0), cube > 0 ? -ENOENT : 2);
        assert_int_equal(core_host_count(f.core), cube > 0 ? 2 : 3);
        assert_int_equal(core_host_by_name(f.core, "ws8"), -1);
        if (cube == 0) {
            assert_true(core_host(f.core, 2)->joined);
            assert_true(core_host(f.core, 2)->drained);
            assert_int_equal(core_host(f.core, 2)->state, CORE_HOST_AWAITED);
        }
        fixture_step(&f, (struct event){.type = EVENT_TICK});
        assert_int_equal(fixture_count(&f, ACTION_PERSIST_HOST), 1); /* taken out later, it is none */
        assert_int_equal(fixture_find(&f, ACTION_PERSIST_HOST, -1)->host, 0);
        assert_false(core_host(f.core, 0)->row.joined);
        fixture_fini(&f);
    }
}

/* One that is not in the configuration any more, and has a job: it comes back for that alone. */
static void test_restore_past_host(void **state)
{
    const struct core_processor processors[] = {{2, 0}};
    const uint8_t exited[1] = {0};
    const struct core_job saved = {.id = 7,
                                   .attempt = 1,
                                   .allocation = 9,
                                   .nprocs = 1,
                                   .state = JOB_RUNNING,
                                   .processors = processors,
                                   .exited = exited,
                                   .exit_status = -1,
                                   .failed_rank = UINT32_MAX};
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 2, false);
    assert_false(core_restore_past_host(f.core, "ws2", false));
    assert_true(core_restore_past_host(f.core, "ws9", false));
    assert_false(core_restore_past_host(f.core, "ws9", false)); /* another job has it, too */
    assert_true(core_host(f.core, 2)->retired);
    assert_int_equal(core_member_by_name(f.core, "ws9"), -1);
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), 0);
    fixture_step(&f, (struct event){.type = EVENT_TICK});
    fixture_up(&f, 2, 1, 0, &(struct core_holding){7, 1}, 1);
    assert_int_equal(fixture_state(&f, 7), JOB_RUNNING);
    fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(fixture_state(&f, 8), JOB_QUEUED);
    fixture_exited(&f, 7, 2, 0, 0, 0);
    fixture_empty(&f, 7);
    assert_int_equal(fixture_count(&f, ACTION_HOST_GONE), 1);
    fixture_fini(&f);
    fixture_init(&f, ALLOCATOR_CUBE_AFL, 1, one_each, 2, false);
    assert_false(core_restore_past_host(f.core, "ws9", true));
    assert_int_equal(core_host_count(f.core), 2);
    fixture_fini(&f);
}

/* Drained, out of the configuration, a restart, and back, with a job and without: it is drained. */
static void test_drained_past_host(void **state)
{
    static const int cpus[] = {0};

    (void)state;
    for (int job = 0; job < 2; job++) {
        struct event add = {.type = EVENT_HOST_ADD, .host = -1}, up = {.type = EVENT_HOST_UP, .host = 1};
        struct fixture f;

        fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, false);
        if (job)
            assert_true(core_restore_past_host(f.core, "ws9", true));
        add.u.add.name = "ws9";
        add.u.add.drained = !job; /* that it knows is its own */
        assert_int_equal(fixture_step(&f, add), 0);
        assert_false(core_host(f.core, 1)->retired);
        assert_true(core_host(f.core, 1)->drained);
        assert_true(core_host(f.core, 1)->row.drained);
        assert_int_equal(fixture_count(&f, ACTION_PERSIST_HOST), 1);
        up.u.up.cpus = cpus;
        up.u.up.ncpus = 1;
        assert_int_equal(fixture_step(&f, up), 0);
        fixture_submit(&f, 1, NULL, 0, false);
        assert_int_equal(fixture_state(&f, 1), JOB_QUEUED);
        assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_UNDRAIN, .request = 9, .host = 1}), 0);
        assert_int_equal(fixture_state(&f, 1), JOB_STARTING);
        add.u.add.drained = true; /* an old row */
        assert_int_equal(fixture_step(&f, add), 0);
        assert_false(core_host(f.core, 1)->drained);
        fixture_fini(&f);
    }
}

/* ---- jobs ---- */

/* Those that it may use, as the store has them: in any order, some twice, some not there any more. With none left it
 * waits, and does not take others. */
static void test_restored_hosts(void **state)
{
    static const int some[] = {2, -1, 0, 2, -1}, none[] = {-1, -1}, beyond[] = {3}, below[] = {-2};
    struct core_job saved = {.id = 7, .nprocs = 1, .hosts = some, .nhosts = 5, .exit_status = -1};
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 3, true);
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), 0);
    assert_int_equal(core_job(f.core, 7)->nhosts, 2);
    assert_int_equal(core_job(f.core, 7)->hosts[0], 0);
    assert_int_equal(core_job(f.core, 7)->hosts[1], 2);
    saved.id = 8;
    saved.hosts = none;
    saved.nhosts = 2;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), 0);
    assert_non_null(core_job(f.core, 8)->hosts);
    assert_int_equal(core_job(f.core, 8)->nhosts, 0);
    saved.id = 9;
    saved.hosts = NULL;
    saved.nhosts = 0;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), 0);
    assert_null(core_job(f.core, 9)->hosts);
    saved.id = 10;
    saved.nhosts = 1;
    saved.hosts = beyond;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), -EINVAL);
    saved.hosts = below;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), -EINVAL);
    fixture_step(&f, (struct event){.type = EVENT_TICK});
    assert_int_equal(fixture_state(&f, 7), JOB_STARTING);
    assert_int_equal(fixture_state(&f, 8), JOB_QUEUED);
    assert_int_equal(core_job(f.core, 8)->reason, REASON_TOO_FEW_UP);
    assert_int_equal(fixture_state(&f, 9), JOB_STARTING);
    fixture_fini(&f);
}

/* A job that was started once waits for others no more, and a task with a row never did: its array has waited. */
static void test_restored_after(void **state)
{
    const struct core_after after = {.job = 3, .end = CORE_END_BADLY};
    struct core_job saved = {.id = 12, .nprocs = 1, .exit_status = -1, .after = &after, .nafter = 1};

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct fixture f;

        fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, true);
        saved.attempt = kind == 1;
        saved.array = kind == 2 ? 10 : 0;
        saved.task = kind == 2 ? 2 : 0;
        assert_int_equal(core_saved_waits(&saved), kind == 0);
        assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), 0);
        assert_int_equal(core_job(f.core, 12)->nafter, kind == 0);
        fixture_step(&f, (struct event){.type = EVENT_TICK});
        assert_int_equal(fixture_state(&f, 12), kind == 0 ? JOB_CANCELLED : JOB_STARTING);
        fixture_fini(&f);
    }
}

/* While nobody decided it was at the level that it had, also where it would be at another one now. */
static void test_restored_time(void **state)
{
    struct fixture f, g;
    struct core_job saved;
    uint64_t low, high;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 2, one_each, 1, true);
    low = fixture_submit(&f, 1, NULL, 0, false);
    high = fixture_submit(&f, 1, NULL, 0, false);
    f.now_ms += 40;
    fixture_host(&f, EVENT_TICK, 0, 0);
    fixture_init(&g, ALLOCATOR_V1, 2, one_each, 1, false);
    g.now_ms = f.now_ms + 700;
    saved = *core_job(f.core, low);
    saved.level_until_ms = g.now_ms + 1; /* the clock was set back */
    assert_int_equal(core_restore_job(g.core, &saved, g.now_ms), 0);
    assert_int_equal(core_job(g.core, low)->level_ms[0], 40);
    saved = *core_job(f.core, high);
    assert_int_equal(saved.level, 1);
    assert_int_equal(core_restore_job(g.core, &saved, g.now_ms), 0);
    assert_int_equal(core_job(g.core, high)->level_ms[1], 740);
    g.now_ms += 5;
    fixture_step(&g, (struct event){.type = EVENT_TICK});
    assert_int_equal(core_job(g.core, low)->level_ms[0], 45);
    assert_int_equal(core_job(g.core, high)->level_ms[0], 0);
    assert_int_equal(core_job(g.core, high)->level_ms[1], 745);
    fixture_fini(&g);

    fixture_init(&g, ALLOCATOR_V1, 2, one_each, 1, false);
    g.now_ms = f.now_ms + 700;
    assert_int_equal(core_restore_job(g.core, &saved, g.now_ms), 0);
    assert_int_equal(core_job(g.core, high)->level, 0); /* the other has ended */
    assert_int_equal(core_job(g.core, high)->level_ms[0], 0);
    assert_int_equal(core_job(g.core, high)->level_ms[1], 740);
    fixture_fini(&g);
    fixture_init(&g, ALLOCATOR_V1, 2, one_each, 1, false);
    saved.level = CORE_NO_LEVEL; /* a row that does not say it */
    assert_int_equal(core_restore_job(g.core, &saved, f.now_ms + 700), 0);
    assert_int_equal(core_job(g.core, high)->level_ms[1], 40);
    fixture_fini(&g);
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

static struct core_job saved_array(uint64_t id)
{
    return (struct core_job){.id = id,
                             .nprocs = 1,
                             .state = JOB_STARTED,
                             .ntasks = 4,
                             .next_task = 4,
                             .tasks_ok = 1,
                             .tasks_failed = 1,
                             .failed_rank = 2,
                             .exit_status = 5};
}

/* On a host that is not there any more. */
static struct core_job saved_task(uint64_t array, uint32_t task)
{
    static const struct core_processor processors[] = {{-1, 0}};
    static const uint8_t exited[1] = {0};

    return (struct core_job){.id = array + task,
                             .array = array,
                             .task = task,
                             .attempt = 1,
                             .allocation = array + task,
                             .nprocs = 1,
                             .level = 1,
                             .state = JOB_RUNNING,
                             .processors = processors,
                             .exited = exited,
                             .exit_status = -1,
                             .failed_rank = UINT32_MAX};
}

/* What is written of one that is lost; and its array counts it, which comes later as a rule. */
static void test_lost_task(void **state)
{
    struct core_job first = saved_task(10, 4), second = saved_task(10, 2), other = saved_task(20, 1), end,
                    array = saved_array(10);
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, false);
    assert_int_equal(core_restore_job(f.core, &second, f.now_ms), CORE_LOST);
    assert_int_equal(core_restore_job(f.core, &other, f.now_ms), CORE_LOST);
    end = core_lost_job(&second);
    assert_int_equal(end.state, JOB_DONE);
    assert_int_equal(end.reason, REASON_HOST_LOST);
    assert_int_equal(end.level, CORE_NO_LEVEL);
    assert_int_equal(end.id, 12);
    assert_null(core_job(f.core, 12));
    assert_int_equal(core_restore_job(f.core, &array, f.now_ms), 0);
    assert_int_equal(core_job(f.core, 10)->tasks_failed, 2);
    assert_int_equal(core_job(f.core, 10)->failed_rank, 1);
    assert_int_equal(core_job(f.core, 10)->exit_status, -1); /* it has none, as after a loss of its host */
    assert_int_equal(core_restore_job(f.core, &first, f.now_ms), CORE_LOST);
    assert_int_equal(core_job(f.core, 10)->tasks_failed, 3);
    assert_int_equal(core_job(f.core, 10)->failed_rank, 1);
    assert_int_equal(fixture_state(&f, 10), JOB_STARTED);
    fixture_step(&f, (struct event){.type = EVENT_TICK}); /* all are back: it has no task any more */
    assert_int_equal(fixture_state(&f, 10), JOB_DONE);
    assert_int_equal(core_job(f.core, 10)->reason, REASON_TASKS_FAILED);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restore_host),          cmocka_unit_test(test_restore_host_row),
        cmocka_unit_test(test_restore_past_host),     cmocka_unit_test(test_drained_past_host),
        cmocka_unit_test(test_restored_hosts),        cmocka_unit_test(test_restored_after),
        cmocka_unit_test(test_restored_time),         cmocka_unit_test(test_restored_claims),
        cmocka_unit_test(test_restored_without_host), cmocka_unit_test(test_lost_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
