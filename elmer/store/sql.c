#include "config.h"

#include "elmer/store/sql.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/store/columns.h"
#include "elmer/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"

enum { APPLICATION_ID = 0x454c4d52 /* "ELMR" */, SMALL_BYTES = 8 << 20 };

/* Step i brings schema i to i+1, after the columns of `state` that job.def has for i+1 have been added; NULL: nothing
 * else is new. Never change one that has been released: add another. */
static const char *const migrations[STORE_SCHEMA] = {
    "CREATE TABLE migration(version INTEGER PRIMARY KEY, applied_ms INTEGER NOT NULL) STRICT;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "INSERT INTO meta VALUES('next_job', 1), ('next_allocation', 1);"
    /* the submission, as the client sent it: JSON of the message submit in the given minor version */
    "CREATE TABLE job(id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, user TEXT NOT NULL, token TEXT NOT NULL, "
    "submitted_ms INTEGER NOT NULL,"
    " minor INTEGER NOT NULL, submission TEXT NOT NULL, UNIQUE(uid, token)) STRICT;"
    /* what was decided about it and what has happened; words as in core.h; processors \"HOST:CPU ...\" in rank order */
    "CREATE TABLE state(job INTEGER PRIMARY KEY REFERENCES job(id), state TEXT NOT NULL, reason TEXT NOT NULL, text "
    "TEXT NOT NULL, hosts TEXT,"
    " attempt INTEGER NOT NULL, allocation INTEGER NOT NULL, level INTEGER, processors TEXT, exit_status INTEGER NOT "
    "NULL, signal INTEGER NOT NULL,"
    " exits INTEGER NOT NULL, failed_rank INTEGER NOT NULL, exited BLOB, started_ms INTEGER, ended_ms INTEGER, "
    "level_ms TEXT NOT NULL) STRICT;"
    "CREATE INDEX state_unfinished ON state(job) WHERE state NOT IN ('done', 'cancelled');"
    "CREATE TABLE usage(job INTEGER NOT NULL REFERENCES job(id), attempt INTEGER NOT NULL, host TEXT NOT NULL, "
    "cpu_seconds REAL NOT NULL,"
    " memory_peak_bytes INTEGER, PRIMARY KEY(job, attempt, host)) STRICT, WITHOUT ROWID;",
    /* history: the newest first, and the oldest for its limits */
    "CREATE INDEX state_ended ON state(ended_ms) WHERE ended_ms IS NOT NULL;",
    /* every certificate that was passed on to a host; revoked_ms NULL: it counts */
    "CREATE TABLE certificate(serial TEXT PRIMARY KEY, host TEXT NOT NULL, issued_ms INTEGER NOT NULL, end_ms INTEGER "
    "NOT NULL, revoked_ms INTEGER) STRICT, WITHOUT ROWID;",
    /* launched: the attempt may have run, of a starting job of earlier times too; lost: names of hosts that may still
     * have it */
    "UPDATE state SET launched = 1 WHERE state = 'starting';",
    /* up: was up and not given up, with so many processors for new jobs; drained: by an administrator. level_ms counts
     * up to accounted_ms (Unix time), accounted_mono_ms of the boot with that number */
    "CREATE TABLE host(name TEXT PRIMARY KEY, up INTEGER NOT NULL, cpus INTEGER NOT NULL, drained INTEGER NOT NULL) "
    "STRICT, WITHOUT ROWID;",
    /* what an administrator has set in the place of elmer.conf; value NULL: no longer */
    "CREATE TABLE setting(name TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID;",
    /* environment_sha256: empty as long as the submission has its environment; those that have ended lose it bit by
     * bit, see sql_drop_environments() */
    "CREATE INDEX state_environment ON state(job) WHERE ended_ms IS NOT NULL AND environment_sha256 = '';",
    /* submissions may have limits */
    NULL,
    /* ran: the processes of a job have been started, in this attempt or before; verdicts: on what it waits for;
     * awaited: a job that a waiter may have to know after a restart, so the history keeps it */
    "UPDATE state SET ran = 1 WHERE started_ms IS NOT NULL OR exits > 0 OR state = 'running';"
    "CREATE TABLE awaited(job INTEGER NOT NULL, waiter INTEGER NOT NULL, PRIMARY KEY(job, waiter)) STRICT, WITHOUT "
    "ROWID;"
    "CREATE INDEX awaited_waiter ON awaited(waiter);",
    /* place: in the queue; 0: that of its id */
    NULL,
    /* joined: a host of the cluster by its token, not by the configuration */
    "ALTER TABLE host ADD COLUMN joined INTEGER NOT NULL DEFAULT 0;"
    /* decision: of a person, in their order; admin: only an administrator could; drained_*: see struct host_drain */
    "CREATE TABLE decision(id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, what TEXT NOT NULL, job "
    "INTEGER NOT NULL, user TEXT NOT NULL, host TEXT NOT NULL, who TEXT NOT NULL, uid INTEGER NOT NULL, origin TEXT "
    "NOT NULL, admin INTEGER NOT NULL, text TEXT NOT NULL) STRICT;"
    "CREATE INDEX decision_admin ON decision(admin, id);"
    "ALTER TABLE host ADD COLUMN drained_by TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE host ADD COLUMN drained_text TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE host ADD COLUMN drained_ms INTEGER NOT NULL DEFAULT 0;",
    /* Arrays: ntasks and what follows from it in their rows, array and task in those of their tasks */
    NULL,
    /* line: of a task of an array with lines, which has all of them in its submission */
    NULL,
    /* submissions may ask for memory, and for a terminal */
    NULL,
};

