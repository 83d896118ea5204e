/* test_store_settings.c - what administrators have set is on disk, and a store of before gets the table for it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "elmer/store/sql.h"
#include "tests/unit/scratch.h"

static char dir[40], path[60];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/elmer-settings-XXXXXX");
    assert_non_null(scratch_dir(dir));
    snprintf(path, sizeof(path), "%s/db", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static sqlite3 *open_store(struct sql_writer **writer)
{
    struct err err = ERR_INIT;
    sqlite3 *db;
    bool checked;
    if (sql_open(path, true, &db, &err) || sql_prepare(db, path, &checked, &err) || sql_writer_create(db, writer, &err))
        fail_msg("%s", err.text);
    return db;
}

static void close_store(sqlite3 *db, struct sql_writer *writer)
{
    sql_writer_destroy(writer);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void put(struct sql_writer *writer, const char *name, const char *value)
{
    struct err err = ERR_INIT;
    struct setting_row row = {.name = ""};
    struct sql_rows rows = {.settings = &row, .nsettings = 1};
    snprintf(row.name, sizeof(row.name), "%s", name);
    snprintf(row.value, sizeof(row.value), "%s", value);
    if (sql_write(writer, &rows, 1, &err))
        fail_msg("%s", err.text);
}

static void add(const struct setting_row *row, void *data)
{
    char *all = data;
    snprintf(all + strlen(all), 200 - strlen(all), "%s=%s ", row->name, row->value);
}

static void expect(sqlite3 *db, const char *expected)
{
    struct err err = ERR_INIT;
    char all[200] = "";
    if (sql_settings(db, add, all, &err))
        fail_msg("%s", err.text);
    assert_string_equal(all, expected);
}

/* The last word of each counts; one that is taken back is gone. */
static void test_settings(void **state)
{
    struct sql_writer *writer;
    sqlite3 *db = open_store(&writer);
    (void)state;
    expect(db, "");
    put(writer, "policy", "fcfs");
    put(writer, "allocator", "spread");
    expect(db, "allocator=spread policy=fcfs ");
    put(writer, "allocator", "pack");
    put(writer, "policy", "");
    close_store(db, writer);
    db = open_store(&writer);
    expect(db, "allocator=pack ");
    close_store(db, writer);
}

static void test_from_schema_5(void **state)
{
    struct sql_writer *writer;
    sqlite3 *db = open_store(&writer);
    (void)state;
    assert_int_equal(
        sqlite3_exec(db,
                     "DROP TABLE awaited; ALTER TABLE state DROP COLUMN verdicts; ALTER TABLE state DROP COLUMN ran; "
                     "ALTER TABLE state DROP COLUMN place; ALTER TABLE host DROP COLUMN joined; "
                     "DROP TABLE decision; ALTER TABLE host DROP COLUMN drained_by; ALTER TABLE host DROP COLUMN "
                     "drained_text; ALTER TABLE host DROP COLUMN drained_ms; DROP TABLE setting; DROP INDEX "
                     "state_environment; ALTER TABLE state DROP COLUMN "
                     "environment_sha256; DELETE FROM migration WHERE version > 5; PRAGMA user_version = 5",
                     NULL, NULL, NULL),
        SQLITE_OK);
    close_store(db, writer);
    db = open_store(&writer);
    expect(db, "");
    put(writer, "allocator", "v1");
    expect(db, "allocator=v1 ");
    close_store(db, writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_settings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_from_schema_5, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
