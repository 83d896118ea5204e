/* test_store_file.c - the store as a file: locked, missing, odd, damaged, of an older schema, and its log. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elmer/store/file.h"
#include "elmer/store/store.h"
#include "lib/base/file.h"
#include "tests/unit/elmer/store/store_bed.h"
#include "tests/unit/elmer/store/drop_columns.h"

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

static void copy_file(const char *from, const char *to)
{
    char *bytes;
    size_t size;
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(in >= 0 && out >= 0);
    assert_int_equal(file_read_fd(in, 16 << 20, &bytes, &size), 0);
    assert_int_equal(write(out, bytes, size), size);
    free(bytes);
    close(in);
    close(out);
}

/* Of what was committed something is missing: SQLite would begin with the rest and say nothing. */
static void test_missing(void **state)
{
    struct bed *bed = *state;
    char copy[300];
    struct err err;
    await(bed, store_put(bed->store, make(1, 5, "one", JOB_QUEUED, true)));
    close_store(bed);
    snprintf(copy, sizeof(copy), "%s/copy", bed->dir);
    copy_file(bed->path, copy);
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    await(bed, store_put(bed->store, make(2, 5, "two", JOB_QUEUED, true)));
    close_store(bed);
    assert_int_equal(rename(copy, bed->path), 0); /* as if the log of the second had been lost */
    refused(bed, -EUCLEAN, "its last 1 changes are missing");
    refused(bed, -EUCLEAN, "eadmin init --restore FILE --now");
    assert_int_equal(unlink(beside(bed, ".lock")), 0); /* as it was told to */
    begin_anew(bed);
    assert_int_equal(bed->nfound, 1);
    drop_found(bed);
}

static uint64_t next_id(struct bed *bed)
{
    struct err err;
    uint64_t next_job = 0, next_allocation = 0;
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    drop_found(bed);
    close_store(bed);
    assert_true(next_job < 1000000000 || next_allocation > 1000000000);
    return next_job;
}

