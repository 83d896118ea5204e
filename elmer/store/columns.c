/* columns.c - values of a record into columns and back. Single values follow from job.def; lists and words for enums
 * are written out: bind_NAME() and read_NAME() of each field whose column is OWN. */
#include "config.h"

#include "elmer/store/columns.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

/* ---- single values ---- */

#define BIND_INTEGER(s, at, value) sqlite3_bind_int64(s, at, (int64_t)(value))
#define BIND_TEXT(s, at, value)    sqlite3_bind_text(s, at, value, -1, SQLITE_STATIC)
#define BIND_KNOWN(s, at, value)                                                                                       \
    if ((value) >= 0)                                                                                                  \
    sqlite3_bind_int64(s, at, value)
#define READ_INTEGER(s, at, memory) sqlite3_column_int64(s, at)
#define READ_TEXT(s, at, memory)    column_text(s, at, memory)
#define READ_KNOWN(s, at, memory)   column_known(s, at)

const char *column_text(sqlite3_stmt *statement, int at, struct arena *memory)
{
    const char *text = (const char *)sqlite3_column_text(statement, at);
    return arena_strdup(memory, text ? text : "");
}

int64_t column_known(sqlite3_stmt *statement, int at)
{
    return sqlite3_column_type(statement, at) == SQLITE_NULL ? -1 : sqlite3_column_int64(statement, at);
}

