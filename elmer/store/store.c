/* store.c - who writes and who reads.
 *
 * Life of a record: store_put() gives it a number and queues it -> the writer thread takes all that is queued as one
 * batch and writes it in one transaction -> the loop is woken and told the highest number on disk. While a batch is
 * being written the next one gathers, and a little longer where that keeps nobody waiting: see gather(). A batch that
 * fails stays at the head and is tried again each second, together with what has come meanwhile, so the order of
 * commits is that of store_put(). After a batch has been reported the log is looked after, see shrink_log(). Reads: one
 * at a time, or several searches for tokens together, in a worker thread of libuv, on a connection of their own (WAL:
 * they do not wait for the writer). */
#include "config.h"

#include "elmer/store/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"

/* ---- writing: the loop's side ---- */

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
    assert(number <= s->put);
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
    assert(s->put > s->written_number);
    if (!s->failing && (!s->gathering || s->waiting.count >= BATCH_FULL))
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

uint64_t store_put_setting(struct store *s, const struct setting_row *setting)
{
    uv_mutex_lock(&s->mutex);
    batch_add_setting(&s->waiting, setting);
    return put_done(s);
}

uint64_t store_put_decision(struct store *s, const struct decision *decision)
{
    uv_mutex_lock(&s->mutex);
    batch_add_decision(&s->waiting, decision);
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

void store_hold(struct store *s, bool hold)
{
    uv_mutex_lock(&s->mutex);
    s->holding = hold;
    if (!hold)
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

static int read_clock(struct store *s, struct err *err)
{
    s->clock = (struct trim_clock){.opened_ms = wall_now().ms, .opened_mono_ms = mono_ms(mono_now())};
    char sql[120]; /* not of what has ended by this clock, which may be the one that is wrong */
    snprintf(sql, sizeof(sql), "SELECT coalesce(max(ended_ms), 0) FROM state WHERE ended_ms < %" PRId64,
             s->clock.opened_ms - 86400000);
    return sql_integer(s->db, sql, &s->clock.last_end_ms, err);
}

static int meet_unknown(struct store *s, const char *path, struct err *err)
{
    struct err inner = ERR_INIT;
    uint64_t next_job = 0;
    if (s->file.known)
        return 0;
    int result = s->file.commits ? sql_skip_ids(s->db, wall_now().ms, &next_job, &inner) : 0;
    if (result)
        return sql_explain(path, result, err, inner.text);
    if (s->file.commits)
        log_warning("the lock file of the store was not there, or empty: the next id is %" PRIu64
                    ", beyond those of jobs that may have been accepted and are not in the store",
                    next_job);
    store_file_note(&s->file);
    return 0;
}

static int begin_writer(struct store *s, struct err *err)
{
    uv_mutex_init(&s->mutex);
    uv_cond_init(&s->wake);
    int result = uv_thread_create(&s->thread, store_writer, s); /* it wakes the loop after a batch, so not yet */
    if (!result)
        return 0;
    uv_cond_destroy(&s->wake);
    uv_mutex_destroy(&s->mutex);
    return err_set(err, result,
                   "cannot start the thread that writes the store: %s; what limits threads is TasksMax= of "
                   "elmer.service, and kernel.threads-max",
                   uv_strerror(result));
}

int store_open(uv_loop_t *loop, const char *path, const struct store_callbacks *callbacks, void *data,
               struct store **store, struct err *err)
{
    struct store *s = mem_zalloc(sizeof(*s));
    *s = (struct store){.loop = loop, .callbacks = *callbacks, .data = data};
    s->last_read = &s->reads;
    mode_t mask = umask(077); /* submissions contain environments */
    int result = store_file_lock(path, &s->file, err);
    if (!result)
        result = sql_open(path, true, &s->db, err);
    if (!result)
        result = sql_prepare(s->db, path, &s->checked, err);
    if (!result)
        result = store_file_check(path, &s->file, s->db, err);
    if (!result)
        result = meet_unknown(s, path, err);
    if (!result)
        result = sql_writer_create(s->db, &s->writer, err);
    if (!result)
        result = read_clock(s, err);
    if (!result)
        result = sql_open(path, false, &s->reader.db, err);
    umask(mask);
    s->path = mem_strdup(path);
    if (!result)
        result = begin_writer(s, err);
    if (result) {
        close_files(s);
        free(s->path);
        free(s);
        return result;
    }
    uv_async_init(loop, &s->async, on_async);
    s->async.data = s;
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

void store_close_when_idle(struct store *s)
{
    if (s->running)
        return; /* it comes back here */
    assert(s->closing);
    close_files(s);
    uv_close((uv_handle_t *)&s->async, on_closed);
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
    store_close_when_idle(s);
}

/* ---- at start ---- */

int store_load(struct store *s, void (*each)(struct record *record, void *data), void *data, uint64_t *next_job,
               uint64_t *next_allocation, struct err *err)
{
    int result = sql_counters(s->reader.db, next_job, next_allocation, err);
    return result ? result : sql_read(&s->reader, SQL_UNFINISHED, 0, NULL, 0, 0, each, data, err);
}

int store_load_ends(struct store *s, const uint64_t *jobs, size_t count, enum core_end *ends, struct err *err)
{
    int result = 0;
    for (size_t i = 0; i < count && !result; i++)
        result = sql_end_of(&s->reader, jobs[i], &ends[i], err);
    return result;
}

int store_load_hosts(struct store *s, void (*each)(const struct host_row *host, void *data), void *data,
                     struct err *err)
{
    return sql_hosts(s->reader.db, each, data, err);
}

int store_load_settings(struct store *s, void (*each)(const struct setting_row *setting, void *data), void *data,
                        struct err *err)
{
    return sql_settings(s->reader.db, each, data, err);
}

int store_load_certificates(struct store *s, void (*each)(const struct certificate *certificate, void *data),
                            void *data, struct err *err)
{
    return sql_certificates(s->reader.db, each, data, err);
}
