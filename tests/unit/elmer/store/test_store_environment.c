/* test_store_environment.c - the store has the environment of a submission until its job has ended, and not a byte of
 * it after that; what an elmer of before has kept goes bit by bit. And an elmer of before can read it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elmer/store/sql.h"
#include "tests/unit/scratch.h"
#include "tests/unit/elmer/store/drop_columns.h"

#define SECRET "PASSWORD=open sesame"
/* printf 'A=1\0HOME=/h\0PASSWORD=open sesame\0' | sha256sum */
#define DIGEST "14f890e0a7e0c6cbbff233d5b99452cf19590f93b5b859e5fae2fb0a680f54b7"

static struct bed {
    char dir[40], path[60];
    sqlite3 *db;
    struct sql_writer *writer;
    struct sql_reader reader;
    uint64_t commits;
} bed;

static void open_bed(void)
{
    struct err err = ERR_INIT;
    bool checked;
    if (sql_open(bed.path, true, &bed.db, &err) || sql_prepare(bed.db, bed.path, &checked, &err) ||
        sql_writer_create(bed.db, &bed.writer, &err) || sql_open(bed.path, false, &bed.reader.db, &err))
        fail_msg("%s", err.text);
}

static void close_bed(void)
{
    sql_reader_close(&bed.reader);
    sql_writer_destroy(bed.writer);
    sqlite3_close(bed.db);
}

static int setup(void **state)
{
    (void)state;
    bed = (struct bed){.dir = "/tmp/elmer-environment-XXXXXX"};
    assert_non_null(scratch_dir(bed.dir));
    snprintf(bed.path, sizeof(bed.path), "%s/db", bed.dir);
    open_bed();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close_bed();
    unlink(bed.path);
    assert_int_equal(rmdir(bed.dir), 0);
    return 0;
}

/* ---- jobs ---- */

/* large: bytes of one more variable. */
static struct wire_message submission(uint64_t id, char *token, const char *large)
{
    static const char *command[] = {"/bin/x", "-v"};
    static const char *environment[] = {"HOME=/h", SECRET, "A=1", NULL};
    environment[3] = large;
    snprintf(token, 24, "t%" PRIu64, id);
    return (struct wire_message){.type = WIRE_submit,
                                 .u.submit = {.token = token,
                                              .nprocs = 2,
                                              .name = "x",
                                              .dir = "/d",
                                              .comment = "why",
                                              .command = {command, 2},
                                              .environment = {environment, large ? 4 : 3}}};
}

static void put(uint64_t id, enum job_state state, bool whole, bool ended, const char *large)
{
    char token[24], digest[RECORD_DIGEST_SIZE], *json = NULL;
    struct wire_message message = submission(id, token, large);
    struct err err = ERR_INIT;
    struct record *r = record_create();
    r->id = id;
    r->user = "alice";
    r->token = token;
    r->submitted_ms = 1000;
    r->state = state;
    if (record_ended(r))
        r->ended_ms = 2000;
    if (whole)
        assert_int_equal(record_json(&message, &json, &r->json_minor, &err), 0);
    if (ended) {
        assert_int_equal(record_end(&message, &json, &r->json_minor, digest, &err), 0);
        r->environment_sha256 = digest;
    }
    r->json = json;
    if (sql_write(bed.writer, &(struct sql_rows){.records = &r, .count = 1}, ++bed.commits, &err))
        fail_msg("%s", err.text);
    free(json);
    record_destroy(r);
}

static void keep(struct record *record, void *data)
{
    struct record **found = data;
    *found = record;
}

/* How much of its environment the store has; what is shown of it must be there. */
static size_t environment_of(uint64_t id, char digest[RECORD_DIGEST_SIZE])
{
    struct record *r = NULL;
    struct err err = ERR_INIT;
    if (sql_read(&bed.reader, SQL_BY_ID, id, "", 0, 1, keep, &r, &err))
        fail_msg("%s", err.text);
    assert_non_null(r);
    assert_string_equal(r->submit->name, "x");
    assert_string_equal(r->submit->comment, "why");
    assert_string_equal(r->submit->dir, "/d");
    assert_int_equal(r->submit->nprocs, 2);
    assert_int_equal(r->submit->command.count, 2);
    assert_string_equal(r->submit->command.items[1], "-v");
    size_t count = r->submit->environment.count;
    snprintf(digest, RECORD_DIGEST_SIZE, "%s", r->environment_sha256);
    record_destroy(r);
    return count;
}

