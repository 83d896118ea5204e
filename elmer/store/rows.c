/* rows.c - rows of the store as records. */
#include "config.h"

#include "elmer/store/sql.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

#define COLUMNS                                                                                                        \
    "SELECT id, uid, user, token, submitted_ms, minor, submission, state, reason, text, hosts, attempt, allocation, "  \
    "level, processors,"                                                                                               \
    " exit_status, signal, exits, failed_rank, exited, started_ms, ended_ms, level_ms, launched, lease_ms, lost, "     \
    "accounted_ms, accounted_mono_ms, boot "
#define OF "FROM job JOIN state ON state.job = job.id "
static const char *const queries[] = {
    [SQL_UNFINISHED] = COLUMNS
    /* by this index and in this order, or all of the history is read at each start */
    "FROM state INDEXED BY state_unfinished CROSS JOIN job ON job.id = state.job"
    " WHERE state NOT IN ('done', 'cancelled') ORDER BY state.job",
    [SQL_BY_ID] = COLUMNS OF "WHERE id = ?1",
    [SQL_BY_TOKEN] = COLUMNS OF "WHERE uid = ?1 AND token = ?2",
    [SQL_HISTORY] = COLUMNS OF
    "WHERE id < ?1 AND state IN ('done', 'cancelled') AND (?2 = '' OR user = ?2) ORDER BY id DESC LIMIT ?3",
    [SQL_USAGE] =
        "SELECT attempt, host, cpu_seconds, memory_peak_bytes FROM usage WHERE job = ? ORDER BY attempt, host",
};

static const char *text_of(sqlite3_stmt *s, struct arena *memory, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    return arena_strdup(memory, text ? text : "");
}

static int64_t known(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, column);
}

/* Cut text at blanks; *words has room for all of them. */
static size_t split(struct arena *memory, char *text, char ***words)
{
    size_t room = 1, count = 0;
    for (const char *c = text; *c; c++)
        room += *c == ' ';
    *words = arena_array(memory, room, sizeof(char *));
    for (char *word; (word = strsep(&text, " "));)
        if (*word)
            (*words)[count++] = word;
    return count;
}

static int read_processors(struct record *r, char *text)
{
    char **words;
    size_t count = split(&r->memory, text, &words);
    struct record_processor *processors = arena_array(&r->memory, count, sizeof(*processors));
    for (size_t i = 0; i < count; i++) {
        char *colon = strrchr(words[i], ':');
        uint64_t cpu;
        if (!colon || !str_to_u64(colon + 1, &cpu) || cpu > 65535)
            return -EBADMSG;
        *colon = 0;
        processors[i] = (struct record_processor){words[i], (int)cpu};
    }
    r->processors = processors;
    r->nprocessors = (uint32_t)count;
    return 0;
}

static int read_words(sqlite3_stmt *s, struct record *r)
{
    char **words;
    r->nhosts = (uint32_t)split(&r->memory, arena_strdup(&r->memory, text_of(s, &r->memory, 10)), &words);
    r->hosts = (const char *const *)words;
    r->nlost = (uint32_t)split(&r->memory, arena_strdup(&r->memory, text_of(s, &r->memory, 25)), &words);
    r->lost = (const char *const *)words;
    const char *state = text_of(s, &r->memory, 7), *reason = text_of(s, &r->memory, 8);
    for (r->state = 0; r->state < JOB_STATE_COUNT && strcmp(state, job_state_name(r->state));)
        r->state++;
    for (r->reason = 0; r->reason < REASON_COUNT && strcmp(reason, reason_name(r->reason));)
        r->reason++;
    char *levels = arena_strdup(&r->memory, text_of(s, &r->memory, 22));
    for (int i = 0; i < CORE_MAX_LEVELS && *levels; i++)
        r->level_ms[i] = strtoll(levels, &levels, 10);
    return r->state == JOB_STATE_COUNT || r->reason == REASON_COUNT ? -EBADMSG : 0;
}

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
    int code =
        reader->statements[which] ? 0 : sql_statement(reader->db, queries[which], &reader->statements[which], err);
    *statement = reader->statements[which];
    return code;
}

static int read_usage(struct sql_reader *reader, struct record *r, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int code = begin(reader, SQL_USAGE, &s, err), step = SQLITE_DONE;
    struct record_usage *list = NULL;
    size_t capacity = 0;
    if (code)
        return code;
    sqlite3_bind_int64(s, 1, (int64_t)r->id);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        list = mem_grow(list, &capacity, r->nusage + 1, sizeof(*list));
        list[r->nusage++] = (struct record_usage){.attempt = (uint32_t)sqlite3_column_int64(s, 0),
                                                  .host = text_of(s, &r->memory, 1),
                                                  .cpu_seconds = sqlite3_column_double(s, 2),
                                                  .memory_peak_bytes = known(s, 3)};
    }
    if (step != SQLITE_DONE)
        code = sql_fail(reader->db, step & 0xff, "reading", err);
    struct record_usage *copy = arena_array(&r->memory, r->nusage, sizeof(*copy));
    if (r->nusage)
        memcpy(copy, list, r->nusage * sizeof(*copy));
    r->usage = copy;
    free(list);
    sqlite3_reset(s);
    return code;
}

