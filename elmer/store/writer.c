/* writer.c - the thread that writes: batches, when they are written, and what is done when they cannot be. The life of
 * a record is in store.c. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "elmer/store/internal.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* SEVERAL_NS: those who submit may have to wait for a CPU. Nothing has come for PAUSE_NS: nothing will. LAZY_NS: what
 * nobody waits for. */
enum { MANY = 8, GATHER_NS = 3000000, SEVERAL_NS = 20000000, PAUSE_NS = 1000000, LAZY_NS = 5000000 };

void batch_add(struct batch *batch, struct record *record)
{
    size_t place = (size_t)(uintptr_t)map_get(&batch->places, record->id);
    if (place) {
        struct record *old = batch->items[place - 1];
        assert(place <= batch->count && old->id == record->id);
        if (old->json && !record->json) {
            record->json = arena_strdup(&record->memory, old->json);
            record->json_minor = old->json_minor;
        }
        record_destroy(old);
        batch->items[place - 1] = record;
        return;
    }
    batch->items = mem_grow(batch->items, &batch->capacity, batch->count + 1, sizeof(*batch->items));
    batch->items[batch->count++] = record;
    map_put(&batch->places, record->id, (void *)(uintptr_t)batch->count);
}

void batch_add_certificate(struct batch *batch, const struct certificate *certificate)
{
    batch->certificates =
        mem_grow(batch->certificates, &batch->room, batch->ncertificates + 1, sizeof(*batch->certificates));
    batch->certificates[batch->ncertificates++] = *certificate;
}

/* A host that comes and goes while nothing can be written has one row all the same. */
void batch_add_host(struct batch *batch, const struct host_row *host)
{
    size_t place = 0;
    while (place < batch->nhosts && strcmp(batch->hosts[place].name, host->name) != 0)
        place++;
    if (place == batch->nhosts) {
        batch->hosts = mem_grow(batch->hosts, &batch->hosts_room, batch->nhosts + 1, sizeof(*batch->hosts));
        batch->nhosts++;
    }
    batch->hosts[place] = *host;
}

void batch_add_setting(struct batch *batch, const struct setting_row *setting)
{
    size_t place = 0;
    while (place < batch->nsettings && strcmp(batch->settings[place].name, setting->name) != 0)
        place++;
    if (place == batch->nsettings) {
        batch->settings =
            mem_grow(batch->settings, &batch->settings_room, batch->nsettings + 1, sizeof(*batch->settings));
        batch->nsettings++;
    }
    batch->settings[place] = *setting;
}

void batch_add_decision(struct batch *batch, const struct decision *decision)
{
    if (batch->ndecisions >= STORE_DECISIONS_WAITING) {
        batch->decisions_lost++;
        return;
    }
    batch->decisions =
        mem_grow(batch->decisions, &batch->decisions_room, batch->ndecisions + 1, sizeof(*batch->decisions));
    batch->decisions[batch->ndecisions++] = *decision;
}

static bool batch_empty(const struct batch *batch)
{
    return !batch->count && !batch->ncertificates && !batch->nhosts && !batch->nsettings && !batch->ndecisions;
}

void batch_clear(struct batch *batch)
{
    free(batch->certificates);
    free(batch->hosts);
    free(batch->settings);
    free(batch->decisions);
    for (size_t i = 0; i < batch->count; i++)
        record_destroy(batch->items[i]);
    free(batch->items);
    map_fini(&batch->places);
    *batch = (struct batch){0};
}

/* Its submission goes to the store with it, and it has not ended. */
static bool is_new(const struct record *record)
{
    return record->json && !record_ended(record);
}

static size_t count_new(const struct batch *batch)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++)
        count += is_new(batch->items[i]);
    return count;
}

void pace_note(struct pace *pace, size_t count, size_t new_jobs, uint64_t now)
{
    pace->many_until = count >= MANY ? now + GATHER_NS : 0;
    if (new_jobs > 1)
        pace->several_until = now + SEVERAL_NS;
}

uint64_t pace_gather(const struct pace *pace, size_t new_jobs, bool wanted, uint64_t now)
{
    bool more = now < pace->many_until || (new_jobs > 0 && now < pace->several_until);
    return !wanted ? LAZY_NS : more ? GATHER_NS : 0;
}

/* With the mutex, when something waits. A batch writes the last page of each table again, and a sync costs the same for
 * one record and for a hundred: so let more come, as long as nobody is kept waiting who would notice. */
static void gather(struct store *s, const struct pace *pace)
{
    uint64_t begin = uv_hrtime(), now = begin, end, put = 0;
    s->gathering = true;
    do {
        bool wanted = s->wanted > s->written_number;
        end = begin + pace_gather(pace, count_new(&s->waiting), wanted, begin);
        if (s->stop || s->waiting.count >= BATCH_FULL || now >= end || (wanted && put == s->waiting_number))
            break;
        if (wanted)
            put = s->waiting_number;
        if (wanted && now + PAUSE_NS < end)
            end = now + PAUSE_NS;
        uv_cond_timedwait(&s->wake, &s->mutex, end - now);
        now = uv_hrtime();
    } while (true);
    s->gathering = false;
}

/* Take what waits into batch (behind what a failure has left there), or the wish to trim when nothing does. Returns the
 * number of the last one, 0: stop or trim. */
