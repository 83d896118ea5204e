/* trim.c - the limits of the history, and what it does not keep: environments. Each call is one transaction of bounded
 * size. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/store/sql.h"
#include "lib/base/log.h"

enum { TRIM_JOBS = 200, TRIM_DECISIONS = 2000, TRIM_CERTIFICATES = 2000, STRIP_JOBS = 64, STRIP_BYTES = 1 << 20 };

#define DAY_MS INT64_C(86400000)

#define NOT_AWAITED "NOT EXISTS (SELECT 1 FROM awaited WHERE awaited.job = state.job)"

/* Some of those that are beyond a limit, into the temporary table doomed. One that others wait for stays, and does not
 * count: how it has ended decides about them after a restart. A clock that is set far ahead must not cost
 * the whole history: age counts from the last end, at most. */
static int choose_doomed(sqlite3 *db, const struct store_limits *limits, int64_t now_ms, struct err *err)
{
    int64_t newest = 0;
    char sql[600];
    int result = sql_integer(db, "SELECT max(ended_ms) FROM state WHERE ended_ms IS NOT NULL", &newest, err);
    snprintf(sql, sizeof(sql),
             "INSERT INTO doomed SELECT job FROM state WHERE ended_ms IS NOT NULL AND " NOT_AWAITED
             " ORDER BY ended_ms DESC, job DESC "
             "LIMIT %d OFFSET %" PRId64 ";"
             "INSERT OR IGNORE INTO doomed SELECT job FROM state WHERE ended_ms IS NOT NULL AND ended_ms < %" PRId64
             " AND " NOT_AWAITED " LIMIT %d",
             TRIM_JOBS, limits->jobs, (now_ms < newest ? now_ms : newest) - limits->age_ms, TRIM_JOBS);
    return result ? result : sql_execute(db, sql, err);
}

/* In bytes: of text SQLite's length() counts characters, of which a user can have some of four bytes each. */
#define SIZE     "(length(CAST(submission AS BLOB)) + length(CAST(line AS BLOB)))"
#define IS_LARGE "ended_ms IS NOT NULL AND " SIZE " > %d AND " NOT_AWAITED

static int bytes_in_use(sqlite3 *db, int64_t *bytes, struct err *err)
{
    int64_t pages = 0, nfree = 0, size = 0;
    int result = sql_integer(db, "PRAGMA page_count", &pages, err);
    if (!result)
        result = sql_integer(db, "PRAGMA freelist_count", &nfree, err);
    if (!result)
        result = sql_integer(db, "PRAGMA page_size", &size, err);
    *bytes = (pages - nfree) * size;
    return result;
}

/* Of the large ones among these jobs. */
static int sum_large(sqlite3 *db, const char *jobs, int64_t *bytes, struct err *err)
{
    char sql[500];
    snprintf(sql, sizeof(sql),
             "SELECT coalesce(sum(" SIZE "), 0) FROM %s CROSS JOIN job ON job.id = state.job WHERE " IS_LARGE, jobs,
             STORE_LARGE_BYTES);
    return sql_integer(db, sql, bytes, err);
}

/* To count them reads all submissions, a second or more of a file that is so large. So that is done again only when
 * what is in use has grown by a quarter of what they may have. */
static int count_large(sqlite3 *db, const struct store_limits *limits, int64_t in_use, struct trim_large *large,
                       struct err *err)
{
    if (large->bytes > limits->large_bytes)
        return 0;
    if (large->counted_at > 0 && in_use - large->counted_at < limits->large_bytes / 4)
        return 0;
    large->counted_at = in_use;
    return sum_large(db, "state", &large->bytes, err);
}

/* The command and the lines of an array stay with a job that has ended, for who submits it again; a user could fill the
 * disk with them, whatever is allowed to him at a time. Where a long queue fills it, they have their part, too. */
