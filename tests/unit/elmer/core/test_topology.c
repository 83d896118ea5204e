/* test_topology.c - a core whose hosts are a hypercube: meshes, their ranks, who is refused and who waits, and what is
 * the same after a restart. After each step core_check() compares with a search by brute force. */
#include "tests/unit/elmer/core/core_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { HOSTS = 16, JOBS = 400 };

static void begin(struct fixture *f, enum core_allocator allocator, int nhosts)
{
    static const int two[HOSTS] = {2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; /* one of them is used */

    fixture_init(f, allocator, 1, two, nhosts, true);
}

static enum answer submit(struct fixture *f, uint32_t rows, uint32_t nprocs, const int *hosts, int nhosts,
                          uint64_t *job)
{
    struct event event = {.type = EVENT_SUBMIT,
                          .host = -1,
                          .request = 1,
                          .u.submit = {.uid = 2001, .nprocs = nprocs, .mesh_rows = rows, .each = true}};

    event.u.submit.hosts = hosts;
    event.u.submit.nhosts = nhosts;
    assert_int_equal(fixture_step(f, event), 0);
    *job = fixture_find(f, ACTION_ANSWER, -1)->job;
    return fixture_find(f, ACTION_ANSWER, -1)->answer;
}

static uint64_t accepted(struct fixture *f, uint32_t rows, uint32_t columns)
{
    uint64_t job;

    assert_int_equal(submit(f, rows, rows * columns, NULL, 0, &job), ANSWER_OK);
    return job;
}

static void end(struct fixture *f, uint64_t job)
{
    uint32_t n = core_job(f->core, job)->nprocs;

    for (uint32_t rank = 0; rank < n; rank++)
        assert_int_equal(fixture_exited(f, job, core_job(f->core, job)->processors[rank].host, rank, 0, 0), 0);
    fixture_empty(f, job);
}

/* Hosts by rank. */
static void expect_hosts(struct fixture *f, uint64_t job, const char *expected)
{
    const struct core_job *info = core_job(f->core, job);
    char text[200] = "";

    for (uint32_t i = 0; info->processors && i < info->nprocs; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i > 0 ? " " : "", info->processors[i].host);
    assert_string_equal(text, expected);
}

static void test_ranks(void **state)
{
    struct fixture f;
    uint64_t a, b;

    (void)state;
    begin(&f, ALLOCATOR_CUBE_AFL, 8);
    a = accepted(&f, 2, 2);
    expect_hosts(&f, a, "0 1 2 3");
    b = accepted(&f, 1, 4);
    expect_hosts(&f, b, "4 5 7 6");
    fixture_run(&f, a);
    fixture_run(&f, b);
    end(&f, b);
    assert_int_equal(submit(&f, 0, 3, NULL, 0, &b), ANSWER_OK); /* 1x3, and it leaves one */
    assert_int_equal(core_job(f.core, b)->mesh_rows, 1);
    expect_hosts(&f, b, "4 5 7");
    fixture_run(&f, b);
    a = accepted(&f, 1, 1);
    expect_hosts(&f, a, "6");
    fixture_fini(&f);
}

static void test_free_list_leaves(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    begin(&f, ALLOCATOR_CUBE_FL, 4);
    fixture_run(&f, accepted(&f, 1, 3));
    job = accepted(&f, 1, 1); /* the fourth is of the same host cube */
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    assert_int_equal(core_job(f.core, job)->reason, REASON_WAITING);
    assert_int_equal(
        fixture_step(&f,
                     (struct event){.type = EVENT_SET, .host = -1, .u.set = {SETTING_ALLOCATOR, ALLOCATOR_CUBE_AFL}}),
        0);
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    expect_hosts(&f, job, "2");
    fixture_fini(&f);
}

static void test_refused(void **state)
{
    static const int face[] = {1, 3, 5, 7}, bent[] = {0, 1, 3, 7};
    struct fixture f;
    uint64_t job;

    (void)state;
    begin(&f, ALLOCATOR_CUBE_AFL, 8);
    assert_int_equal(submit(&f, 3, 7, NULL, 0, &job), ANSWER_REFUSED_SIZE); /* not rows of one length */
    assert_int_equal(submit(&f, 3, 9, NULL, 0, &job), ANSWER_REFUSED_SIZE);
    assert_int_equal(submit(&f, 0, 9, NULL, 0, &job), ANSWER_REFUSED_SIZE);
    assert_int_equal(submit(&f, 2, 4, bent, 4, &job), ANSWER_REFUSED_HOSTS);
    assert_int_equal(submit(&f, 2, 4, face, 4, &job), ANSWER_OK);
    expect_hosts(&f, job, "1 3 5 7");
    assert_int_equal(core_cube_for(f.core, 24, 4), 32);
    assert_int_equal(core_cube_for(f.core, 24, 5), 0);
    fixture_fini(&f);
    begin(&f, ALLOCATOR_CUBE_AFL, 16);
    assert_int_equal(submit(&f, 3, 15, NULL, 0, &job), ANSWER_REFUSED_SIZE); /* 4 x 8 hosts */
    assert_int_equal(submit(&f, 0, 15, NULL, 0, &job), ANSWER_OK);           /* 1 x 15 */
    fixture_fini(&f);
    fixture_init(&f, ALLOCATOR_V1, 1, (const int[]){4}, 1, true);
    assert_int_equal(submit(&f, 2, 4, NULL, 0, &job), ANSWER_REFUSED_SIZE);
    assert_int_equal(core_cube_for(f.core, 4, 2), 0);
    assert_int_equal(
        fixture_step(&f,
                     (struct event){.type = EVENT_SET, .host = -1, .u.set = {SETTING_ALLOCATOR, ALLOCATOR_CUBE_FL}}),
        -EINVAL);
    fixture_fini(&f);
}

/* With a host drained there is no cube for the first: he is not eligible, and the next is not held up by him. */
static void test_supply(void **state)
{
    struct fixture f;
    uint64_t large, small;

    (void)state;
    begin(&f, ALLOCATOR_CUBE_AFL, 4);
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_DRAIN, .host = 2}), 0);
    large = accepted(&f, 1, 3);
    assert_int_equal(core_job(f.core, large)->reason, REASON_TOO_FEW_UP);
    small = accepted(&f, 1, 2);
    expect_hosts(&f, small, "0 1");
    fixture_run(&f, small);
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_UNDRAIN, .host = 2}), 0);
    assert_int_equal(core_job(f.core, large)->reason, REASON_WAITING);
    end(&f, small);
    expect_hosts(&f, large, "0 1 3");
    fixture_fini(&f);
}

