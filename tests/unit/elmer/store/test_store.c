/* test_store.c - the store: what goes in comes out, in order, also after a crash between; and which files it refuses.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elmer/store/store.h"
#include "tests/unit/scratch.h"

struct bed {
    char dir[40], path[60];
    uv_loop_t loop;
    struct store *store;
    uint64_t committed;
    struct record *found[400];
    size_t nfound, answers;
    char error[200], damage[600];
};

static void on_commit(uint64_t number, void *data)
{
    struct bed *bed = data;
    assert_true(number > bed->committed);
    bed->committed = number;
}

static void on_failure(const char *text, void *data)
{
    (void)data;
    fail_msg("store: %s", text);
}

static void on_damage(const char *text, void *data)
{
    struct bed *bed = data;
    snprintf(bed->damage, sizeof(bed->damage), "%s", text);
}

static int open_store(struct bed *bed, struct err *err)
{
    static const struct store_callbacks callbacks = {on_commit, on_failure, on_damage};
    *err = (struct err)ERR_INIT;
    bed->committed = 0;
    return store_open(&bed->loop, bed->path, &callbacks, bed, &bed->store, err);
}

static void close_store(struct bed *bed)
{
    store_close(bed->store);
    uv_run(&bed->loop, UV_RUN_DEFAULT);
}

static int setup(void **state)
{
    static struct bed bed;
    struct err err;
    bed = (struct bed){.dir = "/tmp/elmer-store-XXXXXX"};
    assert_non_null(scratch_dir(bed.dir));
    snprintf(bed.path, sizeof(bed.path), "%s/db", bed.dir);
    assert_int_equal(uv_loop_init(&bed.loop), 0);
    assert_int_equal(open_store(&bed, &err), 0);
    *state = &bed;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = {"", "-wal", "-shm", ".lock"};
    struct bed *bed = *state;
    char path[80];
    assert_int_equal(uv_loop_close(&bed->loop), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s%s", bed->path, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(bed->dir), 0);
    return 0;
}

static struct record *make(uint64_t id, uint32_t uid, const char *token, enum job_state state, bool first)
{
    static const char *command[] = {"/bin/x", "\"quoted\" \xc3\xa9\n"};
    static const char *const hosts[] = {"ws1", "ws2"};
    static const struct record_processor processors[] = {{"ws1", 0}, {"ws2", 3}};
    static const struct record_usage usage[] = {{"ws1", 1, 1.25, 4096}, {"ws2", 1, 2.5, -1}};
    static const char *const lost[] = {"ws2", "?"};
    static const uint8_t exited[] = {3};
    struct record *r = record_create();
    r->id = id;
    r->uid = uid;
    r->user = "alice";
    r->token = arena_strdup(&r->memory, token);
    r->submitted_ms = 1000 + (int64_t)id;
    r->state = state;
    r->reason = state == JOB_DONE ? REASON_EXITED : state == JOB_QUEUED ? REASON_WAITING : REASON_NONE;
    r->text = "why; \"so\"";
    if (state != JOB_QUEUED) {
        r->attempt = 1;
        r->allocation = id + 100;
        r->level = 1;
        r->processors = processors;
        r->nprocessors = 2;
        r->exited = exited;
        r->exited_size = 1;
        r->exits = 2;
        r->exit_status = 7;
        r->failed_rank = 1;
        r->started_ms = 2000;
        r->launched = true;
        r->lease_ms = 120000;
        r->level_ms[1] = 55;
        r->usage = usage;
        r->nusage = 2;
    }
    r->hosts = hosts;
    r->nhosts = 2;
    if (state == JOB_QUEUED) {
        r->lost = lost;
        r->nlost = 2;
    }
    if (first) {
        struct wire_message m = {
            .type = WIRE_submit,
            .u.submit = {.token = token, .nprocs = 2, .each = true, .name = "x", .dir = "/d", .command = {command, 2}}};
        struct err err = ERR_INIT;
        char *json;
        size_t size;
        assert_int_equal(wire_encode(&m, WIRE_MINOR, &json, &size, &err), 0);
        r->json = arena_strdup(&r->memory, json);
        free(json);
    }
    return r;
}

static void await(struct bed *bed, uint64_t number)
{
    while (bed->committed < number)
        uv_run(&bed->loop, UV_RUN_ONCE);
}

static void collect(struct record *record, void *data)
{
    struct bed *bed = data;
    assert_true(bed->nfound < sizeof(bed->found) / sizeof(*bed->found));
    bed->found[bed->nfound++] = record;
}

static void drop_found(struct bed *bed)
{
    for (size_t i = 0; i < bed->nfound; i++)
        record_destroy(bed->found[i]);
    bed->nfound = 0;
}

static void answer(struct record **records, size_t count, const char *error, void *data)
{
    struct bed *bed = data;
    bed->answers++;
    snprintf(bed->error, sizeof(bed->error), "%s", error ? error : "");
    for (size_t i = 0; i < count; i++)
        collect(records[i], bed);
}

static void test_round(void **state)
{
    struct bed *bed = *state;
    struct err err = ERR_INIT;
    uint64_t next_job, next_allocation;
    store_put(bed->store, make(1, 5, "one", JOB_RUNNING, true));
    store_put(bed->store, make(2, 5, "two", JOB_QUEUED, true));
    store_put(bed->store, make(3, 5, "three", JOB_RUNNING, true));
    assert_int_equal(store_put(bed->store, make(3, 5, "three", JOB_DONE, false)),
                     4); /* replaces, keeps the submission */
    await(bed, 4);
    assert_int_equal(store_committed(bed->store), 4);
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(next_job, 4);
    assert_int_equal(next_allocation, 104);
    assert_int_equal(bed->nfound, 2);
    const struct record *r = bed->found[0];
    assert_int_equal(r->id, 1);
    assert_int_equal(r->uid, 5);
    assert_string_equal(r->user, "alice");
    assert_string_equal(r->token, "one");
    assert_int_equal(r->submitted_ms, 1001);
    assert_int_equal(r->state, JOB_RUNNING);
    assert_string_equal(r->text, "why; \"so\"");
    assert_int_equal(r->attempt, 1);
    assert_int_equal(r->allocation, 101);
    assert_int_equal(r->level, 1);
    assert_int_equal(r->nprocessors, 2);
    assert_string_equal(r->processors[1].host, "ws2");
    assert_int_equal(r->processors[1].cpu, 3);
    assert_int_equal(r->nhosts, 2);
    assert_string_equal(r->hosts[1], "ws2");
    assert_int_equal(r->exited_size, 1);
    assert_int_equal(r->exited[0], 3);
    assert_int_equal(r->exits, 2);
    assert_int_equal(r->exit_status, 7);
    assert_int_equal(r->failed_rank, 1);
    assert_int_equal(r->started_ms, 2000);
    assert_int_equal(r->ended_ms, -1);
    assert_int_equal(r->level_ms[1], 55);
    assert_int_equal(r->level_ms[0], 0);
    assert_int_equal(r->nusage, 2);
    assert_true(r->usage[0].cpu_seconds > 1.24 && r->usage[0].cpu_seconds < 1.26);
    assert_int_equal(r->usage[0].memory_peak_bytes, 4096);
    assert_int_equal(r->usage[1].memory_peak_bytes, -1);
    assert_int_equal(r->submit->nprocs, 2);
    assert_true(r->submit->each);
    assert_string_equal(r->submit->command.items[1], "\"quoted\" \xc3\xa9\n");
    assert_int_equal(bed->found[1]->state, JOB_QUEUED);
    assert_int_equal(bed->found[1]->level, CORE_NO_LEVEL);
    assert_int_equal(bed->found[1]->nprocessors, 0);
    assert_true(r->launched);
    assert_int_equal(r->lease_ms, 120000);
    assert_int_equal(r->nlost, 0);
    assert_false(bed->found[1]->launched);
    assert_int_equal(bed->found[1]->nlost, 2);
    assert_string_equal(bed->found[1]->lost[1], "?");
    drop_found(bed);
    close_store(bed);
}

