/* rows.c - rows of the store as records. */
#include "config.h"

#include "elmer/store/sql.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/store/columns.h"

/* Columns of the table job; those of `state` follow. */
enum { ID, UID, USER, TOKEN, SUBMITTED_MS, MINOR, SUBMISSION, FIRST };
#define OF_JOB "SELECT id, uid, user, token, submitted_ms, minor, submission"
#define OF     "FROM job JOIN state ON state.job = job.id "
/* What stands behind the columns; from SQL_USAGE on: the whole statement. */
static const char *const queries[] = {
    [SQL_UNFINISHED] =
        /* by this index and in this order, or all of the history is read at each start */
    "FROM state INDEXED BY state_unfinished CROSS JOIN job ON job.id = state.job"
    " WHERE state NOT IN ('done', 'cancelled') ORDER BY state.job",
    [SQL_BY_ID] = OF "WHERE id = ?1",
    [SQL_BY_TOKEN] = OF "WHERE uid = ?1 AND token = ?2",
    [SQL_HISTORY] = OF
    "WHERE id < ?1 AND state IN ('done', 'cancelled') AND (?2 = '' OR user = ?2) AND (?4 <= 0 OR ended_ms >= ?4) "
    "ORDER BY id DESC LIMIT ?3",
    [SQL_USAGE] =
        "SELECT attempt, host, cpu_seconds, memory_peak_bytes FROM usage WHERE job = ? ORDER BY attempt, host",
    [SQL_END] = "SELECT state = 'done', reason = 'exited', exit_status, signal, ran FROM state WHERE job = ?",
};

void sql_reader_close(struct sql_reader *reader)
{
    for (int i = 0; i < SQL_WHICH_COUNT; i++)
        sqlite3_finalize(reader->statements[i]);
    sqlite3_close(reader->db);
    *reader = (struct sql_reader){0};
}

/* Ready for its parameters; sqlite3_reset() it afterwards. */
static int begin(struct sql_reader *reader, enum sql_which which, sqlite3_stmt **statement, struct err *err)
{
    int result = 0;
    if (!reader->statements[which]) {
        char *columns_of_state = columns_list(", state.", true);
        char *sql = mem_format(OF_JOB "%s %s", columns_of_state, queries[which]);
        result = sql_statement(reader->db, which >= SQL_USAGE ? queries[which] : sql, &reader->statements[which], err);
        free(columns_of_state);
        free(sql);
    }
    *statement = reader->statements[which];
    return result;
}

static int read_usage(struct sql_reader *reader, struct record *r, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int result = begin(reader, SQL_USAGE, &s, err), step = SQLITE_DONE;
    struct record_usage *list = NULL;
    size_t capacity = 0;
    if (result)
        return result;
    sqlite3_bind_int64(s, 1, (int64_t)r->id);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        list = mem_grow(list, &capacity, r->nusage + 1, sizeof(*list));
        list[r->nusage++] = (struct record_usage){.attempt = (uint32_t)sqlite3_column_int64(s, 0),
                                                  .host = column_text(s, 1, &r->memory),
                                                  .cpu_seconds = sqlite3_column_double(s, 2),
                                                  .memory_peak_bytes = column_known(s, 3)};
    }
    if (step != SQLITE_DONE)
        result = sql_fail(reader->db, step & 0xff, "reading", err);
    struct record_usage *copy = arena_array(&r->memory, r->nusage, sizeof(*copy));
    if (r->nusage)
        memcpy(copy, list, r->nusage * sizeof(*copy));
    r->usage = copy;
    free(list);
    sqlite3_reset(s);
    return result;
}