static void test_options(void **state)
{
    struct core_options options;

    (void)state;
    core_options_default(&options);
    options.allocator = ALLOCATOR_CUBE_FL;
    options.levels = 1;
    assert_null(core_create(&options)); /* without a cube */
    options.topology = TOPOLOGY_CUBE;
    options.levels = 2;
    assert_null(core_create(&options));
}

/* ---- restart, and random steps ---- */

static uint32_t draw(uint64_t *random, uint32_t n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % n;
}

struct saved {
    struct core_job job;
    struct core_processor processors[HOSTS];
    uint8_t exited[HOSTS];
};

static int by_allocation(const void *a, const void *b)
{
    const struct saved *x = a, *y = b;

    return (x->job.allocation > y->job.allocation) - (x->job.allocation < y->job.allocation);
}

/* What runs, as the store has it. */
static size_t save(struct fixture *f, struct saved *all)
{
    uint64_t cursor = 0;
    size_t count = 0;

    for (const struct core_job *job; (job = core_next_job(f->core, &cursor));) {
        struct saved *saved = &all[count];
        if (!job->processors || job->state == JOB_DONE)
            continue;
        saved->job = *job;
        memcpy(saved->processors, job->processors, job->nprocs * sizeof(*job->processors));
        memcpy(saved->exited, job->exited, (job->nprocs + 7) / 8);
        saved->job.processors = saved->processors;
        saved->job.exited = saved->exited;
        count++;
    }
    qsort(all, count, sizeof(*all), by_allocation);
    return count;
}

