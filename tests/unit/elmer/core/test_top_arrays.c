/* test_top_arrays.c - the order of one's own jobs, where some are arrays: each task counts as a job. */
#include "elmer/core/core.h"
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const int one[] = {1};

static uint64_t submit_array(struct fixture *f, uint32_t uid, uint32_t ntasks, bool requeue)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1, .now_ms = f->now_ms};
    uint64_t id = core_next_id(f->core);

    event.u.submit.uid = uid;
    event.u.submit.nprocs = 1;
    event.u.submit.ntasks = ntasks;
    event.u.submit.requeue = requeue;
    assert_int_equal(fixture_step(f, event), 0);
    return id;
}

static void to_task(struct fixture *f, enum event_type type, uint64_t array, uint32_t task, uint32_t uid)
{
    const struct core_range range = {task - 1, task};
    struct event event = {.type = type, .host = -1, .request = 1, .job = array};

    event.u.by.uid = uid;
    event.u.by.tasks = &range;
    event.u.by.ntasks = 1;
    assert_int_equal(fixture_step(f, event), 0);
    assert_int_equal(fixture_find(f, ACTION_ANSWER, -1)->answer, ANSWER_OK);
}

static uint32_t ahead(struct fixture *f, uint64_t job)
{
    return core_job(f->core, job)->ahead;
}

static int top_tasks(struct fixture *f, uint64_t array, uint32_t from, uint32_t to, uint32_t uid)
{
    const struct core_range range = {from - 1, to};
    struct event event = {.type = EVENT_TOP, .host = -1, .request = 1, .job = array};

    event.u.by.uid = uid;
    event.u.by.tasks = &range;
    event.u.by.ntasks = 1;
    assert_int_equal(fixture_step(f, event), 0);
    return (int)fixture_find(f, ACTION_ANSWER, -1)->answer;
}

/* A job that goes before an array has the place of a task of it, and the last one goes back for it. */
static void test_before_an_array(void **state)
{
    struct fixture f;
    uint64_t array, other, own, later;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    array = submit_array(&f, 5, 3, false);
    other = fixture_submit_as(&f, 6, true);
    own = fixture_submit_as(&f, 5, true);
    later = fixture_submit_as(&f, 5, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, own, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, own), 0);
    assert_int_equal(ahead(&f, array), 1); /* of which two wait */
    assert_int_equal(ahead(&f, other), 2);
    assert_int_equal(ahead(&f, array + 3), 3);
    assert_int_equal(core_tasks_waiting(core_job(f.core, array)), 2);
    assert_int_equal(fixture_client(&f, EVENT_TOP, later, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, later), 0);
    assert_int_equal(ahead(&f, own), 1);
    assert_int_equal(ahead(&f, array), 2);
    assert_int_equal(ahead(&f, other), 3);
    to_task(&f, EVENT_TOP, array, 3, 5); /* and back */
    assert_int_equal(ahead(&f, array + 3), 0);
    assert_int_equal(ahead(&f, other), 3); /* three places are before it, as ever */
    fixture_fini(&f);
}

/* As many of its tasks go before others as its user had places there, not all of them. */
static void test_array_past_others(void **state)
{
    struct fixture f;
    uint64_t own, other, array;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    own = fixture_submit_as(&f, 5, true);
    other = fixture_submit_as(&f, 6, true);
    array = submit_array(&f, 5, 3, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, array, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, array + 1), 0);
    assert_int_equal(ahead(&f, other), 1);
    assert_int_equal(ahead(&f, array), 2);
    assert_int_equal(ahead(&f, own), 3);
    assert_int_equal(fixture_client(&f, EVENT_TOP, own, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, own), 0);
    assert_int_equal(ahead(&f, other), 1);
    fixture_fini(&f);
}

/* Of more places than it has tasks. */
static void test_array_past_many(void **state)
{
    struct fixture f;
    uint64_t own[4], other, array;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    for (int i = 0; i < 4; i++)
        own[i] = fixture_submit_as(&f, 5, true);
    other = fixture_submit_as(&f, 6, true);
    array = submit_array(&f, 5, 2, false);
    assert_int_equal(fixture_client(&f, EVENT_TOP, array, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, array + 1), 0);
    assert_int_equal(ahead(&f, array + 2), 1);
    assert_int_equal(ahead(&f, own[0]), 2);
    assert_int_equal(ahead(&f, own[1]), 3);
    assert_int_equal(ahead(&f, other), 4);
    assert_int_equal(ahead(&f, own[2]), 5);
    assert_int_equal(ahead(&f, own[3]), 6);
    assert_int_equal(fixture_state(&f, array), JOB_STARTED); /* nothing waits in it */
    fixture_fini(&f);
}

