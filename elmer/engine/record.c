/* record.c - what is shown of a job, and of a task that waits in its array and is none yet. */
#include "config.h"

#include "elmer/engine/internal.h"

struct record *engine_record(struct engine *engine, const struct engine_job *job)
{
    struct record *record = job_record(engine->core, job, core_job(engine->core, job->id), false);
    if (record_ended(record) && !engine_job_settled(engine, job)) {
        record->state = JOB_ENDING; /* a final state never changes, so it is not shown before it is on disk */
        record->ended_ms = -1;
    }
    return record;
}

struct record *engine_task_record(struct engine *engine, const struct engine_job *array, uint32_t ordinal)
{
    struct record *record = engine_record(engine, array);
    const struct core_job *state = core_job(engine->core, array->id);
    record->array = record->id;
    record->id += 1 + ordinal;
    record->task = ordinal + 1;
    record->ntasks = record->tasks_ok = record->tasks_failed = 0;
    record->exit_status = -1;
    record->signal = 0;
    record->failed_rank = UINT32_MAX;
    record->refused = false;
    record->line = jobs_line(jobs_find(&engine->jobs, array->id), ordinal, &record->memory);
    if (core_next_task(state, ordinal) != ordinal) {
        record->state = JOB_CANCELLED;
        record->reason = REASON_CANCELLED;
    }
    return record;
}