static void test_read(void **state)
{
    struct bed *bed = *state;
    uint64_t ids[] = {2, 9, 1};
    store_put(bed->store, make(1, 5, "t", JOB_DONE, true));
    store_put(bed->store, make(2, 6, "t", JOB_DONE, true)); /* another user's */
    await(bed, 2);
    store_read(bed->store, ids, 3, answer, bed);
    store_find(bed->store, 6, "t", answer, bed);
    store_find(bed->store, 7, "t", answer, bed);
    while (bed->answers < 3)
        uv_run(&bed->loop, UV_RUN_ONCE);
    assert_string_equal(bed->error, "");
    assert_int_equal(bed->nfound, 3);
    assert_int_equal(bed->found[0]->id, 2);
    assert_int_equal(bed->found[1]->id, 1);
    assert_int_equal(bed->found[2]->id, 2);
    drop_found(bed);
    /* closed while reads are under way */
    store_read(bed->store, ids, 3, answer, bed);
    store_read(bed->store, ids, 3, answer, bed);
    close_store(bed);
    assert_int_equal(bed->answers, 3);
}

/* Many looks at once are answered in their order, together with other reads between them, and what is closed is let go.
 */
static void test_many_finds(void **state)
{
    enum { COUNT = 300 };
    struct bed *bed = *state;
    uint64_t second = 2;
    char token[8];
    store_put(bed->store, make(1, 5, "1", JOB_DONE, true));
    store_put(bed->store, make(2, 5, "290", JOB_DONE, true));
    await(bed, 2);
    for (int i = 0; i < COUNT; i++) {
        snprintf(token, sizeof(token), "%d", i);
        store_find(bed->store, 5, token, answer, bed);
        if (i == 100)
            store_read(bed->store, &second, 1, answer, bed);
    }
    while (bed->answers < COUNT + 1)
        uv_run(&bed->loop, UV_RUN_ONCE);
    assert_string_equal(bed->error, "");
    assert_int_equal(bed->nfound, 3);
    assert_int_equal(bed->found[0]->id, 1);
    assert_int_equal(bed->found[1]->id, 2); /* by its id */
    assert_int_equal(bed->found[2]->id, 2);
    drop_found(bed);
    for (int i = 0; i < COUNT; i++)
        store_find(bed->store, 5, "1", answer, bed);
    close_store(bed);
    assert_int_equal(bed->answers, COUNT + 1);
}

