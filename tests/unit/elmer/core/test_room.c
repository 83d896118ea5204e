/* test_room.c - jobs that ask for memory, and for few processors of a host: who gets which host, who waits, who is
 * refused; over ends, hosts that change, restarts and arrays. core_check() adds up again what hosts have promised after
 * each step. */
#include "tests/unit/elmer/core/core_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "elmer/core/why.h"

static void up(struct fixture *f, int host, int ncpus, uint64_t memory_bytes)
{
    static const int cpus[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct event event = {
        .type = EVENT_HOST_UP, .host = host, .u.up = {.cpus = cpus, .ncpus = ncpus, .memory_bytes = memory_bytes}};

    assert_int_equal(fixture_step(f, event), 0);
}

/* ws1: 4 processors, 8 of memory; ws2: 2 and 4. */
static void begin(struct fixture *f, enum core_allocator allocator, int levels)
{
    static const int ncpus[] = {4, 2};

    fixture_init(f, allocator, levels, ncpus, 2, false);
    up(f, 0, 4, 8);
    up(f, 1, 2, 4);
}

static struct event asking(uint32_t nprocs, uint64_t memory_bytes, uint32_t per_host)
{
    return (struct event){.type = EVENT_SUBMIT,
                          .host = -1,
                          .request = 1,
                          .u.submit = {.nprocs = nprocs, .memory_bytes = memory_bytes, .per_host = per_host}};
}

/* The job's id; 0: refused. */
static uint64_t submit(struct fixture *f, uint32_t nprocs, uint64_t memory_bytes, uint32_t per_host)
{
    const struct action *answer;

    assert_int_equal(fixture_step(f, asking(nprocs, memory_bytes, per_host)), 0);
    answer = fixture_find(f, ACTION_ANSWER, -1);
    return answer->answer == ANSWER_OK ? answer->job : 0;
}

/* How many processors it has of the host. */
static uint32_t share(struct fixture *f, uint64_t id, int host)
{
    const struct core_job *job = core_job(f->core, id);
    uint32_t count = 0;

    assert_non_null(job);
    for (uint32_t i = 0; job->processors && i < job->nprocs; i++)
        count += job->processors[i].host == host;
    return count;
}

static uint64_t promised(const struct fixture *f, int host)
{
    uint64_t has, asked;

    core_memory(f->core, host, &has, &asked);
    return asked;
}

static void test_who_fits(void **state)
{
    struct fixture f;
    uint64_t a, b, c;

    (void)state;
    begin(&f, ALLOCATOR_V1, 3);
    a = submit(&f, 3, 2, 0); /* 4 * 2 on ws1, 2 * 2 on ws2 */
    assert_int_equal(fixture_state(&f, a), JOB_STARTING);
    assert_int_equal(promised(&f, 0) + promised(&f, 1), 6);
    b = submit(&f, 3, 2, 0); /* what is left holds exactly that */
    assert_int_equal(fixture_state(&f, b), JOB_STARTING);
    assert_int_equal(promised(&f, 0), 8);
    assert_int_equal(promised(&f, 1), 4);
    c = submit(&f, 1, 1, 0);
    assert_int_equal(fixture_state(&f, c), JOB_QUEUED);
    assert_int_equal(core_job(f.core, c)->reason, REASON_WAITING);
    assert_int_equal(core_refused(f.core), c);
    fixture_run(&f, a);
    assert_int_equal(fixture_client(&f, EVENT_KILL, a, 0, true), ANSWER_OK);
    assert_int_equal(fixture_state(&f, c), JOB_QUEUED); /* it may still use its memory */
    fixture_empty(&f, a);
    assert_int_equal(fixture_state(&f, c), JOB_STARTING);
    assert_int_equal(promised(&f, 0) + promised(&f, 1), 7);
    fixture_fini(&f);
}

/* First come, first served also where the first one waits for memory. And who asks for none counts as nothing. */
static void test_nobody_passes(void **state)
{
    struct fixture f;
    uint64_t large, small, none;

    (void)state;
    begin(&f, ALLOCATOR_V1, 3);
    assert_int_not_equal(submit(&f, 1, 8, 0), 0);
    large = submit(&f, 1, 5, 0);
    small = submit(&f, 1, 1, 0);
    none = submit(&f, 1, 0, 0);
    assert_int_equal(fixture_state(&f, large), JOB_QUEUED);
    assert_int_equal(fixture_state(&f, small), JOB_QUEUED);
    assert_int_equal(fixture_state(&f, none), JOB_QUEUED);
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, large, 0, true), ANSWER_OK);
    assert_int_equal(share(&f, small, 1), 1);
    assert_int_equal(fixture_state(&f, none), JOB_STARTING);
    fixture_fini(&f);
}

