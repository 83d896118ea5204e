/* copy.c - see copy.h.
 *
 * What was accepted after the copy is not known to it, but users were told ids, and hosts may still have such jobs,
 * known to them by id and attempt. So a cluster that goes on from a copy leaves out more ids than will have been given
 * since: STORE_IDS_A_DAY for each day that has begun, and as many once more, because the clock may be wrong. An array
 * has an id for each task, and one host signs 864,000 a day for a user: the number is for a thousand such. Those that
 * hosts still have are then ids of no job, and are ended when these hosts link. Allocations are counted in the same
 * way.
 *
 * The same holds for a store whose lock file was removed (file.h): that it is a copy, or has lost its last commits, is
 * what this was done for. When it was as it is nobody has noted; its last job was submitted before, and it was made or
 * brought to its schema before. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "elmer/store/sql.h"
#include "elmer/store/store.h"

enum { STORE_IDS_A_DAY = 1000000000, DAYS_MAX = 100000 };

static int copy_to(sqlite3 *db, const char *to, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sql_execute(db, "PRAGMA auto_vacuum = INCREMENTAL", err); /* of the copy */
    if (!result)
        result = sql_statement(db, "VACUUM INTO ?", &statement, err);
    if (result)
        return result;
    sqlite3_bind_text(statement, 1, to, -1, SQLITE_STATIC);
    int step = sqlite3_step(statement);
    if ((step & 0xff) == SQLITE_FULL) /* not the store's own file system */
        result = err_set(err, -ENOSPC, "copying the store: no space left; free some on the file system of %s", to);
    else if (step != SQLITE_DONE)
        result = sql_fail(db, step & 0xff, "copying the store", err);
    sqlite3_finalize(statement);
    return result;
}

int store_copy(const char *path, const char *to, struct err *err)
{
    sqlite3 *db = NULL;
    int64_t schema = 0;
    if (access(to, F_OK) == 0)
        return err_set(err, -EEXIST, "cannot copy the store to %s: it is there already", to);
    int result = access(path, F_OK) == 0 ? sql_open(path, false, &db, err)
                                         : err_set(err, -errno, "there is no store %s: elmer has not begun yet", path);
    if (!result)
        result = sql_integer(db, "PRAGMA user_version", &schema, err);
    if (!result && (schema < 1 || schema > STORE_SCHEMA))
        result = err_set(err, -EPROTO, "the store %s has schema %" PRId64 ", and this eadmin knows those up to %d",
                         path, schema, STORE_SCHEMA);
    if (!result && (result = copy_to(db, to, err)) < 0)
        unlink(to);
    sqlite3_close(db);
    return result;
}

static int64_t ids_between(int64_t made_ms, int64_t now_ms)
{
    int64_t days = now_ms > made_ms ? (now_ms - made_ms) / 86400000 + 1 : 1;
    return (1 + (days < DAYS_MAX ? days : DAYS_MAX)) * STORE_IDS_A_DAY;
}

static int go_on(sqlite3 *db, int64_t ids, uint64_t *next_job, struct err *err)
{
    char sql[160];
    uint64_t next_allocation;
    snprintf(sql, sizeof(sql),
             "UPDATE meta SET value = value + %" PRId64 " WHERE key IN ('next_job', 'next_allocation')", ids);
    int result = sql_execute(db, sql, err);
    return result ? result : sql_counters(db, next_job, &next_allocation, err);
}

int sql_skip_ids(sqlite3 *db, int64_t now_ms, uint64_t *next_job, struct err *err)
{
    int64_t last_ms = 0;
    int result = sql_integer(db,
                             "SELECT max((SELECT max(applied_ms) FROM migration), coalesce((SELECT submitted_ms FROM "
                             "job ORDER BY id DESC LIMIT 1), 0))",
                             &last_ms, err);
    return result ? result : go_on(db, ids_between(last_ms, now_ms), next_job, err);
}

int store_restored(const char *path, int64_t made_ms, int64_t now_ms, uint64_t *next_job, struct err *err)
{
    sqlite3 *db = NULL;
    bool checked = false;
    int result = sql_open(path, false, &db, err);
    if (!result)
        result = sql_prepare(db, path, &checked, err);
    if (!result && !checked)
        result = sql_check(db, err);
    if (!result)
        result = go_on(db, ids_between(made_ms, now_ms), next_job, err);
    if (!result) /* that is done, and there is no lock file that would know a number */
        result = sql_execute(db, "DELETE FROM meta WHERE key = 'commits'", err);
    if (!result) /* all of it is in this one file */
        result = sql_execute(db, "PRAGMA journal_mode = DELETE", err);
    sqlite3_close(db);
    return result;
}