/* As the store counts them, for its check after a crash. */
static uint64_t commits(const struct bed *bed)
{
    char path[80];
    uint64_t count = 0;
    snprintf(path, sizeof(path), "%s.lock", bed->path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "commits %" SCNu64, &count), 1);
    fclose(file);
    return count;
}

/* What nobody waits for is written soon, but together; what somebody waits for takes the others along. */
static void test_together(void **state)
{
    struct bed *bed = *state;
    await(bed, store_put(bed->store, make(1, 5, "first", JOB_RUNNING, true)));
    uint64_t before = commits(bed), last = 0;
    for (uint64_t id = 1; id <= 300; id++) {
        char token[32];
        snprintf(token, sizeof(token), "%" PRIu64, id);
        last = store_put(bed->store, make(id, 5, token, JOB_RUNNING, id > 1));
    }
    await(bed, last);
    assert_true(commits(bed) > before);
    assert_true(commits(bed) - before < 100);
    before = commits(bed);
    for (uint64_t id = 1; id <= 20; id++) {
        store_put(bed->store, make(id, 5, "", JOB_RUNNING, false));
        last = store_put(bed->store, make(id + 20, 5, "", JOB_RUNNING, false));
        store_want(bed->store, last);
        await(bed, last);
    }
    assert_true(commits(bed) - before <= 40);
    store_want(bed->store, last); /* it is there */
    await(bed, store_put(bed->store, make(1, 5, "", JOB_DONE, false)));
    close_store(bed);
}

