/* client_query.c - asking for jobs: query, list, history, wait; with and without blocking. */
#include "config.h"

#include <stdlib.h>

#include "libelmer/client.h"

/* A list of lines that somebody on the way does not know is asked for as whole jobs. */
static int then_jobs(struct client_call *call, int result)
{
    if (result == ELMER_FAILED && call->too_old && call->request->type == WIRE_query_lines &&
        client_jobs_whole(call->data)) {
        const struct wire_query_lines lines = call->request->u.query_lines;

        *call->request = (struct wire_message){.type = WIRE_query,
                                               .memory = call->request->memory,
                                               .u.query = {.running = lines.running, .queued = lines.queued}};
        return CLIENT_ASK;
    }
    if (result == ELMER_OK && client_jobs_present(call->data) < 0)
        return client_error(call->error, ELMER_FAILED, "out of memory");
    return result;
}

static int then_ended(struct client_call *call, int result)
{
    const struct elmer_jobs *jobs = call->data;
    uint64_t job =
        call->request->type == WIRE_wait ? call->request->u.wait.job : call->request->u.wait_any.jobs.items[0];

    result = then_jobs(call, result);
    if (result == ELMER_OK && jobs->count != 1)
        return client_error(call->error, ELMER_NO_SUCH_JOB, "there is no job %llu", (unsigned long long)job);
    return result;
}

static struct elmer_call *make(struct elmer *elmer, const struct wire_message *request, struct client_filter filter)
{
    void *jobs = client_jobs_create(filter);
    bool waits = request->type == WIRE_wait || request->type == WIRE_wait_any;
    const struct client_call call = {
        .take = client_jobs_take, .restart = client_jobs_restart, .then = waits ? then_ended : then_jobs, .data = jobs};
    struct elmer_call *made = client_call_create(elmer, request, &call, jobs, client_jobs_free);

    if (made)
        made->waits = waits;
    return made;
}

static struct elmer_call *query(struct elmer *elmer, bool running, bool queued, const uint64_t *ids, size_t nids)
{
    struct client_filter filter = {.running = running, .queued = queued, .any = nids > 0 && !running && !queued};
    struct wire_message request = {.type = WIRE_query,
                                   .u.query = {.running = running || filter.any, .queued = queued || filter.any}};

    request.u.query.jobs.items = (uint64_t *)(uintptr_t)ids; /* read only */
    request.u.query.jobs.count = nids;
    return make(elmer, &request, filter);
}

int elmer_query(struct elmer *elmer, bool running, bool queued, const uint64_t *ids, size_t nids, int timeout_ms,
                struct elmer_jobs **jobs, struct elmer_error *error)
{
    return client_call_run(query(elmer, running, queued, ids, nids), timeout_ms, (void **)jobs, error);
}

int elmer_query_begin(struct elmer *elmer, bool running, bool queued, const uint64_t *ids, size_t nids, int timeout_ms,
                      struct elmer_call **call, struct elmer_error *error)
{
    return client_call_begin(query(elmer, running, queued, ids, nids), timeout_ms, call, error);
}

static struct elmer_call *list(struct elmer *elmer, bool running, bool queued)
{
    const struct wire_message request = {.type = WIRE_query_lines,
                                         .u.query_lines = {.running = running, .queued = queued}};

    return make(elmer, &request, (struct client_filter){.running = running, .queued = queued, .lines = true});
}

int elmer_list(struct elmer *elmer, bool running, bool queued, int timeout_ms, struct elmer_jobs **jobs,
               struct elmer_error *error)
{
    return client_call_run(list(elmer, running, queued), timeout_ms, (void **)jobs, error);
}

int elmer_list_begin(struct elmer *elmer, bool running, bool queued, int timeout_ms, struct elmer_call **call,
                     struct elmer_error *error)
{
    return client_call_begin(list(elmer, running, queued), timeout_ms, call, error);
}