static int add_columns(sqlite3 *db, int64_t schema, struct err *err)
{
    char sql[200];
    int result = 0;
    for (size_t i = 0; !result && schema > 1 && i < ncolumns; i++) {
        if (columns[i].schema != schema)
            continue;
        int length =
            snprintf(sql, sizeof(sql), "ALTER TABLE state ADD COLUMN %s %s", columns[i].name, columns[i].declaration);
        assert(length > 0 && (size_t)length < sizeof(sql));
        result = sql_execute(db, sql, err);
    }
    return result;
}

static int migrate(sqlite3 *db, int64_t version, struct err *err)
{
    char sql[160];
    int result = sql_execute(db, "BEGIN IMMEDIATE", err);
    for (; !result && version < STORE_SCHEMA; version++) {
        result = add_columns(db, version + 1, err);
        if (!result && migrations[version])
            result = sql_execute(db, migrations[version], err);
        snprintf(sql, sizeof(sql),
                 "INSERT INTO migration VALUES(%" PRId64 ", %" PRId64 "); PRAGMA user_version = %" PRId64, version + 1,
                 wall_now().ms, version + 1);
        if (!result)
            result = sql_execute(db, sql, err);
    }
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", APPLICATION_ID);
    if (!result)
        result = sql_execute(db, sql, err);
    if (!result)
        result = sql_execute(db, "COMMIT", err);
    if (result)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

/* A store of this size is checked in some 20 ms; a larger one, which is mostly history, while elmer runs. */
static bool is_small(sqlite3 *db)
{
    int64_t pages = 0, size = 0;
    return !sql_integer(db, "PRAGMA page_count", &pages, NULL) && !sql_integer(db, "PRAGMA page_size", &size, NULL) &&
           pages * size <= SMALL_BYTES;
}

int sql_prepare(sqlite3 *db, const char *path, bool *checked, struct err *err)
{
    int64_t application = 0, version = 0, tables = 0;
    struct err inner = ERR_INIT;
    int result = sql_integer(db, "PRAGMA application_id", &application, &inner);
    if (!result)
        result = sql_integer(db, "PRAGMA user_version", &version, &inner);
    if (!result)
        result = sql_integer(db, "SELECT count(*) FROM sqlite_schema", &tables, &inner);
    if (result)
        return sql_explain(path, result, err, inner.text);
    if (application != APPLICATION_ID && (tables || application || version))
        return err_set(err, -EPROTO,
                       "%s is a database of another program: set \"store = ...\" to a file of elmer's own", path);
    if (version > STORE_SCHEMA)
        return err_set(err, -EPROTO,
                       "the store %s has schema %" PRId64
                       " and this elmer knows schemas up to %d: start the newer elmer that wrote it, or move it away "
                       "and `eadmin init --restore FILE --now` with the backup from before the upgrade",
                       path, version, STORE_SCHEMA);
    *checked = is_small(db);
    if (tables && *checked)
        result = sql_check(db, &inner);
    if (!result)
        result = sql_execute(db, "PRAGMA secure_delete = ON", &inner); /* or environments would stay in free pages */
    if (!result)
        result = sql_shrinkable(db, !tables, *checked, &inner);
    if (!result)
        result = sql_execute(
            db,
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
            "PRAGMA journal_size_limit = 4194304", /* STORE_LOG_PAGES; what one large batch took is given back */
            &inner);
    if (!result && version < STORE_SCHEMA)
        result = migrate(db, version, &inner);
    return result ? sql_explain(path, result, err, inner.text) : 0;
}

/* ---- writing ---- */

enum {
    PUT_JOB,
    PUT_STATE,
    PUT_USAGE,
    PUT_CERTIFICATE,
    PUT_HOST,
    PUT_SETTING,
    PUT_DECISION,
    PUT_META,
    PUT_AWAITED,
    DROP_AWAITED,
    DROP_USAGE,
    DROP_STATE,
    DROP_JOB,
    BEGIN,
    COMMIT,
    STATEMENTS
};
static const char *const statements[STATEMENTS] = {
    [PUT_JOB] = "INSERT INTO job VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET minor = excluded.minor, "
                "submission = excluded.submission",
    [PUT_USAGE] =
        "INSERT OR REPLACE INTO usage SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM job WHERE id = ?1)",
    [PUT_CERTIFICATE] = "INSERT OR REPLACE INTO certificate VALUES(?, ?, ?, ?, ?)",
    [PUT_HOST] = "INSERT OR REPLACE INTO host(name, up, cpus, drained, joined, drained_by, drained_text, drained_ms) "
                 "VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
    [PUT_SETTING] = "INSERT OR REPLACE INTO setting VALUES(?, ?)",
    [PUT_DECISION] = "INSERT INTO decision(at_ms, what, job, user, host, who, uid, origin, admin, text) "
                     "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [PUT_AWAITED] = "INSERT OR IGNORE INTO awaited VALUES(?, ?)",
    [DROP_AWAITED] = "DELETE FROM awaited WHERE waiter = ?",
    [DROP_USAGE] = "DELETE FROM usage WHERE job = ?",
    [DROP_STATE] = "DELETE FROM state WHERE job = ?",
    [DROP_JOB] = "DELETE FROM job WHERE id = ?",
    [PUT_META] = "INSERT INTO meta VALUES(?2, ?1) ON CONFLICT(key) DO UPDATE SET value = max(value, ?1)",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
};

/* News of a job that is no longer in the history are dropped. */
static char *put_state_statement(void)
{
    char *names = columns_list(", ", true), *places = columns_list(", ?", false);
    char *sql = mem_format("INSERT OR REPLACE INTO state(job%s) SELECT ?1%s WHERE EXISTS (SELECT 1 FROM job WHERE id = "
                           "?1)",
                           names, places);
    free(names);
    free(places);
    return sql;
}

struct sql_writer {
    sqlite3 *db;
    int log_pages;
    sqlite3_stmt *statements[STATEMENTS];
};

/* In the place of SQLite's own checkpoints, which would come within a commit that somebody waits for. */
static int on_log(void *data, sqlite3 *db, const char *name, int pages)
{
    struct sql_writer *w = data;
    (void)db;
    (void)name;
    w->log_pages = pages;
    return SQLITE_OK;
}

int sql_log_pages(const struct sql_writer *writer)
{
    return writer->log_pages;
}

int sql_checkpoint(struct sql_writer *writer, bool cut, struct err *err)
{
    int pages = 0;
    sqlite3_busy_timeout(writer->db, 0);
    int code = sqlite3_wal_checkpoint_v2(writer->db, NULL, cut ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
                                         &pages, NULL);
    sqlite3_busy_timeout(writer->db, SQL_BUSY_MS);
    if (code == SQLITE_OK && cut)
        writer->log_pages = 0;
    return code == SQLITE_OK || code == SQLITE_BUSY ? 0
                                                    : sql_fail(writer->db, code & 0xff, "the log of the store", err);
}

int sql_writer_create(sqlite3 *db, struct sql_writer **writer, struct err *err)
{
    struct sql_writer *w = mem_zalloc(sizeof(*w));
    w->db = db;
    sqlite3_wal_hook(db, on_log, w);
    for (int i = 0; i < STATEMENTS; i++) {
        char *made = i == PUT_STATE ? put_state_statement() : NULL;
        int result = sql_statement(db, made ? made : statements[i], &w->statements[i], err);
        free(made);
        if (result) {
            sql_writer_destroy(w);
            return result;
        }
    }
    *writer = w;
    return 0;
}

void sql_writer_destroy(struct sql_writer *writer)
{
    for (int i = 0; writer && i < STATEMENTS; i++)
        sqlite3_finalize(writer->statements[i]);
    free(writer);
}

static int run(struct sql_writer *w, int which, struct err *err)
{
    errno = 0; /* SQLite does not note that of a commit */
    int code = sqlite3_step(w->statements[which]), result = 0;
    if (code != SQLITE_DONE)
        result = sql_fail_with(w->db, code & 0xff, (code & 0xff) == SQLITE_IOERR ? errno : 0, "writing", err);
    sqlite3_reset(w->statements[which]);
    sqlite3_clear_bindings(w->statements[which]);
    return result;
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC); /* NULL binds NULL */
}