/* In the order of their indices, and all in one step. */
static void test_tasks(void **state)
{
    struct fixture f;
    uint64_t own, other, array;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    own = fixture_submit_as(&f, 5, true);
    other = fixture_submit_as(&f, 6, true);
    array = submit_array(&f, 5, 10, false);
    assert_int_equal(top_tasks(&f, array, 3, 5, 5), ANSWER_OK);
    assert_int_equal(ahead(&f, array + 3), 0);
    assert_int_equal(ahead(&f, other), 1);
    assert_int_equal(ahead(&f, array + 4), 2);
    assert_int_equal(ahead(&f, array + 5), 3);
    assert_int_equal(ahead(&f, own), 4);
    assert_int_equal(ahead(&f, array), 5);
    fixture_fini(&f);
}

/* One that runs, and one that was cancelled. */
static void test_no_task_that_waits(void **state)
{
    const struct core_range second = {1, 2};
    struct event event = {.type = EVENT_CANCEL, .host = -1, .request = 1};
    struct fixture f;
    uint64_t array;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    array = submit_array(&f, 5, 5, false);
    fixture_run(&f, array + 1);
    event.job = array;
    event.u.by.uid = 5;
    event.u.by.tasks = &second;
    event.u.by.ntasks = 1;
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(top_tasks(&f, array, 1, 1, 5), ANSWER_WRONG_STATE);
    assert_int_equal(top_tasks(&f, array, 2, 2, 5), ANSWER_WRONG_STATE);
    assert_int_equal(top_tasks(&f, array, 1, 3, 5), ANSWER_OK);
    assert_int_equal(fixture_client(&f, EVENT_TOP, array, 5, false), ANSWER_OK);
    fixture_fini(&f);
}

static void test_too_many_tasks(void **state)
{
    struct fixture f;
    uint64_t array;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    for (int i = 0; i < CORE_MAX_SPLIT + 1; i++)
        fixture_submit_as(&f, 5, false);
    array = submit_array(&f, 5, CORE_MAX_SPLIT + 100, false);
    assert_int_equal(top_tasks(&f, array, 1, CORE_MAX_SPLIT + 1, 5), ANSWER_TOO_MANY);
    assert_int_equal(fixture_client(&f, EVENT_TOP, array, 5, false), ANSWER_TOO_MANY);
    assert_int_equal(core_job(f.core, array)->ngone, 0);
    assert_int_equal(top_tasks(&f, array, 1, CORE_MAX_SPLIT, 5), ANSWER_OK);
    assert_int_equal(ahead(&f, array + CORE_MAX_SPLIT), CORE_MAX_SPLIT - 1);
    fixture_fini(&f);
}

/* Each array gives a task for who passes it, so that whoever is between two of them stays there. */
static void test_before_two_arrays(void **state)
{
    struct fixture f;
    uint64_t first, between, second, other, own;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    first = submit_array(&f, 5, 3, false);
    between = fixture_submit_as(&f, 5, true);
    second = submit_array(&f, 5, 3, false);
    other = fixture_submit_as(&f, 6, true);
    own = fixture_submit_as(&f, 5, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, own, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, own), 0);
    assert_int_equal(ahead(&f, first), 1);
    assert_int_equal(ahead(&f, first + 3), 2);
    assert_int_equal(ahead(&f, between), 3);
    assert_int_equal(ahead(&f, second), 4);
    assert_int_equal(ahead(&f, other), 5);
    assert_int_equal(ahead(&f, second + 3), 6);
    fixture_fini(&f);
}

/* Each row that one step writes counts, also those of tasks that leave arrays. */
static void test_past_too_many_arrays(void **state)
{
    enum { ARRAYS = 3 };
    struct event event = {.type = EVENT_TOP, .host = -1, .request = 1};
    struct fixture f;
    uint64_t arrays[ARRAYS], last = 0;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    for (int i = 0; i < ARRAYS; i++)
        arrays[i] = submit_array(&f, 5, 10, false);
    for (int i = 0; i < CORE_MAX_TOP - ARRAYS + 2; i++)
        last = fixture_submit_as(&f, 5, false);
    event.u.by.uid = 5;
    event.job = last;
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_TOO_MANY);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 0);
    for (int i = 0; i < ARRAYS; i++)
        assert_int_equal(core_tasks_waiting(core_job(f.core, arrays[i])), 10);
    event.job = last - 1;
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_OK);
    fixture_fini(&f);
}