static int read_row(struct sql_reader *reader, sqlite3_stmt *s, struct record *r, struct err *err)
{
    struct err inner = ERR_INIT;
    r->id = (uint64_t)sqlite3_column_int64(s, ID);
    r->uid = (uint32_t)sqlite3_column_int64(s, UID);
    r->user = column_text(s, USER, &r->memory);
    r->token = column_text(s, TOKEN, &r->memory);
    r->submitted_ms = sqlite3_column_int64(s, SUBMITTED_MS);
    int minor = sqlite3_column_int(s, MINOR);
    if (minor > WIRE_MINOR)
        return err_set(err, -EPROTO,
                       "the submission of job %" PRIu64 " is of version %d.%d of Elmer's protocol and this elmer knows "
                       "%d.%d: start the newer elmer that wrote it",
                       r->id, WIRE_MAJOR, minor, WIRE_MAJOR, WIRE_MINOR);
    struct arena text = {0}; /* may be as large as what is made of it */
    const char *json = column_text(s, SUBMISSION, &text);
    int result = mem_result(wire_decode(json, strlen(json), (unsigned)minor, &r->submission, &inner));
    arena_fini(&text);
    if (!result && r->submission.type != WIRE_submit)
        result = -EBADMSG;
    r->submit = &r->submission.u.submit;
    for (size_t i = 0; !result && i < ncolumns; i++)
        result = columns[i].read(s, FIRST + (int)i, r);
    if (result)
        return err_set(err, -EUCLEAN, "the row of job %" PRIu64 " makes no sense: %s", r->id, inner.text);
    return read_usage(reader, r, err);
}

int sql_read(struct sql_reader *reader, enum sql_which which, uint64_t id, const char *text, int64_t since_ms,
             size_t count, void (*each)(struct record *record, void *data), void *data, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int result = begin(reader, which, &s, err), step = SQLITE_DONE;
    if (result)
        return result;
    assert(which < SQL_USAGE && (text || (which != SQL_BY_TOKEN && which != SQL_HISTORY)));
    if (which != SQL_UNFINISHED)
        sqlite3_bind_int64(s, 1, (int64_t)id);
    if (which == SQL_BY_TOKEN || which == SQL_HISTORY)
        sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);
    if (which == SQL_HISTORY) {
        sqlite3_bind_int64(s, 3, (int64_t)count);
        sqlite3_bind_int64(s, 4, since_ms);
    }
    while (!result && (step = sqlite3_step(s)) == SQLITE_ROW) {
        struct record *record = record_create();
        result = read_row(reader, s, record, err);
        if (result)
            record_destroy(record);
        else
            each(record, data);
    }
    if (!result && step != SQLITE_DONE)
        result = sql_fail(reader->db, step & 0xff, "reading", err);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return result;
}

int sql_end_of(struct sql_reader *reader, uint64_t job, enum core_end *end, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int result = begin(reader, SQL_END, &s, err);
    if (result)
        return result;
    sqlite3_bind_int64(s, 1, (int64_t)job);
    int step = sqlite3_step(s);
    *end = step != SQLITE_ROW
               ? CORE_END_FORGOTTEN
               : core_end_of(sqlite3_column_int(s, 0) ? JOB_DONE : JOB_CANCELLED,
                             sqlite3_column_int(s, 1) ? REASON_EXITED : REASON_NONE, sqlite3_column_int(s, 2),
                             sqlite3_column_int(s, 3), sqlite3_column_int(s, 4) != 0);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        result = sql_fail(reader->db, step & 0xff, "reading", err);
    sqlite3_reset(s);
    return result;
}

int sql_counters(sqlite3 *db, uint64_t *next_job, uint64_t *next_allocation, struct err *err)
{
    int64_t job = 1, allocation = 1;
    int result = sql_integer(
        db, "SELECT max(value, (SELECT coalesce(max(id), 0) + 1 FROM job)) FROM meta WHERE key = 'next_job'", &job,
        err);
    if (!result)
        result = sql_integer(db, "SELECT value FROM meta WHERE key = 'next_allocation'", &allocation, err);
    *next_job = (uint64_t)job;
    *next_allocation = (uint64_t)allocation;
    return result;
}

static void copy_text(sqlite3_stmt *s, int column, char *text, size_t size)
{
    const char *found = (const char *)sqlite3_column_text(s, column);
    snprintf(text, size, "%s", found ? found : "");
}

