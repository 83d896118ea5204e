/* client_query.c - asking for jobs: query, list, history, wait; with and without blocking. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "libelmer/client.h"

enum { ROUND_MS = 60000 /* elmer takes no more */, MARGIN_MS = 2000, EARLY_MS = 100, IDS_AT_ONCE = 4096 };

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

static struct elmer_call *make(struct elmer *elmer, const struct wire_message *request, struct client_filter filter)
{
    void *jobs = client_jobs_create(filter);
    const struct client_call call = {
        .take = client_jobs_take, .restart = client_jobs_restart, .then = then_jobs, .data = jobs};

    return client_call_create(elmer, request, &call, jobs, client_jobs_free);
}

/* data: the call. */
static int take_for_call(struct wire_message *answer, void *data)
{
    const struct elmer_call *call = data;

    return client_jobs_take(answer, call->answer);
}

/* ---- of more ids than one request has ---- */

static void ask_for(struct elmer_call *query, size_t from)
{
    size_t left = query->nids - from;

    query->request.u.query.jobs.items = query->ids + from;
    query->request.u.query.jobs.count = left < IDS_AT_ONCE ? left : IDS_AT_ONCE;
    query->asked = from + query->request.u.query.jobs.count;
}

static void restart_pieces(void *data)
{
    struct elmer_call *query = data;

    client_jobs_restart(query->answer);
    ask_for(query, 0);
}

static int then_next(struct client_call *call, int result)
{
    struct elmer_call *query = call->data;

    if (result == ELMER_OK && query->asked < query->nids) {
        ask_for(query, query->asked);
        client_call_goes_on(query->elmer, call);
        return CLIENT_ASK;
    }
    if (result == ELMER_OK && client_jobs_present(query->answer) < 0)
        return client_error(call->error, ELMER_FAILED, "out of memory");
    return result;
}

static struct elmer_call *in_pieces(struct elmer_call *query, const uint64_t *ids, size_t nids)
{
    query->ids = calloc(nids, sizeof(*ids));
    if (!query->ids) {
        elmer_call_free(query);
        return NULL;
    }
    memcpy(query->ids, ids, nids * sizeof(*ids));
    query->nids = nids;
    query->asked = IDS_AT_ONCE;
    query->call.data = query;
    query->call.take = take_for_call;
    query->call.restart = restart_pieces;
    query->call.then = then_next;
    return query;
}

static struct elmer_call *query(struct elmer *elmer, bool running, bool queued, const uint64_t *ids, size_t nids)
{
    struct client_filter filter = {.running = running, .queued = queued, .any = nids > 0 && !running && !queued};
    struct wire_message request = {.type = WIRE_query,
                                   .u.query = {.running = running || filter.any, .queued = queued || filter.any}};
    struct elmer_call *made;

    request.u.query.jobs.items = (uint64_t *)(uintptr_t)ids; /* read only */
    request.u.query.jobs.count = nids < IDS_AT_ONCE ? nids : IDS_AT_ONCE;
    made = make(elmer, &request, filter);
    return made && nids > IDS_AT_ONCE ? in_pieces(made, ids, nids) : made;
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

/* ---- waiting ---- */

/* Until when elmer may wait in this round; at most to until_ms. */
static void set_round(struct elmer_call *wait, int64_t until_ms)
{
    int64_t now = mono_ms(mono_now()), left = until_ms > now ? until_ms - now : 0;
    uint64_t round = (uint64_t)(left < ROUND_MS ? left : ROUND_MS);

    wait->round_ends_ms = now + (int64_t)round;
    if (wait->request.type == WIRE_wait)
        wait->request.u.wait.timeout_ms = round;
    else
        wait->request.u.wait_any.timeout_ms = round;
}

static void restart_wait(void *data)
{
    struct elmer_call *wait = data;

    client_jobs_restart(wait->answer);
    set_round(wait, wait->call.deadline_ms - wait->margin_ms);
}

/* A wait that is longer than a round goes on. One that was answered before the end of its round does not: an elmer that
 * does so would be asked without a pause. */
static int then_ended(struct client_call *call, int result)
{
    struct elmer_call *wait = call->data;
    const struct elmer_jobs *jobs = wait->answer;
    const struct wire_message *request = &wait->request;
    uint64_t job = request->type == WIRE_wait ? request->u.wait.job : request->u.wait_any.jobs.items[0];
    int64_t now = mono_ms(mono_now());
    bool over = now + EARLY_MS < wait->round_ends_ms || now >= call->deadline_ms - wait->margin_ms;

    if (result != ELMER_OK)
        return result;
    if (client_jobs_present(wait->answer) < 0)
        return client_error(call->error, ELMER_FAILED, "out of memory");
    if (jobs->count != 1)
        return client_error(call->error, ELMER_NO_SUCH_JOB, "there is no job %llu", (unsigned long long)job);
    if (over || elmer_job_ended(&jobs->items[0]))
        return ELMER_OK;
    restart_wait(wait);
    return CLIENT_ASK;
}

/* Elmer answers before the call is over: the answer needs time to come. */
static struct elmer_call *wait_for(struct elmer *elmer, const uint64_t *ids, size_t nids, int timeout_ms)
{
    void *jobs = client_jobs_create((struct client_filter){.any = true});
    const struct client_call call = {.take = take_for_call, .restart = restart_wait, .then = then_ended};
    struct wire_message request;
    struct elmer_call *wait;

    if (nids == 1) { /* which every elmer understands */
        request = (struct wire_message){.type = WIRE_wait, .u.wait.job = ids[0]};
    } else {
        request = (struct wire_message){.type = WIRE_wait_any};
        request.u.wait_any.jobs.items = (uint64_t *)(uintptr_t)ids; /* read only */
        request.u.wait_any.jobs.count = nids;
    }
    wait = client_call_create(elmer, &request, &call, jobs, client_jobs_free);
    if (!wait)
        return NULL;
    wait->call.data = wait;
    wait->waits = true;
    wait->margin_ms = timeout_ms < 4 * MARGIN_MS ? timeout_ms / 4 : MARGIN_MS;
    set_round(wait, mono_ms(mono_now()) + timeout_ms - wait->margin_ms);
    return wait;
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