static int read_row(struct sql_reader *reader, sqlite3_stmt *s, struct record *r, struct err *err)
{
    struct err inner = ERR_INIT;
    r->id = (uint64_t)sqlite3_column_int64(s, 0);
    r->uid = (uint32_t)sqlite3_column_int64(s, 1);
    r->user = text_of(s, &r->memory, 2);
    r->token = text_of(s, &r->memory, 3);
    r->submitted_ms = sqlite3_column_int64(s, 4);
    const char *json = text_of(s, &r->memory, 6);
    r->text = text_of(s, &r->memory, 9);
    r->attempt = (uint32_t)sqlite3_column_int64(s, 11);
    r->allocation = (uint64_t)sqlite3_column_int64(s, 12);
    r->level = sqlite3_column_type(s, 13) == SQLITE_NULL ? CORE_NO_LEVEL : sqlite3_column_int(s, 13);
    r->exit_status = sqlite3_column_int(s, 15);
    r->signal = sqlite3_column_int(s, 16);
    r->exits = (uint32_t)sqlite3_column_int64(s, 17);
    r->failed_rank = (uint32_t)sqlite3_column_int64(s, 18);
    r->exited_size = (size_t)sqlite3_column_bytes(s, 19);
    if (r->exited_size)
        r->exited = memcpy(arena_alloc(&r->memory, r->exited_size), sqlite3_column_blob(s, 19), r->exited_size);
    r->started_ms = known(s, 20);
    r->ended_ms = known(s, 21);
    r->launched = sqlite3_column_int(s, 23) != 0;
    r->lease_ms = sqlite3_column_int64(s, 24);
    r->accounted_ms = known(s, 26);
    r->accounted_mono_ms = known(s, 27);
    r->boot = sqlite3_column_int64(s, 28);
    int code = wire_decode(json, strlen(json), (unsigned)sqlite3_column_int(s, 5), &r->submission, &inner);
    if (!code && r->submission.type != WIRE_submit)
        code = -EBADMSG;
    r->submit = &r->submission.u.submit;
    if (!code)
        code = read_words(s, r);
    if (!code)
        code = read_processors(r, arena_strdup(&r->memory, text_of(s, &r->memory, 14)));
    if (code)
        return err_set(err, -EUCLEAN, "the row of job %" PRIu64 " makes no sense: %s", r->id, inner.text);
    return read_usage(reader, r, err);
}

int sql_read(struct sql_reader *reader, enum sql_which which, uint64_t id, const char *text, size_t count,
             void (*each)(struct record *record, void *data), void *data, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int code = begin(reader, which, &s, err), step = SQLITE_DONE;
    if (code)
        return code;
    if (which != SQL_UNFINISHED)
        sqlite3_bind_int64(s, 1, (int64_t)id);
    if (which == SQL_BY_TOKEN || which == SQL_HISTORY)
        sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);
    if (which == SQL_HISTORY)
        sqlite3_bind_int64(s, 3, (int64_t)count);
    while (!code && (step = sqlite3_step(s)) == SQLITE_ROW) {
        struct record *record = record_create();
        code = read_row(reader, s, record, err);
        if (code)
            record_destroy(record);
        else
            each(record, data);
    }
    if (!code && step != SQLITE_DONE)
        code = sql_fail(reader->db, step & 0xff, "reading", err);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return code;
}

int sql_counters(sqlite3 *db, uint64_t *next_job, uint64_t *next_allocation, struct err *err)
{
    int64_t job = 1, allocation = 1;
    int code = sql_integer(
        db, "SELECT max(value, (SELECT coalesce(max(id), 0) + 1 FROM job)) FROM meta WHERE key = 'next_job'", &job,
        err);
    if (!code)
        code = sql_integer(db, "SELECT value FROM meta WHERE key = 'next_allocation'", &allocation, err);
    *next_job = (uint64_t)job;
    *next_allocation = (uint64_t)allocation;
    return code;
}

int sql_hosts(sqlite3 *db, void (*each)(const struct host_row *host, void *data), void *data, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE, code = sql_statement(db, "SELECT name, up, cpus, drained FROM host", &s, err);
    while (!code && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        int64_t cpus = sqlite3_column_int64(s, 2);
        struct host_row h = {.row = {.up = sqlite3_column_int(s, 1) != 0, .drained = sqlite3_column_int(s, 3) != 0}};
        h.row.ncpus = h.row.up && cpus > 0 && cpus <= CORE_MAX_CPUS ? (int)cpus : 0;
        snprintf(h.name, sizeof(h.name), "%s", name ? name : "");
        each(&h, data);
    }
    if (!code && step != SQLITE_DONE)
        code = sql_fail(db, step & 0xff, "the store", err);
    sqlite3_finalize(s);
    return code;
}

int sql_certificates(sqlite3 *db, void (*each)(const struct certificate *certificate, void *data), void *data,
                     struct err *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE,
        code = sql_statement(db, "SELECT serial, host, issued_ms, end_ms, revoked_ms FROM certificate", &s, err);
    while (!code && (step = sqlite3_step(s)) == SQLITE_ROW) {
        struct certificate c = {.issued_ms = sqlite3_column_int64(s, 2),
                                .end_ms = sqlite3_column_int64(s, 3),
                                .revoked_ms = sqlite3_column_int64(s, 4)};
        const char *serial = (const char *)sqlite3_column_text(s, 0), *host = (const char *)sqlite3_column_text(s, 1);
        snprintf(c.serial, sizeof(c.serial), "%s", serial ? serial : "");
        snprintf(c.host, sizeof(c.host), "%s", host ? host : "");
        each(&c, data);
    }
    if (!code && step != SQLITE_DONE)
        code = sql_fail(db, step & 0xff, "the store", err);
    sqlite3_finalize(s);
    return code;
}
