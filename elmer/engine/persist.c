/* persist.c - rows of jobs and hosts on their way to the store, and what follows when a job has ended there. */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "elmer/engine/internal.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/job/after.h"

static void note_times(struct engine_job *job, const struct core_job *state)
{
    int64_t now = wall_now().ms;
    bool waits = state->state == JOB_QUEUED || (state->state == JOB_STARTING && state->exits == 0);
    if (waits) /* one that starts again at once is never seen in the queue */
        job->started_ms = -1;
    bool ended = state->state == JOB_DONE || state->state == JOB_CANCELLED;
    if (job->started_ms < 0 && (state->state == JOB_RUNNING || state->exits > 0))
        job->started_ms = now;
    if (job->ended_ms < 0 && ended)
        job->ended_ms = now > job->started_ms ? now : job->started_ms; /* the clock may have been set back */
}

/* "ws1,ws2", of many the first ones and "+12". */
static void list_hosts(const struct core *core, const struct core_job *state, char *text, size_t size)
{
    enum { HOSTS_SHOWN = 8 };
    bool *seen = mem_zalloc((size_t)core_host_count(core) * sizeof(*seen));
    size_t used = 0;
    int count = 0;
    *text = 0;
    for (uint32_t i = 0; state->processors && i < state->nprocs; i++) {
        int host = state->processors[i].host;
        if (seen[host])
            continue;
        seen[host] = true;
        if (++count <= HOSTS_SHOWN)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", core_host(core, host)->name);
    }
    if (count > HOSTS_SHOWN)
        snprintf(text + used, size - used, "+%d", count - HOSTS_SHOWN);
    free(seen);
}

/* What became of it, in one line. */
static void log_end(const struct engine *engine, const struct engine_job *job, const struct core_job *state)
{
    char result[40] = "", reason[40] = "", ran[40] = "", hosts[8 * (HOST_NAME_MAX_BYTES + 1) + 20];
    list_hosts(engine->core, state, hosts, sizeof(hosts));
    if (state->exits && state->signal)
        snprintf(result, sizeof(result), " signal=%d", state->signal);
    else if (state->exits && state->exit_status >= 0)
        snprintf(result, sizeof(result), " exit=%d", state->exit_status);
    if (state->reason != REASON_EXITED)
        snprintf(reason, sizeof(reason), " reason=%s", reason_name(state->reason));
    if (job->started_ms >= 0 && job->ended_ms >= 0)
        snprintf(ran, sizeof(ran), " ran=%" PRId64 "s", (job->ended_ms - job->started_ms) / 1000);
    log_info("job=%" PRIu64 " user=%s %s%s%s%s%s%s", job->id, job->user, job_state_name(state->state), result, reason,
             ran, *hosts ? " hosts=" : "", hosts);
}

static void log_change(const struct engine *engine, const struct engine_job *job, const struct core_job *state)
{
    const char *reason = state->state == JOB_ENDING ? reason_name(state->reason) : "";
    if (state->state == job->logged)
        return;
    if (state->state == JOB_DONE || state->state == JOB_CANCELLED) {
        log_end(engine, job, state);
        return;
    }
    /* a job that goes well passes through these two in milliseconds, and each line costs as much as a commit; of a task
     * of an array the line about its end is enough */
    bool passing = state->state == JOB_STARTING || (state->state == JOB_ENDING && state->reason == REASON_EXITED) ||
                   (state->state == JOB_RUNNING && state->array);
    (passing ? log_debug : log_info)("job=%" PRIu64 " user=%s %s%s%s", job->id, job->user, job_state_name(state->state),
                                     *reason ? ": " : "", reason);
    if (state->state == JOB_QUEUED && state->attempt && job->logged != JOB_HELD)
        log_notice("job=%" PRIu64 " user=%s goes back into the queue after attempt %" PRIu32 ": %s", job->id, job->user,
                   state->attempt, state->text);
    if (state->state == JOB_STARTING && state->requeue && !state->lease_ms)
        log_notice("job=%" PRIu64 " user=%s cannot be requeued in this attempt: the rsd of one of its hosts is too old "
                   "to hold a lease; upgrade it",
                   job->id, job->user);
}

bool engine_end_record(struct record *record, const struct wire_message *submission, struct engine_job_end *end)
{
    struct err err = ERR_INIT;
    if (record_end(submission, &end->json, &end->minor, end->environment_sha256, &err)) {
        log_error("job=%" PRIu64 " its environment stays in the store: %s", record->id, err.text);
        return false;
    }
    record->json = arena_strdup(&record->memory, end->json);
    record->json_minor = end->minor;
    record->environment_sha256 = arena_strdup(&record->memory, end->environment_sha256);
    return true;
}

