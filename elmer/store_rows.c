/* store_rows.c - rows of the store as records. */
#include "config.h"

#include "elmer/store_sql.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/base/str.h"

#define COLUMNS                                                                                                        \
    "SELECT id, uid, user, token, submitted_ms, minor, submission, state, reason, text, hosts, attempt, allocation, "  \
    "level, processors,"                                                                                               \
    " exit_status, signal, exits, failed_rank, exited, started_ms, ended_ms, level_ms FROM job JOIN state ON "         \
    "state.job = job.id "
static const char *const queries[] = {
    [SQL_UNFINISHED] = COLUMNS "WHERE state NOT IN ('done', 'cancelled') ORDER BY id",
    [SQL_BY_ID] = COLUMNS "WHERE id = ?",
    [SQL_BY_TOKEN] = COLUMNS "WHERE uid = ? AND token = ?",
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
    char *text = arena_strdup(&r->memory, text_of(s, &r->memory, 10)), **words;
    r->nhosts = (uint32_t)split(&r->memory, text, &words);
    r->hosts = (const char *const *)words;
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

static int read_usage(sqlite3 *db, struct record *r, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int code = sql_statement(
            db, "SELECT attempt, host, cpu_seconds, memory_peak_bytes FROM usage WHERE job = ? ORDER BY attempt, host",
            &s, err),
        step = SQLITE_DONE;
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
        code = sql_fail(db, step & 0xff, "reading", err);
    struct record_usage *copy = arena_array(&r->memory, r->nusage, sizeof(*copy));
    if (r->nusage)
        memcpy(copy, list, r->nusage * sizeof(*copy));
    r->usage = copy;
    free(list);
    sqlite3_finalize(s);
    return code;
}

static int read_row(sqlite3 *db, sqlite3_stmt *s, struct record *r, struct err *err)
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
    return read_usage(db, r, err);
}

int sql_read(sqlite3 *db, enum sql_which which, uint64_t id, const char *token,
             void (*each)(struct record *record, void *data), void *data, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int code = sql_statement(db, queries[which], &s, err), step = SQLITE_DONE;
    if (code)
        return code;
    if (which != SQL_UNFINISHED)
        sqlite3_bind_int64(s, 1, (int64_t)id);
    if (which == SQL_BY_TOKEN)
        sqlite3_bind_text(s, 2, token, -1, SQLITE_STATIC);
    while (!code && (step = sqlite3_step(s)) == SQLITE_ROW) {
        struct record *record = record_create();
        code = read_row(db, s, record, err);
        if (code)
            record_destroy(record);
        else
            each(record, data);
    }
    if (!code && step != SQLITE_DONE)
        code = sql_fail(db, step & 0xff, "reading", err);
    sqlite3_finalize(s);
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

int sql_tokens(sqlite3 *db, void (*each)(uint32_t uid, const char *token, void *data), void *data, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int code = sql_statement(
            db, "SELECT uid, token FROM job JOIN state ON state.job = job.id WHERE state IN ('done', 'cancelled')", &s,
            err),
        step = SQLITE_DONE;
    while (!code && (step = sqlite3_step(s)) == SQLITE_ROW)
        each((uint32_t)sqlite3_column_int64(s, 0), (const char *)sqlite3_column_text(s, 1), data);
    if (!code && step != SQLITE_DONE)
        code = sql_fail(db, step & 0xff, "reading", err);
    sqlite3_finalize(s);
    return code;
}
