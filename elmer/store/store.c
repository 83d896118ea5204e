/* store.c - who writes and who reads.
 *
 * Life of a record: store_put() gives it a number and queues it -> the writer thread takes all that is queued as one
 * batch and writes it in one transaction -> the loop is woken and told the highest number on disk. While a batch is
 * being written the next one gathers, and a little longer where that keeps nobody waiting: see gather(). A batch that
 * fails stays at the head and is tried again each second, together with what has come meanwhile, so the order of
 * commits is that of store_put(). After a batch has been reported the log is looked after, see shrink_log(). Reads: one
 * at a time, or some looks for tokens together, in a worker thread of libuv, on a connection of their own (WAL: they do
 * not wait for the writer). */
#include "config.h"

#include "elmer/store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/memory/map.h"
#include "elmer/store/file.h"
#include "elmer/store/sql.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* A batch of MANY shows that more will come soon: so long is waited for them, and no longer when there are FULL.
 * LAZY_NS: what nobody waits for. */
enum { TOGETHER = 64, MANY = 8, FULL = 256, GATHER_NS = 3000000, LAZY_NS = 5000000 };

struct batch {
    struct record **items;
    size_t count, capacity;
    struct map places; /* job -> index + 1 */
    struct certificate *certificates;
    size_t ncertificates, room;
    struct host_row *hosts;
    size_t nhosts, hosts_room;
};

struct read {
    struct read *next;
    struct store *store;
    enum sql_which which;
    uint64_t *ids; /* SQL_BY_ID */
    size_t nids;
    uint64_t id; /* see sql_read() */
    char *text;
    size_t limit;
    struct record **records;
    size_t count, capacity;
    struct err err;
    int code;
    store_answer answer;
    void *data;
};

/* Has a connection of its own, and may outlive a store that is closed. */
struct check {
    struct store *store; /* NULL: closed meanwhile */
    char *path;
    struct err err;
    int code;
    uv_work_t work;
};