#define DEFINE(name, cell, how)                                                                                        \
    static void bind_##name(sqlite3_stmt *s, int at, const struct record *r)                                           \
    {                                                                                                                  \
        BIND_##how(s, at, r->name);                                                                                    \
    }                                                                                                                  \
    static int read_##name(sqlite3_stmt *s, int at, struct record *r)                                                  \
    {                                                                                                                  \
        r->name = JOB_CAST(cell, READ_##how(s, at, &r->memory));                                                       \
        return 0;                                                                                                      \
    }
#define DEFINE_INTEGER(name, cell) DEFINE(name, cell, INTEGER)
#define DEFINE_TEXT(name, cell)    DEFINE(name, cell, TEXT)
#define DEFINE_KNOWN(name, cell)   DEFINE(name, cell, KNOWN)
#define DEFINE_OWN(name, cell)     /* below */

#define HOW_COLUMN(schema, how, declaration)             DEFINE_##how
#define HOW_IN_JOB                                       DEFINE_OWN
#define HOW_IN_USAGE                                     DEFINE_OWN
#define HOW_NO                                           DEFINE_OWN
#define DEFINE_KEPT(name, type, cell, core, column, ...) DEFINE_BY(HOW_##column, name, cell)
#define DEFINE_BY(define, name, cell)                    define(name, cell)
JOB_FIELDS(JOB_NONE, DEFINE_KEPT, JOB_NONE)

/* ---- words for enums ---- */

static void bind_state(sqlite3_stmt *s, int at, const struct record *r)
{
    BIND_TEXT(s, at, job_state_name(r->state));
}

static int read_state(sqlite3_stmt *s, int at, struct record *r)
{
    const char *state = (const char *)sqlite3_column_text(s, at);
    for (r->state = 0; state && r->state < JOB_STATE_COUNT && strcmp(state, job_state_name(r->state)) != 0;)
        r->state++;
    return state && r->state < JOB_STATE_COUNT ? 0 : -EBADMSG;
}

static void bind_reason(sqlite3_stmt *s, int at, const struct record *r)
{
    BIND_TEXT(s, at, reason_name(r->reason));
}

static int read_reason(sqlite3_stmt *s, int at, struct record *r)
{
    const char *reason = (const char *)sqlite3_column_text(s, at);
    for (r->reason = 0; reason && r->reason < REASON_COUNT && strcmp(reason, reason_name(r->reason)) != 0;)
        r->reason++;
    return reason && r->reason < REASON_COUNT ? 0 : -EBADMSG;
}

/* ---- lists, as words between blanks ---- */

static void bind_words(sqlite3_stmt *s, int at, const char *const *words, size_t count)
{
    size_t room = 1;
    char *text, *end;
    for (size_t i = 0; i < count; i++)
        room += strlen(words[i]) + 1;
    if (count == 0)
        return;
    text = end = mem_zalloc(room); /* a stream would take a buffer of its own for each row */
    for (size_t i = 0; i < count; i++)
        end += snprintf(end, room - (size_t)(end - text), "%s%s", i ? " " : "", words[i]);
    sqlite3_bind_text(s, at, text, -1, free);
}

/* Each has memory of its own. */
static size_t read_words(sqlite3_stmt *s, int at, struct arena *memory, char ***words)
{
    const char *stored = (const char *)sqlite3_column_text(s, at);
    char *text = arena_strdup(memory, stored ? stored : "");
    size_t room = 1, count = 0;
    for (const char *c = text; *c; c++)
        room += *c == ' ';
    *words = arena_array(memory, room, sizeof(char *));
    for (char *word; (word = strsep(&text, " "));)
        if (*word)
            (*words)[count++] = word;
    return count;
}

static void bind_hosts(sqlite3_stmt *s, int at, const struct record *r)
{
    bind_words(s, at, r->hosts, r->nhosts);
}

static int read_hosts(sqlite3_stmt *s, int at, struct record *r)
{
    char **words;
    r->nhosts = (uint32_t)read_words(s, at, &r->memory, &words);
    r->hosts = (const char *const *)words;
    return 0;
}

static void bind_lost(sqlite3_stmt *s, int at, const struct record *r)
{
    bind_words(s, at, r->lost, r->nlost);
}

static int read_lost(sqlite3_stmt *s, int at, struct record *r)
{
    char **words;
    r->nlost = (uint32_t)read_words(s, at, &r->memory, &words);
    r->lost = (const char *const *)words;
    return 0;
}

static void bind_processors(sqlite3_stmt *s, int at, const struct record *r)
{
    size_t room = 1;
    char *text, *end;
    for (uint32_t i = 0; i < r->nprocessors; i++)
        room += strlen(r->processors[i].host) + sizeof(":-2147483648");
    if (r->nprocessors == 0)
        return;
    text = end = mem_zalloc(room);
    for (uint32_t i = 0; i < r->nprocessors; i++)
        end += snprintf(end, room - (size_t)(end - text), "%s%s:%d", i ? " " : "", r->processors[i].host,
                        r->processors[i].cpu);
    sqlite3_bind_text(s, at, text, -1, free);
}

static int read_processors(sqlite3_stmt *s, int at, struct record *r)
{
    char **words;
    size_t count = read_words(s, at, &r->memory, &words);
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

static void bind_exited(sqlite3_stmt *s, int at, const struct record *r)
{
    if (r->exited)
        sqlite3_bind_blob64(s, at, r->exited, r->exited_size, SQLITE_STATIC);
}

static int read_exited(sqlite3_stmt *s, int at, struct record *r)
{
    r->exited_size = (size_t)sqlite3_column_bytes(s, at);
    if (r->exited_size)
        r->exited = memcpy(arena_alloc(&r->memory, r->exited_size), sqlite3_column_blob(s, at), r->exited_size);
    return 0;
}

/* Ordinals of tasks that have gone: "3-50 60", the last one included. */
static void bind_gone(sqlite3_stmt *s, int at, const struct record *r)
{
    size_t room = r->ngone * sizeof(" 4294967295-4294967295") + 1;
    char *text, *end;
    if (r->ngone == 0)
        return;
    text = end = mem_zalloc(room);
    for (uint32_t i = 0; i < r->ngone; i++)
        end += snprintf(end, room - (size_t)(end - text), "%s%" PRIu32 "-%" PRIu32, i ? " " : "", r->gone[i].from,
                        r->gone[i].to - 1);
    sqlite3_bind_text(s, at, text, -1, free);
}

static int read_gone(sqlite3_stmt *s, int at, struct record *r)
{
    char **words;
    size_t count = read_words(s, at, &r->memory, &words);
    struct core_range *gone = arena_array(&r->memory, count, sizeof(*gone));
    for (size_t i = 0; i < count; i++) {
        char *dash = strchr(words[i], '-');
        uint64_t from, last;
        if (!dash)
            return -EBADMSG;
        *dash = 0;
        if (!str_to_u64(words[i], &from) || !str_to_u64(dash + 1, &last) || from > last || last >= CORE_MAX_TASKS)
            return -EBADMSG;
        gone[i] = (struct core_range){(uint32_t)from, (uint32_t)last + 1};
    }
    r->gone = gone;
    r->ngone = (uint32_t)count;
    return 0;
}

/* A letter for each: open, met, never. */
static const char verdicts[] = "omn";

static void bind_verdicts(sqlite3_stmt *s, int at, const struct record *r)
{
    char text[AFTER_MAX + 1];
    assert(r->nafter <= AFTER_MAX);
    for (uint32_t i = 0; i < r->nafter; i++)
        text[i] = verdicts[r->after[i].verdict];
    if (r->nafter)
        sqlite3_bind_text(s, at, text, (int)r->nafter, SQLITE_TRANSIENT);
}

static int read_verdicts(sqlite3_stmt *s, int at, struct record *r)
{
    const char *text = (const char *)sqlite3_column_text(s, at);
    size_t count = text ? strlen(text) : 0;
    struct core_after *after = arena_array(&r->memory, count, sizeof(*after));
    if (count > AFTER_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < count; i++) {
        const char *letter = strchr(verdicts, text[i]);
        if (!letter)
            return -EBADMSG;
        after[i] = (struct core_after){.verdict = (enum core_verdict)(letter - verdicts)};
    }
    r->after = after;
    r->nafter = (uint32_t)count;
    return 0;
}

/* Up to the last level that it has been at: most rows have few, and writing all took a tenth of a commit's time. */
static void bind_level_ms(sqlite3_stmt *s, int at, const struct record *r)
{
    char levels[CORE_MAX_LEVELS * 21 + 1] = "";
    size_t count = CORE_MAX_LEVELS;
    while (count > 0 && !r->level_ms[count - 1])
        count--;
    for (size_t i = 0, end = 0; i < count; i++)
        end += (size_t)snprintf(levels + end, sizeof(levels) - end, "%s%" PRId64, i ? " " : "", r->level_ms[i]);
    sqlite3_bind_text(s, at, levels, -1, SQLITE_TRANSIENT);
}

static int read_level_ms(sqlite3_stmt *s, int at, struct record *r)
{
    const char *text = (const char *)sqlite3_column_text(s, at);
    for (int i = 0; text && i < CORE_MAX_LEVELS && *text; i++) {
        char *end;
        r->level_ms[i] = strtoll(text, &end, 10);
        text = end;
    }
    return 0;
}

/* ---- the table ---- */

#define ROW_COLUMN(schema, how, declaration)            YES, schema, declaration
#define ROW_IN_JOB                                      NO, 0, ""
#define ROW_IN_USAGE                                    NO, 0, ""
#define ROW_NO                                          NO, 0, ""
#define ROW_KEPT(name, type, record, core, column, ...) ROW(ROW_##column, name)
#define ROW(...)                                        ROW_(__VA_ARGS__)
#define ROW_(answer, schema, declaration, name)                                                                        \
    JOB_CODE(answer, {#name, schema, declaration, bind_##name, read_##name}, )
const struct column columns[] = {JOB_FIELDS(JOB_NONE, ROW_KEPT, JOB_NONE)};
const size_t ncolumns = sizeof(columns) / sizeof(*columns);

char *columns_list(const char *before, bool named)
{
    char *list = mem_strdup("");
    for (size_t i = 0; i < ncolumns; i++) {
        char *longer = mem_format("%s%s%s", list, before, named ? columns[i].name : "");
        free(list);
        list = longer;
    }
    return list;
}
