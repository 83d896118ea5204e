/* wait.c - waiting for the end of a job, or for the first end of several.
 *
 * A wait hangs on its jobs until the end of one is on disk, or until its timeout; a job that has ended already, in
 * memory or long ago in the store, is the answer at once, the first of them in the order asked for. The answer is one
 * job. */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "elmer/requests/internal.h"
#include "elmer/store/store.h"
#include "lib/base/container.h"

/* Who waits for one job. */
struct waiters {
    uint64_t job;
    struct request_hook *first;
};

struct request_hook {
    struct request *request;
    bool watches; /* the engine's job: a task that waits in its array has none */
    struct waiters *on;
    struct request_hook *next, **place;
};

static void unhook(struct requests *requests, struct request_hook *hook)
{
    struct waiters *waiters = hook->on;
    *hook->place = hook->next;
    if (hook->next)
        hook->next->place = hook->place;
    const struct engine_job *job = engine_job(requests->room.engine, waiters->job);
    if (job && hook->watches) /* while there are watchers; not at the end of the daemon */
        engine_unwatch(requests->room.engine, job->id);
    if (waiters->first)
        return;
    map_remove(&requests->waiting, waiters->job);
    free(waiters);
}

void wait_leave(struct request *request)
{
    for (size_t i = 0; i < request->nhooks; i++)
        unhook(request->requests, &request->hooks[i]);
    free(request->hooks);
    request->hooks = NULL;
    request->nhooks = 0;
}

static void hook_on(struct request *request, uint64_t id)
{
    const struct engine_job *job = engine_job(request->requests->room.engine, id);
    struct requests *requests = request->requests;
    struct waiters *waiters = map_get(&requests->waiting, id);
    struct request_hook *hook = &request->hooks[request->nhooks++];
    if (!waiters) {
        waiters = mem_zalloc(sizeof(*waiters));
        waiters->job = id;
        map_put(&requests->waiting, id, waiters);
    }
    *hook = (struct request_hook){
        .request = request, .watches = job, .on = waiters, .next = waiters->first, .place = &waiters->first};
    if (waiters->first)
        waiters->first->place = &hook->next;
    waiters->first = hook;
    if (job)
        engine_watch(requests->room.engine, id);
}

static void answer_with(struct request *request, struct record *record)
{
    wait_leave(request);
    query_send(request, &record, 1, false);
    record_destroy(record);
    request_end(request);
}

static void answer(struct request *request, const struct engine_job *job)
{
    answer_with(request, engine_record(request->requests->room.engine, job));
}

/* As it is: a job, or a task that has none. NULL: neither any more. */
static struct record *record_now(struct engine *engine, uint64_t id)
{
    const struct engine_job *job = engine_job(engine, id);
    const struct core_job *array = job ? NULL : core_array_of(engine_core(engine), id);
    if (job)
        return engine_record(engine, job);
    job = array ? engine_job(engine, array->id) : NULL;
    return job ? engine_task_record(engine, job, (uint32_t)(id - array->id) - 1) : NULL;
}

static void on_timeout(struct deadline *deadline)
{
    struct request *request = CONTAINER_OF(deadline, struct request, deadline);
    struct record *record = record_now(request->requests->room.engine, request->hooks[0].on->job);
    if (record)
        answer_with(request, record);
    else
        request_error(request, WIRE_CODE_NO_SUCH_JOB, "nothing is known of job %" PRIu64 " any more",
                      request->hooks[0].on->job);
}

static void on_read(struct record **records, size_t count, const char *error, void *data)
{
    struct request *request = data;
    struct record *cancelled = error || count ? NULL : tasks_cancelled(request->requests->room.engine, request->job);
    request->holder = HOLDER_NONE;
    if (cancelled) {
        answer_with(request, cancelled);
    } else if (error || !count) {
        request_error(request, error ? WIRE_CODE_UNAVAILABLE : WIRE_CODE_NO_SUCH_JOB,
                      "job %" PRIu64 " cannot be found: %s", request->job, error ? error : "it is not in the store");
    } else {
        query_send(request, records, 1, false);
        request_end(request);
    }
    for (size_t i = 0; i < count; i++)
        record_destroy(records[i]);
}

