/* commit.c - what waits for the commit of what it follows from: in order, but the answers of a commit go first, because
 * people wait for them, and the start of a job on many hosts takes a while to be sent. When the store cannot be
 * written, submissions that wait are refused and undone (nothing of them stays in the store) and ends go out, because
 * a disk that jobs have filled is freed by their end; everything else waits. New submissions are refused until it works
 * again (engine_store_failure()). */
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "elmer/engine/internal.h"
#include "lib/base/log.h"

struct waiting {
    struct waiting *next;
    uint64_t number; /* of the last write before it */
    struct engine_wait wait;
};

void engine_after_commit(struct engine *engine, const struct engine_wait *wait)
{
    uint64_t number = engine->last_put;
    assert(wait->run && wait->owner);
    if (!engine->waiting && store_committed(engine->store) >= number) {
        wait->run(wait);
        return;
    }
    if (wait->urgency != ENGINE_LINGER)
        store_want(engine->store, number);
    struct waiting *waiting = mem_zalloc(sizeof(*waiting));
    *waiting = (struct waiting){.number = number, .wait = *wait};
    *engine->last_waiting = waiting;
    engine->last_waiting = &waiting->next;
}

/* Take it out of the list, and do it. */
static void take(struct engine *engine, struct waiting **place)
{
    struct waiting *waiting = *place;
    assert(engine->stepping);
    *place = waiting->next;
    if (!*place)
        engine->last_waiting = place;
    waiting->wait.run(&waiting->wait);
    free(waiting);
}

void commit_done(uint64_t number, void *data)
{
    struct engine *engine = data;
    assert(!engine->stepping && number <= engine->last_put);
    engine->stepping = true; /* what arises from one waits until the next has gone out */
    for (struct waiting **place = &engine->waiting; *place && (*place)->number <= number;) {
        if ((*place)->wait.urgency == ENGINE_ANSWER)
            take(engine, place);
        else
            place = &(*place)->next;
    }
    while (engine->waiting && engine->waiting->number <= number)
        take(engine, &engine->waiting);
    engine->stepping = false;
    engine_run_events(engine);
}

/* ---- the store fails ---- */

static void undo(struct engine *engine, struct engine_job *job)
{
    const struct core_job *state = job ? core_job(engine->core, job->id) : NULL;
    if (!state || job->refused || engine_job_accepted(engine, job))
        return;
    job->refused = true;
    bool queued = !state->ntasks && (state->state == JOB_QUEUED || state->state == JOB_HELD);
    struct event event = {
        .type = queued ? EVENT_CANCEL : EVENT_KILL, .job = job->id, .u.by = {.uid = job->uid, .admin = true}};
    engine_event(engine, &event);
}

static void run_unless_failing(struct engine *engine)
{
    bool stepping = engine->stepping;
    engine->stepping = true;
    for (struct waiting **place = &engine->waiting; *place;) {
        if ((*place)->wait.unless_failing)
            take(engine, place);
        else
            place = &(*place)->next;
    }
    engine->stepping = stepping;
    engine_run_events(engine);
}

void commit_failed(const char *text, void *data)
{
    struct engine *engine = data;
    if (text && !engine->store_failure) /* once, however often it is tried again */
        log_error("the store cannot be written: %s; new jobs are refused until it can", text);
    else if (!text && engine->store_failure)
        log_notice("the store can be written again");
    free(engine->store_failure);
    engine->store_failure = text ? mem_format("elmer's store cannot be written: %s", text) : NULL;
    if (!text)
        return;
    for (struct waiting *waiting = engine->waiting; waiting; waiting = waiting->next) {
        const struct engine_wait *wait = &waiting->wait;
        if (wait->urgency != ENGINE_ANSWER)
            continue;
        struct engine_job *job = jobs_find(&engine->jobs, wait->job);
        bool accepted = job && engine_job_accepted(engine, job);
        if (engine->requests.failed(wait->number, accepted, engine->store_failure, engine->requests_data))
            undo(engine, job);
    }
    run_unless_failing(engine);
}

void commit_fini(struct engine *engine)
{
    for (struct waiting *waiting; (waiting = engine->waiting);) {
        engine->waiting = waiting->next;
        free(waiting);
    }
}
