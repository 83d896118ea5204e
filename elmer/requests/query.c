/* query.c - lists of jobs, and the history.
 *
 * A query is answered in slices of up to 256 jobs, one slice in a turn of the loop, and only while the client (its
 * host, its user's other programs) takes what was sent: else it goes on when there is room, which its link says. Of a
 * client's queries the first is answered and the others wait for their turn. A slice becomes one or more pages, none
 * too large for a frame, all but the very last with `more`. Jobs named by id that are no longer in memory are read from
 * the store between two slices; a task of an array that is not there either was cancelled before it was a job. A list
 * without ids walks the core by id and so keeps nothing: a job that changes or ends meanwhile is shown as it is when
 * its turn comes. The history is read from the store, slice by slice. What was asked for one job is a list of one.
 *
 * A list is one request, and costs as much as thousands of others. So what goes into lists is counted in CPU time, and
 * who asks for list after list waits for the next slice (work.c). */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/requests/internal.h"
#include "elmer/requests/view.h"
#include "elmer/store/store.h"
#include "lib/base/container.h"

enum { SLICE = QUERY_SLICE, SCAN = 20000, SLICE_BYTES = 4 << 20, READ_BYTES = 512 << 10 };

static void step(struct request *request);

static void on_again(struct deadline *deadline)
{
    step(CONTAINER_OF(deadline, struct request, deadline));
}

void query_go_on(struct request *request, int64_t in_ms)
{
    request->holder = HOLDER_QUERY;
    request->deadline.fire = on_again;
    deadline_set(request->requests->room.deadlines, &request->deadline, engine_now_ms() + in_ms);
}

/* ---- turns ---- */

static void take_turn(struct request *request)
{
    struct client *client = request->client;
    request->turn_of = client;
    *client->last_turn = request;
    client->last_turn = &request->next_turn;
}

void query_leave_turn(struct request *request)
{
    struct client *client = request->turn_of;
    struct request **at;
    if (!client)
        return;
    bool first = client->turns == request;
    for (at = &client->turns; *at != request;)
        at = &(*at)->next_turn;
    *at = request->next_turn;
    if (!*at)
        client->last_turn = at;
    request->turn_of = NULL;
    if (first && client->turns)
        query_go_on(client->turns, 0);
}

void query_room(struct client *client)
{
    if (client->turns && client->turns->holder == HOLDER_QUERY)
        query_go_on(client->turns, 0);
}

/* Room for what is read from the store, until it is sent; false: the request has ended. */
static bool begin_read(struct request *request)
{
    char text[QUOTA_TEXT];
    if (!client_keep(request->client, READ_BYTES, text)) {
        request_error(request, WIRE_CODE_REFUSED, "%s", text);
        return false;
    }
    request->reads = true;
    request->holder = HOLDER_STORE;
    return true;
}

static void end_read(struct request *request)
{
    if (request->reads)
        clients_give(request->requests->clients, request->quota, READ_BYTES);
    request->reads = false;
}

/* ---- pages ---- */

static void send_page(struct request *request, struct wire_job_view *views, size_t count, bool more)
{
    struct wire_message message = {.type = WIRE_jobs, .id = request->id};
    message.u.jobs.jobs.items = views;
    message.u.jobs.jobs.count = count;
    message.u.jobs.more = more;
    request_send(request, &message);
}

/* Sends at least one page. */
void query_send(struct request *request, struct record *const *records, size_t count, bool more)
{
    struct arena memory = {0};
    struct wire_job_view *views = arena_array(&memory, count, sizeof(*views));
    size_t first = 0, cost = 0;
    for (size_t i = 0; i < count; i++) {
        view_of(records[i], request->requests->settings->levels, request_sees(request, records[i]->uid), &memory,
                &views[i]);
        size_t this = view_cost(&views[i]);
        if (i > first && cost + this > VIEW_PAGE_COST) {
            send_page(request, views + first, i - first, true);
            first = i;
            cost = 0;
        }
        cost += this;
    }
    send_page(request, views + first, count - first, more);
    arena_fini(&memory);
}

static void free_records(struct record **records, size_t count)
{
    for (size_t i = 0; i < count; i++)
        record_destroy(records[i]);
}

/* ---- lists ---- */

/* As users see it now: a final state is not shown before it is on disk. */
static bool wanted(const struct request *request, const struct engine_job *job, const struct core_job *state)
{
    if (job->refused || state->notice) /* there is no such job; the page of the one that it tells about has it */
        return false;
    const bool lines = request->type == WIRE_query_lines;
    const bool queued = lines ? request->message.u.query_lines.queued : request->message.u.query.queued;
    const bool running = lines ? request->message.u.query_lines.running : request->message.u.query.running;
    if (state->state == JOB_QUEUED || state->state == JOB_HELD)
        return queued;
    if (state->state == JOB_STARTED) /* its tasks are there */
        return running && !lines;
    if (state->state == JOB_DONE || state->state == JOB_CANCELLED)
        return running && !engine_job_settled(request->requests->room.engine, job);
    return running && job_state_has_cluster(state->state);
}