/* What was put is on disk after store_close(), without a turn of the loop. */
static void test_close_writes(void **state)
{
    struct bed *bed = *state;
    struct err err;
    uint64_t next_job, next_allocation;
    for (uint64_t id = 1; id <= 10; id++) {
        char token[8];
        snprintf(token, sizeof(token), "%d", (int)id);
        store_put(bed->store, make(id, 5, token, JOB_QUEUED, true));
    }
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(bed->nfound, 10);
    assert_int_equal(next_job, 11);
    drop_found(bed);
    close_store(bed);
}

static void refused(struct bed *bed, int code, const char *words)
{
    struct err err;
    assert_int_equal(open_store(bed, &err), code);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", err.text, words);
}

static void sql(struct bed *bed, const char *text)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(bed->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_refused(void **state)
{
    struct bed *bed = *state;
    struct store *first = bed->store;
    refused(bed, -EBUSY, "another elmer");
    bed->store = first;
    store_put(bed->store, make(1, 5, "t", JOB_QUEUED, true));
    close_store(bed);
    sql(bed, "PRAGMA user_version = 99");
    refused(bed, -EPROTO, "schema 99");
    sql(bed, "PRAGMA user_version = 2; PRAGMA application_id = 7");
    refused(bed, -EPROTO, "another program");
    sql(bed, "PRAGMA application_id = 1162628434");
    sql(bed, "PRAGMA journal_mode = DELETE"); /* all of it in one file */
    int fd = open(bed->path, O_WRONLY);
    assert_true(fd >= 0);
    for (off_t at = 4096; at < 20 * 4096; at += 512) /* behind the first page */
        assert_int_equal(pwrite(fd, "garbagegarbage", 14, at), 14);
    refused(bed, -EUCLEAN, "damaged");
    assert_int_equal(pwrite(fd, "no database at all", 18, 0), 18);
    close(fd);
    refused(bed, -EUCLEAN, "damaged");
    snprintf(bed->path, sizeof(bed->path), "%s/none/db", bed->dir);
    refused(bed, -ENOENT, "directory");
    snprintf(bed->path, sizeof(bed->path), "%s/db", bed->dir);
}

static char *beside(struct bed *bed, const char *end)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s%s", bed->path, end);
    return path;
}

static void begin_anew(struct bed *bed)
{
    struct err err;
    uint64_t next_job, next_allocation;
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    close_store(bed);
}

/* Of what was committed something is missing: SQLite would begin with the rest and say nothing. */
static void test_missing(void **state)
{
    struct bed *bed = *state;
    char copy[300], command[700];
    struct err err;
    await(bed, store_put(bed->store, make(1, 5, "one", JOB_QUEUED, true)));
    close_store(bed);
    snprintf(copy, sizeof(copy), "%s/copy", bed->dir);
    snprintf(command, sizeof(command), "cp %s %s", bed->path, copy);
    assert_int_equal(system(command), 0);
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    await(bed, store_put(bed->store, make(2, 5, "two", JOB_QUEUED, true)));
    close_store(bed);
    assert_int_equal(rename(copy, bed->path), 0); /* as if the log of the second had been lost */
    refused(bed, -EUCLEAN, "its last 1 changes are missing");
    assert_int_equal(unlink(beside(bed, ".lock")), 0); /* as it was told to */
    begin_anew(bed);
    assert_int_equal(bed->nfound, 1);
    drop_found(bed);
}

static void test_odd_files(void **state)
{
    struct bed *bed = *state;
    await(bed, store_put(bed->store, make(1, 5, "one", JOB_QUEUED, true)));
    close_store(bed);
    assert_int_equal(truncate(bed->path, 0), 0);
    refused(bed, -EUCLEAN, "it is empty");
    assert_int_equal(unlink(bed->path), 0);
    assert_int_equal(mkdir(bed->path, 0700), 0);
    refused(bed, -EUCLEAN, "not a file");
    assert_int_equal(rmdir(bed->path), 0);
    begin_anew(bed); /* moved away: an empty queue */
    assert_int_equal(bed->nfound, 0);
    assert_int_equal(truncate(bed->path, 0), 0);
    begin_anew(bed); /* nothing was promised yet */
}

