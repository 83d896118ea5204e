/* test_reserve.c - rt_reserve with a kernel that is a few files. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/config.h"
#include "rsd/root/reserve.h"
#include "tests/unit/scratch.h"

static char top[] = "/tmp/test-reserve-XXXXXX", sysctl[64], sched[64], mounts[64];
static struct reserve_kernel kernel = {sysctl, sched, mounts, "6.1.0-18-amd64", NULL, NULL};
static char why[600];

static void put(const char *name, const char *text)
{
    assert_true(scratch_put(top, name, text));
}

static long value(const char *name)
{
    char path[200];
    long number = 0;
    FILE *file;
    snprintf(path, sizeof(path), "%s/%s", top, name);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &number), 1);
    fclose(file);
    return number;
}

static bool there(const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", top, name);
    return access(path, F_OK) == 0;
}

static void make(const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", top, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void clear(const char *name)
{
    char command[300];
    snprintf(command, sizeof(command), "rm -rf %s/%s", top, name);
    assert_int_equal(system(command), 0);
}

static int fresh(void **state)
{
    (void)state;
    clear("*");
    kernel.release = "6.1.0-18-amd64";
    make("kernel");
    put("kernel/sched_rt_runtime_us", "950000\n");
    put("kernel/sched_rt_period_us", "1000000\n");
    put("mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n");
    return 0;
}

static void add_servers(void)
{
    kernel.release = "6.12.9";
    make("sched");
    make("sched/fair_server");
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof(name), "sched/fair_server/cpu%d", i);
        make(name);
        snprintf(name, sizeof(name), "sched/fair_server/cpu%d/runtime", i);
        put(name, "50000000\n");
        snprintf(name, sizeof(name), "sched/fair_server/cpu%d/period", i);
        put(name, "1000000000\n");
    }
}

static void keep(unsigned percent, unsigned ms)
{
    if (reserve_keep(&kernel, top, (struct reserve){percent, ms}, why, sizeof(why)) < 0)
        fail_msg("%s", why);
}

static void refused(unsigned percent, const char *word)
{
    assert_true(reserve_keep(&kernel, top, (struct reserve){percent, 0}, why, sizeof(why)) < 0);
    assert_non_null(strstr(why, "rt_reserve is not in force"));
    if (!strstr(why, word))
        fail_msg("\"%s\" does not say %s", why, word);
    assert_false(there("reserve"));
}

static void test_throttle(void **state)
{
    (void)state;
    keep(10, 0);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 900000);
    assert_true(there("reserve"));
    assert_int_equal(reserve_put_back(&kernel, top), 0);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 950000);
    assert_false(there("reserve"));
    assert_int_equal(reserve_put_back(&kernel, top), 0); /* nothing to do */
}

/* After a crash nobody has put anything back. */
static void test_first_value_is_remembered(void **state)
{
    (void)state;
    put("kernel/sched_rt_runtime_us", "-1\n");
    keep(10, 0);
    keep(20, 100);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 80000);
    assert_int_equal(value("kernel/sched_rt_period_us"), 100000);
    keep(1, 0);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 990000);
    assert_int_equal(value("kernel/sched_rt_period_us"), 1000000);
    keep(0, 0); /* taken out of rsd.conf */
    assert_int_equal(value("kernel/sched_rt_runtime_us"), -1);
    assert_false(there("reserve"));
}

static void test_fair_server(void **state)
{
    (void)state;
    add_servers();
    keep(10, 100);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 90000);
    assert_int_equal(value("kernel/sched_rt_period_us"), 100000);
    assert_int_equal(value("sched/fair_server/cpu0/runtime"), 10000000);
    assert_int_equal(value("sched/fair_server/cpu1/runtime"), 10000000);
    assert_int_equal(value("sched/fair_server/cpu1/period"), 100000000);
    clear("sched/fair_server/cpu1"); /* a CPU that goes is no obstacle */
    assert_int_equal(reserve_put_back(&kernel, top), 0);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 950000);
    assert_int_equal(value("kernel/sched_rt_period_us"), 1000000);
    assert_int_equal(value("sched/fair_server/cpu0/runtime"), 50000000);
    assert_int_equal(value("sched/fair_server/cpu0/period"), 1000000000);
    assert_false(there("reserve"));
}

/* Then who spins in real time has a processor for himself. */
static void test_nothing_is_kept(void **state)
{
    (void)state;
    assert_false(reserve_is_off(&kernel));
    put("kernel/sched_rt_runtime_us", "-1\n");
    assert_true(reserve_is_off(&kernel));
    keep(10, 0);
    assert_false(reserve_is_off(&kernel));
    keep(0, 0);
    assert_true(reserve_is_off(&kernel));
    kernel.release = "6.12.9"; /* its fair server gives time to others, whatever the throttle says */
    assert_false(reserve_is_off(&kernel));
    kernel.release = "6.1.0-18-amd64";
    clear("kernel/sched_rt_runtime_us");
    assert_false(reserve_is_off(&kernel));
}