static void test_refused(void **state)
{
    static const struct core_demand much = {.memory_bytes = 9}, two = {.memory_bytes = 4},
                                    single = {.memory_bytes = 1, .per_host = 1};
    struct core_reach reach;
    struct fixture f;

    (void)state;
    begin(&f, ALLOCATOR_V1, 3);
    assert_int_equal(submit(&f, 1, 9, 0), 0); /* no host ever */
    assert_int_equal(submit(&f, 4, 4, 0), 0); /* 2 on ws1, 1 on ws2 */
    assert_int_not_equal(submit(&f, 3, 4, 0), 0);
    assert_int_equal(submit(&f, 3, 0, 1), 0);
    assert_int_equal(fixture_step(&f, asking(1, UINT64_MAX, 0)), -EINVAL);
    core_reach(f.core, NULL, 0, 0, &much, &reach);
    assert_int_equal(reach.cpus, 0);
    assert_int_equal(reach.cpus_there, 6);
    assert_int_equal(reach.most_memory_bytes, 8);
    assert_int_equal(reach.most_memory_host, 0);
    core_reach(f.core, NULL, 0, 0, &two, &reach);
    assert_int_equal(reach.cpus, 3);
    core_reach(f.core, NULL, 0, 0, &single, &reach);
    assert_int_equal(reach.cpus, 2);
    fixture_fini(&f);
}

/* One that has never been up may have any memory; an rsd that does not say has none to give. */
static void test_unknown(void **state)
{
    static const int ncpus[] = {2, 2};
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, ncpus, 2, false);
    up(&f, 0, 2, 0);
    job = submit(&f, 1, 4, 0);
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    assert_int_equal(core_job(f.core, job)->reason, REASON_TOO_FEW_UP);
    up(&f, 1, 2, 4);
    assert_int_equal(share(&f, job, 1), 1);
    fixture_fini(&f);
}

static void test_every_allocator(void **state)
{
    static const enum core_allocator allocators[] = {ALLOCATOR_V1, ALLOCATOR_SPREAD, ALLOCATOR_PACK};

    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (int draw = 0; draw < 50; draw++) {
            struct fixture f;
            uint64_t few, job;

            begin(&f, allocators[i], 3);
            few = submit(&f, 3, 0, 2); /* of ws1 two at most */
            assert_in_range(share(&f, few, 0), 1, 2);
            assert_in_range(share(&f, few, 1), 1, 2);
            job = submit(&f, 3, 3, 0); /* two on ws1, one on ws2, and nothing else can be */
            assert_int_equal(share(&f, job, 0), 2);
            assert_int_equal(share(&f, job, 1), 1);
            assert_int_equal(submit(&f, 1, 4, 1), job + 1);
            assert_int_equal(fixture_state(&f, job + 1), JOB_QUEUED);
            fixture_fini(&f);
        }
}

