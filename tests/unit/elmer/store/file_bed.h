/* file_bed.h - a store in a file of its own, for tests of what is written and read there: setup, open, close as often
 * as they like. */
#ifndef TESTS_UNIT_ELMER_STORE_FILE_BED_H
#define TESTS_UNIT_ELMER_STORE_FILE_BED_H

#include "elmer/store/sql.h"

/* No file is there yet; file_bed_open() makes it. Both are what cmocka asks for. */
int file_bed_setup(void **state);
int file_bed_teardown(void **state);
/* Of this schema, whatever it was before. */
sqlite3 *file_bed_open(struct sql_writer **writer);
void file_bed_close(sqlite3 *db, struct sql_writer *writer);
/* All or a failed test. */
void file_bed_write(struct sql_writer *writer, const struct sql_rows *rows);

#endif
