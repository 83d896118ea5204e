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

#include "tests/unit/elmer/store/file_bed.h"

static void put(struct sql_writer *writer, const char *name, const char *value)
{
    struct setting_row row = {.name = ""};
    struct sql_rows rows = {.settings = &row, .nsettings = 1};
    snprintf(row.name, sizeof(row.name), "%s", name);
    snprintf(row.value, sizeof(row.value), "%s", value);
    file_bed_write(writer, &rows);
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
    sqlite3 *db = file_bed_open(&writer);
    (void)state;
    expect(db, "");
    put(writer, "policy", "fcfs");
    put(writer, "allocator", "spread");
    expect(db, "allocator=spread policy=fcfs ");
    put(writer, "allocator", "pack");
    put(writer, "policy", "");
    file_bed_close(db, writer);
    db = file_bed_open(&writer);
    expect(db, "allocator=pack ");
    file_bed_close(db, writer);
}

static void test_from_schema_5(void **state)
{
    struct sql_writer *writer;
    sqlite3 *db = file_bed_open(&writer);
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
    file_bed_close(db, writer);
    db = file_bed_open(&writer);
    expect(db, "");
    put(writer, "allocator", "v1");
    expect(db, "allocator=v1 ");
    file_bed_close(db, writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_settings, file_bed_setup, file_bed_teardown),
        cmocka_unit_test_setup_teardown(test_from_schema_5, file_bed_setup, file_bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