static void bind_known(sqlite3_stmt *s, int at, int64_t value)
{
    if (value >= 0)
        sqlite3_bind_int64(s, at, value);
}

static int put_job(struct sql_writer *w, const struct record *r, struct err *err)
{
    sqlite3_stmt *s = w->statements[PUT_JOB];
    sqlite3_bind_int64(s, 1, (int64_t)r->id);
    sqlite3_bind_int64(s, 2, r->uid);
    bind_text(s, 3, r->user);
    bind_text(s, 4, r->token);
    sqlite3_bind_int64(s, 5, r->submitted_ms);
    sqlite3_bind_int(s, 6, (int)r->json_minor);
    bind_text(s, 7, r->json);
    return run(w, PUT_JOB, err);
}

static int put_state(struct sql_writer *w, const struct record *r, struct err *err)
{
    sqlite3_stmt *s = w->statements[PUT_STATE];
    sqlite3_bind_int64(s, 1, (int64_t)r->id);
    for (size_t i = 0; i < ncolumns; i++)
        columns[i].bind(s, (int)i + 2, r);
    return run(w, PUT_STATE, err);
}

static int put_usage(struct sql_writer *w, const struct record *r, struct err *err)
{
    int result = 0;
    for (size_t i = 0; !result && i < r->nusage; i++) {
        sqlite3_stmt *s = w->statements[PUT_USAGE];
        sqlite3_bind_int64(s, 1, (int64_t)r->id);
        sqlite3_bind_int64(s, 2, r->usage[i].attempt);
        bind_text(s, 3, r->usage[i].host);
        sqlite3_bind_double(s, 4, r->usage[i].cpu_seconds);
        bind_known(s, 5, r->usage[i].memory_peak_bytes);
        result = run(w, PUT_USAGE, err);
    }
    return result;
}

