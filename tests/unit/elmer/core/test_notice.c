/* test_notice.c - notices: they take nothing of anybody, start on their own host only, a few at a time, and are told
 * again, or cancelled with the reason, whatever becomes of that host. */
#include "elmer/core/core.h"
#include "tests/unit/elmer/core/core_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const int two[] = {2, 2};

static uint64_t notice_of(struct fixture *f, uint64_t job, enum after_kind kind, int host, uint32_t uid)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    const struct core_after after = {.job = job, .kind = kind};
    uint64_t id = core_next_id(f->core);

    event.u.submit.uid = uid;
    event.u.submit.nprocs = 1;
    event.u.submit.notice = true;
    event.u.submit.requeue = true;
    event.u.submit.hosts = &host;
    event.u.submit.nhosts = 1;
    event.u.submit.after = job ? &after : NULL;
    event.u.submit.nafter = job ? 1 : 0;
    assert_int_equal(fixture_step(f, event), 0);
    assert_int_equal(fixture_find(f, ACTION_ANSWER, -1)->answer, ANSWER_OK);
    return id;
}

static void end(struct fixture *f, uint64_t job, int host)
{
    fixture_run(f, job);
    fixture_exited(f, job, host, 0, 0, 0);
    fixture_empty(f, job);
}

/* All processors are full, and more jobs wait: the notice starts all the same, and nobody waits or moves for it. */
static void test_it_takes_nothing(void **state)
{
    struct fixture f;
    uint64_t full[3], waits, first, notice, later;
    const struct action *order;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 1, true);
    for (int i = 0; i < 3; i++) {
        full[i] = fixture_submit(&f, 2, NULL, 0, false);
        fixture_run(&f, full[i]);
    }
    first = full[2];
    notice = notice_of(&f, first, AFTER_ANY, 0, 2001);
    waits = fixture_submit(&f, 2, NULL, 0, false);
    later = fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(core_job(f.core, notice)->reason, REASON_AFTER);
    assert_int_equal(core_job(f.core, later)->ahead, 1); /* it does not count */
    fixture_exited(&f, first, 0, 0, 0, 0);
    fixture_empty(&f, first);
    assert_int_equal(fixture_state(&f, waits), JOB_STARTING); /* who waited gets what has become free */
    assert_int_equal(fixture_state(&f, later), JOB_QUEUED);
    assert_int_equal(fixture_state(&f, notice), JOB_STARTING);
    order = fixture_find(&f, ACTION_ORDER, 0);
    assert_int_equal(order->nentries, 4);
    assert_int_equal(order->entries[3].job, notice); /* below all, in SCHED_OTHER, as one that shares */
    assert_int_equal(order->entries[3].level, 2);
    assert_true(order->entries[3].lowest);
    assert_false(order->entries[0].lowest);
    assert_int_equal(core_user(f.core, 2001).running, 3);
    end(&f, notice, 0);
    assert_int_equal(fixture_state(&f, later), JOB_QUEUED);
    fixture_fini(&f);
}

/* v2 looks at when a processor last changed: that a notice came is no change. */
static void test_it_changes_nothing_for_v2(void **state)
{
    struct fixture f;
    uint64_t job, notice;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 3, two, 1, true);
    job = notice_of(&f, 0, AFTER_ANY, 0, 2001);
    end(&f, job, 0);
    f.now_ms += 5000;
    notice = notice_of(&f, 0, AFTER_ANY, 0, 2001);
    fixture_run(&f, notice);
    fixture_report(&f, 0, 0.1, 0.1, 2000);
    assert_int_equal(fixture_state(&f, fixture_submit(&f, 2, NULL, 0, false)), JOB_STARTING);
    fixture_fini(&f);
}

static void test_each_kind(void **state)
{
    struct fixture f;
    uint64_t job, begins, fails, ends;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 2, true);
    job = fixture_submit(&f, 1, (int[]){0}, 1, false);
    begins = notice_of(&f, job, AFTER_START, 1, 2001);
    fails = notice_of(&f, job, AFTER_FAIL, 1, 2001);
    ends = notice_of(&f, job, AFTER_ANY, 1, 2001);
    fixture_run(&f, job);
    assert_int_equal(fixture_state(&f, begins), JOB_STARTING);
    assert_int_equal(fixture_state(&f, ends), JOB_QUEUED);
    assert_int_equal(core_job(f.core, begins)->processors[0].host, 1);
    fixture_exited(&f, job, 0, 0, 0, 0);
    fixture_empty(&f, job);
    assert_int_equal(fixture_state(&f, fails), JOB_CANCELLED);
    assert_int_equal(fixture_state(&f, ends), JOB_STARTING);
    fixture_fini(&f);
}

