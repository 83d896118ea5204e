/* store.c - who writes and who reads.
 *
 * Life of a record: store_put() gives it a number and queues it -> the writer thread takes all that is queued as one
 * batch and writes it in one transaction -> the loop is woken and told the highest number on disk. While a batch is
 * being written the next one gathers: that is the whole of the group commit. A batch that fails stays at the head and
 * is tried again each second, together with what has come meanwhile, so the order of commits is that of store_put().
 * Reads: one at a time in a worker thread of libuv, on a connection of their own (WAL: they do not wait for the
 * writer). */
#include "config.h"

#include "elmer/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elmer/map.h"
#include "elmer/store_sql.h"
#include "libelmer/base/log.h"

struct batch {
    struct record **items;
    size_t count, capacity;
    struct map places; /* job -> index + 1 */
};

struct read {
    struct read *next;
    struct store *store;
    uint64_t *ids; /* NULL: by token */
    size_t nids;
    uint32_t uid;
    char *token;
    struct record **records;
    size_t count, capacity;
    struct err err;
    int code;
    store_answer answer;
    void *data;
    uv_work_t work;
};

struct store {
    uv_loop_t *loop;
    struct store_callbacks callbacks;
    void *data;
    int lock;
    sqlite3 *db, *reader;
    struct sql_writer *writer;
    uint64_t put, committed; /* loop only */
    /* shared with the thread, under mutex */
    uv_mutex_t mutex;
    uv_cond_t wake;
    uv_async_t async;
    uv_thread_t thread;
    struct batch waiting;
    uint64_t waiting_number, written_number;
    bool stop, failing, news;
    struct err failure;
    bool was_failing; /* loop only */
    struct read *reads, **last_read;
    bool closing;
};

/* ---- the writer thread ---- */

static void batch_add(struct batch *batch, struct record *record)
{
    size_t place = (size_t)(uintptr_t)map_get(&batch->places, record->id);
    if (place) {
        struct record *old = batch->items[place - 1];
        if (old->json && !record->json) {
            record->json = arena_strdup(&record->memory, old->json);
        }
        record_destroy(old);
        batch->items[place - 1] = record;
        return;
    }
    batch->items = mem_grow(batch->items, &batch->capacity, batch->count + 1, sizeof(*batch->items));
    batch->items[batch->count++] = record;
    map_put(&batch->places, record->id, (void *)(uintptr_t)batch->count);
}

static void batch_clear(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        record_destroy(batch->items[i]);
    free(batch->items);
    map_fini(&batch->places);
    *batch = (struct batch){0};
}

/* Take what waits into batch (behind what a failure has left there). Returns the number of the last one, 0: stop. */
static uint64_t take(struct store *s, struct batch *batch)
{
    uv_mutex_lock(&s->mutex);
    while (!s->stop && !s->waiting.count && !batch->count)
        uv_cond_wait(&s->wake, &s->mutex);
    for (size_t i = 0; i < s->waiting.count; i++)
        batch_add(batch, s->waiting.items[i]);
    s->waiting.count = 0;
    map_fini(&s->waiting.places);
    uint64_t number = batch->count ? s->waiting_number : 0;
    uv_mutex_unlock(&s->mutex);
    return number;
}

/* Tell the loop; after a failure wait a second. Returns false when the thread is to give up. */
static bool report(struct store *s, uint64_t number, int code, const struct err *err)
{
    bool again = true;
    uv_mutex_lock(&s->mutex);
    if (code) {
        s->failing = true;
        s->failure = *err;
    } else {
        s->failing = false;
        s->written_number = number;
    }
    s->news = true;
    uv_async_send(&s->async);
    if (code && s->stop)
        again = false;
    else if (code)
        uv_cond_timedwait(&s->wake, &s->mutex, 1000000000u);
    uv_mutex_unlock(&s->mutex);
    return again;
}

static void writer(void *data)
{
    struct store *s = data;
    struct batch batch = {0};
    uint64_t number;
    while ((number = take(s, &batch)) != 0) {
        struct err err = ERR_INIT;
        int code = sql_write(s->writer, batch.items, batch.count, &err);
        if (!report(s, number, code, &err)) {
            log_error("the store could not be written before the end: %s; the last %zu changes are lost", err.text,
                      batch.count);
            break;
        }
        if (!code)
            batch_clear(&batch);
    }
    batch_clear(&batch);
}

static void on_async(uv_async_t *async)
{
    struct store *s = async->data;
    uv_mutex_lock(&s->mutex);
    uint64_t number = s->written_number;
    bool failing = s->failing;
    struct err failure = s->failure;
    uv_mutex_unlock(&s->mutex);
    if (s->closing)
        return;
    if (number > s->committed) {
        s->committed = number;
        s->callbacks.on_commit(number, s->data);
    }
    if (failing || s->was_failing)
        s->callbacks.on_failure(failing ? failure.text : NULL, s->data);
    s->was_failing = failing;
}

uint64_t store_put(struct store *s, struct record *record)
{
    uv_mutex_lock(&s->mutex);
    batch_add(&s->waiting, record);
    s->waiting_number = ++s->put;
    if (!s->failing)
        uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->mutex);
    return s->put;
}

uint64_t store_committed(const struct store *s)
{
    return s->committed;
}

/* ---- open and close ---- */

static int lock_file(const char *path, int *lock, struct err *err)
{
    char *name = mem_format("%s.lock", path);
    int code = 0, fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        code = err_set(err, -errno,
                       "cannot make %s: %s; the directory of the store must be there and belong to the user that elmer "
                       "runs as (or set \"store = ...\")",
                       name, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB))
        code = err_set(err, -EBUSY, "the store %s is in use by another elmer: stop that one first", path);
    free(name);
    if (code && fd >= 0)
        close(fd);
    else
        *lock = fd;
    return code;
}

