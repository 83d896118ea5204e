/* trim.c - the limits of the history. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "elmer/store/sql.h"

enum { TRIM_JOBS = 200 };

/* Some of those that are beyond a limit, into the temporary table doomed. A clock that is set far ahead must not cost
 * the whole history: age counts from the last end, at most. */
static int choose_doomed(sqlite3 *db, const struct store_limits *limits, int64_t now_ms, struct err *err)
{
    int64_t newest = 0;
    char sql[400];
    int code = sql_integer(db, "SELECT max(ended_ms) FROM state WHERE ended_ms IS NOT NULL", &newest, err);
    snprintf(sql, sizeof(sql),
             "INSERT INTO doomed SELECT job FROM state WHERE ended_ms IS NOT NULL ORDER BY ended_ms DESC, job DESC "
             "LIMIT %d OFFSET %" PRId64 ";"
             "INSERT OR IGNORE INTO doomed SELECT job FROM state WHERE ended_ms IS NOT NULL AND ended_ms < %" PRId64
             " LIMIT %d",
             TRIM_JOBS, limits->jobs, (now_ms < newest ? now_ms : newest) - limits->age_ms, TRIM_JOBS);
    return code ? code : sql_execute(db, sql, err);
}

int sql_trim(sqlite3 *db, const struct store_limits *limits, int64_t now_ms, bool *more, struct err *err)
{
    int64_t count = 0;
    int code = sql_execute(db, "BEGIN IMMEDIATE; CREATE TEMP TABLE IF NOT EXISTS doomed(job INTEGER PRIMARY KEY)", err);
    if (!code)
        code = choose_doomed(db, limits, now_ms, err);
    if (!code)
        code = sql_integer(db, "SELECT count(*) FROM doomed", &count, err);
    if (!code)
        code = sql_execute(db,
                           "DELETE FROM usage WHERE job IN (SELECT job FROM doomed);"
                           "DELETE FROM state WHERE job IN (SELECT job FROM doomed);"
                           "DELETE FROM job WHERE id IN (SELECT job FROM doomed);"
                           "DELETE FROM doomed; COMMIT",
                           err);
    if (code)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    *more = !code && count >= TRIM_JOBS;
    return code;
}