struct store {
    uv_loop_t *loop;
    struct store_callbacks callbacks;
    void *data;
    struct store_file file;
    sqlite3 *db;
    struct sql_reader reader; /* of the worker, or of the loop before it runs */
    struct sql_writer *writer;
    uint64_t put, committed; /* loop only */
    /* shared with the thread, under mutex */
    uv_mutex_t mutex;
    uv_cond_t wake;
    uv_async_t async;
    uv_thread_t thread;
    struct batch waiting;
    uint64_t waiting_number, written_number, wanted; /* the last put, committed, that somebody waits for */
    bool stop, failing, news, trim, gathering;
    struct store_limits limits;
    struct err failure;
    bool was_failing; /* loop only */
    char *path;
    bool checked;
    struct check *check;             /* the one that runs */
    struct read *reads, **last_read; /* that wait */
    struct read *running;            /* that the worker has */
    uv_work_t work;
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

static void batch_add_certificate(struct batch *batch, const struct certificate *certificate)
{
    batch->certificates =
        mem_grow(batch->certificates, &batch->room, batch->ncertificates + 1, sizeof(*batch->certificates));
    batch->certificates[batch->ncertificates++] = *certificate;
}

/* A host that comes and goes while nothing can be written has one row all the same. */
static void batch_add_host(struct batch *batch, const struct host_row *host)
{
    size_t place = 0;
    while (place < batch->nhosts && strcmp(batch->hosts[place].name, host->name))
        place++;
    if (place == batch->nhosts) {
        batch->hosts = mem_grow(batch->hosts, &batch->hosts_room, batch->nhosts + 1, sizeof(*batch->hosts));
        batch->nhosts++;
    }
    batch->hosts[place] = *host;
}

static bool batch_empty(const struct batch *batch)
{
    return !batch->count && !batch->ncertificates && !batch->nhosts;
}

static void batch_clear(struct batch *batch)
{
    free(batch->certificates);
    free(batch->hosts);
    for (size_t i = 0; i < batch->count; i++)
        record_destroy(batch->items[i]);
    free(batch->items);
    map_fini(&batch->places);
    *batch = (struct batch){0};
}

/* With the mutex, when something waits. A batch writes the last page of each table again, and a sync costs the same for
 * one record and for a hundred: so let more come, as long as nobody is kept waiting who would notice. */
static void gather(struct store *s, uint64_t many_until)
{
    uint64_t begin = uv_hrtime(), now = begin, end;
    s->gathering = true;
    do {
        end = begin + (s->wanted <= s->written_number ? LAZY_NS : begin < many_until ? GATHER_NS : 0);
        if (s->stop || s->waiting.count >= FULL || now >= end)
            break;
        uv_cond_timedwait(&s->wake, &s->mutex, end - now);
        now = uv_hrtime();
    } while (true);
    s->gathering = false;
}

/* Take what waits into batch (behind what a failure has left there), or the wish to trim when nothing does. Returns the
 * number of the last one, 0: stop or trim. */
static uint64_t take(struct store *s, struct batch *batch, uint64_t many_until, bool *trim)
{
    uv_mutex_lock(&s->mutex);
    while (!s->stop && !s->trim && batch_empty(&s->waiting) && batch_empty(batch))
        uv_cond_wait(&s->wake, &s->mutex);
    if (!batch_empty(&s->waiting) && batch_empty(batch))
        gather(s, many_until);
    for (size_t i = 0; i < s->waiting.count; i++)
        batch_add(batch, s->waiting.items[i]);
    for (size_t i = 0; i < s->waiting.ncertificates; i++)
        batch_add_certificate(batch, &s->waiting.certificates[i]);
    for (size_t i = 0; i < s->waiting.nhosts; i++)
        batch_add_host(batch, &s->waiting.hosts[i]);
    s->waiting.count = s->waiting.ncertificates = s->waiting.nhosts = 0;
    map_fini(&s->waiting.places);
    uint64_t number = batch_empty(batch) ? 0 : s->waiting_number;
    *trim = !number && !s->stop;
    uv_mutex_unlock(&s->mutex);
    return number;
}

/* SQLite leaves the log as it is until it has 4 MB, which a small disk does not have; then no batch could be written
 * any more, whatever else is freed. So it is put into the store earlier where there is little room, and then cut. */
static void shrink_log(struct store *s)
{
    struct err err = ERR_INIT;
    int pages = sql_log_pages(s->writer), limit;
    if (pages < STORE_LOG_PAGES_MIN || pages < (limit = store_file_log_pages(s->path)))
        return;
    if (sql_checkpoint(s->writer, limit < STORE_LOG_PAGES, &err))
        log_debug("the log of the store is not shorter: %s", err.text); /* it is tried again with the next batch */
}

/* One bite; the next one comes when what waits has been written. */
static void trim_history(struct store *s)
{
    struct err err = ERR_INIT;
    bool more = false;
    uv_mutex_lock(&s->mutex);
    struct store_limits limits = s->limits;
    uv_mutex_unlock(&s->mutex);
    if (sql_trim(s->db, &limits, wall_now().ms, &more, &err))
        log_warning("old jobs could not be removed from the history: %s", err.text);
    shrink_log(s);
    uv_mutex_lock(&s->mutex);
    s->trim = more;
    uv_mutex_unlock(&s->mutex);
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

static int write_once(struct store *s, const struct batch *batch, struct err *err)
{
    struct sql_rows rows = {batch->items,         batch->count, batch->certificates,
                            batch->ncertificates, batch->hosts, batch->nhosts};
    return sql_write(s->writer, &rows, s->file.commits + 1, err);
}

/* On a full disk the log holds what the batch needs, once it is in the store. What fails has made the log as long as
 * the disk allows, and nothing but a checkpoint takes that back, which itself needs room for pages that are new in the
 * store. So after a failure the checkpoint comes first: it gets what has been freed meanwhile. */
static int write_batch(struct store *s, const struct batch *batch, bool *full, struct err *err)
{
    struct err other = ERR_INIT;
    int code;
    if (*full)
        (void)sql_checkpoint(s->writer, true, &other); /* writing says what is wrong */
    code = write_once(s, batch, err);
    if (code == -ENOSPC && !*full && !sql_checkpoint(s->writer, true, &other)) {
        err_clear(err);
        code = write_once(s, batch, err);
    }
    *full = code == -ENOSPC;
    if (!code)
        store_file_committed(&s->file);
    return code;
}

static void writer(void *data)
{
    struct store *s = data;
    struct batch batch = {0};
    uint64_t number;
    uint64_t many_until = 0; /* the last batch was large, and is not long ago */
    bool trim, full = false;
    while ((number = take(s, &batch, many_until, &trim)) != 0 || trim) {
        struct err err = ERR_INIT;
        if (trim) {
            trim_history(s);
            continue;
        }
        int code = write_batch(s, &batch, &full, &err);
        if (!report(s, number, code, &err)) {
            log_error("the store could not be written before the end: %s; the last %zu changes are lost", err.text,
                      batch.count);
            break;
        }
        many_until = !code && batch.count >= MANY ? uv_hrtime() + GATHER_NS : 0;
        if (!code) {
            batch_clear(&batch);
            shrink_log(s);
        }
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

/* With the mutex, which it gives back. */
static uint64_t put_done(struct store *s)
{
    s->waiting_number = ++s->put;
    if (!s->failing && (!s->gathering || s->waiting.count >= FULL))
        uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->mutex);
    return s->put;
}

uint64_t store_put(struct store *s, struct record *record)
{
    uv_mutex_lock(&s->mutex);
    batch_add(&s->waiting, record);
    return put_done(s);
}

uint64_t store_put_certificate(struct store *s, const struct certificate *certificate)
{
    uv_mutex_lock(&s->mutex);
    batch_add_certificate(&s->waiting, certificate);
    return put_done(s);
}

uint64_t store_put_host(struct store *s, const struct host_row *host)
{
    uv_mutex_lock(&s->mutex);
    batch_add_host(&s->waiting, host);
    return put_done(s);
}

void store_want(struct store *s, uint64_t number)
{
    uv_mutex_lock(&s->mutex);
    bool news = s->wanted <= s->written_number;
    if (number > s->wanted)
        s->wanted = number;
    if (news && s->gathering)
        uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->mutex);
}

uint64_t store_committed(const struct store *s)
{
    return s->committed;
}

/* ---- open and close ---- */

static void close_files(struct store *s)
{
    sql_writer_destroy(s->writer);
    sql_reader_close(&s->reader);
    sqlite3_close(s->db);
    store_file_unlock(&s->file);
}

int store_open(uv_loop_t *loop, const char *path, const struct store_callbacks *callbacks, void *data,
               struct store **store, struct err *err)
{
    struct store *s = mem_zalloc(sizeof(*s));
    *s = (struct store){.loop = loop, .callbacks = *callbacks, .data = data};
    s->last_read = &s->reads;
    mode_t mask = umask(077); /* submissions contain environments */
    int code = store_file_lock(path, &s->file, err);
    if (!code)
        code = sql_open(path, true, &s->db, err);
    if (!code)
        code = sql_prepare(s->db, path, &s->checked, err);
    if (!code)
        code = store_file_check(path, &s->file, s->db, err);
    if (!code)
        code = sql_writer_create(s->db, &s->writer, err);
    if (!code)
        code = sql_open(path, false, &s->reader.db, err);
    umask(mask);
    if (code) {
        close_files(s);
        free(s);
        return code;
    }
    s->path = mem_strdup(path);
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
    free(s->path);
    free(s);
}

static void close_when_idle(struct store *s)
{
    if (s->running)
        return; /* it comes back here */
    close_files(s);
    uv_close((uv_handle_t *)&s->async, on_closed);
}

static void read_free(struct read *read)
{
    free(read->ids);
    free(read->text);
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
    if (s->check)
        s->check->store = NULL;
    for (struct read *read; (read = s->reads);) {
        s->reads = read->next;
        read_free(read);
    }
    s->last_read = &s->reads;
    close_when_idle(s);
}

/* ---- reading ---- */

static void collect(struct record *record, void *data)
{
    struct read *read = data;
    read->records = mem_grow(read->records, &read->capacity, read->count + 1, sizeof(*read->records));
    read->records[read->count++] = record;
}

static void read_one(struct read *read)
{
    struct sql_reader *reader = &read->store->reader;
    if (read->which != SQL_BY_ID)
        read->code = sql_read(reader, read->which, read->id, read->text, read->limit, collect, read, &read->err);
    for (size_t i = 0; i < read->nids && !read->code; i++)
        read->code = sql_read(reader, SQL_BY_ID, read->ids[i], NULL, 0, collect, read, &read->err);
}

static void read_work(uv_work_t *work)
{
    struct store *s = work->data;
    for (struct read *read = s->running; read; read = read->next)
        read_one(read);
}

static void drop_records(struct read *read)
{
    for (size_t i = 0; i < read->count; i++)
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
        if (s->closing || read->code)
            drop_records(read);
        if (!s->closing)
            read->answer(read->records, read->count, read->code ? read->err.text : NULL, read->data);
        read_free(read);
    }
    if (closing)
        close_when_idle(s);
}

/* A look for a token is short and each submission needs one, so many go together. */
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

void store_read_history(struct store *s, uint64_t before, const char *user, size_t count, store_answer answer,
                        void *data)
{
    struct read *read = read_create(s, SQL_HISTORY, answer, data);
    read->id = before;
    read->text = mem_strdup(user);
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
    int code = sql_open(check->path, false, &db, &check->err);
    if (!code && (code = sql_check(db, &inner)))
        sql_explain(check->path, code, &check->err, inner.text);
    check->code = code;
    sqlite3_close(db);
}

static void check_done(uv_work_t *work, int status)
{
    struct check *check = work->data;
    struct store *s = check->store;
    (void)status;
    if (s)
        s->check = NULL;
    if (s && check->code == -EUCLEAN)
        s->callbacks.on_damage(check->err.text, s->data);
    else if (check->code)
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

/* ---- at start ---- */

int store_load(struct store *s, void (*each)(struct record *record, void *data), void *data, uint64_t *next_job,
               uint64_t *next_allocation, struct err *err)
{
    int code = sql_counters(s->reader.db, next_job, next_allocation, err);
    return code ? code : sql_read(&s->reader, SQL_UNFINISHED, 0, NULL, 0, each, data, err);
}

int store_load_hosts(struct store *s, void (*each)(const struct host_row *host, void *data), void *data,
                     struct err *err)
{
    return sql_hosts(s->reader.db, each, data, err);
}

int store_load_certificates(struct store *s, void (*each)(const struct certificate *certificate, void *data),
                            void *data, struct err *err)
{
    return sql_certificates(s->reader.db, each, data, err);
}
