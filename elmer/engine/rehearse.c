/* rehearse.c - what a submission would bring: it is given to a copy of the core, and nothing that the copy wants done
 * is done. */
#include "config.h"

#include <assert.h>

#include "elmer/engine/internal.h"

/* The jobs right above it, each once, as far as there is room. */
static void note_above(const struct core *core, const struct core_job *state, struct engine_rehearsal *out)
{
    for (uint32_t rank = 0; rank < state->nprocs && out->nabove < REHEARSAL_ABOVE; rank++) {
        uint64_t above = core_above(core, state->id, rank);
        bool known = !above;
        for (size_t i = 0; i < out->nabove && !known; i++)
            known = out->above[i] == above;
        if (!known)
            out->above[out->nabove++] = above;
    }
}

/* Who is at the head of the queue, and why he waits. */
static void note_first(struct engine *engine, struct core *core, struct engine_rehearsal *out)
{
    uint64_t id = core_refused(core);
    struct engine_job *job = id ? jobs_find(&engine->jobs, id) : NULL;
    if (job)
        out->first = job_record(core, job, core_job(core, id), false);
}

bool engine_rehearse(struct engine *engine, struct event *event, const char *user, struct wire_message *submission,
                     struct engine_rehearsal *out)
{
    struct core *core = core_copy(engine->core);
    uint64_t id = core_next_id(core);
    struct actions actions;
    const struct core_job *state;
    *out = (struct engine_rehearsal){0};
    assert(event->type == EVENT_SUBMIT && !engine->stepping);
    event->now_ms = engine_now_ms();
    actions_init(&actions);
    int result = core_step(core, event, &actions);
    assert(result == 0);
    actions_fini(&actions);
    state = core_job(core, id);
    if (state && state->ntasks && core_job(core, id + 1)) /* the first task of an array */
        state = core_job(core, ++id);
    if (state) {
        struct engine_job job = {.id = id,
                                 .uid = event->u.submit.uid,
                                 .user = (char *)(uintptr_t)user,
                                 .submission = *submission,
                                 .submitted_ms = -1,
                                 .started_ms = -1,
                                 .ended_ms = -1};
        out->record = job_record(core, &job, state, false);
        out->record->submit = &submission->u.submit;
        note_above(core, state, out);
        if (state->state == JOB_QUEUED && !out->record->refused)
            note_first(engine, core, out);
    }
    out->core = core;
    return state;
}

void engine_rehearsal_fini(struct engine_rehearsal *rehearsal)
{
    record_destroy(rehearsal->record);
    record_destroy(rehearsal->first);
    core_destroy(rehearsal->core);
}