static int choose_large(sqlite3 *db, const struct store_limits *limits, struct trim_large *large, bool *more,
                        struct err *err)
{
    int64_t in_use = 0, doomed = 0;
    char sql[500];
    int result = limits->bytes > 0 ? bytes_in_use(db, &in_use, err) : 0;
    if (result || in_use <= limits->bytes) {
        *large = (struct trim_large){0};
        return result;
    }
    result = count_large(db, limits, in_use, large, err);
    if (result || large->bytes <= limits->large_bytes)
        return result;
    snprintf(sql, sizeof(sql),
             "INSERT OR IGNORE INTO doomed SELECT state.job FROM state CROSS JOIN job ON job.id = state.job "
             "WHERE " IS_LARGE " ORDER BY ended_ms, state.job LIMIT %d",
             STORE_LARGE_BYTES, TRIM_LARGE);
    result = sql_execute(db, sql, err);
    *more = !result && sqlite3_changes(db) > 0;
    if (!result)
        result = sum_large(db, "doomed CROSS JOIN state ON state.job = doomed.job", &doomed, err);
    large->bytes = *more ? large->bytes - doomed : 0;
    return result;
}

/* Beyond the age of the history, or too many of their class; those of users must not push those of administrators out.
 */
static int trim_decisions(sqlite3 *db, const struct store_limits *limits, int64_t now_ms, struct err *err)
{
    int64_t newest = 0;
    char sql[500];
    int result = sql_integer(db, "SELECT at_ms FROM decision ORDER BY id DESC LIMIT 1", &newest, err);
    snprintf(
        sql, sizeof(sql),
        "DELETE FROM decision WHERE id IN (SELECT id FROM decision WHERE at_ms < %" PRId64 " ORDER BY id LIMIT %d);"
        "DELETE FROM decision WHERE id IN (SELECT id FROM decision WHERE admin = 0 ORDER BY id DESC LIMIT %d OFFSET "
        "%d);"
        "DELETE FROM decision WHERE id IN (SELECT id FROM decision WHERE admin = 1 ORDER BY id DESC LIMIT %d OFFSET "
        "%d)",
        (now_ms < newest ? now_ms : newest) - limits->age_ms, TRIM_DECISIONS, TRIM_DECISIONS, STORE_DECISIONS,
        TRIM_DECISIONS, STORE_DECISIONS);
    return result ? result : sql_execute(db, sql, err);
}

/* Each renewal leaves one. That one was revoked is not needed any more when its time is over by the length of the
 * history: an unknown one is refused as well, also by a clock that is wrong now. */
static int trim_certificates(sqlite3 *db, const struct store_limits *limits, int64_t now_ms, struct err *err)
{
    char sql[300];
    snprintf(sql, sizeof(sql),
             "DELETE FROM certificate WHERE serial IN (SELECT serial FROM certificate WHERE revoked_ms IS NOT NULL AND "
             "max(revoked_ms, end_ms) < %" PRId64 " LIMIT %d)",
             now_ms - limits->age_ms, TRIM_CERTIFICATES);
    return sql_execute(db, sql, err);
}

int64_t trim_age(const struct trim_clock *clock, int64_t age_ms, int64_t now_mono_ms)
{
    bool gap = clock->last_end_ms > 0 && clock->opened_ms - clock->last_end_ms > age_ms;
    return gap && now_mono_ms - clock->opened_mono_ms < DAY_MS ? INT64_C(1) << 52 : age_ms;
}

int sql_trim(sqlite3 *db, const struct store_limits *limits, int64_t now_ms, struct trim_large *large, bool *more,
             struct err *err)
{
    int64_t count = 0;
    bool more_large = false;
    int result =
        sql_execute(db, "BEGIN IMMEDIATE; CREATE TEMP TABLE IF NOT EXISTS doomed(job INTEGER PRIMARY KEY)", err);
    if (!result)
        result = choose_doomed(db, limits, now_ms, err);
    if (!result)
        result = choose_large(db, limits, large, &more_large, err);
    if (!result)
        result = trim_decisions(db, limits, now_ms, err);
    if (!result)
        result = trim_certificates(db, limits, now_ms, err);
    if (!result)
        result = sql_integer(db, "SELECT count(*) FROM doomed", &count, err);
    if (!result)
        result = sql_execute(db,
                             "DELETE FROM usage WHERE job IN (SELECT job FROM doomed);"
                             "DELETE FROM state WHERE job IN (SELECT job FROM doomed);"
                             "DELETE FROM job WHERE id IN (SELECT job FROM doomed);"
                             "DELETE FROM doomed; COMMIT",
                             err);
    if (result) {
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        *large = (struct trim_large){0};
    }
    *more = !result && (count >= TRIM_JOBS || more_large);
    return result;
}

