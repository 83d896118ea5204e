/* connection.c - a connection to the store's file, and what SQLite says, in words. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "elmer/store/sql.h"

int sql_fail_with(sqlite3 *db, int code, int system, const char *what, struct err *err)
{
    const char *path = db ? sqlite3_db_filename(db, "main") : NULL;
    if (code == SQLITE_FULL || (code == SQLITE_IOERR && system == ENOSPC))
        return err_set(err, -ENOSPC, "%s: no space left; free some on the file system of %s", what,
                       path && *path ? path : "the store");
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return err_set(err, -EUCLEAN, "%s: %s", what, sqlite3_errmsg(db));
    return err_set(err, -EIO, "%s: %s%s%s (error %d)", what, sqlite3_errmsg(db), system ? ": " : "",
                   system ? strerror(system) : "", sqlite3_extended_errcode(db));
}

int sql_fail(sqlite3 *db, int code, const char *what, struct err *err)
{
    return sql_fail_with(db, code, code == SQLITE_IOERR ? sqlite3_system_errno(db) : 0, what, err);
}

int sql_execute(sqlite3 *db, const char *sql, struct err *err)
{
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : sql_fail(db, code & 0xff, "the store", err);
}

int sql_statement(sqlite3 *db, const char *sql, sqlite3_stmt **statement, struct err *err)
{
    int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    return code == SQLITE_OK ? 0 : sql_fail(db, code & 0xff, "the store", err);
}

int sql_open(const char *path, bool writer, sqlite3 **db, struct err *err)
{
    int flags = SQLITE_OPEN_NOMUTEX | (writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE);
    int code = sqlite3_open_v2(path, db, flags, NULL);
    if (code != SQLITE_OK) {
        int error = *db ? sqlite3_system_errno(*db) : ENOMEM;
        err_set(err, error ? -error : -EIO,
                "cannot open the store %s: %s; its directory must be there and belong to the user that elmer runs as "
                "(or set \"store = ...\")",
                path, error ? strerror(error) : sqlite3_errstr(code));
        sqlite3_close(*db);
        *db = NULL;
        return error ? -error : -EIO;
    }
    sqlite3_busy_timeout(*db, SQL_BUSY_MS);
    sqlite3_limit(*db, SQLITE_LIMIT_LENGTH, 64 << 20);
    return 0;
}

int sql_integer(sqlite3 *db, const char *sql, int64_t *value, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sql_statement(db, sql, &statement, err);
    if (result)
        return result;
    int step = sqlite3_step(statement);
    if (step == SQLITE_ROW)
        *value = sqlite3_column_int64(statement, 0);
    else if (step == SQLITE_DONE)
        *value = 0;
    else
        result = sql_fail(db, step & 0xff, "the store", err);
    sqlite3_finalize(statement);
    return result;
}
