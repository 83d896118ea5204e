/* test_store_copy.c - the store in a backup: a copy of one moment while elmer writes, and ids that go on beyond those
 * that can have been given since. */
#include "config.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elmer/store/store.h"
#include "tests/unit/elmer/store/store_bed.h"

#define DAY_MS INT64_C(86400000)

static char copy[300];

static void forget_copy(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock", "-journal"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        char name[320];

        snprintf(name, sizeof(name), "%s%s", copy, ends[i]);
        unlink(name);
    }
}

static void name_copy(const struct bed *bed)
{
    snprintf(copy, sizeof(copy), "%s.copy", bed->path);
    forget_copy();
}

static void test_copy(void **state)
{
    struct bed *bed = *state;
    struct err err = ERR_INIT;
    uint64_t next_job = 0, next_allocation = 0;

    name_copy(bed);
    store_put(bed->store, make(1, 5, "one", JOB_RUNNING, true));
    store_put(bed->store, make(2, 5, "two", JOB_QUEUED, true));
    await(bed, 2);
    if (store_copy(bed->path, copy, &err) != 0) /* the store is open */
        fail_msg("%s", err.text);
    store_put(bed->store, make(3, 5, "three", JOB_QUEUED, true)); /* and goes on */
    await(bed, 3);
    assert_true(store_copy(bed->path, copy, &err) < 0); /* nothing is overwritten */
    err_clear(&err);
    close_store(bed);
    if (store_restored(copy, 0, DAY_MS / 2, &next_job, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(next_job, 3 + INT64_C(2000000000));
    assert_int_equal(access(copy, F_OK), 0);
    /* It is a store. */
    assert_int_equal(rename(copy, bed->path), 0);
    forget_copy();
    snprintf(copy, sizeof(copy), "%s.lock", bed->path);
    unlink(copy);
    assert_int_equal(open_store(bed, &err), 0);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(bed->nfound, 2);
    assert_int_equal(next_job, INT64_C(2000000003));
    assert_true(next_allocation >= 2000000);
    assert_string_equal(bed->found[0]->user, "alice");
    assert_int_equal(bed->found[0]->attempt, 1);
    drop_found(bed);
}

static uint64_t next_after(struct bed *bed, int64_t made_ms, int64_t now_ms)
{
    struct err err = ERR_INIT;
    uint64_t next_job = 0;

    name_copy(bed);
    if (store_copy(bed->path, copy, &err) != 0 || store_restored(copy, made_ms, now_ms, &next_job, &err) != 0)
        fail_msg("%s", err.text);
    forget_copy();
    return next_job;
}

static void test_ids(void **state)
{
    struct bed *bed = *state;

    store_put(bed->store, make(7, 5, "seven", JOB_QUEUED, true));
    await(bed, 1);
    assert_int_equal(next_after(bed, 10 * DAY_MS, 10 * DAY_MS), 8 + INT64_C(2000000000));
    assert_int_equal(next_after(bed, 10 * DAY_MS, 3 * DAY_MS), 8 + INT64_C(2000000000)); /* the clock was set back */
    assert_int_equal(next_after(bed, 10 * DAY_MS, 11 * DAY_MS + 1), 8 + INT64_C(3000000000));
    assert_int_equal(next_after(bed, 10 * DAY_MS, 40 * DAY_MS), 8 + INT64_C(32000000000));
    assert_int_equal(next_after(bed, 0, INT64_MAX), 8 + INT64_C(100001000000000));
    close_store(bed);
    assert_int_equal(open_store(bed, &(struct err)ERR_INIT), 0);
}

static void test_bad(void **state)
{
    struct bed *bed = *state;
    struct err err = ERR_INIT;
    uint64_t next_job;
    sqlite3 *db;
    FILE *stream;

    name_copy(bed);
    assert_true(store_copy("/nowhere/elmer.db", copy, &err) < 0);
    assert_non_null(strstr(err.text, "elmer has not begun yet"));
    assert_true(access(copy, F_OK) < 0);
    err_clear(&err);
    assert_true(store_copy(bed->path, "/nowhere/copy.db", &err) < 0);
    assert_non_null(strstr(err.text, "copying the store"));
    err_clear(&err);
    assert_int_equal(store_copy(bed->path, copy, &err), 0); /* of a newer elmer */
    assert_int_equal(sqlite3_open(copy, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(store_restored(copy, 0, 1, &next_job, &err), -EPROTO);
    assert_non_null(strstr(err.text, "schema 99"));
    err_clear(&err);
    forget_copy();
    stream = fopen(copy, "w"); /* of somebody else */
    assert_non_null(stream);
    for (int i = 0; i < 1000; i++)
        fputs("no store ", stream);
    fclose(stream);
    assert_true(store_restored(copy, 0, 1, &next_job, &err) < 0);
    forget_copy();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
