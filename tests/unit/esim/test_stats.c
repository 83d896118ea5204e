/* test_stats.c - what esim says of a series, and whether its intervals hold what is known beforehand. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "esim/keys.h"
#include "esim/plan.h"
#include "esim/random.h"
#include "lib/memory/mem.h"
#include "tests/unit/esim/bed.h"

static void test_statistics(void **state)
{
    double values[3000];
    struct stream stream;
    struct estimate estimate;
    int covered = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        stream_init(&stream, seed, 9);
        for (int i = 0; i < 600; i++)
            values[i] = stream_exponential(&stream, 5);
        estimate = stats_series(values, 600, values, 600);
        covered += fabs(estimate.mean - 5) <= estimate.half;
    }
    assert_in_range(covered, 364, 396); /* 95 % of 400 */
    for (int i = 0; i < 3000; i++)
        values[i] = (i < 500 ? 0 : 10) + stream_exponential(&stream, 1);
    assert_in_range(stats_warmup(values, 3000, true), 490, 520);
    for (int i = 0; i < 500; i++)
        values[i] += 20;
    assert_in_range(stats_warmup(values, 3000, false), 490, 520);
    assert_int_equal(stats_warmup(values, 3000, true), 0); /* an empty machine is not slow */
    for (int i = 0; i < 3000; i++)
        values[i] = i;
    assert_int_equal(stats_warmup(values, 3000, true), 3000); /* it only grows */
    expect_near(stats_quantile(values, 3000, 0.5), 1499.5, 0.01);
    assert_true(isnan(stats_batches(values, 1).half));
    expect_near(stats_batches(values, 2 * STATS_BATCHES - 1).mean, STATS_BATCHES - 1, 1e-9); /* of 0, 1, .. */
    assert_true(isnan(stats_series(values, 20, values, 20).half));
    for (int i = 0; i < 3000; i++)
        values[i] = 4; /* a mean of ten such is not 4, but for the last bit */
    assert_true(stats_series(values, 3000, values, 3000).half < 1e-9);
    for (int i = 0; i < 3000; i++)
        values[i] = 5 + i; /* a rush, in which jobs take longer and longer */
    estimate = stats_batches(values, 3000);
    assert_true(estimate.half < 0.5 * estimate.mean);
    assert_true(isnan(stats_series(values, 3000, values, 3000).half)); /* as much as one value */
}

/* Turnarounds of M/M/1 with a mean service of 4, after Lindley. */
static void draw_queue(double *values, size_t count, uint64_t seed, double load)
{
    struct stream stream;
    double wait = 0;

    stream_init(&stream, seed, 10);
    for (size_t i = 0; i < count; i++) {
        values[i] = wait + stream_exponential(&stream, 4);
        wait = fmax(0, values[i] - stream_exponential(&stream, 4 / load));
    }
}

/* How many of 400 queues are told to grow. */
static int count_growing(size_t count, double load)
{
    double *values = mem_array(count, sizeof(*values));
    int growing = 0;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        draw_queue(values, count, seed, load);
        growing += stats_warmup(values, count, true) == count;
    }
    free(values);
    return growing;
}

static void test_growing(void **state)
{
    (void)state;
    assert_int_equal(count_growing(2000, 0.5), 0);
    assert_in_range(count_growing(200, 0.5), 0, 4);
    assert_in_range(count_growing(200, 1.5), 280, 400);
    assert_in_range(count_growing(5000, 1.5), 380, 400);
}

/* What grows is not looked at for long. */
static void test_hopeless(void **state)
{
    struct result result = simulate(CONFIG("hosts", "1", "workload", "procs [1,1]", "load", "1.5", "jobs", "200"));

    (void)state;
    assert_false(result.steady);
    assert_in_range(result.judged, 200, 8000);
    assert_int_equal(result.jobs, 200);
}

struct covered {
    int turnaround, wait, utilisation, shown;
};

