/* test_plan.c - several simulations: sweeps and comparisons, and runs of one with other random numbers. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "esim/json.h"
#include "esim/plan.h"
#include "esim/random.h"
#include "lib/memory/mem.h"
#include "tests/unit/esim/bed.h"

static void test_plan(void **state)
{
    struct config config = CONFIG("cube", "6", "workload", "rect [1,8]", "jobs", "2000");
    struct difference difference;
    struct plan plan;
    char fault[300];

    (void)state;
    assert_true(plan_make(&plan, &config, "load=0.5..2:3", "allocator=cube-fl,cube-afl", fault, sizeof(fault)));
    assert_int_equal(plan.count, 6);
    assert_string_equal(plan.configs[3].label, "load=1.25 allocator=cube-afl");
    plan_run(&plan, 2, NULL);
    for (size_t i = 0; i < plan.count; i++)
        assert_true(plan.results[i].done);
    difference = plan_difference(&plan, 2, 3);
    assert_true(difference.turnaround.mean < 0 &&
                difference.turnaround.half > 0); /* with the same jobs AFL is better */
    plan_fini(&plan);
    assert_true(plan_make(&plan, &config, NULL, "workload=rect [1,4],square [1,4]", fault, sizeof(fault)));
    assert_int_equal(plan.count, 2);
    plan_fini(&plan);
    assert_true(plan_make(&plan, &config, "user-running=1..3:3", NULL, fault, sizeof(fault)));
    assert_string_equal(plan.configs[1].label, "user-running=2"); /* "1." is a number, too */
    plan_fini(&plan);
    assert_false(plan_make(&plan, &config, "load=1..2x", NULL, fault, sizeof(fault)));
    plan_fini(&plan);
    assert_false(plan_make(&plan, &config, "load", NULL, fault, sizeof(fault)));
    plan_fini(&plan);
    assert_false(plan_make(&plan, &config, NULL, "colour=red,green", fault, sizeof(fault)));
    plan_fini(&plan);
}

/* Runs of a given length are repeated with other jobs until their means are precise enough. */
static void test_replications(void **state)
{
    struct config config = CONFIG("hosts", "4", "workload", "procs [1,4]", "jobs", "200", "precision", "5%");
    struct result result, one;
    struct difference difference;
    struct plan plan;
    char fault[300];

    (void)state;
    result = simulate(config);
    assert_in_range(result.replications, 10, 999);
    assert_true(result.turnaround.half <= 0.05 * result.turnaround.mean);
    assert_int_equal(result.jobs, 200 * result.replications);
    assert_int_equal(result.nseries, result.replications);
    assert_true(series[result.replications - 1] > 0);
    one = simulate(CONFIG("hosts", "1", "workload", "procs [1,1]", "load", "1.1", "jobs", "200", "precision", "1%"));
    expect_near(one.turnaround.mean, 62.62, one.turnaround.half + 0.43); /* 20,000 runs of Lindley's recursion */
    one = simulate(CONFIG("hosts", "4", "workload", "procs [1,4]", "jobs", "200"));
    assert_int_equal(one.replications, 1);
    assert_true(series[0] != series[1]);
    one = simulate(CONFIG("hosts", "4", "workload", "procs [1,4]", "jobs", "200", "arrivals", "constant", "service",
                          "constant", "workload", "procs [2,2]", "precision", "5%"));
    assert_int_equal(one.replications, 10); /* at least */
    expect_near(one.turnaround.mean, 4, 1e-9);
    one = simulate(CONFIG("hosts", "4", "workload", "procs [1,1]", "service", "constant", "precision", "50%"));
    assert_int_equal(one.jobs + one.warmup, 8000); /* 4000 are precise enough, which may be chance */
    assert_true(plan_make(&plan, &config, NULL, "levels=1,2", fault, sizeof(fault)));
    plan_run(&plan, 2, NULL);
    difference = plan_difference(&plan, 0, 1);
    assert_int_equal(difference.jobs, fmin((double)plan.results[0].replications, (double)plan.results[1].replications));
    assert_true(difference.turnaround.mean < 0 && difference.turnaround.half < -difference.turnaround.mean);
    plan_fini(&plan);
}

static char *json_of(const struct config *config, struct result *result)
{
    struct config copy = *config;
    struct plan plan = {.configs = &copy, .count = 1, .compared = 1, .results = result};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_true(json_print(out, &plan));
    assert_int_equal(fclose(out), 0);
    return text;
}

static long faults_of_children(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    return usage.ru_minflt;
}

/* Runs that are side by side, some of which are one too many, say what they say one after the other. */
static void test_side_by_side(void **state)
{
    const struct config configs[] = {
        CONFIG("hosts", "4", "workload", "procs [1,4]", "jobs", "200", "precision", "8%"),
        CONFIG("hosts", "1", "workload", "procs [1,8]", "jobs", "5", "precision", "50%"), /* most are refused */
        CONFIG("hosts", "1", "workload", "procs [2,4]", "jobs", "5", "precision", "50%"), /* all are */
    };
    double one_by_one[ROOM];

    (void)state;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct result a, b;
        char *one = NULL, *other = NULL;
        long before;
        run(&configs[i], &a, one_by_one, ROOM, 1, NULL);
        before = faults_of_children();
        run(&configs[i], &b, series, ROOM, 3, NULL);
        assert_true(faults_of_children() > before);
        assert_int_equal(a.done, i < 2);
        assert_string_equal(a.fault, b.fault);
        one = json_of(&configs[i], &a);
        other = json_of(&configs[i], &b);
        assert_string_equal(one, other);
        assert_int_equal(a.nseries, b.nseries);
        assert_memory_equal(one_by_one, series, a.nseries * sizeof(*series));
        free(one);
        free(other);
    }
}