/* The next jobs that are wanted; *more: there may be others. */
static size_t next_jobs(struct request *request, const struct engine_job **jobs, bool *more)
{
    struct engine *engine = request->requests->room.engine;
    const struct core_job *state = NULL;
    size_t count = 0, bytes = 0;
    for (int scanned = 0; count < SLICE && bytes < SLICE_BYTES && scanned < SCAN &&
                          (state = core_next_job(engine_core(engine), &request->cursor));
         scanned++) {
        const struct engine_job *job = engine_job(engine, state->id);
        if (!job || !wanted(request, job, state))
            continue;
        jobs[count++] = job;
        bytes += job_bytes(job);
    }
    *more = state != NULL;
    return count;
}

static void send_jobs(struct request *request, const struct engine_job *const *jobs, size_t count, bool more)
{
    struct record *records[SLICE] = {0};
    for (size_t i = 0; i < count; i++)
        records[i] = engine_record(request->requests->room.engine, jobs[i]);
    query_send(request, records, count, more);
    free_records(records, count);
}

static void list_slice(struct request *request)
{
    const struct engine_job *jobs[SLICE];
    bool more;
    size_t count = next_jobs(request, jobs, &more);
    if ((count || !more) && request->type == WIRE_query_lines)
        lines_send(request, jobs, count, more);
    else if (count || !more)
        send_jobs(request, jobs, count, more);
    if (more)
        query_go_on(request, 0);
    else
        request_end(request);
}

/* ---- by id ---- */

static void finish_ids(struct request *request)
{
    bool more = request->next_id < request->message.u.query.jobs.count;
    struct record **records = request->found;
    size_t count = request->nfound;
    request->found = NULL;
    request->nfound = 0;
    query_send(request, records, count, more);
    free_records(records, count);
    free(records);
    if (more)
        query_go_on(request, 0);
    else
        request_end(request);
}

static bool is_found(const struct request *request, uint64_t id)
{
    for (size_t i = 0; i < request->nfound; i++)
        if (request->found[i]->id == id)
            return true;
    return false;
}

/* Of the slice that has been read. */
static void add_cancelled(struct request *request)
{
    const uint64_t *ids = request->message.u.query.jobs.items;
    for (size_t i = (request->next_id - 1) / SLICE * SLICE; i < request->next_id; i++) {
        struct record *record =
            is_found(request, ids[i]) ? NULL : tasks_cancelled(request->requests->room.engine, ids[i]);
        if (record)
            request->found[request->nfound++] = record;
    }
}

static void take_read(struct request *request, struct record **records, size_t count, const char *error)
{
    end_read(request);
    request->holder = HOLDER_NONE;
    if (!request->client || error) {
        free_records(records, count);
        request_error(request, WIRE_CODE_UNAVAILABLE, "elmer cannot read its store: %s; try again", error ? error : "");
        return;
    }
    for (size_t i = 0; i < count; i++)
        request->found[request->nfound++] = records[i];
    add_cancelled(request);
    finish_ids(request);
}

static void on_read(struct record **records, size_t count, const char *error, void *data)
{
    struct request *request = data;
    const struct work work = work_begin(request);
    take_read(request, records, count, error);
    work_end(&work);
}

static void ids_slice(struct request *request)
{
    const struct wire_uints *ids = &request->message.u.query.jobs;
    struct engine *engine = request->requests->room.engine;
    uint64_t missing[SLICE];
    if (!begin_read(request))
        return;
    size_t nmissing = 0, end = ids->count - request->next_id > SLICE ? request->next_id + SLICE : ids->count;
    request->found = mem_array(SLICE, sizeof(struct record *));
    for (; request->next_id < end; request->next_id++) {
        uint64_t id = ids->items[request->next_id];
        const struct engine_job *job = engine_job(engine, id);
        struct record *task;
        if (job && !job->refused)
            request->found[request->nfound++] = engine_record(engine, job);
        else if ((task = tasks_waiting(engine, id)))
            request->found[request->nfound++] = task;
        else if (id && id < core_next_id(engine_core(engine)))
            missing[nmissing++] = id;
    }
    if (!nmissing) {
        end_read(request);
        request->holder = HOLDER_QUERY;
        finish_ids(request);
        return;
    }
    store_read(engine_store(engine), missing, nmissing, on_read, request);
}

/* ---- history ---- */