static void close_files(struct store *s)
{
    sql_writer_destroy(s->writer);
    sqlite3_close(s->reader);
    sqlite3_close(s->db);
    if (s->lock >= 0)
        close(s->lock);
}

int store_open(uv_loop_t *loop, const char *path, const struct store_callbacks *callbacks, void *data,
               struct store **store, struct err *err)
{
    struct store *s = mem_zalloc(sizeof(*s));
    *s = (struct store){.loop = loop, .callbacks = *callbacks, .data = data, .lock = -1};
    s->last_read = &s->reads;
    mode_t mask = umask(077); /* submissions contain environments */
    int code = lock_file(path, &s->lock, err);
    if (!code)
        code = sql_open(path, true, &s->db, err);
    if (!code)
        code = sql_prepare(s->db, path, err);
    if (!code)
        code = sql_writer_create(s->db, &s->writer, err);
    if (!code)
        code = sql_open(path, false, &s->reader, err);
    umask(mask);
    if (code) {
        close_files(s);
        free(s);
        return code;
    }
    uv_mutex_init(&s->mutex);
    uv_cond_init(&s->wake);
    uv_async_init(loop, &s->async, on_async);
    s->async.data = s;
    code = uv_thread_create(&s->thread, writer, s);
    if (code) {
        err_set(err, code, "cannot start a thread: %s", uv_strerror(code));
        abort(); /* at start only, and nothing has been promised */
    }
    *store = s;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct store *s = handle->data;
    uv_mutex_destroy(&s->mutex);
    uv_cond_destroy(&s->wake);
    free(s);
}

static void close_when_idle(struct store *s)
{
    if (s->reads)
        return; /* the one that runs comes back here */
    close_files(s);
    uv_close((uv_handle_t *)&s->async, on_closed);
}

static void read_free(struct read *read)
{
    free(read->ids);
    free(read->token);
    free(read->records);
    free(read);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    uv_mutex_lock(&s->mutex);
    s->stop = true;
    uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->mutex);
    uv_thread_join(&s->thread);
    batch_clear(&s->waiting);
    s->closing = true;
    struct read *running = s->reads;
    for (struct read *read = running ? running->next : NULL, *next; read; read = next) {
        next = read->next;
        read_free(read);
    }
    if (running)
        running->next = NULL;
    close_when_idle(s);
}

/* ---- reading ---- */

static void collect(struct record *record, void *data)
{
    struct read *read = data;
    read->records = mem_grow(read->records, &read->capacity, read->count + 1, sizeof(*read->records));
    read->records[read->count++] = record;
}

static void read_work(uv_work_t *work)
{
    struct read *read = work->data;
    if (!read->ids)
        read->code = sql_read(read->store->reader, SQL_BY_TOKEN, read->uid, read->token, collect, read, &read->err);
    for (size_t i = 0; i < read->nids && !read->code; i++)
        read->code = sql_read(read->store->reader, SQL_BY_ID, read->ids[i], NULL, collect, read, &read->err);
}

static void read_next(struct store *s);

static void read_done(uv_work_t *work, int status)
{
    struct read *read = work->data;
    struct store *s = read->store;
    (void)status;
    s->reads = read->next;
    if (!s->reads)
        s->last_read = &s->reads;
    if (s->closing || read->code) {
        for (size_t i = 0; i < read->count; i++)
            record_destroy(read->records[i]);
        read->count = 0;
    }
    if (s->closing) {
        read_free(read);
        close_when_idle(s);
        return;
    }
    read_next(s);
    read->answer(read->records, read->count, read->code ? read->err.text : NULL, read->data);
    read_free(read);
}

static void read_next(struct store *s)
{
    if (s->reads)
        uv_queue_work(s->loop, &s->reads->work, read_work, read_done);
}

static struct read *read_queue(struct store *s, store_answer answer, void *data)
{
    struct read *read = mem_zalloc(sizeof(*read));
    *read = (struct read){.store = s, .answer = answer, .data = data};
    read->work.data = read;
    *s->last_read = read;
    s->last_read = &read->next;
    return read;
}

void store_read(struct store *s, const uint64_t *ids, size_t count, store_answer answer, void *data)
{
    bool idle = !s->reads;
    struct read *read = read_queue(s, answer, data);
    read->ids = mem_array(count, sizeof(*ids));
    if (count)
        memcpy(read->ids, ids, count * sizeof(*ids));
    read->nids = count;
    if (idle)
        read_next(s);
}

void store_find(struct store *s, uint32_t uid, const char *token, store_answer answer, void *data)
{
    bool idle = !s->reads;
    struct read *read = read_queue(s, answer, data);
    read->uid = uid;
    read->token = mem_strdup(token);
    if (idle)
        read_next(s);
}

/* ---- at start ---- */

int store_load(struct store *s, void (*each)(struct record *record, void *data), void *data, uint64_t *next_job,
               uint64_t *next_allocation, struct err *err)
{
    int code = sql_counters(s->reader, next_job, next_allocation, err);
    return code ? code : sql_read(s->reader, SQL_UNFINISHED, 0, NULL, each, data, err);
}

int store_load_tokens(struct store *s, void (*each)(uint32_t uid, const char *token, void *data), void *data,
                      struct err *err)
{
    return sql_tokens(s->reader, each, data, err);
}