/* Whatever a reader of the disk might find. The log is put into the store when it is closed. */
static bool on_disk(const char *text)
{
    close_bed();
    FILE *file = fopen(bed.path, "r");
    static char bytes[8 << 20];
    size_t size = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
    assert_true(size > 0 && size < sizeof(bytes));
    fclose(file);
    open_bed();
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

/* ---- tests ---- */

static void test_until_the_end(void **state)
{
    char digest[RECORD_DIGEST_SIZE];
    (void)state;
    put(1, JOB_QUEUED, true, false, NULL);
    put(1, JOB_RUNNING, false, false, NULL);
    put(1, JOB_QUEUED, false, false, NULL); /* a host was lost: it runs again */
    put(1, JOB_RUNNING, false, false, NULL);
    assert_int_equal(environment_of(1, digest), 3);
    assert_string_equal(digest, "");
    assert_true(on_disk(SECRET));
    put(1, JOB_DONE, false, true, NULL);
    assert_int_equal(environment_of(1, digest), 0);
    assert_string_equal(digest, DIGEST);
    assert_false(on_disk("sesame"));
    put(2, JOB_CANCELLED, false, true, NULL); /* queued and cancelled in one batch: written once */
    assert_int_equal(environment_of(2, digest), 0);
    assert_string_equal(digest, DIGEST);
}

/* Not in pages that have become free either, however many it took. */
static void test_large(void **state)
{
    static char large[200000];
    char digest[RECORD_DIGEST_SIZE];
    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    memcpy(large, "L=", 2);
    for (size_t i = 1000; i + 20 < sizeof(large); i += 1000)
        memcpy(large + i, SECRET, strlen(SECRET));
    put(1, JOB_RUNNING, true, false, large);
    put(2, JOB_QUEUED, true, false, NULL);
    assert_true(on_disk(SECRET));
    put(1, JOB_DONE, false, true, large);
    put(2, JOB_CANCELLED, false, true, NULL);
    assert_int_equal(environment_of(1, digest), 0);
    assert_false(on_disk("sesame"));
}

static void run(const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(bed.db, sql, NULL, NULL, &error))
        fail_msg("%s: %s", sql, error);
}

static int64_t number(const char *sql)
{
    struct err err = ERR_INIT;
    int64_t value;
    assert_int_equal(sql_integer(bed.db, sql, &value, &err), 0);
    return value;
}

/* The way back to an elmer of before: a submission is of the least version that has what it asks for. */
static void test_version(void **state)
{
    (void)state;
    put(1, JOB_QUEUED, true, false, NULL); /* has a comment, which came with 1.4 */
    assert_int_equal(number("SELECT minor FROM job WHERE id = 1"), 4);
    put(1, JOB_DONE, false, true, NULL);
    assert_int_equal(number("SELECT minor FROM job WHERE id = 1"), 4);
    run("UPDATE state SET environment_sha256 = ''"); /* as one of before has left it */
    bool more = true;
    struct err err = ERR_INIT;
    while (more)
        assert_int_equal(sql_drop_environments(bed.db, &more, &err), 0);
    assert_int_equal(number("SELECT minor FROM job WHERE id = 1"), 4);
}

/* A store as the elmer before left it: jobs have ended with all that was submitted. */
static void test_of_before(void **state)
{
    enum { JOBS = 300 };
    static char large[300000];
    char digest[RECORD_DIGEST_SIZE];
    struct err err = ERR_INIT;
    bool more = true;
    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    memcpy(large, "L=", 2);
    for (uint64_t i = 1; i <= JOBS; i++)
        put(i, i % 3 ? JOB_DONE : JOB_CANCELLED, true, false, i > JOBS - 10 ? large : NULL);
    put(JOBS + 1, JOB_RUNNING, true, false, NULL);
    run(DROP_SCHEMA_12
        "DROP TABLE decision; ALTER TABLE host DROP COLUMN drained_by; ALTER TABLE host DROP COLUMN "
        "drained_text; ALTER TABLE host DROP COLUMN drained_ms; DROP TABLE awaited; ALTER TABLE state DROP COLUMN "
        "verdicts; ALTER TABLE state DROP COLUMN ran; ALTER TABLE "
        "state DROP COLUMN place; ALTER TABLE host DROP COLUMN joined; "
        "DROP INDEX state_environment; ALTER TABLE state DROP COLUMN environment_sha256; DELETE FROM migration WHERE "
        "version > 6; PRAGMA user_version = 6");
    close_bed();
    open_bed();
    run("UPDATE job SET submission = 'x' WHERE id = 7"); /* damaged: it must not hold up the others */
    int64_t left = JOBS, rounds = 0;
    for (; more; rounds++) {
        assert_int_equal(sql_drop_environments(bed.db, &more, &err), 0);
        int64_t now = number("SELECT count(*) FROM state WHERE ended_ms IS NOT NULL AND environment_sha256 = ''");
        assert_true(left - now <= 64); /* others write between two of them */
        left = now;
    }
    assert_int_equal(left, 0);
    assert_true(rounds >= JOBS / 64 + 2); /* and less where they are large */
    run("DELETE FROM state WHERE job = 7; DELETE FROM job WHERE id = 7");
    assert_int_equal(environment_of(1, digest), 0);
    assert_string_equal(digest, DIGEST);
    assert_int_equal(environment_of(JOBS, digest), 0);
    assert_int_equal(environment_of(JOBS + 1, digest), 3);
    put(JOBS + 1, JOB_DONE, false, true, NULL);
    assert_false(on_disk("sesame"));
    assert_int_equal(sql_drop_environments(bed.db, &more, &err), 0);
    assert_false(more);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_until_the_end), TEST(test_large), TEST(test_version),
                                       TEST(test_of_before)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
