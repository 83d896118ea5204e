/* test_replay.c - what a replay of a history takes into account: arrays, hosts that were away, the levels that jobs
 * had, and other settings. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esim/json.h"
#include "esim/keys.h"
#include "esim/plan.h"
#include "tests/unit/esim/history_bed.h"

enum { ROOM = 1000 };

static double series[ROOM];
static uint64_t explained; /* 0: none */
static FILE *told;

/* One config of a history as it was, on its own hosts, and what became of each job. */
static struct result replay(const struct history *h, const struct away *away, int naway, FILE *records)
{
    struct config config;
    struct result result;

    keys_default(&config);
    config.history = h;
    config.whole = config.exactly = true;
    config.jobs_max = h->njobs;
    config.world.core.allocator = ALLOCATOR_V1;
    config.world.away = away;
    config.world.naway = naway;
    config.records = records;
    config.world.explain = explained;
    config.world.told = told;
    assert_true(keys_complete(&config, fault, sizeof(fault)));
    run(&config, &result, series, ROOM, 1, NULL);
    if (!result.done)
        fail_msg("%s", result.fault);
    return result;
}

/* So many tasks at a time as then, the others behind them; more than AFTER_MAX are waited for. */
static void test_arrays(void **state)
{
    enum { TASKS = 300, LIMIT = 2 /* put() says so */ };
    struct of array = {1, "alice", 1000, -1, 1300, 1, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, TASKS, 0};
    struct of passes = {400, "bob", 1001, 1001, 1002, 1, 1, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0};
    struct of behind = {401, "bob", 1002, 1300, 1301, 1, 1, JOB_DONE, REASON_EXITED, NULL, 0, "ok:1", 0, 0};
    struct of one = {402, "bob", 1003, 1010, 1012, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, "ok:5", 0, 0};
    struct bed *bed = *state;
    struct host_row host = {.name = "ws1", .row = {.up = true, .ncpus = 8}};
    struct result result;
    struct history *h;

    put(bed, &array);
    for (unsigned k = 0; k < TASKS; k++) {
        const unsigned begins = 1000 + k / LIMIT * 2;
        put(bed,
            &(struct of){2 + k, "alice", 1000, begins, begins + 2, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 1});
    }
    put(bed, &passes);
    put(bed, &behind);
    put(bed, &one);
    await(bed, store_put_host(bed->store, &host));
    h = must_read(bed->path, INT64_MIN, INT64_MAX);
    assert_int_equal(h->jobs[0].task_limit, LIMIT);
    result = replay(h, NULL, 0, NULL);
    assert_int_equal(result.jobs, TASKS + 3);
    for (unsigned k = 0; k < TASKS; k++) {
        const unsigned turnaround = 2 + k / LIMIT * 2;
        expect_near(series[k], turnaround, 0.01);
    }
    expect_near(series[TASKS], 1, 0.01);
    expect_near(series[TASKS + 1], 299, 0.01);
    expect_near(series[TASKS + 2], 3, 0.01); /* task 3 ends at 1004 */
    history_destroy(h);
}

/* The limit is 2; the third waits for the first, and the fifth for the third too. */
static void test_explained_task(void **state)
{
    struct of array = {1, "alice", 1000, -1, 1300, 1, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 5, 0};
    struct bed *bed = *state;
    struct host_row host = {.name = "ws1", .row = {.up = true, .ncpus = 8}};
    char *text = NULL;
    size_t size = 0;
    struct history *h;

    put(bed, &array);
    for (unsigned k = 0; k < 5; k++) {
        const unsigned begins = 1000 + k / 2 * 2;
        put(bed,
            &(struct of){2 + k, "alice", 1000, begins, begins + 2, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 1});
    }
    await(bed, store_put_host(bed->store, &host));
    h = must_read(bed->path, INT64_MIN, INT64_MAX);
    explained = 6;
    told = open_memstream(&text, &size);
    assert_non_null(told);
    replay(h, NULL, 0, NULL);
    assert_int_equal(fclose(told), 0);
    explained = 0;
    assert_non_null(strstr(text, "0.000 s: job 6 waits (task-limit), 0 jobs ahead, and 2 tasks of its array\n"));
    assert_non_null(strstr(text, "2.000 s: job 2 ends and leaves 1 processor\n"));
    assert_non_null(strstr(text, "2.000 s: job 6 waits (task-limit), 0 jobs ahead\n"));
    assert_non_null(strstr(text, "4.000 s: job 6 starts on 1 processor, the first is ws1:"));
    free(text);
    history_destroy(h);
}