/* One that never ran has ended, too. */
static void test_of_one_that_is_cancelled(void **state)
{
    struct fixture f;
    uint64_t job, begins, ends;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, two, 2, true);
    fixture_submit(&f, 4, NULL, 0, false);
    job = fixture_submit(&f, 1, NULL, 0, false);
    begins = notice_of(&f, job, AFTER_START, 0, 2001);
    ends = notice_of(&f, job, AFTER_FAIL, 0, 2001);
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, job, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_state(&f, begins), JOB_CANCELLED);
    assert_int_equal(fixture_state(&f, ends), JOB_STARTING);
    fixture_fini(&f);
}

static int count(struct fixture *f, uint64_t first, int n, enum job_state state)
{
    int found = 0;

    for (int i = 0; i < n; i++)
        found += fixture_state(f, first + (uint64_t)i) == state;
    return found;
}

/* Of one user half of those that a host runs at a time; another one does not wait behind all of his. */
static void test_a_few_at_a_time(void **state)
{
    enum { MANY = 600 };
    struct fixture f;
    uint64_t first, other;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 1, true);
    first = core_next_id(f.core);
    for (int i = 0; i < MANY; i++)
        notice_of(&f, 0, AFTER_ANY, 0, 2001);
    assert_int_equal(count(&f, first, MANY, JOB_STARTING), CORE_NOTICES_OF_USER);
    other = notice_of(&f, 0, AFTER_ANY, 0, 2002);
    for (int i = 0; i < MANY / 256 + 1 && fixture_state(&f, other) == JOB_QUEUED; i++)
        notice_of(&f, 0, AFTER_ANY, 0, 2001);
    assert_int_equal(fixture_state(&f, other), JOB_STARTING);
    for (uint32_t uid = 3000; uid < 3010; uid++)
        notice_of(&f, 0, AFTER_ANY, 0, uid);
    assert_int_equal(count(&f, first, (int)(core_next_id(f.core) - first), JOB_STARTING), CORE_NOTICES_AT_ONCE);
    for (int i = 0; i < MANY; i++) {
        uint64_t id = first;
        while (fixture_state(&f, id) != JOB_STARTING)
            id++;
        end(&f, id, 0);
    }
    fixture_fini(&f);
}

static void test_verbs(void **state)
{
    struct fixture f;
    uint64_t notice;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 1, true);
    fixture_run(&f, fixture_submit(&f, 1, NULL, 0, false));
    notice = notice_of(&f, 1, AFTER_ANY, 0, 2001);
    assert_int_equal(fixture_client(&f, EVENT_TOP, notice, 2001, false), ANSWER_WRONG_STATE);
    assert_int_equal(fixture_client(&f, EVENT_HOLD, notice, 2002, false), ANSWER_NOT_PERMITTED);
    assert_int_equal(fixture_client(&f, EVENT_HOLD, notice, 2001, false), ANSWER_OK);
    fixture_exited(&f, 1, 0, 0, 0, 0);
    fixture_empty(&f, 1);
    assert_int_equal(fixture_state(&f, notice), JOB_HELD);
    assert_int_equal(fixture_client(&f, EVENT_RELEASE, notice, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_state(&f, notice), JOB_STARTING);
    assert_int_equal(fixture_client(&f, EVENT_KILL, notice, 2001, false), ANSWER_OK);
    fixture_empty(&f, notice);
    fixture_fini(&f);
}

/* Drained it takes no jobs, and notices are none; down it is waited for; lost while one runs, it runs again. */
static void test_its_host(void **state)
{
    struct event event = {.host = 1};
    struct fixture f;
    uint64_t notice, second;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 2, true);
    event.type = EVENT_HOST_DOWN;
    fixture_step(&f, event);
    notice = notice_of(&f, 0, AFTER_ANY, 1, 2001);
    second = fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(fixture_state(&f, notice), JOB_QUEUED);
    assert_int_equal(fixture_state(&f, second), JOB_STARTING); /* nobody waits behind it */
    event.type = EVENT_DRAIN;
    fixture_step(&f, event);
    fixture_up(&f, 1, 2, 0, NULL, 0);
    fixture_run(&f, notice);
    event.type = EVENT_HOST_DOWN;
    fixture_step(&f, event);
    assert_int_equal(fixture_state(&f, notice), JOB_QUEUED);
    assert_int_equal(core_job(f.core, notice)->reason, REASON_LEASE);
    fixture_up(&f, 1, 2, 0, NULL, 0); /* it does not have it: so it may run again */
    assert_int_equal(fixture_state(&f, notice), JOB_STARTING);
    assert_int_equal(core_job(f.core, notice)->attempt, 2);
    fixture_fini(&f);
}