/* ---- history ---- */

static struct record *make_ended(uint64_t id, int64_t ended_ms)
{
    char token[24];
    snprintf(token, sizeof(token), "t%d", (int)id);
    struct record *r = make(id, 5, token, JOB_DONE, true);
    r->user = id % 10 ? "alice" : "bob";
    r->ended_ms = ended_ms;
    return r;
}

static size_t history(struct bed *bed, uint64_t before, const char *user, size_t count)
{
    size_t answers = bed->answers;
    drop_found(bed);
    store_read_history(bed->store, before, user, count, answer, bed);
    while (bed->answers == answers)
        uv_run(&bed->loop, UV_RUN_ONCE);
    assert_string_equal(bed->error, "");
    return bed->nfound;
}

/* The writer does it when it has nothing else to do: wait until the number of ended jobs is this, for 10 s. */
static void await_history(struct bed *bed, size_t wanted)
{
    uint64_t deadline = uv_hrtime() + 10000000000u;
    while (history(bed, INT64_MAX, "", 400) != wanted)
        if (uv_hrtime() > deadline)
            fail_msg("%zu jobs in the history, not %zu", bed->nfound, wanted);
}

static void test_history(void **state)
{
    struct bed *bed = *state;
    const int64_t day = 86400000;
    for (uint64_t id = 1; id <= 300; id++) /* 250 and 251 wait */
        store_put(bed->store, id / 2 == 125 ? make(id, 5, id == 250 ? "a" : "b", JOB_QUEUED, true)
                                            : make_ended(id, (int64_t)id * day));
    await(bed, 300);
    assert_int_equal(history(bed, INT64_MAX, "", 5), 5);
    assert_int_equal(bed->found[0]->id, 300);
    assert_int_equal(bed->found[4]->id, 296);
    assert_int_equal(history(bed, 252, "", 2), 2); /* the two that wait are not in it */
    assert_int_equal(bed->found[0]->id, 249);
    assert_int_equal(history(bed, INT64_MAX, "bob", 400), 29);
    assert_int_equal(bed->found[1]->id, 290);
    assert_int_equal(bed->found[0]->nusage, 2);

    store_trim(bed->store, &(struct store_limits){.jobs = 120, .age_ms = 1000 * day});
    await_history(bed, 120);
    assert_int_equal(bed->found[119]->id, 179);
    /* by age, counted from the last end: the clock is decades ahead of it */
    store_trim(bed->store, &(struct store_limits){.jobs = 1000, .age_ms = 9 * day});
    await_history(bed, 10);
    assert_int_equal(bed->found[9]->id, 291);
    /* late news of a job that is gone change nothing, and the store goes on */
    store_put(bed->store, make(3, 5, "t3", JOB_DONE, false));
    store_put(bed->store, make(250, 5, "a", JOB_RUNNING, false));
    await(bed, 302);
    assert_int_equal(history(bed, INT64_MAX, "", 400), 10);
    drop_found(bed);
    close_store(bed);
}

static void test_older_schema(void **state)
{
    struct bed *bed = *state;
    struct err err;
    store_put(bed->store, make_ended(1, 5000));
    await(bed, 1);
    close_store(bed);
    sql(bed, "ALTER TABLE state DROP COLUMN launched; ALTER TABLE state DROP COLUMN lease_ms; ALTER TABLE state DROP "
             "COLUMN lost; ALTER TABLE state DROP COLUMN accounted_ms; ALTER TABLE state DROP COLUMN "
             "accounted_mono_ms; ALTER "
             "TABLE state DROP COLUMN boot; DROP INDEX state_environment; ALTER TABLE state DROP COLUMN "
             "environment_sha256; DROP TABLE host; DROP TABLE setting; DROP INDEX state_ended; DROP TABLE "
             "certificate; DELETE FROM migration WHERE version > 1; PRAGMA "
             "user_version = 1");
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(history(bed, INT64_MAX, "", 5), 1);
    drop_found(bed);
    close_store(bed);
}