/* A host that is away takes no new jobs, and those that it has go on. */
static void test_away(void **state)
{
    static const struct of jobs[] = {
        {1, "alice", 1000, 1000, 1010, 2, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {2, "alice", 1001, 1010, 1014, 2, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {3, "alice", 1020, 1020, 1021, 2, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
    };
    static const double turnarounds[] = {10, 33 - 1 + 4, 33 + 5 - 20};
    struct bed *bed = *state;
    struct away away[2];
    struct result result;
    struct history *h;

    h = history_of(bed, jobs, sizeof(jobs) / sizeof(jobs[0]), 2);
    assert_true(history_away(h, "ws1=@1005..@1020.5", &away[0], fault, sizeof(fault)));
    assert_int_equal(away[0].from_ms, 5000);
    assert_int_equal(away[0].until_ms, 20500);
    assert_true(history_away(h, "ws1=@1020.5..@1033", &away[1], fault, sizeof(fault)));
    result = replay(h, away, 2, NULL);
    assert_int_equal(result.jobs, 3);
    for (size_t i = 0; i < 3; i++)
        expect_near(series[i], turnarounds[i], 0.01);
    assert_false(history_away(h, "ws2=@1005..@1020", &away[0], fault, sizeof(fault)));
    assert_string_equal(fault, "--away: 'ws2' is no host of this history");
    assert_false(history_away(h, "ws1=@1005..@1004", &away[0], fault, sizeof(fault)));
    assert_false(history_away(h, "ws1=@1005", &away[0], fault, sizeof(fault)));
    assert_false(history_away(h, "ws1", &away[0], fault, sizeof(fault)));
    history_destroy(h);
}

/* Hosts that come back together: a narrow job does not pass one that waits for both. */
static void test_away_together(void **state)
{
    static const struct of jobs[] = {
        {1, "alice", 1010, 1020, 1030, 3, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {2, "bob", 1011, 1030, 1040, 1, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
    };
    struct bed *bed = *state;
    struct host_row host = {.name = "ws2", .row = {.up = true, .ncpus = 1}};
    struct away away[2];
    struct history *h;

    await(bed, store_put_host(bed->store, &host));
    h = history_of(bed, jobs, sizeof(jobs) / sizeof(jobs[0]), 2);
    assert_true(history_away(h, "ws1=@1005..@1020", &away[0], fault, sizeof(fault)));
    assert_true(history_away(h, "ws2=@1005..@1020", &away[1], fault, sizeof(fault)));
    assert_int_equal(replay(h, away, 2, NULL).jobs, 2);
    expect_near(series[0], 30 - 10, 0.01);
    expect_near(series[1], 40 - 11, 0.01);
    history_destroy(h);
}

/* What comes next stays what it is while hosts come and go. */
static void test_away_before_array(void **state)
{
    static const struct of jobs[] = {
        {1, "bob", 1000, 1000, 1001, 1, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {2, "alice", 1010, -1, 1014, 1, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 4, 0},
        {3, "alice", 1010, 1010, 1012, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 2},
        {4, "alice", 1010, 1010, 1012, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 2},
        {5, "alice", 1010, 1012, 1014, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 2},
        {6, "alice", 1010, 1012, 1014, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 2},
    };
    static const double turnarounds[] = {1, 2, 2, 4, 4};
    struct bed *bed = *state;
    struct away away;
    struct history *h;

    h = history_of(bed, jobs, sizeof(jobs) / sizeof(jobs[0]), 8);
    assert_true(history_away(h, "ws1=@1003..@1006", &away, fault, sizeof(fault)));
    assert_int_equal(replay(h, &away, 1, NULL).jobs, 5);
    for (size_t i = 0; i < 5; i++)
        expect_near(series[i], turnarounds[i], 0.01);
    history_destroy(h);
}

/* The order of the hosts in elmer.conf, which are the nodes of a cube, is not known: so a job may have each of them. */
static void test_cube(void **state)
{
    static const struct of jobs[] = {
        {1, "alice", 1000, 1000, 1010, 1, 0, JOB_DONE, REASON_EXITED, "ws1", 0, NULL, 0, 0},
        {2, "alice", 1000, 1010, 1020, 1, 0, JOB_DONE, REASON_EXITED, "ws1", 0, NULL, 0, 0},
    };
    struct bed *bed = *state;
    struct history *h = history_of(bed, jobs, sizeof(jobs) / sizeof(jobs[0]), 1);
    const struct away away = {0, 1000, 2000};
    struct config config;
    struct plan plan;
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);

    assert_non_null(out);
    assert_int_equal(h->bound, 2);
    keys_default(&config);
    config.history = h;
    config.whole = config.exactly = true;
    config.jobs_max = h->njobs;
    assert_true(keys_set(&config, "cube", "1", fault, sizeof(fault)));
    assert_true(plan_make(&plan, &config, NULL, NULL, fault, sizeof(fault)));
    plan_run(&plan, 1, NULL);
    assert_int_equal(plan.results[0].jobs, 2);
    expect_near(plan.series[0][0], 10, 0.01);
    expect_near(plan.series[0][1], 10, 0.01);
    assert_true(json_print(out, &plan));
    assert_int_equal(fclose(out), 0);
    assert_non_null(
        strstr(line, "\"not_simulated\":[\"foreign-load\",\"failures\",\"drains\",\"holds\",\"moves\",\"hosts\"]"));
    free(line);
    plan_fini(&plan);
    config.world.away = &away;
    config.world.naway = 1;
    assert_false(plan_make(&plan, &config, NULL, NULL, fault, sizeof(fault)));
    assert_string_equal(fault, "away: not in a cube: the history does not say which of its nodes a host was");
    plan_fini(&plan);
    history_destroy(h);
}

/* The first computes for 60 % of its time, the second for 80 %: beside the first it is half as fast. */
static void test_what_if(void **state)
{
    static const struct of jobs[] = {
        {1, "alice", 1000, 1000, 1010, 2, 12, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {2, "bob", 1002, 1010, 1014, 2, 6.4, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
    };
    static const struct {
        const char *options[5], *compare;
        double least[2], most[2]; /* of the second's turnaround, with each */
    } cases[] = {
        {{"allocator", "v1", NULL}, "levels=1,2", {12, 8}, {12, 8}},
        /* v2 knows after some seconds that the first does not make the host too busy */
        {{"levels", "2", NULL}, "allocator=v1,v2", {8, 9}, {8, 10}},
        {{"allocator", "v2", "levels", "2", NULL}, "threshold=50%,70%", {12, 9}, {12, 10}},
    };
    struct bed *bed = *state;
    struct history *h = history_of(bed, jobs, sizeof(jobs) / sizeof(jobs[0]), 2);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config config;
        struct plan plan;
        keys_default(&config);
        config.history = h;
        config.whole = config.exactly = true;
        config.jobs_max = h->njobs;
        for (const char *const *option = cases[i].options; *option; option += 2)
            assert_true(keys_set(&config, option[0], option[1], fault, sizeof(fault)));
        assert_true(plan_make(&plan, &config, NULL, cases[i].compare, fault, sizeof(fault)));
        plan_run(&plan, 1, NULL);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(plan.results[k].jobs, 2);
            expect_near(plan.series[k][0], 10, 0.01);
            if (plan.series[k][1] < cases[i].least[k] - 0.01 || plan.series[k][1] > cases[i].most[k] + 0.01)
                fail_msg("%s, %zu: %g", cases[i].compare, k, plan.series[k][1]);
        }
        plan_fini(&plan);
    }
    history_destroy(h);
}

/* How long jobs were at each level. */
static void test_levels(void **state)
{
    static const struct of jobs[] = {
        {1, "alice", 1000, 1000, 1010, 2, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {2, "alice", 1001, 1001, 1014, 2, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {3, "alice", 1002, 1002, 1004, 1, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
    };
    static const char *const levels[] = {"\"level_seconds\":[0.000,0.000,2.000]}", "\"level_seconds\":[10.000]}",
                                         "\"level_seconds\":[4.000,9.000]}"}; /* in the order of their ends */
    struct bed *bed = *state;
    struct history *h;
    FILE *records = tmpfile();
    char line[500];

    assert_non_null(records);
    h = history_of(bed, jobs, sizeof(jobs) / sizeof(jobs[0]), 2);
    h->levels = 3;
    replay(h, NULL, 0, records);
    rewind(records);
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(fgets(line, sizeof(line), records));
        if (!strstr(line, levels[i]))
            fail_msg("'%s' is not in %s", levels[i], line);
    }
    fclose(records);
    history_destroy(h);
}

/* Who was there when the time began waits for as long as he did; and time counts from the first job that is measured
 * to the last end of these. */
static void test_backlog(void **state)
{
    static const struct of jobs[] = {
        {1, "alice", 500, 500, 510, 1, 10, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {2, "alice", 1000, 1000, 1100, 1, 100, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {3, "alice", 1001, 1100, 1200, 1, 100, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {4, "bob", 1050, 1200, 1201, 1, 1, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {5, "bob", 1160, 1201, 1211, 1, 10, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
    };
    struct bed *bed = *state;
    struct result result;
    struct history *h;

    history_destroy(history_of(bed, jobs, sizeof(jobs) / sizeof(jobs[0]), 1));
    h = must_read(bed->path, 1150000, INT64_MAX);
    assert_int_equal(h->njobs, 4); /* when 2 came nobody was there */
    assert_int_equal(h->measured, 1);
    result = replay(h, NULL, 0, NULL);
    assert_int_equal(result.jobs, 1);
    expect_near(result.turnaround.mean, 51, 0.01);
    expect_near(result.seconds, 51, 0.01);
    expect_near(result.utilisation.mean, 1, 0.001);
    expect_near(result.load_out.mean, 10.0 / 51, 0.001);
    history_destroy(h);
    h = must_read(bed->path, 700000, INT64_MAX);
    assert_int_equal(h->njobs, 4);
    assert_int_equal(h->measured, 4);
    history_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arrays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_explained_task, setup, teardown),
        cmocka_unit_test_setup_teardown(test_away, setup, teardown),
        cmocka_unit_test_setup_teardown(test_away_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_away_before_array, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cube, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_if, setup, teardown),
        cmocka_unit_test_setup_teardown(test_levels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_backlog, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