static int put_certificate(struct sql_writer *w, const struct certificate *c, struct err *err)
{
    sqlite3_stmt *s = w->statements[PUT_CERTIFICATE];
    bind_text(s, 1, c->serial);
    bind_text(s, 2, c->host);
    sqlite3_bind_int64(s, 3, c->issued_ms);
    sqlite3_bind_int64(s, 4, c->end_ms);
    if (c->revoked_ms)
        sqlite3_bind_int64(s, 5, c->revoked_ms);
    return run(w, PUT_CERTIFICATE, err);
}

static int put_host(struct sql_writer *w, const struct host_row *h, struct err *err)
{
    sqlite3_stmt *s = w->statements[PUT_HOST];
    bind_text(s, 1, h->name);
    sqlite3_bind_int(s, 2, h->row.up);
    sqlite3_bind_int(s, 3, h->row.ncpus);
    sqlite3_bind_int(s, 4, h->row.drained);
    sqlite3_bind_int(s, 5, h->row.joined);
    bind_text(s, 6, h->row.drained ? h->drain.by : "");
    bind_text(s, 7, h->row.drained ? h->drain.text : "");
    sqlite3_bind_int64(s, 8, h->row.drained ? h->drain.at_ms : 0);
    return run(w, PUT_HOST, err);
}