/* Which meshes find a place: for each dimension whether a job of that many processors starts at once. */
static unsigned placeable(int nhosts, enum core_allocator allocator, struct saved *all, size_t count, int order)
{
    unsigned which = 0;

    for (int k = 0; 1 << k <= nhosts; k++) {
        struct fixture f;
        uint64_t job;
        fixture_init(&f, allocator, 1, NULL, nhosts, false);
        for (size_t i = 0; i < count; i++) {
            struct core_job again = all[i].job;
            again.processors = all[i].processors;
            again.exited = all[i].exited;
            assert_int_equal(core_restore_job(f.core, &again, f.now_ms), 0);
        }
        for (int h = 0; h < nhosts; h++) {
            struct core_holding holdings[HOSTS];
            int n = 0, host = order ? nhosts - 1 - h : h;
            for (size_t i = 0; i < count; i++)
                for (uint32_t r = 0; r < all[i].job.nprocs; r++)
                    if (all[i].processors[r].host == host)
                        holdings[n++] = (struct core_holding){all[i].job.id, all[i].job.attempt};
            assert_int_equal(fixture_up(&f, host, 1, 0, holdings, n), 0);
        }
        job = accepted(&f, 1, 1u << k);
        which |= fixture_state(&f, job) == JOB_STARTING ? 1u << k : 0;
        fixture_fini(&f);
    }
    return which;
}

/* After a restart, whichever host comes first. */
static unsigned placeable_again(struct saved *all, size_t count, enum core_allocator allocator)
{
    unsigned restarted = placeable(HOSTS, allocator, all, count, 0);

    assert_int_equal(placeable(HOSTS, allocator, all, count, 1), restarted);
    return restarted;
}

static void set_allocator(struct fixture *f, int allocator)
{
    assert_int_equal(
        fixture_step(f, (struct event){.type = EVENT_SET, .host = -1, .u.set = {SETTING_ALLOCATOR, allocator}}), 0);
}

/* mixed: now and then v1 is in force for a time. */
static void walk(enum core_allocator allocator, uint64_t seed, bool mixed)
{
    static struct saved all[JOBS];
    uint64_t random = seed, running[HOSTS], job;
    size_t n = 0, count;
    struct fixture f;

    begin(&f, allocator, HOSTS);
    for (int step = 0; step < (mixed ? 200 : 60); step++) {
        bool other = mixed && step % 20 < 6;
        if (mixed)
            set_allocator(&f, other ? ALLOCATOR_V1 : SETTING_UNSET);
        if (n > 0 && draw(&random, mixed ? 3 : 2) == 0) {
            size_t i = draw(&random, (uint32_t)n);
            end(&f, running[i]);
            running[i] = running[--n];
        } else {
            uint32_t rows = 1 + draw(&random, other ? 1 : 4); /* what v1 finds is a short row more often by chance */
            uint32_t columns = 1 + draw(&random, other ? 3 : 4);
            unsigned before;
            count = save(&f, all);
            before = step % 6 == 0 ? placeable_again(all, count, allocator) : 0;
            job = accepted(&f, rows, columns);
            if (step % 6 == 0 && !other) { /* the core that was not restarted has decided the same */
                int k = (rows > 2 ? 2 : rows > 1) + (columns > 2 ? 2 : columns > 1);
                assert_int_equal(fixture_state(&f, job) == JOB_STARTING, before >> k & 1);
            }
            if (fixture_state(&f, job) == JOB_STARTING) {
                fixture_run(&f, job);
                running[n++] = job;
            } else {
                assert_int_equal(fixture_client(&f, EVENT_CANCEL, job, 2001, false), ANSWER_OK);
            }
        }
    }
    while (n > 0)
        end(&f, running[--n]);
    if (mixed)
        set_allocator(&f, SETTING_UNSET);
    job = accepted(&f, 4, 4);
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    fixture_fini(&f);
}

static void test_walks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        walk(ALLOCATOR_CUBE_FL, seed, false);
        walk(ALLOCATOR_CUBE_AFL, seed, false);
    }
    for (uint64_t seed = 1; seed <= 30; seed++) {
        walk(ALLOCATOR_CUBE_FL, seed, true);
        walk(ALLOCATOR_CUBE_AFL, seed, true);
    }
}

