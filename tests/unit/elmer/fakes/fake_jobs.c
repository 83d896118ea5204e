/* fake_jobs.c - what of elmer/engine/jobs.h, and of records in engine.h, the room requests looks at; and of
 * elmer/launch/paths.h. */
#include "config.h"

#include <string.h>

#include "elmer/launch/paths.h"
#include "tests/unit/elmer/fakes/fake_engine.h"

const struct engine_job *jobs_by_token(const struct jobs *jobs, uint32_t uid, const char *token)
{
    (void)jobs;
    for (size_t i = 0; i < fake_engine.njobs; i++) {
        struct engine_job *job = &fake_engine.jobs[i]->job;
        if (job->uid == uid && !job->refused && strcmp(job_submit(job)->token, token) == 0)
            return job;
    }
    return NULL;
}

size_t jobs_bytes(const struct jobs *jobs, uint32_t uid)
{
    (void)jobs;
    (void)uid;
    return fake_engine.bytes;
}

size_t jobs_task_bytes(const struct engine_job *array)
{
    return job_submit(array)->hosts.count * sizeof(int);
}

size_t jobs_bytes_of_all(const struct jobs *jobs)
{
    (void)jobs;
    return fake_engine.bytes_of_all;
}

static void fill(struct record *r, const struct engine_job *job, const struct core_job *state)
{
#define FAKE_KEPT(name, type, record, core, ...) JOB_IF(COPIED, core, r->name = state->name;)
    JOB_FIELDS(JOB_NONE, FAKE_KEPT, JOB_NONE)
#undef FAKE_KEPT
    r->user = job->user;
    r->token = job_submit(job)->token;
    r->submit = job_submit(job);
    r->submitted_ms = job->submitted_ms;
    r->text = state->text;
    r->line = job->line ? job->line : "";
}

void job_glance(const struct core *core, const struct engine_job *job, const struct core_job *state,
                struct record *record)
{
    (void)core;
    *record = (struct record){.polls = "", .started_ms = -1, .ended_ms = -1};
    fill(record, job, state);
}

void job_name_lost(const struct core *core, const struct core_job *state, struct arena *memory, struct record *record)
{
    (void)core;
    (void)memory;
    record->nlost = (uint32_t)state->nlost;
}

struct record *engine_task_record(struct engine *engine, const struct engine_job *array, uint32_t ordinal)
{
    struct record *record = engine_record(engine, array);
    record->array = array->id;
    record->id = array->id + 1 + ordinal;
    record->task = ordinal + 1;
    return record;
}

struct record *engine_record(struct engine *engine, const struct engine_job *job)
{
    struct record *record = record_create();
    (void)engine;
    fill(record, job, &fake_engine_find(job->id)->state);
    if (record_ended(record) && !fake_engine_find(job->id)->settled)
        record->state = JOB_ENDING;
    return record;
}

int engine_signal(struct engine *engine, uint64_t job, int number, int *away)
{
    (void)engine;
    *away = fake_engine.away;
    if (fake_engine_find(job)->state.state != JOB_RUNNING)
        return -1;
    fake_engine.signalled_job = job;
    fake_engine.signalled = number;
    fake_engine.nsignalled++;
    return fake_engine.signals;
}

uint64_t core_refused(const struct core *core)
{
    (void)core;
    return fake_engine.refused;
}

uint64_t core_above(const struct core *core, uint64_t id, uint32_t rank)
{
    (void)core;
    return fake_engine_find(id)->state.state == JOB_RUNNING && rank > 0 ? fake_engine.above : 0;
}

const char *core_bar_name(enum core_bar bar)
{
    static const char *const names[CORE_BAR_COUNT] = {[CORE_BAR_NONE] = "ok",
                                                      [CORE_BAR_DOWN] = "down",
                                                      [CORE_BAR_DRAINED] = "drained",
                                                      [CORE_BAR_BUSY] = "busy",
                                                      [CORE_BAR_MEMORY] = "memory"};
    return names[bar] ? names[bar] : "?";
}

bool core_why(const struct core *core, uint64_t job, int host, struct core_host_why *why)
{
    enum job_state state = fake_engine_find(job)->state.state;
    (void)core;
    *why = fake_engine.why[host];
    return state == JOB_QUEUED || state == JOB_HELD;
}
