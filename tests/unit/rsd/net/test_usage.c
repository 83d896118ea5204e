/* test_usage.c - whose load is where: jobs that use their processors unevenly, beside others. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rsd/net/usage.h"
#include "tests/unit/scratch.h"

enum { CPUS = 8, INTERVAL_MS = 100 };

/* Time passes when a test says so: an interval is as long as it should be, however slow the machine is. */
static struct mono now = {1000000000};

struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    return now;
}

struct bed {
    char dir[64], stat[80], jobs[80];
    struct usage usage;
    double busy[CPUS], ours[CPUS];
};

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

/* Each processor: ticks busy, of 100 in all, on top of a hundred idle ones. */
static void write_ticks(struct bed *bed, const int *busy)
{
    char text[1000] = "";

    for (size_t i = 0, at = 0; i < CPUS; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "cpu%zu %d 0 0 %d 0 0 0 0 0 0\n", i, busy ? busy[i] : 0,
                               busy ? 200 - busy[i] : 100);
    write_file(bed->stat, text);
}

static void write_used(struct bed *bed, int job, double seconds)
{
    char path[120], text[60];

    snprintf(path, sizeof(path), "%s/%d.1", bed->jobs, job);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%d.1/job", bed->jobs, job);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%d.1/job/cpu.stat", bed->jobs, job);
    snprintf(text, sizeof(text), "usage_usec %.0f\n", seconds * 1e6);
    write_file(path, text);
}

static int set_up(void **state)
{
    static struct bed bed;
    static const uint64_t cpus[CPUS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct err err = ERR_INIT;

    bed = (struct bed){.dir = "/tmp/elmer-usage-XXXXXX"};
    assert_non_null(scratch_dir(bed.dir));
    snprintf(bed.stat, sizeof(bed.stat), "%s/stat", bed.dir);
    snprintf(bed.jobs, sizeof(bed.jobs), "%s/jobs", bed.dir);
    assert_int_equal(mkdir(bed.jobs, 0700), 0);
    usage_init(&bed.usage, bed.stat);
    assert_int_equal(usage_set_host(&bed.usage, cpus, CPUS, bed.jobs), 0);
    write_ticks(&bed, NULL);
    assert_int_equal(usage_begin(&bed.usage, &err), 0);
    *state = &bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;

    usage_fini(&bed->usage);
    return 0;
}

/* The interval is over; the share of it that seconds are. */
static void sample(struct bed *bed, const int *busy)
{
    struct err err = ERR_INIT;
    uint64_t interval_ms;

    write_ticks(bed, busy);
    assert_int_equal(usage_sample(&bed->usage, &interval_ms, bed->busy, bed->ours, &err), 0);
}

static void let_pass(struct bed *bed)
{
    bed->usage.begin = now;
    now.ns += INTERVAL_MS * 1000000LL;
}

static void expect_foreign(struct bed *bed, const double *foreign)
{
    for (int i = 0; i < CPUS; i++)
        if (fabs(bed->busy[i] - fmin(bed->ours[i], bed->busy[i]) - foreign[i]) > 0.05)
            fail_msg("cpu %d: busy %.3f, of jobs %.3f, foreign should be %.3f", i, bed->busy[i], bed->ours[i],
                     foreign[i]);
}

static const uint64_t all[CPUS] = {0, 1, 2, 3, 4, 5, 6, 7};
static const double nothing[CPUS];

/* One thread on one of its eight processors: nothing is foreign there, nor after its end. */
static void test_uneven(void **state)
{
    struct bed *bed = *state;

    usage_add_job(&bed->usage, 1, 1, all, CPUS, true);
    let_pass(bed);
    write_used(bed, 1, 0.1);
    sample(bed, (int[]){0, 0, 0, 100, 0, 0, 0, 0});
    expect_foreign(bed, nothing);
    assert_true(bed->ours[3] > 0.9);
    assert_true(bed->ours[0] < 0.05);
}

static void test_uneven_end(void **state)
{
    struct bed *bed = *state;

    usage_add_job(&bed->usage, 1, 1, all, CPUS, true);
    let_pass(bed);
    usage_end_job(&bed->usage, 1, 1, 0.15);
    sample(bed, (int[]){50, 0, 0, 100, 0, 0, 0, 0});
    expect_foreign(bed, nothing);
    let_pass(bed);
    sample(bed, (int[]){50, 0, 0, 100, 0, 0, 0, 0}); /* it counts once */
    assert_true(bed->ours[3] < 0.05);
}

/* What the job has not used is its owner's. */
static void test_owner(void **state)
{
    struct bed *bed = *state;
    static const uint64_t two[] = {0, 1};

    usage_add_job(&bed->usage, 1, 1, two, 2, true);
    let_pass(bed);
    write_used(bed, 1, 0.05);
    sample(bed, (int[]){50, 0, 0, 0, 0, 0, 0, 90});
    expect_foreign(bed, (double[]){0, 0, 0, 0, 0, 0, 0, 0.9});
}

/* Two jobs that share one: who has no choice comes first. */
static void test_no_choice(void **state)
{
    struct bed *bed = *state;
    static const uint64_t a[] = {1, 2}, b[] = {0, 1};

    usage_add_job(&bed->usage, 1, 1, a, 2, true);
    usage_add_job(&bed->usage, 2, 1, b, 2, true);
    let_pass(bed);
    write_used(bed, 1, 0.1);
    write_used(bed, 2, 0.1);
    sample(bed, (int[]){0, 100, 100, 0, 0, 0, 0, 0});
    expect_foreign(bed, nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_uneven, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_uneven_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_owner, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_choice, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