/* Where the job that a notice tells about says which it is; NULL: that is one that only the history knows, and says
 * nothing. */
static uint64_t *place_of_notice(struct engine *engine, const struct engine_job *notice, struct engine_job **about)
{
    const struct wire_strs *after = &job_submit(notice)->after;
    char why[AFTER_WHY];
    struct after item;
    if (after->count != 1 || after_parse(after->items[0], &item, why))
        return NULL;
    struct engine_job *job = *about = jobs_find(&engine->jobs, item.job);
    if (!job || job->uid != notice->uid || job->refused || !job->stored)
        return NULL;
    return item.kind == AFTER_START ? &job->begin_notice : &job->end_notice;
}

/* A notice has come. Both are written in one step, before the notice is answered. */
static void note_notice(struct engine *engine, const struct engine_job *notice)
{
    struct engine_job *about;
    uint64_t *place = place_of_notice(engine, notice, &about);
    if (!place)
        return;
    *place = notice->id;
    engine_persist(engine, about);
}

void engine_take_back_notice(struct engine *engine, const struct engine_job *notice)
{
    struct engine_job *about;
    uint64_t *place = place_of_notice(engine, notice, &about);
    if (!place || *place != notice->id)
        return;
    *place = 0;
    engine_persist(engine, about);
}

uint64_t engine_persist(struct engine *engine, struct engine_job *job)
{
    const struct core_job *state = core_job(engine->core, job->id);
    assert(state);
    if (!job->stored && state->notice)
        note_notice(engine, job);
    note_times(job, state);
    log_change(engine, job, state);
    job->logged = state->state;
    limits_note(engine, job, state);
    if (state->state != JOB_RUNNING)
        polls_clear(job);
    struct record *record = job_record(engine->core, job, state, !job->stored);
    struct engine_job_end end = {0};
    if (record_ended(record) && !job->of && !job->end && engine_end_record(record, &job->submission, &end))
        job->end = mem_copy(&end, 1, sizeof(end));
    job->put = engine->last_put = store_put(engine->store, record);
    if (!job->stored)
        job->first_put = job->put;
    job->stored = true;
    return job->put;
}

static void on_ended(const struct engine_wait *wait)
{
    struct engine *engine = wait->owner;
    struct engine_job *job = jobs_find(&engine->jobs, wait->job);
    assert(job && job->ended && !job->settled); /* it is dropped after this only */
    job->settled = true;
    engine->requests.ended(job, engine->requests_data);
    jobs_note_ended(&engine->jobs, job);
    if (jobs_oldest(&engine->jobs, JOBS_ENDED_KEPT))
        engine_tidy_soon(engine);
}

/* A task of an array has become a job. */
static struct engine_job *begin_task(struct engine *engine, const struct core_job *state)
{
    struct engine_job *array = jobs_find(&engine->jobs, state->array);
    return array ? jobs_add_task(&engine->jobs, state->id, array) : NULL;
}

void engine_persist_job(struct engine *engine, uint64_t id)
{
    struct engine_job *job = jobs_find(&engine->jobs, id);
    const struct core_job *state = core_job(engine->core, id);
    if (!job && state && state->array)
        job = begin_task(engine, state);
    if (!job || !state) {
        log_error("job=%" PRIu64 " is to be written, but is not known: a bug", id);
        return;
    }
    engine_persist(engine, job);
    if (state->state != JOB_STARTING && state->state != JOB_RUNNING)
        engine->launch.end(job, engine->launch_data);
    if (job->ended || (state->state != JOB_DONE && state->state != JOB_CANCELLED))
        return;
    job->ended = true;
    struct engine_wait wait = {
        .run = on_ended, .owner = engine, .job = id, .urgency = job->watchers ? ENGINE_WORK : ENGINE_LINGER};
    engine_after_commit(engine, &wait);
}

void engine_persist_host(struct engine *engine, int host)
{
    const struct core_host *state = core_host(engine->core, host);
    struct host_row row = {.row = state->row};
    snprintf(row.name, sizeof(row.name), "%s", state->name);
    if (engine_drain(engine, host))
        row.drain = *engine_drain(engine, host);
    engine->last_put = store_put_host(engine->store, &row);
}

void engine_persist_setting(struct engine *engine, enum core_setting setting)
{
    int value = core_setting_stored(engine->core, setting);
    struct setting_row row = {.name = ""};
    snprintf(row.name, sizeof(row.name), "%s", core_setting_name(setting));
    if (value != SETTING_UNSET)
        snprintf(row.value, sizeof(row.value), "%s", core_setting_value_name(setting, value));
    engine->last_put = store_put_setting(engine->store, &row);
}

uint64_t engine_put_certificate(struct engine *engine, const struct certificate *certificate)
{
    return engine->last_put = store_put_certificate(engine->store, certificate);
}