int sql_hosts(sqlite3 *db, void (*each)(const struct host_row *host, void *data), void *data, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE,
        result = sql_statement(
            db, "SELECT name, up, cpus, drained, joined, drained_by, drained_text, drained_ms FROM host", &s, err);
    while (!result && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        int64_t cpus = sqlite3_column_int64(s, 2);
        struct host_row h = {.row = {.up = sqlite3_column_int(s, 1) != 0,
                                     .drained = sqlite3_column_int(s, 3) != 0,
                                     .joined = sqlite3_column_int(s, 4) != 0}};
        h.row.ncpus = h.row.up && cpus > 0 && cpus <= CORE_MAX_CPUS ? (int)cpus : 0;
        snprintf(h.name, sizeof(h.name), "%s", name ? name : "");
        copy_text(s, 5, h.drain.by, sizeof(h.drain.by));
        copy_text(s, 6, h.drain.text, sizeof(h.drain.text));
        h.drain.at_ms = sqlite3_column_int64(s, 7);
        each(&h, data);
    }
    if (!result && step != SQLITE_DONE)
        result = sql_fail(db, step & 0xff, "the store", err);
    sqlite3_finalize(s);
    return result;
}

int sql_settings(sqlite3 *db, void (*each)(const struct setting_row *setting, void *data), void *data, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE,
        result = sql_statement(db, "SELECT name, value FROM setting WHERE value IS NOT NULL ORDER BY name", &s, err);
    while (!result && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0), *value = (const char *)sqlite3_column_text(s, 1);
        struct setting_row row;
        snprintf(row.name, sizeof(row.name), "%s", name ? name : "");
        snprintf(row.value, sizeof(row.value), "%s", value ? value : "");
        each(&row, data);
    }
    if (!result && step != SQLITE_DONE)
        result = sql_fail(db, step & 0xff, "the store", err);
    sqlite3_finalize(s);
    return result;
}

int sql_certificates(sqlite3 *db, void (*each)(const struct certificate *certificate, void *data), void *data,
                     struct err *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE,
        result = sql_statement(db, "SELECT serial, host, issued_ms, end_ms, revoked_ms FROM certificate", &s, err);
    while (!result && (step = sqlite3_step(s)) == SQLITE_ROW) {
        struct certificate c = {.issued_ms = sqlite3_column_int64(s, 2),
                                .end_ms = sqlite3_column_int64(s, 3),
                                .revoked_ms = sqlite3_column_int64(s, 4)};
        const char *serial = (const char *)sqlite3_column_text(s, 0), *host = (const char *)sqlite3_column_text(s, 1);
        snprintf(c.serial, sizeof(c.serial), "%s", serial ? serial : "");
        snprintf(c.host, sizeof(c.host), "%s", host ? host : "");
        each(&c, data);
    }
    if (!result && step != SQLITE_DONE)
        result = sql_fail(db, step & 0xff, "the store", err);
    sqlite3_finalize(s);
    return result;
}

int sql_decisions(sqlite3 *db, int64_t since_ms, int64_t after, size_t count,
                  void (*each)(const struct decision *decision, void *data), void *data, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE,
        result = sql_statement(db,
                               "SELECT id, at_ms, what, job, user, host, who, uid, origin, admin, "
                               "text FROM decision WHERE id > ?1 AND at_ms >= ?2 ORDER BY id LIMIT ?3",
                               &s, err);
    if (result)
        return result;
    sqlite3_bind_int64(s, 1, after);
    sqlite3_bind_int64(s, 2, since_ms);
    sqlite3_bind_int64(s, 3, (int64_t)count);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        struct decision d = {.id = sqlite3_column_int64(s, 0),
                             .at_ms = sqlite3_column_int64(s, 1),
                             .job = (uint64_t)sqlite3_column_int64(s, 3),
                             .uid = (uint32_t)sqlite3_column_int64(s, 7),
                             .admin = sqlite3_column_int(s, 9) != 0};
        copy_text(s, 2, d.what, sizeof(d.what));
        copy_text(s, 4, d.user, sizeof(d.user));
        copy_text(s, 5, d.host, sizeof(d.host));
        copy_text(s, 6, d.by, sizeof(d.by));
        copy_text(s, 8, d.from, sizeof(d.from));
        copy_text(s, 10, d.text, sizeof(d.text));
        each(&d, data);
    }
    if (step != SQLITE_DONE)
        result = sql_fail(db, step & 0xff, "reading", err);
    sqlite3_finalize(s);
    return result;
}
