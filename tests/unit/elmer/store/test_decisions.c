/* test_decisions.c - what persons have decided is on disk, is bounded. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elmer/store/drop_columns.h"
#include "tests/unit/elmer/store/file_bed.h"

static void put(struct sql_writer *writer, const struct decision *decision)
{
    struct sql_rows rows = {.decisions = decision, .ndecisions = 1};
    file_bed_write(writer, &rows);
}

static struct decision found[8];
static size_t nfound;

static void add(const struct decision *decision, void *data)
{
    (void)data;
    assert_true(nfound < sizeof(found) / sizeof(*found));
    found[nfound++] = *decision;
}

static size_t read_them(sqlite3 *db, int64_t since_ms, int64_t after, size_t count)
{
    struct err err = ERR_INIT;
    nfound = 0;
    if (sql_decisions(db, since_ms, after, count, add, NULL, &err))
        fail_msg("%s", err.text);
    return nfound;
}

static const struct decision ended = {.at_ms = 1000,
                                      .what = "ended",
                                      .job = 30,
                                      .user = "alice",
                                      .by = "carol",
                                      .from = "ws3",
                                      .uid = 1003,
                                      .admin = true},
                             drained = {.at_ms = 2000,
                                        .what = "drained",
                                        .host = "ws2",
                                        .by = "carol",
                                        .from = "ws1",
                                        .text = "the \"disk\""};

static void test_rows(void **state)
{
    struct sql_writer *writer;
    sqlite3 *db = file_bed_open(&writer);
    (void)state;
    assert_int_equal(read_them(db, 0, 0, 8), 0);
    put(writer, &ended);
    put(writer, &drained);
    file_bed_close(db, writer);
    db = file_bed_open(&writer);
    assert_int_equal(read_them(db, 0, 0, 8), 2);
    int64_t first = found[0].id;
    assert_true(first > 0 && found[1].id > first);
    assert_string_equal(found[0].user, "alice");
    assert_int_equal(found[0].job, 30);
    assert_int_equal(found[0].uid, 1003);
    assert_true(found[0].admin);
    assert_string_equal(found[0].from, "ws3");
    assert_string_equal(found[1].text, "the \"disk\"");
    assert_int_equal(found[1].at_ms, 2000);
    assert_int_equal(read_them(db, 0, 0, 1), 1);
    assert_int_equal(read_them(db, 1500, 0, 8), 1);
    assert_string_equal(found[0].what, "drained");
    assert_int_equal(read_them(db, 0, first, 8), 1);
    file_bed_close(db, writer);
}

/* Who holds and releases his job a million times does not push out what administrators have done. */
static void test_trim(void **state)
{
    enum { DAY_MS = 86400000 };
    const struct store_limits limits = {.jobs = 10, .age_ms = 10 * (int64_t)DAY_MS};
    struct sql_writer *writer;
    sqlite3 *db = file_bed_open(&writer);
    struct err err = ERR_INIT;
    struct decision late = ended;
    struct trim_large large = {0};
    char sql[300];
    bool more;
    int64_t count = 0;
    (void)state;
    put(writer, &ended);
    late.at_ms = 12 * (int64_t)DAY_MS;
    put(writer, &late);
    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO decision(at_ms, "
             "what, job, user, host, who, uid, origin, admin, text) SELECT %lld, 'held', 1, '', '', 'bob', 1, '', 0, "
             "'' FROM n",
             STORE_DECISIONS + 7, (long long)late.at_ms);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    if (sql_trim(db, &limits, late.at_ms, &large, &more, &err))
        fail_msg("%s", err.text);
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM decision WHERE admin = 1", &count, &err), 0);
    assert_int_equal(count, 1); /* the late one */
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM decision WHERE admin = 0", &count, &err), 0);
    assert_int_equal(count, STORE_DECISIONS);
    file_bed_close(db, writer);
}

static void keep_host(const struct host_row *host, void *data)
{
    *(struct host_row *)data = *host;
}

static void test_from_schema_10(void **state)
{
    struct sql_writer *writer;
    sqlite3 *db = file_bed_open(&writer);
    struct err err = ERR_INIT;
    struct host_row host = {.name = "ws1",
                            .row = {.drained = true},
                            .drain = {.by = "carol", .text = "disk", .at_ms = 7}},
                    read = {.name = ""};
    struct sql_rows rows = {.hosts = &host, .nhosts = 1};
    (void)state;
    assert_int_equal(sqlite3_exec(db,
                                  DROP_SCHEMA_12
                                  "DROP TABLE decision; ALTER TABLE host DROP COLUMN joined; ALTER TABLE host DROP "
                                  "COLUMN drained_by; ALTER TABLE host DROP "
                                  "COLUMN drained_text; ALTER TABLE host DROP COLUMN drained_ms; INSERT INTO host "
                                  "VALUES('ws1', 1, 2, 1); DELETE FROM migration WHERE version > 10; PRAGMA "
                                  "user_version = 10",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    file_bed_close(db, writer);
    db = file_bed_open(&writer);
    assert_int_equal(sql_hosts(db, keep_host, &read, &err), 0);
    assert_true(read.row.drained); /* by whom is not known */
    assert_string_equal(read.drain.by, "");
    file_bed_write(writer, &rows);
    assert_int_equal(sql_hosts(db, keep_host, &read, &err), 0);
    assert_string_equal(read.drain.by, "carol");
    assert_string_equal(read.drain.text, "disk");
    assert_int_equal(read.drain.at_ms, 7);
    file_bed_close(db, writer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, file_bed_setup, file_bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_rows), TEST(test_trim), TEST(test_from_schema_10)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
