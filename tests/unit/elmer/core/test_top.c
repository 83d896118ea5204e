/* test_top.c - the order of one's own jobs: places change hands among the jobs of one user, and nobody else notices. */
#include "elmer/core/core.h"
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { JOBS = 60, USERS = 4, STEPS = 2000 };

static const int one[] = {1};

/* Of a job, before and after. */
struct seen {
    uint64_t id, place;
    uint32_t uid, ahead;
};

static uint64_t submit(struct fixture *f, uint32_t uid, bool checked)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1, .now_ms = f->now_ms};
    uint64_t id = core_next_id(f->core);

    event.u.submit.uid = uid;
    event.u.submit.nprocs = 1;
    if (checked)
        fixture_step(f, event);
    else
        assert_int_equal(core_step(f->core, &event, &f->actions), 0);
    actions_clear(&f->actions);
    return id;
}

static int look(struct fixture *f, struct seen *seen)
{
    const struct core_job *job;
    uint64_t cursor = 0;
    int n = 0;

    while ((job = core_next_job(f->core, &cursor)))
        if (job->state == JOB_QUEUED || job->state == JOB_HELD)
            seen[n++] = (struct seen){job->id, job->place, job->uid, job->ahead};
    return n;
}

static unsigned draw(uint64_t *random, unsigned n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*random >> 33) % n;
}

/* The order of all others, and the places of the user, are the same; the job is his first, the rest in their order. */
static void compare(const struct seen *before, const struct seen *after, int n, uint64_t top, uint32_t uid)
{
    for (int i = 0; i < n; i++) {
        bool there = false;
        assert_int_equal(before[i].id, after[i].id);
        if (before[i].uid != uid) {
            assert_int_equal(before[i].place, after[i].place);
            assert_int_equal(before[i].ahead, after[i].ahead);
            continue;
        }
        for (int k = 0; k < n; k++)
            there |= after[k].uid == uid && after[k].place == before[i].place && after[k].ahead == before[i].ahead;
        assert_true(there);
        for (int k = 0; k < n; k++) {
            if (before[k].uid != uid || k == i)
                continue;
            if (before[i].id == top)
                assert_true(after[i].ahead < after[k].ahead);
            else if (before[k].id != top)
                assert_int_equal(before[i].ahead < before[k].ahead, after[i].ahead < after[k].ahead);
        }
    }
}

static void test_permutation(void **state)
{
    struct seen before[JOBS], after[JOBS];
    struct fixture f;
    uint64_t random = 3;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false); /* it has never been up: all wait */
    for (int i = 0; i < JOBS; i++)
        submit(&f, 1 + draw(&random, USERS), true);
    for (int i = 0; i < STEPS; i++) {
        uint64_t id = 1 + draw(&random, JOBS);
        uint32_t uid = core_job(f.core, id)->uid;
        int n = look(&f, before);
        if (draw(&random, 5) == 0) {
            fixture_client(&f, core_job(f.core, id)->state == JOB_HELD ? EVENT_RELEASE : EVENT_HOLD, id, uid, false);
            continue;
        }
        assert_int_equal(fixture_client(&f, EVENT_TOP, id, uid, false), ANSWER_OK);
        assert_int_equal(look(&f, after), n);
        compare(before, after, n, id, uid);
    }
    fixture_fini(&f);
}

static void test_who_may(void **state)
{
    struct fixture f;
    uint64_t jobs[3];

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    for (int i = 0; i < 3; i++)
        jobs[i] = submit(&f, 5, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, jobs[2], 6, false), ANSWER_NOT_PERMITTED);
    assert_int_equal(fixture_client(&f, EVENT_TOP, jobs[0], 5, false), ANSWER_WRONG_STATE); /* it has processors */
    assert_int_equal(fixture_client(&f, EVENT_TOP, 99, 5, false), ANSWER_NO_SUCH_JOB);
    assert_int_equal(core_job(f.core, jobs[2])->ahead, 1);
    assert_int_equal(fixture_client(&f, EVENT_TOP, jobs[2], 6, true), ANSWER_OK);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 2);
    assert_int_equal(core_job(f.core, jobs[2])->ahead, 0);
    assert_int_equal(fixture_client(&f, EVENT_TOP, jobs[2], 5, false), ANSWER_OK); /* it is the first already */
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 0);
    fixture_fini(&f);
}

static void test_too_many(void **state)
{
    struct event event = {.type = EVENT_TOP, .host = -1, .request = 1};
    struct fixture f;
    uint64_t last = 0;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    for (int i = 0; i < CORE_MAX_TOP + 2; i++)
        last = submit(&f, 5, false);
    event.u.by.uid = 5;
    event.job = last;
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_TOO_MANY);
    assert_int_equal(core_job(f.core, last)->place, last);
    event.job = last - 1;
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_OK);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), CORE_MAX_TOP + 1);
    assert_int_equal(core_job(f.core, last - 1)->place, 1);
    fixture_fini(&f);
}

/* ---- arrays ---- */

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
    other = submit(&f, 6, true);
    own = submit(&f, 5, true);
    later = submit(&f, 5, true);
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
    own = submit(&f, 5, true);
    other = submit(&f, 6, true);
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
        own[i] = submit(&f, 5, true);
    other = submit(&f, 6, true);
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
    own = submit(&f, 5, true);
    other = submit(&f, 6, true);
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
        submit(&f, 5, false);
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
    between = submit(&f, 5, true);
    second = submit_array(&f, 5, 3, false);
    other = submit(&f, 6, true);
    own = submit(&f, 5, true);
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
        last = submit(&f, 5, false);
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

/* It has gone back as a whole while it waited for another job, and waits no more. */
static uint64_t moved_array(struct fixture *f, uint32_t ntasks, uint64_t *other, uint64_t *later)
{
    struct core_after after = {.kind = AFTER_ANY};
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1, .now_ms = f->now_ms};
    uint64_t array;

    after.job = submit(f, 5, true);
    array = core_next_id(f->core);
    event.u.submit.uid = 5;
    event.u.submit.nprocs = 1;
    event.u.submit.ntasks = ntasks;
    event.u.submit.after = &after;
    event.u.submit.nafter = 1;
    assert_int_equal(fixture_step(f, event), 0);
    *other = submit(f, 6, true);
    *later = submit(f, 5, true);
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
    last = submit(&f, 5, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, last, 5, false), ANSWER_OK);
    assert_int_equal(ahead(&f, last), 0);
    assert_int_equal(ahead(&f, other), 1);
    assert_int_equal(ahead(&f, own), 2);
    assert_int_equal(ahead(&f, array), 3);
    assert_int_equal(core_tasks_waiting(core_job(f.core, array)), 3);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_permutation),
                                       cmocka_unit_test(test_who_may),
                                       cmocka_unit_test(test_too_many),
                                       cmocka_unit_test(test_before_an_array),
                                       cmocka_unit_test(test_array_past_others),
                                       cmocka_unit_test(test_array_past_many),
                                       cmocka_unit_test(test_tasks),
                                       cmocka_unit_test(test_no_task_that_waits),
                                       cmocka_unit_test(test_too_many_tasks),
                                       cmocka_unit_test(test_before_two_arrays),
                                       cmocka_unit_test(test_past_too_many_arrays),
                                       cmocka_unit_test(test_past_too_many_tasks),
                                       cmocka_unit_test(test_before_a_moved_array),
                                       cmocka_unit_test(test_moved_array)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
