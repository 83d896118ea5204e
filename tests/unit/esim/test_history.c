/* test_history.c - elmer's store as a workload: what the store's own writer has written is read while it is open, and
 * the files stay as they are; what a replay says. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "esim/history.h"
#include "esim/json.h"
#include "esim/keys.h"
#include "esim/plan.h"
#include "esim/show.h"
#include "esim/snapshot.h"
#include "tests/unit/esim/history_bed.h"

enum { ROOM = 1000 };

static double series[ROOM];

/* ---- a store ---- */

static void put_all(struct bed *bed)
{
    static const struct of jobs[] = {
        {1, "alice", 1000, 1000, 1010, 4, 40, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {2, "bob", 1001, 1010.5, 1020, 4, 20, JOB_DONE, REASON_EXITED, NULL, 0.5, NULL, 0, 0},
        {3, "alice", 1002, 1020, 1030, 2, 0.1, JOB_DONE, REASON_KILLED, "ws2", 0, NULL, 0, 0},
        {4, "alice", 1003, -1, 1004, 2, 0, JOB_CANCELLED, REASON_CANCELLED, NULL, 0, NULL, 0, 0},
        {5, "alice", 1003, -1, 1004, 2, 0, JOB_DONE, REASON_START_FAILED, NULL, 0, NULL, 0, 0},
        {6, "alice", 1040, 1040, -1, 2, 0, JOB_RUNNING, REASON_NONE, NULL, 0, NULL, 0, 0},
        {7, "alice", 1041, -1, -1, 2, 0, JOB_QUEUED, REASON_WAITING, NULL, 0, NULL, 0, 0},
        {8, "bob", 2000, 2000, 2030, 2, 60, JOB_DONE, REASON_EXITED, "ws1", 0, NULL, 0, 0},
        {9, "alice", 2010, 2030, 2031, 4, 4, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {10, "alice", 2011, -1, 2040, 1, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 3, 0}, /* its tasks are jobs */
        {11, "bob", 2050, 2060, 2055, 2, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0}, /* the clock was set */
        {12, "bob", 2051, 2045, 2060, 2, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
    };
    struct host_row hosts[] = {{.name = "ws1", .row = {.up = true, .ncpus = 2}},
                               {.name = "ws2", .row = {.up = true, .ncpus = 2, .drained = true}},
                               {.name = "ws3", .row = {.up = true, .ncpus = 4}},
                               {.name = "ws4", .row = {.up = true, .ncpus = 4, .drained = true}},
                               {.name = "ws5", .row = {.up = false}}};
    struct setting_row setting = {"allocator", "v1"};
    uint64_t number = 0;

    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        put(bed, &jobs[i]);
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        store_put_host(bed->store, &hosts[i]);
    number = store_put_setting(bed->store, &setting);
    await(bed, number);
}

/* What is in its directory: names, sizes and times. */
static void look(const struct bed *bed, char *text, size_t size)
{
    struct dirent **names;
    int count = scandir(bed->dir, &names, NULL, alphasort);
    size_t end = 0;

    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char path[400];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", bed->dir, names[i]->d_name);
        assert_int_equal(stat(path, &st), 0);
        if (strcmp(names[i]->d_name, "..") != 0) /* is everybody's */
            end += (size_t)snprintf(text + end, size - end, "%s %lld %lld.%09ld\n", names[i]->d_name,
                                    (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        free(names[i]);
    }
    free(names);
}

static void expect_fault(const char *path, const char *what)
{
    assert_null(history_read(path, INT64_MIN, INT64_MAX, fault, sizeof(fault)));
    if (!strstr(fault, what))
        fail_msg("'%s' does not say '%s'", fault, what);
}

static void check_jobs(const struct history *h)
{
    assert_int_equal(h->njobs, 5);
    assert_int_equal(h->measured, 5);
    assert_int_equal(h->unfinished, 2);
    assert_int_equal(h->cancelled, 1);
    assert_int_equal(h->never_started, 1);
    assert_int_equal(h->backwards, 2);
    assert_int_equal(h->killed, 1);
    assert_int_equal(h->lost, 0);
    assert_int_equal(h->jobs[0].nprocs, 4);
    assert_string_equal(h->jobs[1].user, "bob");
    assert_int_equal(h->jobs[1].started_ms, 1010500);
    assert_int_equal(h->jobs[1].allocated_ms, 1010000);
    expect_near(h->jobs[0].share, 1, 0);
    expect_near(h->jobs[1].share, 0.5, 1e-6);
    expect_near(h->jobs[2].share, 0.005, 1e-6);
    expect_near(h->jobs[2].work_ms, 10000, 1e-6);
    expect_near(h->turnaround.mean, (10 + 19 + 28 + 30 + 21) / 5.0, 1e-9);
    expect_near(h->median, 21, 0);
}

static void check_machine(const struct history *h)
{
    assert_int_equal(h->nhosts, 3); /* not ws4, which took no jobs, and not ws5 */
    assert_string_equal(h->hosts[1], "ws2");
    assert_int_equal(h->cpus[1], 2);
    assert_int_equal(h->cpus[2], 4);
    assert_int_equal(h->drained, 1);
    assert_int_equal(h->levels, 1);
    assert_int_equal(h->allocator, ALLOCATOR_V1);
    assert_int_equal(h->policy, POLICY_COUNT);
    assert_int_equal(h->jobs[2].nhosts, 1);
    assert_int_equal(h->jobs[2].hosts[0], 1);
}

static void test_read(void **state)
{
    struct bed *bed = *state;
    char before[1000], after[1000];
    struct history *h;

    assert_int_equal(HISTORY_SCHEMA, STORE_SCHEMA); /* raise it when esim has been looked at */
    put_all(bed);
    look(bed, before, sizeof(before));
    assert_non_null(strstr(before, "db-wal")); /* elmer has it open, and not all of it is in the file itself */
    h = must_read(bed->path, INT64_MIN, INT64_MAX);
    check_jobs(h);
    check_machine(h);
    history_destroy(h);
    look(bed, after, sizeof(after));
    assert_string_equal(before, after);
    close_store(bed);
    look(bed, before, sizeof(before));
    assert_null(strstr(before, "db-wal"));
    h = must_read(bed->path, INT64_MIN, INT64_MAX);
    check_jobs(h);
    history_destroy(h);
    look(bed, after, sizeof(after));
    assert_string_equal(before, after);
}

static void test_window(void **state)
{
    struct bed *bed = *state;
    struct config config;
    struct result result;
    struct history *h;
    struct plan plan;

    put_all(bed);
    h = must_read(bed->path, 2005000, INT64_MAX);
    assert_int_equal(h->njobs, 2); /* 8 was there when 9 was submitted */
    assert_int_equal(h->measured, 1);
    assert_false(h->jobs[0].measured);
    expect_near(h->turnaround.mean, 21, 0);
    keys_default(&config);
    config.history = h;
    config.whole = config.exactly = true;
    config.jobs_max = h->njobs;
    assert_true(keys_set(&config, "hosts", "2", fault, sizeof(fault)));
    assert_false(plan_make(&plan, &config, NULL, "trace=a,b", fault, sizeof(fault)));
    assert_string_equal(fault, "--history and --trace: one of them");
    plan_fini(&plan);
    assert_false(plan_make(&plan, &config, "jobs=1,2", NULL, fault, sizeof(fault)));
    assert_non_null(strstr(fault, "a history has the jobs that it has"));
    plan_fini(&plan);
    assert_true(keys_complete(&config, fault, sizeof(fault)));
    run(&config, &result, series, ROOM, 1, NULL);
    assert_int_equal(result.jobs, 1);
    expect_near(result.turnaround.mean, 21, 0.01);
    history_destroy(h);
    h = must_read(bed->path, INT64_MIN, 1002000);
    assert_int_equal(h->njobs, 2);
    history_destroy(h);
    assert_null(history_read(bed->path, 9000000, INT64_MAX, fault, sizeof(fault)));
}

static void test_refused(void **state)
{
    struct bed *bed = *state;
    char text[100], path[100];
    FILE *out;
    sqlite3 *db;

    put_all(bed);
    close_store(bed);
    assert_int_equal(sqlite3_open(bed->path, &db), SQLITE_OK);
    snprintf(text, sizeof(text), "PRAGMA user_version = %d", HISTORY_SCHEMA + 1);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_fault(bed->path, "use the esim of the elmer that wrote it");
    assert_int_equal(sqlite3_open(bed->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA application_id = 1", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_fault(bed->path, "not a store of elmer");
    snprintf(path, sizeof(path), "%s/text", bed->dir);
    out = fopen(path, "w");
    assert_non_null(out);
    fputs("this is no database at all, however long one looks at it\n", out);
    fclose(out);
    expect_fault(path, "not a database");
    unlink(path);
    expect_fault(path, "No such file");
    expect_fault(bed->dir, "not a file");
}

/* ---- a replay, and what if ---- */

/* All of it, to be replayed as it is. */
static struct history *read_whole(struct bed *bed, struct config *config)
{
    struct history *h;

    put_all(bed);
    h = must_read(bed->path, INT64_MIN, INT64_MAX);
    keys_default(config);
    config->history = h;
    config->whole = config->exactly = true;
    config->jobs_max = h->njobs;
    return h;
}

static void test_replay(void **state)
{
    struct bed *bed = *state;
    struct config config;
    struct plan plan;
    struct difference d;
    struct history *h;

    h = read_whole(bed, &config);
    assert_true(keys_set(&config, "hosts", "2", fault, sizeof(fault)));
    assert_true(plan_make(&plan, &config, NULL, "without-user=-,bob,1001", fault, sizeof(fault)));
    plan_run(&plan, 2, NULL);
    assert_true(plan.results[0].done && plan.results[1].done && plan.results[2].done);
    assert_int_equal(plan.results[0].jobs, 5);
    for (int i = 0; i < 5; i++) /* two hosts, one level: as it was */
        expect_near(plan.series[0][i], (double)(h->jobs[i].ended_ms - h->jobs[i].submitted_ms) / 1000, 0.01);
    assert_int_equal(plan.results[1].jobs, 3); /* of alice; 3 and 9 need not wait for bob's */
    d = plan_difference(&plan, 0, 1);
    assert_int_equal(d.jobs, 3);
    expect_near(d.turnaround.mean, (-10 - 20) / 3.0, 0.01);
    assert_int_equal(plan.results[2].jobs, 2);
    plan_fini(&plan);
    assert_true(plan_make(&plan, &config, NULL, "add-hosts=0,2", fault, sizeof(fault)));
    plan_run(&plan, 2, NULL);
    d = plan_difference(&plan, 0, 1);
    assert_true(d.turnaround.mean < -1);
    plan_fini(&plan);
    assert_true(plan_make(&plan, &config, NULL, "hosts=2,1", fault, sizeof(fault)));
    plan_run(&plan, 2, NULL);
    assert_int_equal(plan.results[1].refused, 4); /* four processors, or ws2 alone */
    plan_fini(&plan);
    assert_false(plan_make(&plan, &config, NULL, "without-user=-,carol", fault, sizeof(fault)));
    plan_fini(&plan);
    history_destroy(h);
}

/* ---- what is said of it ---- */

/* What show() prints. */
static void shown(const struct plan *plan, char *text, size_t size)
{
    FILE *to = tmpfile();
    int before;

    assert_non_null(to);
    fflush(stdout);
    before = dup(1);
    dup2(fileno(to), 1);
    show(plan);
    fflush(stdout);
    dup2(before, 1);
    close(before);
    rewind(to);
    text[fread(text, 1, size - 1, to)] = '\0';
    fclose(to);
}

static void expect_json(const struct plan *plan)
{
    static const struct {
        const char *key;
        int number;
    } counts[] = {{"jobs", 5},   {"unfinished", 2}, {"cancelled", 1}, {"never_started", 1}, {"backwards", 2},
                  {"killed", 1}, {"lost", 0},       {"drained", 1},   {"away", 0}};
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    const json_t *recorded, *unknown;
    json_t *all;

    assert_non_null(out);
    assert_true(json_print(out, plan));
    assert_int_equal(fclose(out), 0);
    all = json_loads(line, 0, NULL);
    recorded = json_object_get(all, "recorded");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        assert_true(json_is_integer(json_object_get(recorded, counts[i].key)));
        assert_int_equal(json_integer_value(json_object_get(recorded, counts[i].key)), counts[i].number);
    }
    unknown = json_object_get(recorded, "not_simulated");
    assert_int_equal(json_array_size(unknown), 5);
    assert_string_equal(json_string_value(json_array_get(unknown, 0)), "foreign-load");
    json_decref(all);
    free(line);
}

/* What is left out, and what cannot be known, is said below the table and in the JSON. */
static void test_limits(void **state)
{
    static const char *const lines[] = {
        "\nReplayed on 2 hosts with 4 processors, D = 1, v1; elmer.conf is not in the store, so say what was "
        "different.\n",
        "\nLeft out: 2 that have not ended, 1 that were cancelled, 1 that could not start, 2 that started before their "
        "submission, or ended before they started.\n",
        "\nWith the time that they had: 1 that were killed.\n",
        "\nDrained in the end, and taken to be there all the time: 1 hosts.\n",
        "\nNot known, and not simulated: load that is not of jobs, hosts that failed or were drained meanwhile, "
        "jobs that were held, or moved forward.\n"};
    static const char warning[] = "\nThe median of the first replay is not what it was";
    struct bed *bed = *state;
    struct config config;
    struct plan plan;
    struct history *h;
    char text[4000];

    h = read_whole(bed, &config);
    assert_true(plan_make(&plan, &config, NULL, NULL, fault, sizeof(fault)));
    plan_run(&plan, 1, NULL); /* with the host of four processors, which had no job */
    shown(&plan, text, sizeof(text));
    assert_non_null(strstr(text, warning));
    plan_fini(&plan);
    assert_true(keys_set(&config, "hosts", "2", fault, sizeof(fault)));
    assert_true(plan_make(&plan, &config, NULL, NULL, fault, sizeof(fault)));
    plan_run(&plan, 1, NULL); /* as it was */
    shown(&plan, text, sizeof(text));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!strstr(text, lines[i]))
            fail_msg("'%s' is not in '%s'", lines[i], text);
    assert_null(strstr(text, warning));
    expect_json(&plan);
    plan_fini(&plan);
    history_destroy(h);
}

/* Jobs wait for others as they did, as far as these are there. */
static void test_after(void **state)
{
    static const struct of jobs[] = {
        {1, "alice", 1000, 1000, 1010, 1, 10, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 0},
        {2, "bob", 1001, 1010, 1012, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, "ok:1", 0, 0},
        {3, "alice", 1002, 1012, 1020, 1, 8, JOB_DONE, REASON_EXITED, NULL, 0, "fail:2", 0, 0},
        {4, "alice", 1003, 1012, 1016, 1, 4, JOB_DONE, REASON_EXITED, NULL, 0, "start:3", 0, 0},
        {5, "alice", 1004, 1004, 1014, 1, 10, JOB_DONE, REASON_EXITED, NULL, 0, "any:77", 0, 0},
        {6, "alice", 1030, 1030, 1031, 1, 1, JOB_DONE, REASON_EXITED, NULL, 0, "ok:1", 0, 0},
    };
    enum { JOBS = sizeof(jobs) / sizeof(jobs[0]) };
    struct bed *bed = *state;
    struct host_row host = {.name = "ws1", .row = {.up = true, .ncpus = 8}};
    struct config config;
    struct plan plan;
    struct history *h;

    for (size_t i = 0; i < JOBS; i++)
        put(bed, &jobs[i]);
    await(bed, store_put_host(bed->store, &host));
    h = must_read(bed->path, INT64_MIN, INT64_MAX);
    keys_default(&config);
    config.history = h;
    config.whole = config.exactly = true;
    config.jobs_max = h->njobs;
    assert_true(plan_make(&plan, &config, NULL, "without-user=-,bob", fault, sizeof(fault)));
    plan_run(&plan, 2, NULL);
    assert_int_equal(plan.results[0].jobs, JOBS);
    for (size_t i = 0; i < JOBS; i++)
        expect_near(plan.series[0][i], jobs[i].ended - jobs[i].submitted, 0.01);
    assert_int_equal(plan.results[1].jobs, JOBS - 1);
    expect_near(plan.series[1][2], 8, 0.01); /* what it waited for is not there */
    expect_near(plan.series[1][3], 4, 0.01);
    plan_fini(&plan);
    history_destroy(h);
}

/* Of an array they wait for all tasks, or for the first that starts. */
static void test_after_arrays(void **state)
{
    static const struct of jobs[] = {
        {1, "alice", 1000, -1, 1030, 1, 0, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 2, 0},
        {2, "alice", 1000, 1000, 1010, 1, 10, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 1},
        {3, "alice", 1000, 1000, 1030, 1, 30, JOB_DONE, REASON_EXITED, NULL, 0, NULL, 0, 1},
        {4, "bob", 1001, 1030, 1032, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, "ok:1", 0, 0},
        {5, "bob", 1002, 1002, 1004, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, "start:1", 0, 0},
        {6, "bob", 1031, 1031, 1032, 1, 1, JOB_DONE, REASON_EXITED, NULL, 0, "any:1", 0, 0},
        {7, "bob", 1040, -1, 1060, 1, 0, JOB_DONE, REASON_EXITED, NULL, 0, "ok:6", 1, 0},
        {8, "bob", 1040, 1040, 1060, 1, 20, JOB_DONE, REASON_EXITED, "ws1", 0, NULL, 0, 7},
        {9, "bob", 1040, 1060, 1061, 1, 1, JOB_DONE, REASON_EXITED, "ws1", 0, NULL, 0, 7},
        {10, "bob", 1042, 1060, 1062, 1, 2, JOB_DONE, REASON_EXITED, NULL, 0, "start:7", 0, 0},
    };
    static const double turnarounds[] = {10, 30, 31, 2, 1, 20, 1, 2}; /* nobody is in the way of any */
    enum { JOBS = sizeof(turnarounds) / sizeof(turnarounds[0]) };
    struct bed *bed = *state;
    struct config config;
    struct result result;
    struct history *h;

    h = history_of(bed, jobs, sizeof(jobs) / sizeof(jobs[0]), 8);
    assert_int_equal(h->jobs[0].array, 1);
    keys_default(&config);
    config.history = h;
    config.whole = config.exactly = true;
    config.jobs_max = h->njobs;
    assert_true(keys_complete(&config, fault, sizeof(fault)));
    run(&config, &result, series, ROOM, 1, NULL);
    assert_int_equal(result.jobs, JOBS);
    for (size_t i = 0; i < JOBS; i++)
        expect_near(series[i], turnarounds[i], 0.01);
    history_destroy(h);
}

/* A signal while the copy is there, as by Ctrl-C: it ends esim, and the copy goes. */
static void test_signals(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct bed *bed = *state;
    char place[] = "/tmp/test_history.XXXXXX";

    put_all(bed);
    assert_non_null(mkdtemp(place));
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        pid_t pid = fork();
        int status;
        if (pid == 0) {
            struct snapshot snapshot;
            signal(signals[i], SIG_DFL); /* nohup and shells have others ignore some */
            if (setenv("TMPDIR", place, 1) == 0 && snapshot_take(&snapshot, bed->path, fault, sizeof(fault)) &&
                rmdir(place) != 0) /* it is there */
                raise(signals[i]);
            _exit(1);
        }
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
    }
    assert_int_equal(rmdir(place), 0); /* it is empty */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_window, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_after, setup, teardown),
        cmocka_unit_test_setup_teardown(test_after_arrays, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