/* The best level counts among what the hosts can hold: ws1 has processors without jobs, and no memory. */
static void test_level_among_these(void **state)
{
    struct fixture f;
    uint64_t second, job;

    (void)state;
    begin(&f, ALLOCATOR_V1, 3);
    assert_int_not_equal(submit(&f, 1, 8, 0), 0); /* ws1 */
    second = submit(&f, 2, 1, 0);                 /* so both of ws2 */
    assert_int_equal(share(&f, second, 1), 2);
    job = submit(&f, 2, 1, 0);
    assert_int_equal(share(&f, job, 1), 2);
    assert_int_equal(core_job(f.core, job)->level, 1);
    fixture_fini(&f);
}

/* A host comes back with less, which is less than it has promised. */
static void test_less_memory(void **state)
{
    struct core_host_why why;
    struct fixture f;
    uint64_t job, next;

    (void)state;
    begin(&f, ALLOCATOR_V1, 3);
    job = submit(&f, 1, 6, 0);
    fixture_run(&f, job);
    up(&f, 0, 4, 5);
    fixture_run(&f, submit(&f, 1, 4, 0)); /* ws2 */
    next = submit(&f, 1, 1, 0);
    assert_int_equal(fixture_state(&f, next), JOB_QUEUED);
    assert_true(core_why(f.core, next, 0, &why));
    assert_int_equal(why.bar, CORE_BAR_MEMORY);
    assert_int_equal(why.memory_bytes, 5);
    assert_int_equal(why.left_bytes, 0);
    assert_int_equal(why.asked_bytes, 1);
    up(&f, 0, 4, 7);
    assert_int_equal(share(&f, next, 0), 1);
    fixture_fini(&f);
}

static void test_why(void **state)
{
    struct core_host_why why;
    struct core_survey survey;
    struct fixture f;
    uint64_t waits, few;

    (void)state;
    begin(&f, ALLOCATOR_V1, 3);
    assert_int_not_equal(submit(&f, 1, 5, 0), 0);
    waits = submit(&f, 4, 2, 0); /* one on ws1, two on ws2 */
    assert_int_equal(fixture_state(&f, waits), JOB_QUEUED);
    assert_true(core_survey(f.core, waits, &survey));
    assert_int_equal(survey.up, 6);
    assert_int_equal(survey.beyond, 3);
    assert_int_equal(survey.full, 0);
    assert_true(core_why(f.core, waits, 0, &why));
    assert_int_equal(why.bar, CORE_BAR_NONE);
    assert_int_equal(why.usable, 1);
    assert_int_equal(why.beyond, 3);
    assert_int_equal(why.left_bytes, 3);
    assert_true(core_why(f.core, waits, 1, &why));
    assert_int_equal(why.usable, 2);
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, waits, 0, true), ANSWER_OK);
    few = submit(&f, 2, 0, 1);
    assert_int_equal(share(&f, few, 0), 1);
    fixture_fini(&f);
}

/* What was asked for is counted again from the rows, and a host that is awaited counts as if it had enough. */
static void test_restart(void **state)
{
    static const int ncpus[] = {4, 2};
    static const struct core_processor at[] = {{0, 0}, {0, 1}};
    static const uint8_t exited[] = {0};
    const struct core_job running = {.id = 1,
                                     .nprocs = 2,
                                     .memory_bytes = 3,
                                     .state = JOB_RUNNING,
                                     .attempt = 1,
                                     .allocation = 1,
                                     .exit_status = -1,
                                     .failed_rank = UINT32_MAX,
                                     .launched = true,
                                     .processors = at,
                                     .exited = exited,
                                     .text = ""};
    const struct core_job waits = {.id = 2,
                                   .nprocs = 1,
                                   .memory_bytes = 7,
                                   .state = JOB_QUEUED,
                                   .exit_status = -1,
                                   .failed_rank = UINT32_MAX,
                                   .text = ""};
    const struct core_host_row row = {.up = true, .ncpus = 4};
    struct core_holding holding = {1, 1};
    struct event event = {
        .type = EVENT_HOST_UP,
        .host = 0,
        .u.up = {
            .cpus = (const int[]){0, 1, 2, 3}, .ncpus = 4, .memory_bytes = 8, .holdings = &holding, .nholdings = 1}};
    struct core_job bad = waits;
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, ncpus, 2, false);
    assert_int_equal(core_restore_host(f.core, 0, &row, 0), 0);
    assert_int_equal(core_restore_job(f.core, &running, 0), 0);
    assert_int_equal(core_restore_job(f.core, &waits, 0), 0);
    bad.id = 3;
    bad.memory_bytes = UINT64_MAX;
    assert_int_equal(core_restore_job(f.core, &bad, 0), -EINVAL);
    assert_int_equal(promised(&f, 0), 6);
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_TICK, .host = -1}), 0);
    assert_int_equal(fixture_state(&f, 2), JOB_QUEUED);
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_state(&f, 2), JOB_QUEUED);
    assert_int_equal(core_refused(f.core), 2);
    assert_int_equal(fixture_exited(&f, 1, 0, 0, 0, 0), 0);
    fixture_empty(&f, 1);
    assert_int_equal(share(&f, 2, 0), 1);
    assert_int_equal(promised(&f, 0), 7);
    fixture_fini(&f);
}

