/* test_esim.c - esim's parts: streams, statistics, models of load, and small simulations whose answer is known
 * beforehand. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "esim/json.h"
#include "esim/keys.h"
#include "esim/plan.h"
#include "tests/unit/esim/bed.h"

/* ---- figure 4.1: what is known exactly ---- */

static void test_constant(void **state)
{
    struct config config = CONFIG("cube", "6", "workload", "constant", "service", "constant", "allocator", "cube-fl");
    struct result result;

    (void)state;
    config.world.saturated = true;
    result = simulate(config);
    expect_near(result.utilisation.mean, 0.5, 1e-9);
    expect_near(result.load_out.mean, 2, 0.01);
    config.world.core.allocator = ALLOCATOR_CUBE_AFL;
    result = simulate(config);
    expect_near(result.utilisation.mean, 1, 1e-9);
    expect_near(result.load_out.mean, 4, 0.01);
}

/* The interval of the load that comes out has what a long run says, most times. */
static void test_load_out(void **state)
{
    enum { RUNS = 40 };
    struct config config = CONFIG("hosts", "4", "workload", "procs [1,4]", "jobs", "100000");
    struct result truth, result;
    int held = 0, known = 0;

    (void)state;
    config.world.saturated = true;
    truth = simulate(config);
    assert_true(truth.load_out.half > 0 && truth.load_out.half < 0.02 * truth.load_out.mean);
    config.jobs_max = 2000;
    for (uint64_t seed = 2; seed < 2 + RUNS; seed++) {
        config.workload.seed = config.world.core.seed = seed;
        result = simulate(config);
        if (isnan(result.load_out.half)) /* too few jobs */
            continue;
        known++;
        assert_true(result.load_out.half < 0.1 * result.load_out.mean);
        held += fabs(result.load_out.mean - truth.load_out.mean) <= result.load_out.half + truth.load_out.half;
    }
    assert_true(known >= RUNS * 8 / 10 && held >= known * 9 / 10);
}

/* One processor, Poisson arrivals, exponential service: M/M/1, whose mean turnaround is service / (1 - load). */
static void test_queue(void **state)
{
    struct config config = CONFIG("hosts", "1", "workload", "procs [1,1]", "load", "0.5", "jobs", "200000");
    struct result result;

    (void)state;
    result = simulate(config);
    expect_near(result.turnaround.mean, 8, 3 * result.turnaround.half);
    expect_near(result.utilisation.mean, 0.5, 0.01);
    assert_true(result.turnaround.half < 0.4);
    expect_near(result.median.mean, 8 * log(2), 2 * result.median.half); /* it is exponential */
    assert_true(result.median.half > 0 && result.median.half < 0.4);
    expect_near(result.p95.mean, 8 * log(20), 2 * result.p95.half);
    assert_true(result.p95.half > 0 && result.p95.half < 2);
    config.workload.constant_service = true; /* M/D/1: service * (1 + load / (2 (1 - load))) */
    result = simulate(config);
    expect_near(result.turnaround.mean, 6, 0.1);
}

/* More work than the machine can do: no precision comes of that, so it is not gone on with. */
static void test_hopeless(void **state)
{
    struct result result = simulate(CONFIG("hosts", "4", "workload", "procs [1,4]", "load", "3"));

    (void)state;
    assert_false(result.steady);
    assert_int_equal(result.jobs, 16000);
    result = simulate(CONFIG("hosts", "4", "workload", "procs [1,4]", "load", "1.3")); /* 1.25 is what it can do */
    assert_false(result.steady);
    assert_int_equal(result.jobs, 256000);
    result = simulate(CONFIG("hosts", "4", "workload", "procs [1,4]", "load", "3", "jobs", "20000"));
    assert_int_equal(result.jobs, 20000); /* as many as are asked for */
}

/* Each job is refused, and there is no end of them. */
static void test_no_room(void **state)
{
    struct config config = CONFIG("hosts", "1", "workload", "procs [2,4]", "jobs", "10");
    struct result result;

    (void)state;
    run(&config, &result, series, ROOM, 1, NULL);
    assert_false(result.done);
    assert_string_equal(result.fault, "no job has ended: the machine is too small for them");
}