/* Of a job that was starting then, nobody knows whether it was launched: it may have been. */
static void test_starting_in_an_older_schema(void **state)
{
    struct bed *bed = *state;
    struct err err;
    uint64_t next_job, next_allocation;
    store_put(bed->store, make(1, 5, "one", JOB_STARTING, true));
    store_put(bed->store, make(2, 5, "two", JOB_RUNNING, true));
    await(bed, 2);
    close_store(bed);
    sql(bed, "ALTER TABLE state DROP COLUMN launched; ALTER TABLE state DROP COLUMN lease_ms; ALTER TABLE state DROP "
             "COLUMN lost; ALTER TABLE state DROP COLUMN accounted_ms; ALTER TABLE state DROP COLUMN "
             "accounted_mono_ms; ALTER "
             "TABLE state DROP COLUMN boot; DROP INDEX state_environment; ALTER TABLE state DROP COLUMN "
             "environment_sha256; DROP TABLE host; DROP TABLE setting; DELETE FROM migration WHERE version > "
             "3; PRAGMA "
             "user_version = 3");
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(bed->nfound, 2);
    assert_true(bed->found[0]->launched);
    assert_false(bed->found[1]->launched);
    assert_int_equal(bed->found[0]->lease_ms, 0);
    drop_found(bed);
    close_store(bed);
}

static void count_host(const struct host_row *host, void *data)
{
    struct bed *bed = data;
    bed->answers++;
    if (!strcmp(host->name, "ws1"))
        assert_true(host->row.up && !host->row.drained && host->row.ncpus == 4);
    else
        assert_true(!strcmp(host->name, "ws2") && !host->row.up && host->row.drained && host->row.ncpus == 0);
}

/* The last row of each host counts. */
static void test_hosts(void **state)
{
    struct bed *bed = *state;
    struct err err;
    struct host_row ws1 = {.name = "ws1", .row = {.up = true, .ncpus = 4}}, ws2 = {.name = "ws2", .row = ws1.row};
    store_put_host(bed->store, &ws1);
    store_put_host(bed->store, &ws2);
    ws2.row = (struct core_host_row){.drained = true};
    store_put_host(bed->store, &ws2);
    await(bed, 3);
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0);
    bed->answers = 0;
    assert_int_equal(store_load_hosts(bed->store, count_host, bed, &err), 0);
    assert_int_equal(bed->answers, 2);
    close_store(bed);
}

/* A submission that was refused after all leaves nothing behind, also when it was written meanwhile; its token is free.
 */
static void test_dropped(void **state)
{
    struct bed *bed = *state;
    struct record *dropped;
    struct err err;
    uint64_t next_job, next_allocation;
    for (uint64_t id = 1; id < 3; id++) {
        if (id == 2)
            await(bed, store_put(bed->store, make(2, 5, "one", JOB_RUNNING, true)));
        else
            store_put(bed->store, make(1, 5, "one", JOB_RUNNING, true));
        dropped = make(id, 5, "one", JOB_DONE, false);
        dropped->dropped = true;
        store_put(bed->store, dropped);
    }
    await(bed, store_put(bed->store, make(3, 5, "one", JOB_QUEUED, true)));
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(bed->nfound, 1);
    assert_int_equal(bed->found[0]->id, 3);
    assert_int_equal(next_job, 4);
    drop_found(bed);
    assert_int_equal(history(bed, INT64_MAX, "", 5), 0);
    close_store(bed);
}

static void find_certificate(const struct certificate *certificate, void *data)
{
    struct certificate *wanted = data;
    if (!strcmp(certificate->serial, wanted->serial))
        *wanted = *certificate;
}