static uint64_t take(struct store *s, struct batch *batch, const struct pace *pace, bool *trim)
{
    uv_mutex_lock(&s->mutex);
    while (!s->stop && !s->trim && batch_empty(&s->waiting) && batch_empty(batch))
        uv_cond_wait(&s->wake, &s->mutex);
    if (!batch_empty(&s->waiting) && batch_empty(batch))
        gather(s, pace);
    while (s->holding)
        uv_cond_wait(&s->wake, &s->mutex);
    for (size_t i = 0; i < s->waiting.count; i++)
        batch_add(batch, s->waiting.items[i]);
    for (size_t i = 0; i < s->waiting.ncertificates; i++)
        batch_add_certificate(batch, &s->waiting.certificates[i]);
    for (size_t i = 0; i < s->waiting.nhosts; i++)
        batch_add_host(batch, &s->waiting.hosts[i]);
    for (size_t i = 0; i < s->waiting.nsettings; i++)
        batch_add_setting(batch, &s->waiting.settings[i]);
    for (size_t i = 0; i < s->waiting.ndecisions; i++)
        batch_add_decision(batch, &s->waiting.decisions[i]);
    batch->decisions_lost += s->waiting.decisions_lost;
    s->waiting.count = s->waiting.ncertificates = s->waiting.nhosts = s->waiting.nsettings = 0;
    s->waiting.ndecisions = s->waiting.decisions_lost = 0;
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

/* Not where there is little room, and not that of what failed: writing says so. */
static void lengthen_log(struct store *s)
{
    struct err err = ERR_INIT;
    if (store_file_log_pages(s->path) == STORE_LOG_PAGES && sql_lengthen_log(s->db, STORE_LOG_PAGES, &err))
        log_debug("the log of the store is not longer: %s", err.text);
}

/* One bite; the next one comes when what waits has been written. */
static void trim_history(struct store *s)
{
    struct err err = ERR_INIT;
    bool more = false;
    uv_mutex_lock(&s->mutex);
    struct store_limits limits = s->limits;
    s->trim = false; /* somebody may ask again meanwhile */
    uv_mutex_unlock(&s->mutex);
    limits.age_ms = trim_age(&s->clock, limits.age_ms, mono_ms(mono_now()));
    if (sql_trim(s->db, &limits, wall_now().ms, &s->large, &more, &err))
        log_warning("old jobs could not be removed from the history: %s", err.text);
    else if (!more && sql_drop_environments(s->db, &more, &err))
        log_warning("environments of ended jobs could not be removed from the history: %s", err.text);
    else if (!more && sql_give_back(s->db, &more, &err))
        log_debug("the store is not smaller: %s", err.text); /* it is tried again with the next trim */
    shrink_log(s);
    uv_mutex_lock(&s->mutex);
    s->trim = s->trim || more;
    uv_mutex_unlock(&s->mutex);
}

/* Tell the loop; after a failure wait a second. Returns false when the thread is to give up. */
static bool report(struct store *s, uint64_t number, int result, const struct err *err)
{
    bool again = true;
    uv_mutex_lock(&s->mutex);
    if (result) {
        s->failing = true;
        s->failure = *err;
    } else {
        assert(number >= s->written_number && number <= s->waiting_number);
        s->failing = false;
        s->written_number = number;
    }
    s->news = true;
    uv_async_send(&s->async);
    if (result && s->stop)
        again = false;
    else if (result)
        uv_cond_timedwait(&s->wake, &s->mutex, 1000000000u);
    uv_mutex_unlock(&s->mutex);
    return again;
}

static int write_once(struct store *s, const struct batch *batch, struct err *err)
{
    assert(!batch_empty(batch));
    struct sql_rows rows = {batch->items,     batch->count,     batch->certificates, batch->ncertificates,
                            batch->hosts,     batch->nhosts,    batch->settings,     batch->nsettings,
                            batch->decisions, batch->ndecisions};
    return sql_write(s->writer, &rows, s->file.commits + 1, err);
}

/* On a full disk the log holds what the batch needs, once it is in the store. What fails has made the log as long as
 * the disk allows, and nothing but a checkpoint takes that back, which itself needs room for pages that are new in the
 * store. So after a failure the checkpoint comes first: it gets what has been freed meanwhile. */
static int write_batch(struct store *s, const struct batch *batch, bool *full, struct err *err)
{
    struct err other = ERR_INIT;
    int result;
    if (*full)
        (void)sql_checkpoint(s->writer, true, &other); /* writing says what is wrong */
    result = write_once(s, batch, err);
    if (result == -ENOSPC && !*full && !sql_checkpoint(s->writer, true, &other)) {
        err_clear(err);
        result = write_once(s, batch, err);
    }
    *full = result == -ENOSPC;
    if (!result)
        store_file_committed(&s->file);
    return result;
}

void store_writer(void *data)
{
    struct store *s = data;
    struct batch batch = {0};
    uint64_t number;
    struct pace pace = {0};
    bool trim, full = false;
    lengthen_log(s);
    while ((number = take(s, &batch, &pace, &trim)) != 0 || trim) {
        struct err err = ERR_INIT;
        if (trim) {
            trim_history(s);
            continue;
        }
        int result = write_batch(s, &batch, &full, &err);
        if (!result && batch.decisions_lost)
            log_warning("eadmin log lacks %zu decisions, because %d waited for the store: they are in this log only",
                        batch.decisions_lost, STORE_DECISIONS_WAITING);
        if (!report(s, number, result, &err)) {
            log_error("the store could not be written before the end: %s; the last %zu changes are lost", err.text,
                      batch.count);
            break;
        }
        pace_note(&pace, result ? 0 : batch.count, result ? 0 : count_new(&batch), uv_hrtime());
        if (!result) {
            batch_clear(&batch);
            shrink_log(s);
        }
    }
    batch_clear(&batch);
}