static void test_its_host_is_taken_out(void **state)
{
    struct event event = {.type = EVENT_HOST_RETIRE, .host = 1};
    struct fixture f;
    uint64_t waits, ready, job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 2, true);
    job = fixture_submit(&f, 1, (int[]){0}, 1, false);
    fixture_run(&f, job);
    event.type = EVENT_HOST_DOWN;
    fixture_step(&f, event);
    ready = notice_of(&f, 0, AFTER_ANY, 1, 2001);
    waits = notice_of(&f, job, AFTER_ANY, 1, 2001);
    event.type = EVENT_HOST_RETIRE;
    fixture_step(&f, event);
    event = (struct event){.type = EVENT_TICK, .host = -1};
    fixture_step(&f, event);
    assert_int_equal(fixture_state(&f, ready), JOB_CANCELLED);
    assert_non_null(strstr(core_job(f.core, ready)->text, "no host of the cluster"));
    fixture_exited(&f, job, 0, 0, 0, 0);
    fixture_empty(&f, job);
    fixture_step(&f, event);
    assert_int_equal(fixture_state(&f, waits), JOB_CANCELLED);
    fixture_fini(&f);
}

static void test_what_is_none(void **state)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 1, true);
    event.u.submit.notice = true;
    event.u.submit.nprocs = 1;
    assert_int_equal(fixture_step(&f, event), -EINVAL); /* without a host */
    event.u.submit.hosts = (int[]){0};
    event.u.submit.nhosts = 1;
    event.u.submit.nprocs = 2;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    event.u.submit.nprocs = 1;
    event.u.submit.ntasks = 2;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    fixture_fini(&f);
}

/* Waiting, ready and running ones, in a new core and in a copy: they go on. */
static void test_restart_and_copy(void **state)
{
    const struct core_host_row row = {.up = true, .ncpus = 2};
    struct fixture f, g;
    struct core *copy;
    uint64_t ids[4], cursor = 0;
    const struct core_job *saved;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 2, true);
    ids[0] = fixture_submit(&f, 1, (int[]){0}, 1, false);
    fixture_run(&f, ids[0]);
    ids[1] = notice_of(&f, ids[0], AFTER_ANY, 0, 2001);
    ids[2] = notice_of(&f, 0, AFTER_ANY, 0, 2001);
    fixture_run(&f, ids[2]);
    ids[3] = notice_of(&f, 0, AFTER_ANY, 0, 2001);
    copy = core_copy(f.core);
    assert_int_equal(core_check(copy, (char[200]){0}, 200), 0);
    core_destroy(copy);

    fixture_init(&g, ALLOCATOR_V1, 3, two, 2, false);
    g.now_ms = f.now_ms;
    assert_int_equal(core_restore_host(g.core, 0, &row, g.now_ms), 0);
    assert_int_equal(core_restore_host(g.core, 1, &row, g.now_ms), 0);
    while ((saved = core_next_job(f.core, &cursor)))
        assert_int_equal(core_restore_job(g.core, saved, g.now_ms), 0);
    fixture_step(&g, (struct event){.type = EVENT_TICK, .host = -1});
    fixture_up(&g, 0, 2, 9, (struct core_holding[]){{ids[0], 1}, {ids[2], 1}, {ids[3], 1}}, 3);
    assert_int_equal(fixture_count(&g, ACTION_END), 0);
    assert_int_equal(fixture_state(&g, ids[0]), JOB_RUNNING);
    assert_int_equal(fixture_state(&g, ids[2]), JOB_RUNNING);
    fixture_exited(&g, ids[0], 0, 0, 0, 0);
    fixture_empty(&g, ids[0]);
    end(&g, ids[1], 0);
    end(&g, ids[3], 0);
    fixture_fini(&g);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_takes_nothing), cmocka_unit_test(test_it_changes_nothing_for_v2),
        cmocka_unit_test(test_each_kind),        cmocka_unit_test(test_of_one_that_is_cancelled),
        cmocka_unit_test(test_a_few_at_a_time),  cmocka_unit_test(test_verbs),
        cmocka_unit_test(test_its_host),         cmocka_unit_test(test_its_host_is_taken_out),
        cmocka_unit_test(test_what_is_none),     cmocka_unit_test(test_restart_and_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