/* Tasks of the same array that have left it and are not named would go back. */
static void test_past_too_many_tasks(void **state)
{
    enum { HELD = CORE_MAX_TOP + 1 };
    struct event event = {.type = EVENT_HOLD, .host = -1, .request = 1};
    struct core_range range = {0, 0};
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    event.job = submit_array(&f, 5, HELD + 100, false);
    event.u.by.uid = 5;
    event.u.by.tasks = &range;
    event.u.by.ntasks = 1;
    for (; range.to < HELD; range.from = range.to) {
        range.to = HELD - range.from < CORE_MAX_SPLIT ? HELD : range.from + CORE_MAX_SPLIT;
        assert_int_equal(fixture_step(&f, event), 0);
    }
    assert_int_equal(top_tasks(&f, event.job, HELD + 1, HELD + 100, 5), ANSWER_TOO_MANY);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 0);
    assert_int_equal(core_tasks_waiting(core_job(f.core, event.job)), 100);
    assert_int_equal(top_tasks(&f, event.job, 2, HELD + 100, 5), ANSWER_OK);
    assert_int_equal(ahead(&f, event.job + HELD + 100), HELD + 100 - 2);
    fixture_fini(&f);
}

/* One of its tasks is behind others, and none is left in it for that: all of them go before the other job. */
static void test_array_with_a_task_behind(void **state)
{
    struct fixture f;
    uint64_t own, array, other, later;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    own = fixture_submit_as(&f, 5, true);
    array = submit_array(&f, 5, 3, false);
    other = fixture_submit_as(&f, 6, true);
    later = fixture_submit_as(&f, 5, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, later, 5, false), ANSWER_OK);
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, later, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, array + 3), 3);
    assert_int_equal(fixture_client(&f, EVENT_TOP, array, 5, false), ANSWER_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(ahead(&f, array + 1 + i), i);
    assert_int_equal(ahead(&f, other), 3);
    assert_int_equal(ahead(&f, own), 4);
    fixture_fini(&f);
}

/* Those that were behind an array have a place each when it has left the queue, whether its tasks run or were
 * cancelled, and change these. */
static void test_behind_one_that_leaves(void **state)
{
    struct fixture f;
    uint64_t own[3], other, array;

    (void)state;
    for (int alone = 0; alone <= 1; alone++) {
        fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
        for (int i = 0; i < 3; i++)
            own[i] = fixture_submit_as(&f, 5, true);
        array = submit_array(&f, 5, 5, false);
        other = fixture_submit_as(&f, 6, true);
        assert_int_equal(fixture_client(&f, EVENT_TOP, array, 5, false), ANSWER_OK);
        assert_int_equal(core_job(f.core, own[0])->place, array + 5);
        assert_int_equal(core_job(f.core, own[2])->place, array + 5);
        if (alone)
            fixture_client(&f, EVENT_CANCEL, array, 5, false);
        else
            for (uint32_t task = 4; task <= 5; task++)
                to_task(&f, EVENT_CANCEL, array, task, 5);
        assert_int_equal(fixture_count(&f, ACTION_PERSIST), (alone ? 3 : 0) + 1 + 2); /* tasks, array, jobs */
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(core_job(f.core, own[i])->place, array + 3 + i);
            assert_int_equal(ahead(&f, own[i]), (alone ? 0 : 3) + i);
        }
        assert_int_equal(fixture_client(&f, EVENT_TOP, own[1], 5, false), ANSWER_OK);
        assert_int_equal(ahead(&f, own[1]), 0);
        assert_int_equal(ahead(&f, own[0]), alone ? 1 : 4);
        assert_int_equal(ahead(&f, own[2]), alone ? 2 : 5);
        assert_int_equal(ahead(&f, other), alone ? 3 : 6);
        fixture_fini(&f);
    }
}

/* A task that runs stays before them, should it go back into the queue. */
static void test_last_task_of_one_that_leaves(void **state)
{
    struct fixture f;
    uint64_t running, own[2], array;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    running = fixture_submit_as(&f, 6, true);
    for (int i = 0; i < 2; i++)
        own[i] = fixture_submit_as(&f, 5, true);
    array = submit_array(&f, 5, 3, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, array, 5, false), ANSWER_OK);
    for (uint64_t job = running; job != array + 3; job = job == running ? array + 1 : job + 1) {
        fixture_run(&f, job);
        fixture_exited(&f, job, 0, 0, 0, 0);
        fixture_empty(&f, job);
    }
    assert_int_equal(fixture_state(&f, array), JOB_STARTED);
    assert_int_equal(fixture_state(&f, array + 3), JOB_STARTING);
    assert_int_equal(core_job(f.core, array + 3)->place, array + 1);
    assert_int_equal(core_job(f.core, own[0])->place, array + 2);
    assert_int_equal(core_job(f.core, own[1])->place, array + 3);
    fixture_fini(&f);
}