/* ---- the models of load ---- */

/* Jobs by hand. */
struct list {
    struct source source;
    const struct sim_job *jobs;
    size_t count, at;
};

static bool next(struct source *source, struct sim_job *job)
{
    struct list *list = (struct list *)source;

    if (list->at == list->count)
        return false;
    *job = list->jobs[list->at++];
    job->number = list->at;
    job->start_ms = job->end_ms = -1;
    return true;
}

static int64_t ends[8], starts[8];

static void note(const struct sim_job *job, void *data)
{
    (void)data;
    starts[job->number] = job->start_ms;
    ends[job->number] = job->end_ms;
}

static void play(const struct config *config, const struct sim_job *jobs, size_t count)
{
    struct list list = {.source = {.next = next}, .jobs = jobs, .count = count};
    struct world *world = world_create(&config->world, &list.source, note, NULL);

    assert_non_null(world);
    memset(ends, 0xff, sizeof(ends));
    assert_true(world_run(world, count));
    world_destroy(world);
}

static void test_shared(void **state)
{
    struct config config = CONFIG("hosts", "2", "model", "shared", "allocator", "v1", "levels", "2");
    const struct sim_job two[] = {{.work_ms = 10000, .nprocs = 2, .share = 0.6},
                                  {.submit_ms = 2000, .work_ms = 4000, .nprocs = 2, .share = 0.8}};
    const struct sim_job three[] = {{.work_ms = 1000, .nprocs = 1, .share = 1},
                                    {.work_ms = 1000, .nprocs = 2, .share = 1},
                                    {.work_ms = 1000, .nprocs = 2, .share = 1}};

    (void)state;
    play(&config, two, 2);
    assert_int_equal(ends[1], 10000); /* as if alone */
    assert_int_equal(ends[2], 10000); /* half of what it asks for 8 s: 4 s of work */
    play(&config, three, 3);          /* the second waits for its slower processor, the third has no level left */
    assert_int_equal(ends[1], 1000);
    assert_int_equal(ends[2], 2000);
    assert_int_equal(starts[3], 1000);
    assert_int_equal(ends[3], 3000);
    config.world.by_itself = true;
    play(&config, three, 3);
    assert_int_equal(ends[2], 2000); /* one of its processors is done at 1000 */
    assert_int_equal(ends[3], 3000);
    config.world.by_itself = false;
    config.world.period_ms = 1000; /* 0.6 s of computing, 0.4 s of waiting */
    play(&config, two, 2);
    assert_int_equal(ends[1], 10000);
    assert_true(ends[2] > 10000 && ends[2] < 12000); /* it computes only where the first waits */
}

static void test_speeds(void **state)
{
    struct config config =
        CONFIG("hosts", "4", "allocator", "v1", "speeds", "2x2,0.5 4", "cpus", "1", "add-hosts", "1");
    const struct sim_job wide[] = {{.work_ms = 1000, .nprocs = 5, .share = 1}};
    const struct sim_job two[] = {{.work_ms = 1000, .nprocs = 2, .share = 0.5},
                                  {.work_ms = 1000, .nprocs = 2, .share = 1}};
    static const double expected[] = {2, 2, 0.5, 4, 4};
    static const char *const wrong[] = {"", "0", "1x", "1x0", "1,,2", "fast", "1x1.5", "2000"};
    double *speeds = world_speeds(&config.world);
    char fault[300];

    (void)state;
    for (int h = 0; h < 5; h++)
        assert_true(speeds[h] == expected[h]);
    free(speeds);
    play(&config, wide, 1);
    assert_int_equal(ends[1], 2000); /* with the slowest */
    config = CONFIG("hosts", "2", "model", "shared", "allocator", "v1", "levels", "2", "speeds", "4,1");
    play(&config, two, 2);
    assert_int_equal(ends[1], 1000);
    assert_int_equal(ends[2], 1500); /* half of the slower host, then all of it */
    config.world.by_itself = true;
    play(&config, two, 2);
    assert_int_equal(ends[1], 1000);
    assert_int_equal(ends[2], 1500);
    config = CONFIG("hosts", "1", "model", "shared", "allocator", "v1", "levels", "2", "speeds", "2");
    config.world.period_ms = 100;
    play(&config, (const struct sim_job[]){{.work_ms = 1000, .nprocs = 1, .share = 0.5}}, 1);
    assert_int_equal(ends[1], 500); /* waits as fast as it computes */
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(keys_set(&config, "speeds", wrong[i], fault, sizeof(fault)));
}

