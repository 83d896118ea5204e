/* store_sql.h - SQL of the store: schema, migrations, rows to records and back. One connection belongs to one thread at
 * a time. */
#ifndef ELMER_DAEMON_STORE_SQL_H
#define ELMER_DAEMON_STORE_SQL_H

#include <sqlite3.h>

#include "elmer/record.h"
#include "libelmer/base/err.h"

int sql_open(const char *path, bool writer, sqlite3 **db, struct err *err);
/* Check whose file it is, that it is sound, and bring the schema to this version. */
int sql_prepare(sqlite3 *db, const char *path, struct err *err);

struct sql_writer;
int sql_writer_create(sqlite3 *db, struct sql_writer **writer, struct err *err);
void sql_writer_destroy(struct sql_writer *writer);
/* All of them or none. */
int sql_write(struct sql_writer *writer, struct record *const *records, size_t count, struct err *err);

/* Rows of WHERE, with its parameters bound by bind (may be NULL). */
enum sql_which { SQL_UNFINISHED, SQL_BY_ID, SQL_BY_TOKEN };
int sql_read(sqlite3 *db, enum sql_which which, uint64_t id, const char *token,
             void (*each)(struct record *record, void *data), void *data, struct err *err);
int sql_counters(sqlite3 *db, uint64_t *next_job, uint64_t *next_allocation, struct err *err);
int sql_tokens(sqlite3 *db, void (*each)(uint32_t uid, const char *token, void *data), void *data, struct err *err);

/* For store_sql.c and store_rows.c: the error in words; a statement; the first column of the first row, 0 without one.
 */
int sql_fail(sqlite3 *db, int code, const char *what, struct err *err);
int sql_statement(sqlite3 *db, const char *sql, sqlite3_stmt **statement, struct err *err);
int sql_integer(sqlite3 *db, const char *sql, int64_t *value, struct err *err);

#endif
