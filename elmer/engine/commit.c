/* commit.c - what waits for the commit of what it follows from: in order, but the answers of a commit go first, because
 * people wait for them, and the start of a job on many hosts takes a while to be sent. When the store cannot be
 * written, submissions that wait are refused and undone (nothing of them stays in the store) and ends go out, because
 * a disk that jobs have filled is freed by their end; everything else waits. New submissions are refused until it works
 * again (engine_store_failure()). Starts that wait so long have not failed: commit_stalled_ms(). */
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "elmer/engine/internal.h"
#include "lib/base/log.h"

enum { STALL_MS = 1000 }; /* no commit takes so long where all is well */

struct waiting {
    struct waiting *next;
    int64_t since_ms;
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
    *waiting = (struct waiting){.since_ms = engine_now_ms(), .number = number, .wait = *wait};
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

/* The first has waited the longest. */
static bool is_stalled(const struct engine *engine, int64_t now_ms)
{
    return engine->waiting && now_ms - engine->waiting->since_ms >= STALL_MS;
}

bool commit_is_asked_again(const struct engine *engine, const struct engine_wait *wait)
{
    if (wait->urgency == ENGINE_ANSWER || !is_stalled(engine, engine_now_ms()))
        return false;
    for (const struct waiting *at = engine->waiting; at; at = at->next)
        if (at->wait.run == wait->run && at->wait.job == wait->job && at->wait.attempt == wait->attempt &&
            at->wait.host == wait->host && at->wait.rank == wait->rank && at->wait.number == wait->number)
            return true;
    return false;
}

static void count_stall(struct engine *engine)
{
    int64_t now_ms = engine_now_ms(), since_ms;
    if (!is_stalled(engine, now_ms))
        return;
    since_ms = engine->waiting->since_ms;
    engine->stalled_ms += now_ms - (engine->counted_ms > since_ms ? engine->counted_ms : since_ms);
    engine->counted_ms = now_ms;
}

int64_t commit_stalled_ms(struct engine *engine)
{
    count_stall(engine);
    int64_t stalled_ms = engine->stalled_ms;
    engine->stalled_ms = 0;
    return stalled_ms;
}

void commit_done(uint64_t number, void *data)
{
    struct engine *engine = data;
    assert(!engine->stepping && number <= engine->last_put);
    count_stall(engine);
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
    store_hold(engine->store, true); /* a notice goes together with what the other job says of it */
    if (state->notice)
        engine_take_back_notice(engine, job);
    uint64_t put = job->put;
    engine_event(engine, &event);
    if (job->put == put) /* it had ended already: the row that waits must be replaced, too */
        engine_persist(engine, job);
    store_hold(engine->store, false);
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