static struct elmer_call *history(struct elmer *elmer, const char *user, int64_t since_ms, size_t count)
{
    const struct wire_message request = {.type = WIRE_history,
                                         .u.history = {.user = user ? user : "",
                                                       .count = count > UINT32_MAX ? UINT32_MAX : count,
                                                       .since_ms = since_ms > 0 ? since_ms : 0}};

    return make(elmer, &request, (struct client_filter){.any = true, .latest_first = true, .since_ms = since_ms});
}

int elmer_history(struct elmer *elmer, const char *user, size_t count, int timeout_ms, struct elmer_jobs **jobs,
                  struct elmer_error *error)
{
    return client_call_run(history(elmer, user, 0, count), timeout_ms, (void **)jobs, error);
}

int elmer_history_begin(struct elmer *elmer, const char *user, size_t count, int timeout_ms, struct elmer_call **call,
                        struct elmer_error *error)
{
    return client_call_begin(history(elmer, user, 0, count), timeout_ms, call, error);
}

int elmer_history_since(struct elmer *elmer, const char *user, int64_t since_ms, size_t count, int timeout_ms,
                        struct elmer_jobs **jobs, struct elmer_error *error)
{
    return client_call_run(history(elmer, user, since_ms, count), timeout_ms, (void **)jobs, error);
}

int elmer_history_since_begin(struct elmer *elmer, const char *user, int64_t since_ms, size_t count, int timeout_ms,
                              struct elmer_call **call, struct elmer_error *error)
{
    return client_call_begin(history(elmer, user, since_ms, count), timeout_ms, call, error);
}

/* Elmer answers before the call is over: there must be time for the answer to come. */
static uint64_t answer_within(int timeout_ms)
{
    int margin = 2000 + timeout_ms / 4;

    if (margin > timeout_ms)
        margin = timeout_ms;
    return (uint64_t)(timeout_ms - margin > 60000 ? 60000 : timeout_ms - margin);
}

static struct elmer_call *wait_for(struct elmer *elmer, const uint64_t *ids, size_t nids, int timeout_ms)
{
    struct wire_message request;

    if (nids == 1) { /* which every elmer understands */
        request = (struct wire_message){.type = WIRE_wait,
                                        .u.wait = {.job = ids[0], .timeout_ms = answer_within(timeout_ms)}};
    } else {
        request = (struct wire_message){.type = WIRE_wait_any, .u.wait_any.timeout_ms = answer_within(timeout_ms)};
        request.u.wait_any.jobs.items = (uint64_t *)(uintptr_t)ids; /* read only */
        request.u.wait_any.jobs.count = nids;
    }
    return make(elmer, &request, (struct client_filter){.any = true});
}

static int check_count(size_t nids, struct elmer_error *error)
{
    if (nids < 1 || nids > 256)
        return client_error(error, ELMER_USAGE, "one can wait for the first of 1 to 256 jobs, not of %zu", nids);
    return ELMER_OK;
}

int elmer_wait(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_jobs **jobs, struct elmer_error *error)
{
    return client_call_run(wait_for(elmer, &job, 1, timeout_ms), timeout_ms, (void **)jobs, error);
}

int elmer_wait_any(struct elmer *elmer, const uint64_t *ids, size_t nids, int timeout_ms, struct elmer_jobs **jobs,
                   struct elmer_error *error)
{
    int result = check_count(nids, error);

    *jobs = NULL;
    if (result != ELMER_OK)
        return result;
    return client_call_run(wait_for(elmer, ids, nids, timeout_ms), timeout_ms, (void **)jobs, error);
}

int elmer_wait_any_begin(struct elmer *elmer, const uint64_t *ids, size_t nids, int timeout_ms,
                         struct elmer_call **call, struct elmer_error *error)
{
    int result = check_count(nids, error);

    *call = NULL;
    if (result != ELMER_OK)
        return result;
    return client_call_begin(wait_for(elmer, ids, nids, timeout_ms), timeout_ms, call, error);
}

struct elmer_jobs *elmer_call_jobs(struct elmer_call *call)
{
    return client_call_answer(call, client_jobs_free);
}
