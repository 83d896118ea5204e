/* damage.c - a store that is not what was written: finding it, and saying what to do. */
#include "config.h"

#include "elmer/store/sql.h"

#include <errno.h>
#include <string.h>

int sql_check(sqlite3 *db, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sql_statement(db, "PRAGMA quick_check(1)", &statement, err);
    if (result)
        return result;
    int step = sqlite3_step(statement);
    const char *text = step == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (step != SQLITE_ROW)
        result = sql_fail(db, step & 0xff, "check", err);
    else if (!text || strcmp(text, "ok") != 0)
        result = err_set(err, -EUCLEAN, "%s", text ? text : "check failed");
    sqlite3_finalize(statement);
    return result;
}

int sql_explain(const char *path, int result, struct err *err, const char *text)
{
    if (result == -EUCLEAN)
        return err_set(
            err, result,
            "the store %s is damaged (%s): elmer does not touch it. With a backup: move it away, with the file -wal "
            "beside it, and `eadmin init --restore FILE --now`. Without: try \"sqlite3 %s .recover\", remove the file "
            ".lock beside it to go on with what is left, or move it away to begin with an empty queue",
            path, text, path);
    return err_set(err, result, "cannot use the store %s: %s", path, text);
}