/* ---- environments that an elmer of before has kept ---- */

struct stripped {
    int64_t job;
    char *json; /* NULL: its submission cannot be read, and stays */
    unsigned minor;
    char digest[RECORD_DIGEST_SIZE];
};

static void strip(int64_t job, const char *json, unsigned minor, struct stripped *stripped)
{
    struct err err = ERR_INIT;
    struct wire_message submission = {0};
    *stripped = (struct stripped){.job = job};
    if (minor > WIRE_MINOR || mem_result(wire_decode(json, strlen(json), minor, &submission, &err)) ||
        submission.type != WIRE_submit ||
        record_end(&submission, &stripped->json, &stripped->minor, stripped->digest, &err)) {
        log_warning("job=%" PRId64 " its environment stays in the history: %s", job, err.text);
        snprintf(stripped->digest, sizeof(stripped->digest), "?"); /* not again */
    }
    wire_message_fini(&submission);
}

static int read_some(sqlite3 *db, struct stripped *some, size_t *count, bool *more, struct err *err)
{
    sqlite3_stmt *s = NULL;
    size_t bytes = 0;
    int step = SQLITE_DONE,
        result =
            sql_statement(db,
                          "SELECT id, minor, submission FROM state INDEXED BY state_environment CROSS JOIN job ON id "
                          "= job WHERE ended_ms IS NOT NULL AND environment_sha256 = ''",
                          &s, err);
    while (!result && *count < STRIP_JOBS && bytes < STRIP_BYTES && (step = sqlite3_step(s)) == SQLITE_ROW) {
        bytes += (size_t)sqlite3_column_bytes(s, 2);
        strip(sqlite3_column_int64(s, 0), (const char *)sqlite3_column_text(s, 2), (unsigned)sqlite3_column_int(s, 1),
              &some[(*count)++]);
    }
    *more = !result && step == SQLITE_ROW;
    if (!result && step != SQLITE_ROW && step != SQLITE_DONE)
        result = sql_fail(db, step & 0xff, "reading", err);
    sqlite3_finalize(s);
    return result;
}

static int write_one(sqlite3 *db, sqlite3_stmt *statement, int64_t job, const char *text, struct err *err)
{
    sqlite3_bind_int64(statement, 1, job);
    sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
    int step = sqlite3_step(statement);
    sqlite3_reset(statement);
    return step == SQLITE_DONE ? 0 : sql_fail(db, step & 0xff, "writing", err);
}

static int write_some(sqlite3 *db, const struct stripped *some, size_t count, struct err *err)
{
    sqlite3_stmt *job = NULL, *state = NULL;
    int result = sql_statement(db, "UPDATE job SET submission = ?2, minor = ?3 WHERE id = ?1", &job, err);
    if (!result)
        result = sql_statement(db, "UPDATE state SET environment_sha256 = ?2 WHERE job = ?1", &state, err);
    for (size_t i = 0; !result && i < count; i++) {
        if (some[i].json) {
            sqlite3_bind_int(job, 3, (int)some[i].minor);
            result = write_one(db, job, some[i].job, some[i].json, err);
        }
        if (!result)
            result = write_one(db, state, some[i].job, some[i].digest, err);
    }
    sqlite3_finalize(job);
    sqlite3_finalize(state);
    return result;
}

int sql_drop_environments(sqlite3 *db, bool *more, struct err *err)
{
    struct stripped some[STRIP_JOBS];
    size_t count = 0;
    int result = read_some(db, some, &count, more, err);
    if (!result && count) {
        result = sql_execute(db, "BEGIN IMMEDIATE", err);
        if (!result)
            result = write_some(db, some, count, err);
        if (!result)
            result = sql_execute(db, "COMMIT", err);
        if (result)
            sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    for (size_t i = 0; i < count; i++)
        free(some[i].json);
    *more = *more && !result;
    return result;
}