/* Without its lock file nobody knows what a store has lost, so it gives no id again that it may have given. */
static void test_unknown(void **state)
{
    struct bed *bed = *state;
    struct err err;
    close_store(bed);
    assert_int_equal(unlink(beside(bed, ".lock")), 0);
    assert_int_equal(next_id(bed), 1); /* it has given none */
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    await(bed, store_put(bed->store, make(1, 5, "one", JOB_QUEUED, true)));
    close_store(bed);
    assert_int_equal(next_id(bed), 2);
    assert_int_equal(unlink(beside(bed, ".lock")), 0);
    uint64_t skipped = next_id(bed);
    /* from 1970 on, when its job was submitted, or from when it was made, which is later */
    assert_int_equal(skipped, 2 + INT64_C(2000000000));
    assert_int_equal(next_id(bed), skipped);
    assert_int_equal(truncate(beside(bed, ".lock"), 0), 0);
    assert_int_equal(next_id(bed), skipped + INT64_C(2000000000));
    sql(bed, "UPDATE migration SET applied_ms = 1000");
    assert_int_equal(unlink(beside(bed, ".lock")), 0);
    assert_true(next_id(bed) > skipped + INT64_C(20000) * 1000000000);
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

static void test_older_schema(void **state)
{
    struct bed *bed = *state;
    struct err err;
    store_put(bed->store, make_ended(1, 5000));
    await(bed, 1);
    close_store(bed);
    sql(bed, DROP_SCHEMA_12
        "DROP TABLE decision; DROP TABLE awaited; ALTER TABLE state DROP COLUMN verdicts; ALTER TABLE state DROP "
        "COLUMN ran; ALTER "
        "TABLE state DROP COLUMN place; "
        "ALTER TABLE state DROP COLUMN launched; ALTER TABLE state DROP COLUMN lease_ms; ALTER TABLE state DROP "
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
    sql(bed, DROP_SCHEMA_12
        "DROP TABLE decision; DROP TABLE awaited; ALTER TABLE state DROP COLUMN verdicts; ALTER TABLE state DROP "
        "COLUMN ran; ALTER "
        "TABLE state DROP COLUMN place; "
        "ALTER TABLE state DROP COLUMN launched; ALTER TABLE state DROP COLUMN lease_ms; ALTER TABLE state DROP "
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
    assert_true(bed->found[1]->ran);
    assert_int_equal(bed->found[0]->lease_ms, 0);
    drop_found(bed);
    close_store(bed);
}

/* Of a store from before there were arrays no job is part of one; and arrays are kept in it from then on. */
static void test_from_schema_11(void **state)
{
    static const struct core_range gone[] = {{2, 4}};
    struct bed *bed = *state;
    struct record *array = make(2, 5, "two", JOB_QUEUED, true);
    struct err err = ERR_INIT;
    uint64_t next_job, next_allocation;
    await(bed, store_put(bed->store, make(1, 5, "one", JOB_RUNNING, true)));
    close_store(bed);
    sql(bed, DROP_SCHEMA_12 "DELETE FROM migration WHERE version > 11; PRAGMA user_version = 11");
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(bed->nfound, 1);
    assert_int_equal(bed->found[0]->state, JOB_RUNNING);
    assert_int_equal(bed->found[0]->array + bed->found[0]->task + bed->found[0]->ntasks + bed->found[0]->ngone, 0);
    drop_found(bed);
    array->ntasks = 7;
    array->next_task = 1;
    array->gone = gone;
    array->ngone = 1;
    await(bed, store_put(bed->store, array));
    close_store(bed);
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(bed->nfound, 2);
    const struct record *kept = bed->found[bed->found[0]->id == 2 ? 0 : 1];
    assert_int_equal(kept->ntasks, 7);
    assert_int_equal(kept->next_task, 1);
    assert_int_equal(kept->ngone, 1);
    assert_int_equal(kept->gone[0].from, 2);
    assert_int_equal(kept->gone[0].to, 4);
    drop_found(bed);
}

static off_t log_size(const struct bed *bed)
{
    char path[80];
    struct stat st;
    snprintf(path, sizeof(path), "%s-wal", bed->path);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The log has its length before anything is in it. It is put into the store when it is full, without a commit that
 * waits for that, and is not longer than that and one batch; what a large batch took is given back. (On a small disk:
 * tests/faults, outside_small_disk.) */
static void test_log(void **state)
{
    enum { ROUNDS = 120, JOBS = 100, LARGE = 100, SMALL = 500, LOG = 4 << 20, BATCH = 1 << 20 };
    struct bed *bed = *state;
    off_t longest, first;
    uint64_t id = 0, number = 0;
    char token[24], *text = calloc(1, 60001);
    assert_non_null(text);
    memset(text, 'x', 60000);
    await(bed, store_put(bed->store, make(++id, 5, "first", JOB_RUNNING, true)));
    first = longest = log_size(bed);
    assert_in_range(first, STORE_LOG_PAGES * STORE_PAGE, LOG);
    for (int i = 0; i < SMALL; i++) { /* through the log more than once */
        number = store_put(bed->store, make(id, 5, "first", JOB_RUNNING, false));
        store_want(bed->store, number);
        await(bed, number);
    }
    assert_int_equal(log_size(bed), first);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < JOBS; i++) {
            snprintf(token, sizeof(token), "%" PRIu64, ++id);
            number = store_put(bed->store, make(id, 5, token, JOB_RUNNING, true));
        }
        store_want(bed->store, number);
        await(bed, number);
        longest = log_size(bed) > longest ? log_size(bed) : longest;
    }
    assert_in_range(longest, first, LOG + BATCH);
    for (int i = 0; i < LARGE; i++) {
        struct record *record;
        snprintf(token, sizeof(token), "%" PRIu64, ++id);
        record = make(id, 5, token, JOB_RUNNING, true);
        record->text = arena_strdup(&record->memory, text);
        number = store_put(bed->store, record);
    }
    await(bed, number);
    print_message("the log after a large batch: %lld bytes\n", (long long)log_size(bed));
    /* The log is put into the store beside the commits, when the writer has time for it. */
    for (int commits = 0; log_size(bed) > LOG && commits < 3000; commits++) {
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
    uv_run(&bed->loop, UV_RUN_ONCE); /* the check has ended: nothing else happens in this store */
    assert_non_null(strstr(bed->damage, "damaged"));
    close_store(bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(test_starting_in_an_older_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(test_from_schema_11, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_in_the_history, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
