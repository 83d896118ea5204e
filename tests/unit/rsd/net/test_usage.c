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

#include "rsd/net/report.h"
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
    int ticks; /* of each processor so far */
    double busy[CPUS], ours[CPUS];
};

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

/* Each processor: ticks busy, of a hundred in each interval, on top of a hundred idle ones. */
static void write_ticks(struct bed *bed, const int *busy)
{
    char text[1000] = "";

    for (size_t i = 0, at = 0; i < CPUS; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "cpu%zu %d 0 0 %d 0 0 0 0 0 0\n", i, busy ? busy[i] : 0,
                               bed->ticks - (busy ? busy[i] : 0));
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
    bed.ticks = 100;
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

    bed->ticks += 100;
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

static void waits(struct bed *bed, int job, uint64_t spun_us, const char *polls)
{
    struct wire_waits waits = {.job = (uint64_t)job, .attempt = 1, .spun_us = spun_us, .polls = polls};

    usage_waits(&bed->usage, &waits);
}

/* Who polls at full speed because nobody is below leaves that to whoever comes. */
static void test_spun_is_idle(void **state)
{
    struct bed *bed = *state;

    char long_one[301];

    memset(long_one, '1', 300);
    long_one[300] = '\0';
    waits(bed, 1, 1, "1"); /* nobody knows it */
    usage_add_job(&bed->usage, 1, 1, (uint64_t[]){2, 3}, 2, true);
    waits(bed, 1, 5000000, long_one); /* no supervisor of ours says such a thing */
    waits(bed, 1, 5000000, "");       /* before this interval */
    let_pass(bed);
    write_used(bed, 1, 0.2);
    waits(bed, 1, 5120000, "");
    sample(bed, (int[]){0, 0, 100, 100, 50, 0, 0, 0});
    for (int i = 2; i <= 3; i++) {
        assert_true(fabs(bed->busy[i] - 0.4) < 0.05);
        assert_true(fabs(bed->ours[i] - 0.4) < 0.05);
    }
    assert_true(fabs(bed->busy[4] - 0.5) < 0.05); /* of others */
    let_pass(bed);
    write_used(bed, 1, 0.25);
    waits(bed, 1, INT64_MAX, ""); /* no more than it has used */
    sample(bed, (int[]){0, 0, 150, 150, 100, 0, 0, 0});
    assert_true(bed->busy[2] + bed->busy[3] > 0.4 && bed->busy[2] + bed->busy[3] < 0.6);
    let_pass(bed);
    write_used(bed, 1, 0.45);
    waits(bed, 1, 7, ""); /* a count that begins anew */
    sample(bed, (int[]){0, 0, 250, 250, 100, 0, 0, 0});
    assert_true(bed->busy[2] > 0.9 && bed->busy[3] > 0.9);
}

static void test_polls_are_told(void **state)
{
    struct bed *bed = *state;
    char many[1001];
    struct wire_used used[2];

    usage_add_job(&bed->usage, 1, 1, all, CPUS, true);
    waits(bed, 1, 0, "0-3,5");
    let_pass(bed);
    write_used(bed, 1, 0.1);
    sample(bed, (int[]){0, 0, 0, 100, 0, 0, 0, 0});
    assert_int_equal(usage_used(&bed->usage, used, 2), 1);
    assert_string_equal(used[0].polls, "0-3,5");
    for (size_t i = 0; i < sizeof(many) - 1; i++)
        many[i] = i % 4 == 3 ? ',' : '1';
    many[sizeof(many) - 2] = '\0';
    waits(bed, 1, 0, many);
    assert_int_equal(usage_used(&bed->usage, used, 2), 1);
    assert_int_equal(strlen(used[0].polls), 255); /* whole ones */
    waits(bed, 1, 0, "");
    assert_int_equal(usage_used(&bed->usage, used, 2), 1);
    assert_string_equal(used[0].polls, "");
}

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

static void order(struct bed *bed, uint64_t job, const uint64_t *cpus, size_t ncpus)
{
    struct wire_order_entry entry = {.job = job, .attempt = 1, .cpus = {(uint64_t *)cpus, ncpus}};
    struct wire_order order = {.entries = {&entry, 1}};

    report_order(&bed->usage, &order);
}

/* A job that goes on elsewhere is in orders to this host as well, long after its end here. */
static void test_order_after_the_end(void **state)
{
    struct bed *bed = *state;

    order(bed, 1, all, CPUS); /* it says how the job is to stand; that it is here says open */
    assert_int_equal(bed->usage.njobs, 0);
    usage_add_job(&bed->usage, 1, 1, all, CPUS, true);
    usage_end_job(&bed->usage, 1, 1, 0);
    assert_int_equal(bed->usage.njobs, 0);
    order(bed, 1, all, CPUS);
    assert_int_equal(bed->usage.njobs, 0);
}

/* Whom the root half holds after a restart of either half; whose end has not been heard is gone. */
static void test_holdings(void **state)
{
    struct bed *bed = *state;
    const struct wire_holding held[] = {{.job = 1, .attempt = 1}, {.job = 3, .attempt = 1}};

    usage_add_job(&bed->usage, 1, 1, all, CPUS, true);
    usage_add_job(&bed->usage, 2, 1, all, CPUS, true);
    write_used(bed, 1, 0.05);
    write_used(bed, 3, 100);
    usage_hold(&bed->usage, held, 2);
    assert_int_equal(bed->usage.njobs, 2);
    order(bed, 3, (uint64_t[]){5}, 1);
    let_pass(bed);
    sample(bed, NULL); /* what job 3 has used before is nothing of this interval */
    let_pass(bed);
    write_used(bed, 3, 100.1);
    sample(bed, (int[]){0, 0, 0, 0, 100, 100, 0, 0});
    expect_foreign(bed, (double[]){0, 0, 0, 0, 1, 0, 0, 0});
    usage_hold(&bed->usage, NULL, 0);
    assert_int_equal(bed->usage.njobs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_uneven, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_uneven_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_owner, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_choice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_spun_is_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_polls_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_order_after_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_holdings, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