/* v2 sees the load that a job shows, after it has had time to show it. */
static void test_reports(void **state)
{
    struct config config = CONFIG("hosts", "1", "model", "shared", "allocator", "v2", "levels", "2");
    const struct sim_job idle[] = {{.work_ms = 60000, .nprocs = 1, .share = 0.5},
                                   {.submit_ms = 10, .work_ms = 1000, .nprocs = 1, .share = 0.5}};
    const struct sim_job busy[] = {{.work_ms = 60000, .nprocs = 1, .share = 0.9},
                                   {.submit_ms = 10, .work_ms = 1000, .nprocs = 1, .share = 0.5}};
    const struct sim_job endless[] = {{.work_ms = 1000000000000000, .nprocs = 1, .share = 0.9},
                                      {.submit_ms = 10, .work_ms = 1000, .nprocs = 1, .share = 0.5}};

    (void)state;
    play(&config, idle, 2);
    assert_int_equal(starts[1], 0);
    assert_in_range(starts[2], 4000, 6000); /* settled for 2 s, then an interval of 2 s */
    play(&config, busy, 2);
    assert_int_equal(starts[2], 60000);
    play(&config, endless, 2); /* 5 * 10^11 reports, if each were made */
    assert_true(starts[2] == endless[0].work_ms);
}

/* ---- the same seed, the same jobs ---- */

static void test_seed(void **state)
{
    struct config config = CONFIG("cube", "6", "workload", "rect [1,8]", "jobs", "2000");
    struct result a = simulate(config), b = simulate(config), c;

    (void)state;
    assert_true(a.turnaround.mean == b.turnaround.mean);
    config.workload.seed = 2;
    c = simulate(config);
    assert_true(a.turnaround.mean != c.turnaround.mean);
}

static void test_workloads(void **state)
{
    static const char *const wrong[] = {"",           "square", "square [0,4]", "rect [5,4]", "P[1,8]=0.3 P[9,32]=0.6",
                                        "rect [1,4]x"};
    struct workload w;
    struct source *source;
    struct sim_job job;
    int small = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(workload_parse(&w, wrong[i]));
    workload_default(&w);
    assert_true(workload_parse(&w, "P[1,8]=0.3 P[17,32]=0.7"));
    source = workload_source(&w);
    for (int i = 0; i < 10000; i++) { /* both sides are of one interval */
        assert_true(source->next(source, &job));
        assert_true((job.mesh_rows <= 8) == (job.nprocs / job.mesh_rows <= 8));
        small += job.mesh_rows <= 8;
    }
    assert_in_range(small, 2800, 3200);
    source->destroy(source);
}

/* ---- reports that tell nothing new are left out, and jobs far behind kept from the core ---- */

struct way {
    double sum; /* of what depends on each job's time and place */
    uint64_t jobs;
};

static void note_way(const struct sim_job *job, void *data)
{
    struct way *way = data;

    way->jobs++;
    way->sum += (double)job->start_ms * (double)(job->place % 1009 + 1) + (double)job->end_ms;
}

static struct way way_of(struct config config, bool every_report, bool every_job)
{
    struct source *source = workload_source(&config.workload);
    struct way way = {0};
    struct world *world;

    config.world.every_report = every_report;
    config.world.every_job = every_job;
    world = world_create(&config.world, source, note_way, &way);
    assert_non_null(world);
    assert_true(world_run(world, 3000));
    world_destroy(world);
    source->destroy(source);
    return way;
}

