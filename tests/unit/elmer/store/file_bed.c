/* file_bed.c - see file_bed.h. */
#include "config.h"

#include "tests/unit/elmer/store/file_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/scratch.h"

static char dir[40], path[60];

int file_bed_setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/elmer-store-XXXXXX");
    assert_non_null(scratch_dir(dir));
    snprintf(path, sizeof(path), "%s/db", dir);
    return 0;
}

int file_bed_teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

sqlite3 *file_bed_open(struct sql_writer **writer)
{
    struct err err = ERR_INIT;
    sqlite3 *db;
    bool checked;
    if (sql_open(path, true, &db, &err) || sql_prepare(db, path, &checked, &err) || sql_writer_create(db, writer, &err))
        fail_msg("%s", err.text);
    return db;
}

void file_bed_close(sqlite3 *db, struct sql_writer *writer)
{
    sql_writer_destroy(writer);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

void file_bed_write(struct sql_writer *writer, const struct sql_rows *rows)
{
    struct err err = ERR_INIT;
    if (sql_write(writer, rows, 1, &err))
        fail_msg("%s", err.text);
}