/* Another allocator places what is no mesh; the cube goes round it. */
static void test_beside_others(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    begin(&f, ALLOCATOR_V1, 1);
    fixture_fini(&f);
    begin(&f, ALLOCATOR_CUBE_AFL, 8);
    assert_int_equal(
        fixture_step(&f, (struct event){.type = EVENT_SET, .host = -1, .u.set = {SETTING_ALLOCATOR, ALLOCATOR_V1}}), 0);
    for (int i = 0; i < 3; i++)
        fixture_run(&f, accepted(&f, 1, 1));
    assert_int_equal(
        fixture_step(&f, (struct event){.type = EVENT_SET, .host = -1, .u.set = {SETTING_ALLOCATOR, SETTING_UNSET}}),
        0);
    job = accepted(&f, 1, 2);
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    fixture_fini(&f);
}

/* The processors that v1 has found happen to be a mesh, across the border of a leftover of the first job: no cluster of
 * the cube as long as that is there, and then one, with the leftover that is its own. */
static void test_mesh_by_chance(void **state)
{
    static struct saved all[JOBS];
    struct fixture f;
    uint64_t first, chance, job;
    size_t count;

    (void)state;
    begin(&f, ALLOCATOR_CUBE_FL, 8);
    first = accepted(&f, 1, 5);
    expect_hosts(&f, first, "0 1 3 2 6");
    set_allocator(&f, ALLOCATOR_V1);
    chance = accepted(&f, 1, 3);
    expect_hosts(&f, chance, "4 5 7");
    set_allocator(&f, SETTING_UNSET);
    fixture_run(&f, first);
    fixture_run(&f, chance);
    end(&f, first);
    fixture_run(&f, accepted(&f, 2, 2));
    count = save(&f, all);
    job = accepted(&f, 1, 1);
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    assert_int_equal(placeable(8, ALLOCATOR_CUBE_FL, all, count, 0), 0);
    end(&f, chance);
    expect_hosts(&f, job, "4");
    fixture_fini(&f);
}

/* A host that is given up takes its job along, and its place in the cube. */
static void test_host_lost(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    begin(&f, ALLOCATOR_CUBE_AFL, 4);
    job = accepted(&f, 2, 2);
    fixture_run(&f, job);
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_HOST_DOWN, .host = 3}), 0);
    for (int h = 0; h < 3; h++)
        assert_int_equal(fixture_host(&f, EVENT_EMPTY, job, h), 0);
    assert_int_equal(fixture_state(&f, job), JOB_DONE);
    job = accepted(&f, 1, 2);
    expect_hosts(&f, job, "0 1");
    fixture_fini(&f);
}

/* A host that comes back with another CPU offers it at once, and the job on the old one is in the cube until the host
 * says that it is empty: as many processors are offered as nodes are in no mesh, and they are not the same. */
static void test_other_cpu(void **state)
{
    static const int cpus[] = {1};
    struct core_holding holding;
    struct event up = {.type = EVENT_HOST_UP, .host = 0, .u.up = {.cpus = cpus, .ncpus = 1}};
    struct fixture f;
    uint64_t jobs[3], waiting;

    (void)state;
    begin(&f, ALLOCATOR_CUBE_FL, 4);
    for (int i = 0; i < 3; i++) {
        jobs[i] = accepted(&f, 1, 1);
        fixture_run(&f, jobs[i]);
    }
    assert_int_equal(fixture_step(&f, (struct event){.type = EVENT_DRAIN, .host = 3}), 0);
    waiting = accepted(&f, 1, 1);
    holding = (struct core_holding){jobs[0], core_job(f.core, jobs[0])->attempt};
    up.u.up.holdings = &holding;
    up.u.up.nholdings = 1;
    assert_int_equal(fixture_step(&f, up), 0);
    assert_int_equal(fixture_state(&f, jobs[0]), JOB_ENDING);
    assert_int_equal(fixture_state(&f, waiting), JOB_QUEUED);
    fixture_empty(&f, jobs[0]);
    assert_int_equal(fixture_state(&f, waiting), JOB_STARTING);
    expect_hosts(&f, waiting, "0");
    assert_int_equal(core_job(f.core, waiting)->processors[0].cpu, 1);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),          cmocka_unit_test(test_free_list_leaves),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_supply),
        cmocka_unit_test(test_options),        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_beside_others),  cmocka_unit_test(test_host_lost),
        cmocka_unit_test(test_mesh_by_chance), cmocka_unit_test(test_other_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
