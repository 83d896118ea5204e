/* test_policy.c - the core with a second policy: the queue is sorted anew when another one is set, and rule 4 holds. */
#include "elmer/core/policy/policy.h"
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static bool before(const struct core_job *a, const struct core_job *b)
{
    return a->nprocs != b->nprocs ? a->nprocs > b->nprocs : a->id < b->id;
}

const struct policy policy_largest = {.before = before};

static const int eight[] = {8};

static void set(struct fixture *f, int value)
{
    struct event event = {.type = EVENT_SET, .host = -1, .request = 5};

    event.u.set.setting = SETTING_POLICY;
    event.u.set.value = value;
    assert_int_equal(fixture_step(f, event), 0);
    assert_int_equal(fixture_find(f, ACTION_ANSWER, -1)->answer, ANSWER_OK);
}

static uint32_t ahead(struct fixture *f, uint64_t job)
{
    return core_job(f->core, job)->ahead;
}

static void test_sorted_anew(void **state)
{
    static const uint32_t nprocs[] = {2, 1, 3, 3, 1, 4, 2};
    static const uint32_t largest[] = {3, 5, 1, 2, 6, 0, 4}; /* jobs ahead of each */
    struct fixture f;
    uint64_t running, jobs[7], late;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, eight, 1, true);
    running = fixture_submit(&f, 8, NULL, 0, false);
    for (int i = 0; i < 7; i++)
        jobs[i] = fixture_submit(&f, nprocs[i], NULL, 0, false);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(ahead(&f, jobs[i]), i);
    set(&f, POLICY_LARGEST);
    assert_int_equal(fixture_find(&f, ACTION_PERSIST_SETTING, -1)->setting, SETTING_POLICY);
    for (int i = 0; i < 7; i++)
        assert_int_equal(ahead(&f, jobs[i]), largest[i]);
    late = fixture_submit(&f, 3, NULL, 0, false); /* finds its place, and passes smaller ones */
    assert_int_equal(ahead(&f, late), 3);
    set(&f, SETTING_UNSET);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(ahead(&f, jobs[i]), i);
    assert_int_equal(ahead(&f, late), 7);
    set(&f, POLICY_LARGEST);
    fixture_run(&f, running);
    fixture_exited(&f, running, 0, 0, 0, 0);
    fixture_empty(&f, running); /* 8 processors: 4 and 3, then nobody passes the next 3 */
    for (int i = 0; i < 7; i++)
        assert_int_equal(fixture_state(&f, jobs[i]), i == 5 || i == 2 ? JOB_STARTING : JOB_QUEUED);
    fixture_fini(&f);
}

/* The head that waits under one policy lets another job begin under the next, in the same step. */
static void test_next_decision(void **state)
{
    struct fixture f;
    uint64_t six, small, large;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, eight, 1, true);
    set(&f, POLICY_LARGEST);
    six = fixture_submit(&f, 6, NULL, 0, false);
    large = fixture_submit(&f, 4, NULL, 0, false);
    small = fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(fixture_state(&f, six), JOB_STARTING);
    assert_int_equal(fixture_state(&f, small), JOB_QUEUED);
    set(&f, POLICY_FCFS);
    assert_int_equal(fixture_state(&f, small), JOB_QUEUED);
    fixture_client(&f, EVENT_HOLD, large, 2001, false);
    assert_int_equal(fixture_state(&f, small), JOB_STARTING);
    fixture_fini(&f);
}

/* Many, in an order by chance: as qsort() would have it. */
static void test_many(void **state)
{
    enum { JOBS = 1000 };
    struct fixture f;
    uint64_t running, cursor = 0;
    const struct core_job *job, *sorted[JOBS];
    unsigned chance = 1;
    int n = 0;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, eight, 1, true);
    running = fixture_submit(&f, 8, NULL, 0, false);
    for (int i = 0; i < JOBS; i++) {
        chance = chance * 1103515245u + 12345u;
        assert_int_not_equal(fixture_submit(&f, 1 + (chance >> 16) % 8, NULL, 0, false), 0);
    }
    set(&f, POLICY_LARGEST);
    while ((job = core_next_job(f.core, &cursor)))
        if (job->id != running) {
            assert_in_range(job->ahead, 0, JOBS - 1);
            sorted[job->ahead] = job;
            n++;
        }
    assert_int_equal(n, JOBS);
    for (int i = 1; i < JOBS; i++)
        assert_true(before(sorted[i - 1], sorted[i]));
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sorted_anew),
        cmocka_unit_test(test_next_decision),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