/* Takes notices out of the records, which are none to look for in a list; how many stay. */
static size_t drop_notices(struct record **records, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (records[i]->submit->notice)
            record_destroy(records[i]);
        else
            records[kept++] = records[i];
    return kept;
}

static void take_history(struct request *request, struct record **records, size_t count, const char *error)
{
    uint64_t left = request->message.u.history.count, last = count ? records[count - 1]->id : 0;
    bool full = count == SLICE || (left && count == left);
    count = error ? count : drop_notices(records, count);
    end_read(request);
    request->holder = HOLDER_NONE;
    if (!request->client || error) {
        request_error(request, WIRE_CODE_UNAVAILABLE, "elmer cannot read its store: %s; try again", error ? error : "");
    } else {
        bool more = full && (!left || count < left);
        query_send(request, records, count, more);
        if (more) {
            request->cursor = last;
            request->message.u.history.count = left ? left - count : 0;
            query_go_on(request, 0);
        } else {
            request_end(request);
        }
    }
    free_records(records, count);
}

static void on_history(struct record **records, size_t count, const char *error, void *data)
{
    struct request *request = data;
    const struct work work = work_begin(request);
    take_history(request, records, count, error);
    work_end(&work);
}

static void history_slice(struct request *request)
{
    const struct wire_history *history = &request->message.u.history;
    size_t count = history->count && history->count < SLICE ? (size_t)history->count : SLICE;
    if (!begin_read(request))
        return;
    store_read_history(engine_store(request->requests->room.engine), request->cursor ? request->cursor : INT64_MAX,
                       history->user, history->since_ms, count, on_history, request);
}

/* ---- what was asked for ---- */

/* Not its environment, nor what proves that it was asked: whoever asks again does so in his own name. */
static void send_asked(struct request *request, const struct wire_submit *submit, const char *user, uint32_t uid)
{
    struct wire_message message = {.type = WIRE_asked, .id = request->id};
    static_assert(sizeof(message.u.submit) == sizeof(message.u.asked), "both have JOB_SUBMIT_FIELDS");
    if (uid != request->uid) {
        request_error(request, WIRE_CODE_NOT_PERMITTED,
                      "job %" PRIu64 " belongs to %s: only its owner submits it again", request->job, user);
        return;
    }
    message.u.submit = *submit;
    message.u.asked.environment = (struct wire_strs){0};
    message.u.asked.token = message.u.asked.ticket = "";
    request_send(request, &message);
    request_end(request);
}

static void on_asked(struct record **records, size_t count, const char *error, void *data)
{
    struct request *request = data;
    end_read(request);
    request->holder = HOLDER_NONE;
    if (!request->client || error)
        request_error(request, WIRE_CODE_UNAVAILABLE, "elmer cannot read its store: %s; try again", error ? error : "");
    else if (count == 0)
        request_error(request, WIRE_CODE_NO_SUCH_JOB, "job %" PRIu64 " is not in the history any more", request->job);
    else
        send_asked(request, records[0]->submit, records[0]->user, records[0]->uid);
    free_records(records, count);
}

/* Of a task that has no row of its own that is its array's. */
static void asked_step(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    const struct core_job *array = core_array_of(engine_core(engine), request->job);
    const struct engine_job *job = engine_job(engine, request->job);
    if (!job && array)
        job = engine_job(engine, array->id);
    if (job && !job->refused)
        send_asked(request, job_submit(job), job->user, job->uid);
    else if (!request->job || request->job >= core_next_id(engine_core(engine)))
        request_error(request, WIRE_CODE_NO_SUCH_JOB, "there is no job %" PRIu64, request->job);
    else if (begin_read(request))
        store_read(engine_store(engine), &request->job, 1, on_asked, request);
}

static void make_slice(struct request *request)
{
    if (request->type == WIRE_query_asked)
        asked_step(request);
    else if (request->type == WIRE_history)
        history_slice(request);
    else if (request->type == WIRE_query && request->message.u.query.jobs.count)
        ids_slice(request);
    else
        list_slice(request);
}

static void step(struct request *request)
{
    const struct work work = work_begin(request);
    if (client_congested(request->client)) {
        work_leave(request);
        client_stall(request->client);
    } else if (!work_must_wait(request)) {
        make_slice(request);
        work_end(&work);
    }
}

void query_begin(struct request *request)
{
    request->holder = HOLDER_QUERY;
    take_turn(request);
    if (request->client->turns == request)
        step(request);
}

/* ---- the end of a request ---- */

void query_abandon(struct request *request)
{
    deadline_clear(request->requests->room.deadlines, &request->deadline);
    query_leave_turn(request);
    work_leave(request);
    end_read(request);
    wait_leave(request);
    free_records(request->found, request->nfound);
    free(request->found);
}