/* What the throttle would be told counts for nothing, and costs the servers their accounting. */
static void test_without_throttle(void **state)
{
    (void)state;
    add_servers();
    put("sched/debug", "cpu#0\n  .nr_running : 1\nrt_rq[0]:\n  .rt_nr_running : 0\n\ndl_rq[0]:\n  .rt_throttled : 0\n");
    keep(10, 100);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 950000);
    assert_int_equal(value("kernel/sched_rt_period_us"), 1000000);
    assert_int_equal(value("sched/fair_server/cpu1/runtime"), 10000000);
    assert_int_equal(value("sched/fair_server/cpu1/period"), 100000000);
    assert_int_equal(reserve_put_back(&kernel, top), 0);
    assert_int_equal(value("sched/fair_server/cpu0/runtime"), 50000000);
    assert_int_equal(value("sched/fair_server/cpu0/period"), 1000000000);

    put("sched/debug", "rt_rq[0]:/\n  .rt_nr_running : 0\n  .rt_throttled : 0\n\ndl_rq[0]:\n"); /* RT_GROUP_SCHED */
    keep(10, 0);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 900000);
    assert_int_equal(value("sched/fair_server/cpu1/runtime"), 100000000);
}

static void test_longer_pieces(void **state)
{
    (void)state;
    put("kernel/sched_rt_runtime_us", "95000\n");
    put("kernel/sched_rt_period_us", "100000\n");
    keep(5, 1000);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 950000);
    assert_int_equal(value("kernel/sched_rt_period_us"), 1000000);
    reserve_put_back(&kernel, top);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 95000);
    assert_int_equal(value("kernel/sched_rt_period_us"), 100000);
}

static void test_somebody_else(void **state)
{
    (void)state;
    keep(10, 0);
    put("kernel/sched_rt_runtime_us", "970000\n");
    reserve_put_back(&kernel, top);
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 970000);
    assert_false(there("reserve"));
}

static void test_no_debugfs(void **state)
{
    (void)state;
    kernel.release = "6.12.9";
    refused(10, "debugfs");
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 950000);
}

static void test_no_sysctl(void **state)
{
    (void)state;
    clear("kernel/*");
    refused(10, "sched_rt_runtime_us: No such file");
}

/* What is written by then is put back. */
static void test_refused_half_way(void **state)
{
    char path[200];
    (void)state;
    add_servers();
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/sched/fair_server/cpu%d/runtime", top, i);
        unlink(path);
        assert_int_equal(symlink("/proc/sys/kernel/ngroups_max", path), 0); /* a number that nobody may write */
    }
    refused(10, "fair_server");
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 950000);
}

/* ---- a kernel that has forgotten the servers' shares ---- */

static double total_bw; /* of all CPUs, as it counts */

static void number_of(const char *path, const char *name, long *number)
{
    char other[200];
    snprintf(other, sizeof(other), "%.*s/%s", (int)(strrchr(path, '/') - path), path, name);
    *number = value(other + strlen(top) + 1);
}

/* As Linux 6.12.95: a share is refused that would make the sum negative, or more than is for real time. */
static int forgetful(void *data, const char *path, int64_t *number, bool set)
{
    long runtime, period;
    double before, after;
    char text[40];
    (void)data;
    if (!set) {
        *number = value(path + strlen(top) + 1);
        return 0;
    }
    number_of(path, "runtime", &runtime);
    number_of(path, "period", &period);
    before = (double)runtime / (double)period;
    *(strstr(path, "/runtime") ? &runtime : &period) = (long)*number;
    after = (double)runtime / (double)period;
    if (after > 1)
        return -EINVAL;
    if (total_bw - before + after < -1e-9 || total_bw - before + after > 2 * 0.95)
        return -EBUSY;
    total_bw += after - before;
    snprintf(text, sizeof(text), "%" PRId64 "\n", *number);
    put(path + strlen(top) + 1, text);
    return 0;
}

static void shares(long runtime, long period)
{
    assert_int_equal(value("sched/fair_server/cpu0/runtime"), runtime);
    assert_int_equal(value("sched/fair_server/cpu1/runtime"), runtime);
    assert_int_equal(value("sched/fair_server/cpu0/period"), period);
    assert_int_equal(value("sched/fair_server/cpu1/period"), period);
}

static void test_forgetful(void **state)
{
    (void)state;
    add_servers();
    put("sched/debug", "rt_rq[0]:\n  .rt_nr_running : 0\n\n");
    kernel.number = forgetful;
    total_bw = 0;
    keep(5, 100); /* the same share in other pieces */
    shares(5000000, 100000000);
    assert_int_equal(reserve_put_back(&kernel, top), 0);
    shares(50000000, 1000000000);
    refused(2, "busy");
    shares(50000000, 1000000000);
    keep(10, 100);
    shares(10000000, 100000000);
    total_bw = 0; /* it is read once more */
    assert_int_equal(reserve_put_back(&kernel, top), -EBUSY);
    shares(10000000, 100000000); /* 50 ms of 100 would be worse */
    assert_true(there("reserve"));
    total_bw = 0.2; /* right again */
    assert_int_equal(reserve_put_back(&kernel, top), 0);
    shares(50000000, 1000000000);
    assert_false(there("reserve"));
    kernel.number = NULL;
}