static int put_setting(struct sql_writer *w, const struct setting_row *row, struct err *err)
{
    sqlite3_stmt *s = w->statements[PUT_SETTING];
    bind_text(s, 1, row->name);
    if (*row->value)
        bind_text(s, 2, row->value);
    return run(w, PUT_SETTING, err);
}

static int put_decision(struct sql_writer *w, const struct decision *d, struct err *err)
{
    sqlite3_stmt *s = w->statements[PUT_DECISION];
    sqlite3_bind_int64(s, 1, d->at_ms);
    bind_text(s, 2, d->what);
    sqlite3_bind_int64(s, 3, (int64_t)d->job);
    bind_text(s, 4, d->user);
    bind_text(s, 5, d->host);
    bind_text(s, 6, d->by);
    sqlite3_bind_int64(s, 7, d->uid);
    bind_text(s, 8, d->from);
    sqlite3_bind_int(s, 9, d->admin);
    bind_text(s, 10, d->text);
    return run(w, PUT_DECISION, err);
}

static int drop_job(struct sql_writer *w, const struct record *r, struct err *err)
{
    int result = 0;
    for (int which = DROP_AWAITED; !result && which <= DROP_JOB; which++) {
        sqlite3_bind_int64(w->statements[which], 1, (int64_t)r->id);
        result = run(w, which, err);
    }
    return result;
}

/* It waits no more when it has had an attempt; but a notice may be run again, and asks then what became of its job. */
static int put_awaited(struct sql_writer *w, const struct record *r, struct err *err)
{
    int result = 0;
    if (record_ended(r) || (r->attempt && !r->notice)) {
        sqlite3_bind_int64(w->statements[DROP_AWAITED], 1, (int64_t)r->id);
        return run(w, DROP_AWAITED, err);
    }
    for (uint32_t i = 0; !result && r->json && i < r->nafter; i++) {
        if (r->after[i].verdict != CORE_OPEN && !r->notice)
            continue;
        sqlite3_bind_int64(w->statements[PUT_AWAITED], 1, (int64_t)r->after[i].job);
        sqlite3_bind_int64(w->statements[PUT_AWAITED], 2, (int64_t)r->id);
        result = run(w, PUT_AWAITED, err);
    }
    return result;
}

static int write_record(struct sql_writer *w, const struct record *r, struct err *err)
{
    if (r->dropped)
        return drop_job(w, r, err);
    int result = r->json ? put_job(w, r, err) : 0;
    if (!result)
        result = put_state(w, r, err);
    if (!result && (r->nafter || r->notice)) /* one that was running before a restart has no list any more */
        result = put_awaited(w, r, err);
    return result ? result : put_usage(w, r, err);
}

static int put_meta(struct sql_writer *w, const char *key, uint64_t next, struct err *err)
{
    sqlite3_stmt *s = w->statements[PUT_META];
    sqlite3_bind_int64(s, 1, (int64_t)next);
    bind_text(s, 2, key);
    return run(w, PUT_META, err);
}

int sql_write(struct sql_writer *w, const struct sql_rows *rows, uint64_t commits, struct err *err)
{
    uint64_t job = 0, allocation = 0;
    int result = run(w, BEGIN, err);
    for (size_t i = 0; !result && i < rows->nhosts; i++)
        result = put_host(w, &rows->hosts[i], err);
    for (size_t i = 0; !result && i < rows->nsettings; i++)
        result = put_setting(w, &rows->settings[i], err);
    for (size_t i = 0; !result && i < rows->count; i++) {
        const struct record *r = rows->records[i];
        result = write_record(w, r, err);
        job = r->id + r->ntasks > job ? r->id + r->ntasks : job;
        allocation = r->allocation > allocation ? r->allocation : allocation;
    }
    for (size_t i = 0; !result && i < rows->ncertificates; i++)
        result = put_certificate(w, &rows->certificates[i], err);
    for (size_t i = 0; !result && i < rows->ndecisions; i++)
        result = put_decision(w, &rows->decisions[i], err);
    if (!result)
        result = put_meta(w, "next_job", job + 1, err);
    if (!result)
        result = put_meta(w, "next_allocation", allocation + 1, err);
    if (!result)
        result = put_meta(w, "commits", commits, err);
    if (!result)
        result = run(w, COMMIT, err);
    if (result)
        sqlite3_exec(w->db, "ROLLBACK", NULL, NULL, NULL);
    return result;
}