/* Of so many M/M/1 queues: how often do the intervals hold what is known? */
static struct covered count_covered(const char *load, const char *jobs, int seeds)
{
    double rho = strtod(load, NULL), truth = 4 / (1 - rho);
    struct covered covered = {0};

    for (int seed = 1; seed <= seeds; seed++) {
        char text[20];
        struct result r;
        snprintf(text, sizeof(text), "%d", seed);
        r = simulate(CONFIG("hosts", "1", "workload", "procs [1,1]", "load", load, "jobs", jobs, "seed", text));
        assert_true(r.too_short == isnan(r.turnaround.half));
        assert_int_equal(r.jobs + r.warmup, strtol(jobs, NULL, 10));
        covered.shown += !r.too_short;
        covered.turnaround += fabs(r.turnaround.mean - truth) <= r.turnaround.half;
        covered.wait += fabs(r.wait.mean - (truth - 4)) <= r.wait.half;
        covered.utilisation += fabs(r.utilisation.mean - rho) <= r.utilisation.half;
    }
    return covered;
}

/* Runs that are short for what jobs depend on. A single one of them does not show that. */
static void test_intervals(void **state)
{
    static const struct {
        const char *load, *jobs;
        int seeds, least; /* of which 95 %, and chance */
    } cases[] = {{"0.5", "200", 100, 90},  {"0.5", "2000", 100, 90}, {"0.7", "200", 100, 90},
                 {"0.7", "2000", 100, 90}, {"0.9", "200", 40, 34},   {"0.9", "2000", 40, 34}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct covered covered = count_covered(cases[i].load, cases[i].jobs, cases[i].seeds);
        print_message("load %s, %s jobs: %d of %d, wait %d, utilisation %d\n", cases[i].load, cases[i].jobs,
                      covered.turnaround, covered.shown, covered.wait, covered.utilisation);
        assert_in_range(covered.shown, cases[i].seeds - 2, cases[i].seeds);
        assert_in_range(covered.turnaround, cases[i].least, cases[i].seeds);
        assert_in_range(covered.wait, cases[i].least, cases[i].seeds);
        assert_in_range(covered.utilisation, cases[i].least, cases[i].seeds);
    }
}

/* More than what may be looked at: then nothing is said of how sure it is, but all else. */
static void test_too_short(void **state)
{
    struct result result = simulate(CONFIG("hosts", "1", "workload", "procs [1,1]", "load", "0.999", "jobs", "200"));

    (void)state;
    assert_true(result.too_short || !result.steady);
    assert_true(isnan(result.turnaround.half) && result.turnaround.mean > 0 && result.p95.mean > 0);
    assert_int_equal(result.judged, JUDGED_MAX);
}

/* On a very large machine the jobs behind a run would take long: so there are fewer, and nothing is said from few. */
static void test_effort(void **state)
{
    struct config config = CONFIG("workload", "procs [4,4]", "load", "2", "jobs", "50");
    const double of_a_job = 16 + 32 * 4;
    struct result all = simulate(config), few, some;

    (void)state;
    assert_int_equal(all.judged, 4000);
    assert_false(all.too_short);
    config.effort_max = 3000 * of_a_job;
    few = simulate(config);
    assert_int_equal(few.judged, 50 + 3000);
    assert_true(few.too_short && isnan(few.turnaround.half) && isnan(few.utilisation.half) && isnan(few.p95.half));
    assert_true(few.turnaround.mean == all.turnaround.mean && few.jobs == all.jobs);
    config.effort_max = 3950 * of_a_job;
    some = simulate(config);
    assert_true(some.judged == 4000 && some.turnaround.half == all.turnaround.half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics), cmocka_unit_test(test_growing),   cmocka_unit_test(test_hopeless),
        cmocka_unit_test(test_intervals),  cmocka_unit_test(test_too_short), cmocka_unit_test(test_effort),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