static void test_budgets_of_groups(void **state)
{
    char text[200];
    (void)state;
    make("cpu");
    put("cpu/cpu.rt_runtime_us", "950000\n");
    snprintf(text, sizeof(text), "cgroup %s/cpu cgroup rw,relatime,cpuacct,cpu 0 0\n", top);
    put("mounts", text);
    refused(10, "RT_GROUP_SCHED");
    assert_int_equal(value("kernel/sched_rt_runtime_us"), 950000);
    clear("cpu/*"); /* the hierarchy without budgets */
    keep(10, 0);
}

static void test_damaged_note(void **state)
{
    char text[600];
    (void)state;
    put("other", "7\n");
    put("kernel/other", "7\n"); /* beside ours: the note is elmer-jobs's, and root reads it */
    snprintf(text, sizeof(text), "1 7 %s/other\n1 7 %s/kernel/../other\n1 7 %s/kernel/other\nnonsense\n", top, top,
             top);
    put("reserve", text);
    assert_int_equal(reserve_put_back(&kernel, top), 0);
    assert_int_equal(value("other"), 7);
    assert_int_equal(value("kernel/other"), 7);
}

static int configured(const char *line, struct rsd_config *config, struct err *err)
{
    char path[200], text[200];
    rsd_config_default(config);
    snprintf(text, sizeof(text), "[rsd]\nname = ws1\n%s", line);
    put("rsd.conf", text);
    snprintf(path, sizeof(path), "%s/rsd.conf", top);
    return rsd_config_read(config, path, false, NULL, err);
}

static void test_configuration(void **state)
{
    static const struct {
        const char *line;
        unsigned percent, ms;
        const char *word;
    } cases[] = {
        {"", 0, 0, NULL},
        {"rt_reserve = 5%\n", 5, 0, NULL},
        {"rt_reserve = 20 %\n", 20, 0, NULL},
        {"rt_reserve = 1% of 10ms\n", 1, 10, NULL},
        {"rt_reserve = 5% of 100 ms\n", 5, 100, NULL},
        {"rt_reserve = 5\n", 0, 0, "such as 5%"},
        {"rt_reserve = 0%\n", 0, 0, "1% to 20%"},
        {"rt_reserve = 21%\n", 0, 0, "rsd.conf:3"},
        {"rt_reserve = -5%\n", 0, 0, "such as 5%"},
        {"rt_reserve = 5%x\n", 0, 0, "such as 5%"},
        {"rt_reserve = 5% of 5ms\n", 0, 0, "10ms to 1000ms"},
        {"rt_reserve = 5% of 1001ms\n", 0, 0, "10ms to 1000ms"},
        {"rt_reserve = 5% of 10000ms\n", 0, 0, "such as 5%"},
        {"rt_reserve = 5% of 100\n", 0, 0, "such as 5%"},
        {"rt_reserve = \n", 0, 0, "such as 5%"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rsd_config config;
        struct err err = ERR_INIT;
        int result = configured(cases[i].line, &config, &err);
        if (cases[i].word) {
            assert_true(result < 0);
            if (!strstr(err.text, cases[i].word))
                fail_msg("%s: \"%s\" does not say %s", cases[i].line, err.text, cases[i].word);
            continue;
        }
        if (result < 0)
            fail_msg("%s: %s", cases[i].line, err.text);
        assert_int_equal(config.rt_reserve, cases[i].percent);
        assert_int_equal(config.rt_reserve_ms, cases[i].ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_throttle, fresh),
        cmocka_unit_test_setup(test_first_value_is_remembered, fresh),
        cmocka_unit_test_setup(test_fair_server, fresh),
        cmocka_unit_test_setup(test_nothing_is_kept, fresh),
        cmocka_unit_test_setup(test_without_throttle, fresh),
        cmocka_unit_test_setup(test_forgetful, fresh),
        cmocka_unit_test_setup(test_longer_pieces, fresh),
        cmocka_unit_test_setup(test_somebody_else, fresh),
        cmocka_unit_test_setup(test_no_debugfs, fresh),
        cmocka_unit_test_setup(test_no_sysctl, fresh),
        cmocka_unit_test_setup(test_refused_half_way, fresh),
        cmocka_unit_test_setup(test_budgets_of_groups, fresh),
        cmocka_unit_test_setup(test_damaged_note, fresh),
        cmocka_unit_test_setup(test_configuration, fresh),
    };
    assert_non_null(scratch_dir(top));
    snprintf(sysctl, sizeof(sysctl), "%s/kernel", top);
    snprintf(sched, sizeof(sched), "%s/sched", top);
    snprintf(mounts, sizeof(mounts), "%s/mounts", top);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
