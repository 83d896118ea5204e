/* reader.c - reading while elmer runs, and care for the history: in worker threads of libuv. Reads: one at a time, or
 * several searches for tokens together. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/store/internal.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

enum { TOGETHER = 64 };

/* ---- reading ---- */

void read_free(struct read *read)
{
    free(read->ids);
    free(read->text);
    free(read->records);
    free(read->decisions);
    free(read);
}

static void collect(struct record *record, void *data)
{
    struct read *read = data;
    read->records = mem_grow(read->records, &read->capacity, read->count + 1, sizeof(*read->records));
    read->records[read->count++] = record;
}

static void collect_decision(const struct decision *decision, void *data)
{
    struct read *read = data;
    read->decisions = mem_grow(read->decisions, &read->capacity, read->count + 1, sizeof(*read->decisions));
    read->decisions[read->count++] = *decision;
}

static void read_one(struct read *read)
{
    struct sql_reader *reader = &read->store->reader;
    if (read->decided)
        read->result = sql_decisions(reader->db, read->since_ms, (int64_t)read->id, read->limit, collect_decision, read,
                                     &read->err);
    else if (read->which != SQL_BY_ID)
        read->result =
            sql_read(reader, read->which, read->id, read->text, read->since_ms, read->limit, collect, read, &read->err);
    for (size_t i = 0; i < read->nids && !read->result; i++)
        read->result = sql_read(reader, SQL_BY_ID, read->ids[i], NULL, 0, 0, collect, read, &read->err);
}

static void read_work(uv_work_t *work)
{
    struct store *s = work->data;
    for (struct read *read = s->running; read; read = read->next)
        read_one(read);
}

static void drop_records(struct read *read)
{
    for (size_t i = 0; i < read->count && !read->decided; i++)
        record_destroy(read->records[i]);
    read->count = 0;
}

static void read_next(struct store *s);

static void read_done(uv_work_t *work, int status)
{
    struct store *s = work->data;
    struct read *done = s->running;
    bool closing = s->closing; /* an answer may close it */
    (void)status;
    s->running = NULL;
    if (!closing)
        read_next(s);
    for (struct read *read; (read = done);) {
        done = read->next;
        if (s->closing || read->result)
            drop_records(read);
        if (!s->closing && read->decided)
            read->decided(read->decisions, read->count, read->result ? read->err.text : NULL, read->data);
        else if (!s->closing)
            read->answer(read->records, read->count, read->result ? read->err.text : NULL, read->data);
        read_free(read);
    }
    if (closing)
        store_close_when_idle(s);
}

/* A search for a token is short and each submission needs one, so many go together. */
static void read_next(struct store *s)
{
    struct read **end = &s->reads;
    if (s->running || !s->reads)
        return;
    for (int i = 0;
         *end && (i == 0 || (s->reads->which == SQL_BY_TOKEN && (*end)->which == SQL_BY_TOKEN && i < TOGETHER)); i++)
        end = &(*end)->next;
    s->running = s->reads;
    s->reads = *end;
    *end = NULL;
    if (!s->reads)
        s->last_read = &s->reads;
    s->work.data = s;
    uv_queue_work(s->loop, &s->work, read_work, read_done);
}

/* Fill it in and then begin it. */
static struct read *read_create(struct store *s, enum sql_which which, store_answer answer, void *data)
{
    struct read *read = mem_zalloc(sizeof(*read));
    *read = (struct read){.store = s, .which = which, .answer = answer, .data = data};
    return read;
}

static void read_begin(struct read *read)
{
    struct store *s = read->store;
    *s->last_read = read;
    s->last_read = &read->next;
    read_next(s);
}

void store_read(struct store *s, const uint64_t *ids, size_t count, store_answer answer, void *data)
{
    struct read *read = read_create(s, SQL_BY_ID, answer, data);
    read->ids = mem_array(count, sizeof(*ids));
    if (count)
        memcpy(read->ids, ids, count * sizeof(*ids));
    read->nids = count;
    read_begin(read);
}

void store_find(struct store *s, uint32_t uid, const char *token, store_answer answer, void *data)
{
    struct read *read = read_create(s, SQL_BY_TOKEN, answer, data);
    read->id = uid;
    read->text = mem_strdup(token);
    read_begin(read);
}

void store_read_history(struct store *s, uint64_t before, const char *user, int64_t since_ms, size_t count,
                        store_answer answer, void *data)
{
    struct read *read = read_create(s, SQL_HISTORY, answer, data);
    read->id = before;
    read->text = mem_strdup(user);
    read->since_ms = since_ms;
    read->limit = count;
    read_begin(read);
}

void store_read_decisions(struct store *s, int64_t since_ms, int64_t after, size_t count, store_decisions answer,
                          void *data)
{
    struct read *read = read_create(s, SQL_WHICH_COUNT, NULL, data);
    read->decided = answer;
    read->since_ms = since_ms;
    read->id = (uint64_t)after;
    read->limit = count;
    read_begin(read);
}

/* ---- care for the history ---- */

void store_trim(struct store *s, const struct store_limits *limits)
{
    uv_mutex_lock(&s->mutex);
    s->limits = *limits;
    s->trim = true;
    uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->mutex);
}

static void check_work(uv_work_t *work)
{
    struct check *check = work->data;
    struct err inner = ERR_INIT;
    sqlite3 *db = NULL;
    int result = sql_open(check->path, false, &db, &check->err);
    if (!result && (result = sql_check(db, &inner)))
        sql_explain(check->path, result, &check->err, inner.text);
    check->result = result;
    sqlite3_close(db);
}

static void check_done(uv_work_t *work, int status)
{
    struct check *check = work->data;
    struct store *s = check->store;
    (void)status;
    if (s)
        s->check = NULL;
    if (s && check->result == -EUCLEAN)
        s->callbacks.on_damage(check->err.text, s->data);
    else if (check->result)
        log_warning("the store could not be checked: %s", check->err.text);
    free(check->path);
    free(check);
}

void store_check(struct store *s)
{
    if (s->checked)
        return;
    s->checked = true;
    s->check = mem_zalloc(sizeof(*s->check));
    *s->check = (struct check){.store = s, .path = mem_strdup(s->path), .err = ERR_INIT};
    s->check->work.data = s->check;
    uv_queue_work(s->loop, &s->check->work, check_work, check_done);
}
