/* recover.c - what the store holds goes back into the core.
 *
 * Here rows are read and handed over; what they mean, and what becomes of their jobs and hosts, the core decides
 * (core/restore.h). Hosts come first, then those that only jobs have, then jobs: those with a cluster in the order of
 * their allocation, then queued and held ones in the order of ids, so each after those that it waits for. A job that is
 * lost is written when all are back. Of the submission in a task's row nothing is kept, it has that of its array: a
 * user may have as many tasks as jobs in the queue, each with a long command. */
#include "config.h"

#include "elmer/engine/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"

struct found {
    struct record **records;
    size_t count, capacity;
    size_t done; /* these have been taken over */
    struct record **lost;
    size_t nlost, lost_capacity;
};

static void collect(struct record *record, void *data)
{
    struct found *found = data;
    if (record->array) {
        wire_message_fini(&record->submission);
        record->submission = (struct wire_message){0};
        record->submit = NULL;
    }
    found->records = mem_grow(found->records, &found->capacity, found->count + 1, sizeof(*found->records));
    found->records[found->count++] = record;
}

static int by_allocation(const void *a, const void *b)
{
    const struct record *x = *(struct record *const *)a, *y = *(struct record *const *)b;
    uint64_t first = job_state_has_cluster(x->state) ? x->allocation : UINT64_MAX,
             second = job_state_has_cluster(y->state) ? y->allocation : UINT64_MAX;
    if (first != second)
        return first < second ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Those that it may use, by name; none: all. An elmer that rewrote the record without a host that was not in its
 * configuration may have left none, but the submission names what was asked for. */
static struct wire_strs names_of_hosts(const struct record *r)
{
    if (!r->nhosts && r->submit)
        return r->submit->hosts;
    return (struct wire_strs){(const char **)r->hosts, r->nhosts};
}

/* Hosts that it may use and that are missing here, which may be back after the next start. */
static void keep_missing(struct engine *engine, const struct record *r, struct engine_job *job)
{
    struct wire_strs names = names_of_hosts(r);
    for (size_t i = 0; i < names.count; i++)
        if (core_host_by_name(engine->core, names.items[i]) < 0)
            job_add_missing(job, names.items[i]);
    if (names.count && job->nmissing == names.count && !job_state_has_cluster(r->state))
        log_warning("job=%" PRIu64 " waits: the hosts that it may use are not in the configuration any more", r->id);
}

/* A task's after its array's. */
static void add_shell(struct engine *engine, struct record *r)
{
    if (r->array)
        jobs_add_task(&engine->jobs, r->id, jobs_find(&engine->jobs, r->array));
    else
        jobs_add(&engine->jobs, r->id, r->uid, r->user, &r->submission);
}

static void restore_shell(struct engine *engine, struct record *r)
{
    struct engine_job *job = jobs_find(&engine->jobs, r->id);
    job->stored = true;
    job->logged = r->state;
    job->submitted_ms = r->submitted_ms;
    job->started_ms = r->started_ms;
    job->begin_notice = r->begin_notice;
    job->end_notice = r->end_notice;
    keep_missing(engine, r, job);
    for (size_t i = 0; i < r->nusage; i++) {
        int host = core_host_by_name(engine->core, r->usage[i].host);
        if (host >= 0)
            job_set_usage(job, core_host(engine->core, host)->name, r->usage[i].attempt, r->usage[i].cpu_seconds,
                          r->usage[i].memory_peak_bytes);
    }
}

/* Its host is not in the configuration any more. It is written when all are back. */
static void give_up(struct engine *engine, struct found *found, struct record *r, const struct core_job *lost,
                    const char *host)
{
    log_warning("job=%" PRIu64 " was on host %s, which is not in the configuration any more: it is lost", r->id, host);
    r->state = lost->state;
    r->reason = lost->reason;
    r->level = lost->level;
    r->text = arena_format(&r->memory, "its host %s was taken out of the configuration", host);
    r->ended_ms = wall_now().ms;
    r->notice = r->submit->notice;
    if (r->array) {
        const struct engine_job_end *of_task = jobs_task_end(jobs_find(&engine->jobs, r->array));
        r->json = of_task->json;
        r->json_minor = of_task->minor;
        r->environment_sha256 = of_task->environment_sha256;
    } else {
        struct engine_job_end end = {0};
        engine_end_record(r, &r->submission, &end);
        free(end.json);
    }
    found->lost = mem_grow(found->lost, &found->lost_capacity, found->nlost + 1, sizeof(*found->lost));
    found->lost[found->nlost++] = r;
}

/* With the arrays that have counted them: else an elmer that is killed again would find a task that has ended and is
 * counted nowhere. */
static void put_lost(struct engine *engine, const struct found *found)
{
    uint64_t before = engine->last_put;
    store_hold(engine->store, true);
    for (size_t i = 0; i < found->nlost; i++) {
        struct engine_job *array = jobs_find(&engine->jobs, found->lost[i]->array);
        engine->last_put = store_put(engine->store, found->lost[i]);
        if (array && array->put <= before)
            engine_persist(engine, array);
    }
    store_hold(engine->store, false);
}

/* Returns a host of it that is not in the configuration any more, or NULL. */
static const char *fill_cluster(struct engine *engine, struct record *r, struct core_job *job)
{
    struct core_processor *processors = arena_array(&r->memory, r->nprocessors, sizeof(*processors));
    const char *missing = NULL;
    for (uint32_t i = 0; i < r->nprocessors; i++) {
        processors[i] =
            (struct core_processor){core_host_by_name(engine->core, r->processors[i].host), r->processors[i].cpu};
        if (processors[i].host < 0)
            missing = r->processors[i].host;
    }
    job->processors = processors;
    job->exited = r->exited;
    return missing;
}

static int *indices(struct engine *engine, struct record *r, const char *const *names, size_t count)
{
    int *hosts = arena_array(&r->memory, count, sizeof(*hosts));
    for (size_t i = 0; i < count; i++)
        hosts[i] = core_host_by_name(engine->core, names[i]); /* -1: not there any more */
    return hosts;
}

static void fill_hosts(struct engine *engine, struct record *r, struct core_job *job)
{
    struct wire_strs names = names_of_hosts(r);
    job->hosts = names.count ? indices(engine, r, names.items, names.count) : NULL;
    job->nhosts = (int)names.count;
    job->lost = indices(engine, r, r->lost, r->nlost);
    job->nlost = (int)r->nlost;
}

/* What it waits for, and how those have ended of which it was not decided when its row was written. */
static int fill_after(struct engine *engine, struct record *r, struct core_job *job, struct err *err)
{
    const struct wire_strs *items = &r->submit->after;
    if (!core_saved_waits(job) || !items->count)
        return 0;
    struct core_after *after = arena_array(&r->memory, items->count, sizeof(*after));
    uint64_t *ids = arena_array(&r->memory, items->count, sizeof(*ids));
    enum core_end *ends = arena_array(&r->memory, items->count, sizeof(*ends));
    char why[AFTER_WHY] = "its columns are not of one length";
    struct after item;
    for (size_t i = 0; i < items->count; i++) {
        if (r->nafter != items->count || after_parse(items->items[i], &item, why))
            return err_set(err, -EUCLEAN, "the row of job %" PRIu64 " makes no sense: %s", r->id, why);
        after[i] = (struct core_after){.job = item.job, .kind = item.kind, .verdict = r->after[i].verdict};
        ids[i] = item.job;
    }
    int result = store_load_ends(engine->store, ids, items->count, ends, err);
    for (size_t i = 0; i < items->count && !result; i++)
        after[i].end = ends[i];
    job->after = after;
    job->nafter = (int)items->count;
    return result;
}

static struct core_job core_job_of(const struct record *r)
{
    struct core_job job = {0};
#define CORE_ASKED(name, type, core, ...)        JOB_IF(EVENT, core, job.name = JOB_CAST(core, r->submit->name);)
#define CORE_KEPT(name, type, record, core, ...) JOB_IF(COPIED, core, job.name = r->name;)
    JOB_FIELDS(CORE_ASKED, CORE_KEPT, JOB_NONE)
    memcpy(job.level_ms, r->level_ms, sizeof(job.level_ms));
    job.gone = r->gone;
    job.ngone = (int)r->ngone;
    return job;
}

/* Up to when its times count, by the clock of now_ms. Within one start of the machine that is exact; after another one
 * the wall clock must do, and one that was set back takes nothing away. */
static int64_t counted_until(const struct record *r, int64_t now_ms)
{
    if (r->boot && r->boot == boot_number())
        return r->accounted_mono_ms;
    return r->accounted_ms >= 0 ? now_ms - (wall_now().ms - r->accounted_ms) : now_ms;
}

/* Takes over the record. */
static int restore(struct engine *engine, struct found *found, struct record *r, struct err *err)
{
    if (r->array)
        r->submit = job_submit(jobs_find(&engine->jobs, r->array));
    int64_t now_ms = engine_now_ms();
    struct core_job job = core_job_of(r);
    const char *missing = NULL;
    if (job_state_has_cluster(r->state)) {
        missing = fill_cluster(engine, r, &job);
        job.level_until_ms = counted_until(r, now_ms);
    }
    fill_hosts(engine, r, &job);
    int result = fill_after(engine, r, &job, err);
    if (result) {
        record_destroy(r);
        return result;
    }
    result = core_restore_job(engine->core, &job, now_ms);
    if (result == CORE_LOST) {
        job = core_lost_job(&job);
        give_up(engine, found, r, &job, missing);
        return 0;
    }
    if (result < 0) {
        err_set(err, result,
                "job %" PRIu64 " (%s) of the store contradicts itself or the other jobs there (%s): that is a fault of "
                "elmer, or the store was changed by something else; a backup helps",
                r->id, job_state_name(r->state), strerror(-result));
        record_destroy(r);
        return result;
    }
    r->state = core_job(engine->core, r->id)->state;
    if (!r->ntasks)
        add_shell(engine, r);
    restore_shell(engine, r);
    limits_resume(engine, jobs_find(&engine->jobs, r->id), r, job.level_until_ms);
    if (result == CORE_PUT_BACK) {
        log_warning("job=%" PRIu64 " was on host %s, which is not in the configuration any more: it goes back into the "
                    "queue",
                    r->id, missing);
        engine_persist(engine, jobs_find(&engine->jobs, r->id));
    }
    record_destroy(r);
    return 0;
}

static void restore_past_hosts(struct engine *engine, const struct record *r)
{
    for (uint32_t i = 0; job_state_has_cluster(r->state) && i < r->nprocessors; i++)
        if (core_restore_past_host(engine->core, r->processors[i].host, decide_meet(engine, r->processors[i].host)))
            log_notice("host=%s is not in the configuration any more: it gets no new jobs, and is removed when those "
                       "that it has have ended",
                       r->processors[i].host);
}

static void restore_host(const struct host_row *host, void *data)
{
    struct engine *engine = data;
    if (core_restore_host_row(engine->core, host->name, &host->row, engine_now_ms()) == -EINVAL)
        log_error("host=%s what the store says of it cannot be used: a bug", host->name);
    int index = core_host_by_name(engine->core, host->name);
    if (index >= 0)
        decide_restore(engine, index, &host->drain);
    else
        decide_keep(engine, host);
}

/* One that cannot be used stays in the store, until another is set or default, and the configuration counts. */
static void restore_setting(const struct setting_row *row, void *data)
{
    struct engine *engine = data;
    int setting = core_setting_by_name(row->name);
    int value = setting >= 0 ? core_setting_value_by_name((enum core_setting)setting, row->value) : -1;
    if (value < 0 || core_restore_setting(engine->core, (enum core_setting)setting, value)) {
        log_warning("\"eadmin set %s %s\" was done before, and what is configured counts: %s", row->name, row->value,
                    value < 0 ? "this elmer does not know it" : "it needs topology = cube");
        return;
    }
    int configured = core_setting_default(engine->core, (enum core_setting)setting);
    log_notice("%s %s: set by an administrator, configured is %s", row->name, row->value,
               core_setting_value_name((enum core_setting)setting, configured));
}

/* Before all others: their tasks have their submissions, with environment and ticket. */
static int add_arrays(struct engine *engine, const struct found *found, struct err *err)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->records[i]->ntasks)
            add_shell(engine, found->records[i]);
    for (size_t i = 0; i < found->count; i++) {
        const struct record *r = found->records[i];
        if (r->array && !jobs_find(&engine->jobs, r->array))
            return err_set(err, -EUCLEAN, "the store has task %" PRIu64 " of array %" PRIu64 ", and not the array",
                           r->id, r->array);
    }
    return 0;
}

int recover(struct engine *engine, struct err *err)
{
    struct found found = {0};
    uint64_t next_job = 1, next_allocation = 1;
    int result = store_load_settings(engine->store, restore_setting, engine, err);
    if (!result)
        result = store_load_hosts(engine->store, restore_host, engine, err);
    if (!result)
        result = store_load(engine->store, collect, &found, &next_job, &next_allocation, err);
    if (!result)
        core_set_next(engine->core, next_job, next_allocation);
    if (found.count)
        qsort(found.records, found.count, sizeof(*found.records), by_allocation);
    for (size_t i = 0; i < found.count && !result; i++)
        restore_past_hosts(engine, found.records[i]);
    if (!result)
        result = add_arrays(engine, &found, err);
    while (found.done < found.count && !result) {
        struct record *record = found.records[found.done++];
        result = restore(engine, &found, record, err);
    }
    if (!result && found.nlost)
        put_lost(engine, &found);
    for (size_t i = 0; i < found.nlost && result; i++)
        record_destroy(found.lost[i]);
    free(found.lost);
    while (found.done < found.count)
        record_destroy(found.records[found.done++]);
    free(found.records);
    return result;
}
