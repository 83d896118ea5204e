/* test_after_tasks.c - jobs that wait for tasks of arrays which were cancelled before they had been jobs. */
#include "elmer/core/core.h"
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const int one[] = {1};

static uint64_t submit_array(struct fixture *f, uint32_t ntasks)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    uint64_t id = core_next_id(f->core);

    event.u.submit.uid = 2001;
    event.u.submit.nprocs = 1;
    event.u.submit.ntasks = ntasks;
    assert_int_equal(fixture_step(f, event), 0);
    return id;
}

/* It stays when that cannot happen any more. */
static uint64_t submit_after(struct fixture *f, struct core_after after)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    uint64_t id = core_next_id(f->core);

    event.u.submit.uid = 2001;
    event.u.submit.nprocs = 1;
    event.u.submit.after = &after;
    event.u.submit.nafter = 1;
    event.u.submit.keep_never = true;
    assert_int_equal(fixture_step(f, event), 0);
    return id;
}

static void cancel_task(struct fixture *f, uint64_t array, uint32_t task)
{
    const struct core_range range = {task - 1, task};
    struct event event = {.type = EVENT_CANCEL, .host = -1, .request = 1, .job = array};

    event.u.by.uid = 2001;
    event.u.by.tasks = &range;
    event.u.by.ntasks = 1;
    assert_int_equal(fixture_step(f, event), 0);
}

static bool is_written(const struct fixture *f, uint64_t job)
{
    for (size_t i = 0; i < f->actions.count; i++)
        if (f->actions.items[i].type == ACTION_PERSIST && f->actions.items[i].job == job)
            return true;
    return false;
}

/* Submitted before, after, and taken back from what was written: it is the same, although the task has no row and the
 * store knows nothing of it. */
static void test_task_cancelled_in_its_array(void **state)
{
    (void)state;
    for (int kind = 0; kind < AFTER_KIND_COUNT; kind++)
        for (int ended = 0; ended < 2; ended++) {
            struct fixture f, again;
            struct core_job saved;
            struct core_after after = {.kind = (enum after_kind)kind, .job = 0}, written;
            uint64_t array, before, later;
            bool met = kind == AFTER_FAIL || kind == AFTER_ANY;

            fixture_init(&f, ALLOCATOR_V1, 3, one, 1, false); /* it has never been up: all wait */
            array = submit_array(&f, 3);
            after.job = array + 2;
            before = submit_after(&f, after);
            assert_int_equal(core_job(f.core, before)->after[0].verdict, CORE_OPEN);
            cancel_task(&f, array, 2);
            assert_true(is_written(&f, before)); /* with the array: a restart decides it from nothing else */
            assert_int_equal(core_job(f.core, before)->after[0].verdict, met ? CORE_MET : CORE_NEVER);
            if (ended)
                assert_int_equal(fixture_client(&f, EVENT_CANCEL, array, 2001, false), ANSWER_OK);
            later = submit_after(&f, after);
            assert_int_equal(core_job(f.core, later)->after[0].verdict, met ? CORE_MET : CORE_NEVER);
            saved = *core_job(f.core, before);
            written = saved.after[0];
            written.end = CORE_END_FORGOTTEN;
            saved.after = &written;
            fixture_init(&again, ALLOCATOR_V1, 3, one, 1, false);
            assert_int_equal(core_restore_job(again.core, &saved, again.now_ms), 0);
            assert_int_equal(core_job(again.core, before)->after[0].verdict, met ? CORE_MET : CORE_NEVER);
            fixture_fini(&again);
            fixture_fini(&f);
        }
}

/* Of one that was a job, the store knows how it has ended; when it has forgotten that, nobody does. */
static void test_task_that_was_a_job_is_forgotten(void **state)
{
    struct fixture f;
    uint64_t array, waiter;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    array = submit_array(&f, 3);
    fixture_run(&f, array + 1);
    fixture_exited(&f, array + 1, 0, 0, 0, 0);
    fixture_empty(&f, array + 1);
    core_forget(f.core, array + 1);
    waiter = submit_after(&f, (struct core_after){.kind = AFTER_FAIL, .job = array + 1});
    assert_int_equal(core_job(f.core, waiter)->after[0].verdict, CORE_NEVER);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_task_cancelled_in_its_array),
                                       cmocka_unit_test(test_task_that_was_a_job_is_forgotten)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