static int compare_seeds(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Runs of neighbouring seeds have nothing in common. */
static void test_seeds(void **state)
{
    enum { SEEDS = 200 };
    uint64_t *all = mem_array((size_t)SEEDS * REPLICATIONS_MAX, sizeof(*all));
    double first[2];

    (void)state;
    for (size_t i = 0; i < (size_t)SEEDS * REPLICATIONS_MAX; i++)
        all[i] = stream_seed(i / REPLICATIONS_MAX, i % REPLICATIONS_MAX);
    assert_int_equal(all[3 * REPLICATIONS_MAX], 3); /* the first run has the seed itself */
    qsort(all, (size_t)SEEDS * REPLICATIONS_MAX, sizeof(*all), compare_seeds);
    for (size_t i = 1; i < (size_t)SEEDS * REPLICATIONS_MAX; i++)
        assert_true(all[i] != all[i - 1]);
    free(all);
    for (int seed = 0; seed < 2; seed++) {
        simulate(CONFIG("hosts", "4", "workload", "procs [1,4]", "jobs", "100", "precision", "10%", "seed",
                        seed == 0 ? "1" : "2"));
        first[seed] = series[seed == 0]; /* of seed 1 the second run, of seed 2 the first */
    }
    assert_true(first[0] != first[1]);
}

/* ---- a queue that is never empty ---- */

static struct estimate used(struct config config, const char *compare, struct estimate of_means[1])
{
    struct estimate estimate;
    struct plan plan;
    char fault[300];

    config.world.saturated = true;
    assert_true(plan_make(&plan, &config, NULL, compare, fault, sizeof(fault)));
    plan_run(&plan, 2, NULL);
    assert_true(plan.results[0].done && plan.results[1].done);
    estimate = plan_used(&plan, 0, 1);
    of_means->mean = plan.results[1].utilisation.mean - plan.results[0].utilisation.mean;
    of_means->half = hypot(plan.results[0].utilisation.half, plan.results[1].utilisation.half);
    plan_fini(&plan);
    return estimate;
}

/* What is chance in the jobs is no chance in the difference: its interval is narrower than those of the means say, and
 * has what a long run says most times. */
static void test_used_pairs(void **state)
{
    enum { RUNS = 20 };
    static const char both[] = "allocator=cube-fl,cube-afl";
    struct config config = CONFIG("cube", "6", "workload", "rect [1,8]", "jobs", "40000");
    struct estimate truth, means, estimate;
    int held = 0, real = 0, real_of_means = 0;

    (void)state;
    truth = used(config, both, &means);
    assert_true(truth.mean > 0.01 && truth.half < 0.5 * means.half);
    config.jobs_max = 300;
    for (uint64_t seed = 2; seed < 2 + RUNS; seed++) {
        config.workload.seed = config.world.core.seed = seed;
        estimate = used(config, both, &means);
        held += fabs(estimate.mean - truth.mean) <= estimate.half + truth.half;
        real += estimate.mean > estimate.half;
        real_of_means += means.mean > means.half;
    }
    assert_true(held >= RUNS * 9 / 10 && real >= RUNS * 8 / 10 && real_of_means < RUNS / 4);
}

/* There are no pairs of other jobs, and of more jobs. Of several runs the pairs are those with the same jobs. */
static void test_used(void **state)
{
    struct config config = CONFIG("hosts", "4", "workload", "procs [1,4]", "jobs", "400");
    struct estimate means, estimate = used(config, "seed=1,2", &means);

    (void)state;
    expect_near(estimate.mean, means.mean, 0);
    expect_near(estimate.half, means.half, 0);
    estimate = used(config, "policy=fcfs,fcfs", &means);
    expect_near(estimate.mean, 0, 0);
    expect_near(estimate.half, 0, 0);
    config = CONFIG("cube", "6", "workload", "rect [1,8]", "jobs", "200", "precision", "3%");
    estimate = used(config, "allocator=cube-fl,cube-afl", &means);
    assert_true(estimate.half > 0 && estimate.half < 0.7 * means.half);
    config = CONFIG("cube", "6", "workload", "rect [1,8]", "precision", "1%");
    estimate = used(config, "workload=rect [1,8],rect [1,2]", &means); /* not as many jobs are precise enough */
    expect_near(estimate.half, means.half, 0);
    config = CONFIG("hosts", "4", "workload", "procs [1,4]", "jobs", "10"); /* too few for a pair */
    estimate = used(config, "levels=1,2", &means);
    expect_near(estimate.mean, means.mean, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),  cmocka_unit_test(test_replications), cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_seeds), cmocka_unit_test(test_used_pairs),   cmocka_unit_test(test_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
