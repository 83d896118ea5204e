/* damage.c - a store that is not what was written: finding it, and saying what to do. */
#include "config.h"

#include "elmer/store/sql.h"

#include <errno.h>
#include <string.h>

int sql_check(sqlite3 *db, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sql_statement(db, "PRAGMA quick_check(1)", &statement, err);
    if (code)
        return code;
    int step = sqlite3_step(statement);
    const char *text = step == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (step != SQLITE_ROW)
        code = sql_fail(db, step & 0xff, "check", err);
    else if (!text || strcmp(text, "ok"))
        code = err_set(err, -EUCLEAN, "%s", text ? text : "check failed");
    sqlite3_finalize(statement);
    return code;
}

int sql_explain(const char *path, int code, struct err *err, const char *text)
{
    if (code == -EUCLEAN)
        return err_set(
            err, code,
            "the store %s is damaged (%s): elmer does not touch it. Put a backup in its place (with the "
            "files -wal, -shm and .lock beside it removed), try \"sqlite3 %s .recover\", remove the .lock alone "
            "to go on with what is left, or move the store away to begin with an empty queue",
            path, text, path);
    return err_set(err, code, "cannot use the store %s: %s", path, text);
}