/* It has gone back as a whole while it waited for another job, and waits no more. */
static uint64_t moved_array(struct fixture *f, uint32_t ntasks, uint64_t *other, uint64_t *later)
{
    struct core_after after = {.kind = AFTER_ANY};
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1, .now_ms = f->now_ms};
    uint64_t array;

    after.job = fixture_submit_as(f, 5, true);
    array = core_next_id(f->core);
    event.u.submit.uid = 5;
    event.u.submit.nprocs = 1;
    event.u.submit.ntasks = ntasks;
    event.u.submit.after = &after;
    event.u.submit.nafter = 1;
    assert_int_equal(fixture_step(f, event), 0);
    *other = fixture_submit_as(f, 6, true);
    *later = fixture_submit_as(f, 5, true);
    assert_int_equal(fixture_client(f, EVENT_TOP, *later, 5, false), ANSWER_OK);
    assert_int_equal(fixture_client(f, EVENT_CANCEL, after.job, 5, false), ANSWER_OK);
    assert_int_equal(core_job(f->core, array)->place, *later);
    return array;
}

/* One place is not enough for a task of it and who goes before it: it goes back as it did. */
static void test_before_a_moved_array(void **state)
{
    struct fixture f;
    uint64_t array, other, own, last;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    array = moved_array(&f, 3, &other, &own);
    last = fixture_submit_as(&f, 5, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, last, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, last), 0);
    assert_int_equal(ahead(&f, other), 1);
    assert_int_equal(ahead(&f, own), 2);
    assert_int_equal(ahead(&f, array), 3);
    assert_int_equal(core_tasks_waiting(core_job(f.core, array)), 3);
    fixture_fini(&f);
}

/* A task of it that was held has its place, too, and goes back with it. */
static void test_before_a_task_of_a_moved_array(void **state)
{
    struct fixture f;
    uint64_t array, other, own, last;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    array = moved_array(&f, 3, &other, &own);
    to_task(&f, EVENT_HOLD, array, 1, 5);
    last = fixture_submit_as(&f, 5, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, last, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, last), 0);
    assert_int_equal(ahead(&f, other), 1);
    assert_int_equal(ahead(&f, own), 2);
    assert_int_equal(ahead(&f, array + 1), 3);
    assert_int_equal(ahead(&f, array), 4);
    fixture_fini(&f);
}

/* Its tasks are before what had the places that they got, with all that wait or with some. */
static void test_moved_array(void **state)
{
    struct fixture f;
    uint64_t array, other, own;

    (void)state;
    for (int some = 0; some <= 1; some++) {
        fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
        array = moved_array(&f, 3, &other, &own);
        assert_int_equal(some ? top_tasks(&f, array, 2, 3, 5) : fixture_client(&f, EVENT_TOP, array, 5, false),
                         ANSWER_OK);
        assert_int_equal(ahead(&f, array + 1 + (uint64_t)some), 0);
        assert_int_equal(ahead(&f, other), 1);
        assert_int_equal(ahead(&f, array + 2 + (uint64_t)some), 2);
        assert_int_equal(ahead(&f, some ? own : array + 3), 3);
        assert_int_equal(ahead(&f, some ? array : own), 4);
        fixture_fini(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_before_an_array),
                                       cmocka_unit_test(test_array_past_others),
                                       cmocka_unit_test(test_array_past_many),
                                       cmocka_unit_test(test_tasks),
                                       cmocka_unit_test(test_no_task_that_waits),
                                       cmocka_unit_test(test_too_many_tasks),
                                       cmocka_unit_test(test_before_two_arrays),
                                       cmocka_unit_test(test_past_too_many_arrays),
                                       cmocka_unit_test(test_past_too_many_tasks),
                                       cmocka_unit_test(test_before_a_moved_array),
                                       cmocka_unit_test(test_behind_one_that_leaves),
                                       cmocka_unit_test(test_last_task_of_one_that_leaves),
                                       cmocka_unit_test(test_before_a_task_of_a_moved_array),
                                       cmocka_unit_test(test_array_with_a_task_behind),
                                       cmocka_unit_test(test_moved_array)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