static void test_certificates(void **state)
{
    struct bed *bed = *state;
    struct certificate one = {.serial = "0A01", .host = "ws2", .issued_ms = 1000, .end_ms = 9000}, found = one,
                       other = {.serial = "0A02"};
    struct err err = ERR_INIT;
    store_put_certificate(bed->store, &one);
    one.revoked_ms = 2000; /* what comes later counts */
    await(bed, store_put_certificate(bed->store, &one));
    close_store(bed);
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(store_load_certificates(bed->store, find_certificate, &found, &err), 0);
    assert_memory_equal(&found, &one, sizeof(one));
    assert_int_equal(store_load_certificates(bed->store, find_certificate, &other, &err), 0);
    assert_string_equal(other.host, "");
    close_store(bed);
}

static off_t log_size(const struct bed *bed)
{
    char path[80];
    struct stat st;
    snprintf(path, sizeof(path), "%s-wal", bed->path);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The log is put into the store when it has 4 MB, without a commit that waits for that, and is not longer than that and
 * one batch; what a large batch took is given back. (On a small disk: tests/faults, outside_small_disk.) */
static void test_log(void **state)
{
    enum { ROUNDS = 120, JOBS = 100, LARGE = 100, LOG = 4 << 20, BATCH = 1 << 20 };
    struct bed *bed = *state;
    off_t longest = 0, longest_large;
    uint64_t id = 0, number = 0;
    char token[24], *text = calloc(1, 60001);
    assert_non_null(text);
    memset(text, 'x', 60000);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < JOBS; i++) {
            snprintf(token, sizeof(token), "%" PRIu64, ++id);
            number = store_put(bed->store, make(id, 5, token, JOB_RUNNING, true));
        }
        store_want(bed->store, number);
        await(bed, number);
        longest = log_size(bed) > longest ? log_size(bed) : longest;
    }
    assert_in_range(longest, LOG / 2, LOG + BATCH);
    for (int i = 0; i < LARGE; i++) {
        struct record *record;
        snprintf(token, sizeof(token), "%" PRIu64, ++id);
        record = make(id, 5, token, JOB_RUNNING, true);
        record->text = arena_strdup(&record->memory, text);
        number = store_put(bed->store, record);
    }
    await(bed, number);
    longest_large = log_size(bed);
    assert_true(longest_large > LOG + BATCH);
    for (int round = 0; round < 3; round++) { /* the first may come before the log is in the store */
        number = store_put(bed->store, make(id, 5, token, JOB_RUNNING, false));
        store_want(bed->store, number);
        await(bed, number);
    }
    assert_in_range(log_size(bed), 0, LOG);
    close_store(bed);
    free(text);
}

/* A large store opens at once; what is wrong with it is found while elmer runs. */
static void test_damage_in_the_history(void **state)
{
    struct bed *bed = *state;
    struct err err;
    close_store(bed);
    sql(bed, "CREATE TABLE ballast(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
             " INSERT INTO ballast SELECT hex(zeroblob(2000)) FROM n; PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(open_store(bed, &err), 0);
    store_check(bed->store);
    uv_run(&bed->loop, UV_RUN_NOWAIT);
    close_store(bed); /* while it is being checked */
    assert_string_equal(bed->damage, "");
    int fd = open(bed->path, O_WRONLY);
    assert_true(fd >= 0);
    for (off_t at = 500 * 4096; at < 520 * 4096; at += 512)
        assert_int_equal(pwrite(fd, "garbagegarbage", 14, at), 14);
    close(fd);
    assert_int_equal(open_store(bed, &err), 0);
    store_check(bed->store);
    for (uint64_t deadline = uv_hrtime() + 10000000000u; !*bed->damage && uv_hrtime() < deadline;)
        uv_run(&bed->loop, UV_RUN_NOWAIT);
    assert_non_null(strstr(bed->damage, "damaged"));
    close_store(bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_finds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(test_starting_in_an_older_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(test_certificates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_in_the_history, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