#define SHARED "model", "shared", "hosts", "8", "cpus", "2", "workload", "procs [1,8]", "load", "4"

static void test_every_report(void **state)
{
    const struct config configs[] = {
        CONFIG(SHARED, "allocator", "v2", "share", "33%", "mean-service", "20"),
        CONFIG(SHARED, "allocator", "v2", "share", "50%", "threshold", "50%", "levels", "4"),
        CONFIG(SHARED, "allocator", "v2", "share", "33%", "period", "1", "steps", "each", "mean-service", "20"),
        CONFIG(SHARED, "allocator", "spread", "share", "60%", "speeds", "1x4,0.5", "mean-service", "20"),
        CONFIG("hosts", "50", "allocator", "v2", "workload", "procs [1,8]", "load", "10"),
        CONFIG("hosts", "50", "cpus", "2", "allocator", "spread", "workload", "procs [1,64]", "load", "10"),
        CONFIG("hosts", "8", "cpus", "2", "allocator", "v2", "workload", "procs [1,8]", "load", "4", "levels", "3",
               "share", "33%", "mean-service", "20"), /* levels change on hosts where nothing else does */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct way some = way_of(configs[i], false, true), all = way_of(configs[i], true, true);
        assert_int_equal(some.jobs, all.jobs);
        expect_near(some.sum, all.sum, 0);
    }
}

/* Queues of more than the core is given, with jobs that are too large among them. */
static void test_every_job(void **state)
{
    const struct config configs[] = {
        CONFIG("hosts", "50", "allocator", "v1", "workload", "procs [1,64]", "load", "10", "levels", "1"),
        CONFIG("hosts", "50", "allocator", "v1", "workload", "procs [1,8]", "load", "10", "seed", "7"),
        CONFIG("hosts", "50", "allocator", "v2", "workload", "procs [1,8]", "load", "10"),
        CONFIG(SHARED, "allocator", "pack", "share", "33%", "load", "10"),
        CONFIG(SHARED, "allocator", "v2", "share", "50%", "threshold", "50%", "levels", "4", "load", "10"),
        CONFIG("cube", "6", "allocator", "cube-afl", "workload", "square [1,8]", "load", "10"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct way some = way_of(configs[i], false, false), all = way_of(configs[i], false, true);
        assert_int_equal(some.jobs, all.jobs);
        expect_near(some.sum, all.sum, 0);
    }
}

/* ---- JSON ---- */

/* Names of files are anything, figures may be missing: it is JSON all the same. */
static void test_json(void **state)
{
    static const char *const names[] = {"a \"b\\.swf\n", "caf\xe9.swf"}, *const told[] = {"a \"b\\.swf\n", "not UTF-8"};
    struct config config = CONFIG("jobs", "10");
    struct result result = {.done = true, .jobs = 10, .median = {1.5, NAN}, .turnaround = {2, NAN}};
    struct plan plan = {.configs = &config, .count = 1, .compared = 1, .results = &result};
    (void)state;

    for (int i = 0; i < 2; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        json_t *object;

        snprintf(config.workload_name, sizeof(config.workload_name), "%s", names[i]);
        assert_non_null(out);
        assert_true(json_print(out, &plan));
        assert_int_equal(fclose(out), 0);
        object = json_loads(text, 0, NULL);
        assert_non_null(object);
        assert_string_equal(json_string_value(json_object_get(object, "workload")), told[i]);
        assert_int_equal(json_integer_value(json_object_get(object, "jobs")), 10);
        expect_near(json_real_value(json_object_get(object, "turnaround_median")), 1.5, 0);
        assert_null(json_object_get(object, "turnaround_half_width"));
        json_decref(object);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),  cmocka_unit_test(test_load_out),     cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_queue),     cmocka_unit_test(test_shared),       cmocka_unit_test(test_reports),
        cmocka_unit_test(test_speeds),    cmocka_unit_test(test_seed),         cmocka_unit_test(test_hopeless),
        cmocka_unit_test(test_workloads), cmocka_unit_test(test_every_report), cmocka_unit_test(test_every_job),
        cmocka_unit_test(test_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