/* One of them has ended, and that is the answer; or there is none. A task that does not wait in its array has a row
 * when it has been a job, also while its array is in memory. Then the request has ended, or the store is asked.
 */
static bool answer_now(struct request *request, const struct wire_uints *ids, size_t *bytes)
{
    struct engine *engine = request->requests->room.engine;
    *bytes = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (!ids->items[i] || ids->items[i] >= core_next_id(engine_core(engine))) {
            request_error(request, WIRE_CODE_NO_SUCH_JOB, "there is no job %" PRIu64, ids->items[i]);
            return true;
        }
    for (size_t i = 0; i < ids->count; i++) {
        const struct engine_job *job = engine_job(engine, ids->items[i]);
        struct record *task = job ? NULL : tasks_waiting(engine, ids->items[i]);
        record_destroy(task);
        if (task)
            continue;
        if (!job || job->refused) {
            request->job = ids->items[i];
            request->holder = HOLDER_STORE;
            store_read(engine_store(engine), &request->job, 1, on_read, request);
            return true;
        }
        if (engine_job_settled(engine, job)) {
            answer(request, job);
            return true;
        }
        *bytes = job_bytes(job) > *bytes ? job_bytes(job) : *bytes;
    }
    return false;
}

void wait_begin(struct request *request)
{
    const bool any = request->type == WIRE_wait_any;
    const struct wire_uints ids = any ? request->message.u.wait_any.jobs : (struct wire_uints){&request->job, 1};
    int64_t timeout_ms = (int64_t)(any ? request->message.u.wait_any.timeout_ms : request->message.u.wait.timeout_ms);
    char text[QUOTA_TEXT];
    size_t bytes;
    if (!ids.count) {
        request_error(request, WIRE_CODE_REFUSED, "no job is named to wait for");
        return;
    }
    if (answer_now(request, &ids, &bytes))
        return;
    bytes += ids.count * sizeof(struct request_hook); /* and for the answer: all come at once */
    if (!client_keep(request->client, bytes, text)) {
        request_error(request, WIRE_CODE_REFUSED, "%s", text);
        return;
    }
    request->kept += bytes;
    request->holder = HOLDER_WAIT;
    request->hooks = mem_array(ids.count, sizeof(*request->hooks));
    for (size_t i = 0; i < ids.count; i++)
        hook_on(request, ids.items[i]);
    request->deadline.fire = on_timeout;
    deadline_set(request->requests->room.deadlines, &request->deadline, engine_now_ms() + timeout_ms);
}

/* Neither waits in its array nor has a job. */
static bool task_gone(struct requests *requests, const struct core_job *array, uint64_t id)
{
    uint32_t ordinal = (uint32_t)(id - array->id) - 1;
    bool ended = array->state == JOB_DONE || array->state == JOB_CANCELLED;
    if (id <= array->id || id > array->id + array->ntasks || engine_job(requests->room.engine, id))
        return false;
    return ended || core_next_task(array, ordinal) != ordinal;
}

void waits_release_tasks(struct requests *requests, uint64_t array)
{
    const struct core_job *state = core_job(engine_core(requests->room.engine), array);
    size_t cursor = 0;
    for (struct waiters *waiters; state && state->ntasks && (waiters = map_next(&requests->waiting, &cursor));) {
        if (!task_gone(requests, state, waiters->job))
            continue;
        answer_with(waiters->first->request, record_now(requests->room.engine, waiters->job));
        cursor = 0; /* the map is another one */
    }
}

void waits_release(struct requests *requests, const struct engine_job *job)
{
    waits_release_tasks(requests, job->id);
    for (struct waiters *waiters; (waiters = map_get(&requests->waiting, job->id));)
        answer(waiters->first->request, job);
}