/* Each task asks for what its array asks for; a task that a lost host took asks again. */
static void test_tasks_and_requeue(void **state)
{
    struct event event = asking(1, 4, 0);
    struct fixture f;
    uint64_t array;

    (void)state;
    begin(&f, ALLOCATOR_V1, 3);
    event.u.submit.ntasks = 5;
    event.u.submit.requeue = true;
    assert_int_equal(fixture_step(&f, event), 0);
    array = fixture_find(&f, ACTION_ANSWER, -1)->job;
    assert_int_equal(promised(&f, 0), 8); /* two here, one there, two wait */
    assert_int_equal(promised(&f, 1), 4);
    assert_int_equal(core_job(f.core, array)->next_task, 3);
    assert_int_equal(core_job(f.core, array + 1)->memory_bytes, 4);
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_HOST_DOWN, .host = 1}), 0);
    assert_int_equal(promised(&f, 1), 0);
    up(&f, 1, 2, 4);
    assert_int_equal(promised(&f, 1), 4);
    fixture_fini(&f);
}

static void test_notices_have_none(void **state)
{
    static const int here[] = {0};
    struct event event = asking(1, 1, 0);
    struct fixture f;

    (void)state;
    begin(&f, ALLOCATOR_V1, 3);
    event.u.submit.notice = true;
    event.u.submit.hosts = here;
    event.u.submit.nhosts = 1;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    event.u.submit.memory_bytes = 0;
    event.u.submit.per_host = 1;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    fixture_fini(&f);
}

/* In a cube a host is a node, and one without memory is a node that is taken. */
static void test_cube(void **state)
{
    static const int ncpus[] = {1, 1, 1, 1};
    struct fixture f;
    uint64_t job, next;

    (void)state;
    fixture_init(&f, ALLOCATOR_CUBE_AFL, 1, ncpus, 4, false);
    up(&f, 0, 1, 4);
    up(&f, 1, 1, 2);
    up(&f, 2, 1, 4);
    up(&f, 3, 1, 2);
    assert_int_equal(submit(&f, 4, 4, 0), 0); /* never: two nodes have 2 */
    job = submit(&f, 2, 4, 0);                /* nodes 0 and 2 are neighbours */
    assert_int_equal(share(&f, job, 0), 1);
    assert_int_equal(share(&f, job, 2), 1);
    next = submit(&f, 2, 2, 0);
    assert_int_equal(share(&f, next, 1), 1);
    assert_int_equal(share(&f, next, 3), 1);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_fits),          cmocka_unit_test(test_nobody_passes),
        cmocka_unit_test(test_refused),           cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_every_allocator),   cmocka_unit_test(test_level_among_these),
        cmocka_unit_test(test_less_memory),       cmocka_unit_test(test_why),
        cmocka_unit_test(test_restart),           cmocka_unit_test(test_tasks_and_requeue),
        cmocka_unit_test(test_notices_have_none), cmocka_unit_test(test_cube),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
