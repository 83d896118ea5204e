/* test_array.c - verbs about some of an array's tasks, when it has lost as many ranges as it may. */
#include "elmer/core/core.h"
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { TASKS = 4000 };

static const int one[] = {1};

static uint64_t submit(struct fixture *f)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};

    event.u.submit.uid = 2001;
    event.u.submit.nprocs = 1;
    event.u.submit.ntasks = TASKS;
    assert_int_equal(fixture_step(f, event), 0);
    return fixture_find(f, ACTION_ANSWER, -1)->job;
}

static int about(struct fixture *f, enum event_type type, uint64_t array, const struct core_range *ranges, int count)
{
    struct event event = {.type = type, .host = -1, .request = 7, .job = array};

    event.u.by.uid = 2001;
    event.u.by.tasks = ranges;
    event.u.by.ntasks = count;
    assert_int_equal(fixture_step(f, event), 0);
    return (int)fixture_find(f, ACTION_ANSWER, -1)->answer;
}

static int about_one(struct fixture *f, enum event_type type, uint64_t array, uint32_t ordinal)
{
    struct core_range range = {ordinal, ordinal + 1};

    return about(f, type, array, &range, 1);
}

/* Each second one from the first on. */
static int about_many(struct fixture *f, enum event_type type, uint64_t array, uint32_t first, int count)
{
    static struct core_range ranges[CORE_MAX_GONE];

    for (int i = 0; i < count; i++)
        ranges[i] = (struct core_range){first + 2 * (uint32_t)i, first + 2 * (uint32_t)i + 1};
    return about(f, type, array, ranges, count);
}

/* Whatever it has lost, what is done to all of it is done; and a range beside one is not one more. */
static void test_all_of_it(void **state)
{
    struct fixture f;
    uint64_t array;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    array = submit(&f);
    assert_int_equal(about_many(&f, EVENT_HOLD, array, 1, 600), ANSWER_OK);
    assert_int_equal(about_many(&f, EVENT_HOLD, array, 1, 600), ANSWER_OK); /* they have gone already */
    assert_int_equal(about_many(&f, EVENT_HOLD, array, 1201, 401), ANSWER_TOO_MANY);
    assert_int_equal(about_many(&f, EVENT_CANCEL, array, 1201, 400), ANSWER_OK);
    assert_int_equal(core_job(f.core, array)->ngone, CORE_MAX_GONE);
    assert_int_equal(about(&f, EVENT_HOLD, array, NULL, 0), ANSWER_OK);
    assert_int_equal(fixture_state(&f, array), JOB_HELD);
    assert_int_equal(about(&f, EVENT_RELEASE, array, NULL, 0), ANSWER_OK);
    assert_int_equal(fixture_state(&f, array), JOB_QUEUED);
    assert_int_equal(fixture_client(&f, EVENT_TOP, array, 2001, false), ANSWER_OK);
    assert_int_equal(about_one(&f, EVENT_CANCEL, array, 3000), ANSWER_TOO_MANY);
    assert_int_equal(core_tasks_waiting(core_job(f.core, array)), TASKS - 1000);
    assert_int_equal(about_one(&f, EVENT_CANCEL, array, 0), ANSWER_OK); /* beside one */
    assert_int_equal(about_one(&f, EVENT_HOLD, array, 2), ANSWER_OK);   /* between two */
    assert_int_equal(core_job(f.core, array)->ngone, CORE_MAX_GONE - 1);
    assert_int_equal(about_one(&f, EVENT_CANCEL, array, 3000), ANSWER_OK);
    assert_int_equal(about_one(&f, EVENT_CANCEL, array, 3002), ANSWER_TOO_MANY);
    assert_int_equal(fixture_client(&f, EVENT_KILL, array, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_state(&f, array), JOB_CANCELLED);
    fixture_fini(&f);
}

static const char *text_of(struct fixture *f, uint64_t job)
{
    const char *text = core_job(f->core, job)->text;
    return text ? text : "";
}

/* Who has held or removed it is named, also of a task that is taken out later. */
static void test_who(void **state)
{
    struct fixture f;
    uint64_t array;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    array = submit(&f);
    assert_int_equal(fixture_client(&f, EVENT_HOLD, array, 7, true), ANSWER_OK);
    assert_string_equal(text_of(&f, array), "by uid 7");
    assert_int_equal(about_one(&f, EVENT_HOLD, array, 3), ANSWER_OK);
    assert_string_equal(text_of(&f, array + 4), "by uid 7");
    assert_int_equal(fixture_client(&f, EVENT_RELEASE, array, 2001, false), ANSWER_OK);
    assert_string_equal(text_of(&f, array), "");
    assert_string_equal(text_of(&f, array + 4), "");
    assert_int_equal(fixture_client(&f, EVENT_KILL, array, 8, true), ANSWER_OK);
    assert_int_equal(fixture_state(&f, array), JOB_CANCELLED);
    assert_string_equal(text_of(&f, array), "by uid 8");
    fixture_fini(&f);
}

static void end(struct fixture *f, uint64_t job)
{
    fixture_run(f, job);
    assert_int_equal(fixture_exited(f, job, 0, 0, 0, 0), 0);
    fixture_empty(f, job);
    assert_int_equal(fixture_state(f, job), JOB_DONE);
}

/* Ranges that all started tasks are behind do not count. */
static void test_past(void **state)
{
    struct fixture f;
    uint64_t array;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    array = submit(&f);
    assert_int_equal(about_many(&f, EVENT_CANCEL, array, 2, CORE_MAX_GONE), ANSWER_OK);
    assert_int_equal(about_one(&f, EVENT_CANCEL, array, 3000), ANSWER_TOO_MANY);
    end(&f, array + 1);
    end(&f, array + 2);
    assert_int_equal(core_job(f.core, array)->next_task, 4);
    assert_int_equal(about_one(&f, EVENT_CANCEL, array, 3000), ANSWER_OK);
    assert_int_equal(about_one(&f, EVENT_CANCEL, array, 3002), ANSWER_TOO_MANY);
    fixture_fini(&f);
}

/* A task asks for what its array asks for, each field of it. */
static void test_asked(void **state)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    const int cpus[] = {0};
    struct event up = {.type = EVENT_HOST_UP, .u.up = {.cpus = cpus, .ncpus = 1, .memory_bytes = MEMORY_MIN_BYTES}};
    const struct core_job *array, *task;
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    assert_int_equal(fixture_step(&f, up), 0);
    event.u.submit.ntasks = 2;
    event.u.submit.nprocs = event.u.submit.per_host = 1;
    event.u.submit.each = event.u.submit.requeue = event.u.submit.limit_requeue = event.u.submit.keep_never = true;
    event.u.submit.memory_bytes = MEMORY_MIN_BYTES;
    assert_int_equal(fixture_step(&f, event), 0);
    array = core_job(f.core, 1);
    task = core_job(f.core, 2);
    assert_non_null(task);
#define EQUAL(name)                                                                                                    \
    assert_int_equal(array->name, event.u.submit.name);                                                                \
    assert_int_equal(task->name, event.u.submit.name);
#define EQUAL_ASKED(name, type, core, ...) JOB_IF(EVENT, core, EQUAL(name))
    JOB_FIELDS(EQUAL_ASKED, JOB_NONE, JOB_NONE)
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_it),
        cmocka_unit_test(test_who),
        cmocka_unit_test(test_past),
        cmocka_unit_test(test_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
