/* client_verbs.c - what is done to a job that is there: cancel, kill, hold and the like. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/client.h"

/* What the second try of a request finds where the first has done it. */
enum trace { TRACE_NONE, TRACE_CANCELLED, TRACE_KILLED, TRACE_STARTED };

struct verb {
    struct elmer_error text;
    uint64_t job;
    enum trace trace;
    void *jobs;                /* what has become of the job: asked for after the request; NULL: not */
    struct elmer_error *error; /* the caller's meanwhile */
};

static void free_verb(void *data)
{
    struct verb *verb = data;

    if (verb->jobs)
        client_jobs_free(verb->jobs);
    free(verb);
}

static int take_done(struct wire_message *answer, void *data)
{
    struct verb *verb = data;

    if (answer->type != WIRE_done)
        return -EPROTO;
    client_error(&verb->text, 0, "%s", answer->u.done.text);
    return 0;
}

static bool has_trace(const struct elmer_job *job, enum trace trace)
{
    bool cancelled = strcmp(job->state, "cancelled") == 0;

    if (trace == TRACE_CANCELLED)
        return cancelled;
    if (trace == TRACE_KILLED)
        return strcmp(job->reason_code, "killed") == 0;
    return !cancelled && strcmp(job->state, "queued") != 0 && strcmp(job->state, "held") != 0;
}

/* The first try may have done it although its answer was lost: then the second finds the job in a state that the first
 * has made, and the job is asked for. */
static int then_verb(struct client_call *call, int result)
{
    struct verb *verb = ((struct elmer_call *)call)->answer;
    const struct elmer_jobs *jobs = verb->jobs;

    if (jobs) {
        call->error = verb->error;
        return result == ELMER_OK && client_jobs_present(verb->jobs) == 0 && jobs->count == 1 &&
                       has_trace(&jobs->items[0], verb->trace)
                   ? ELMER_OK
                   : ELMER_WRONG_STATE;
    }
    if (result != ELMER_WRONG_STATE || !call->repeated || verb->trace == TRACE_NONE)
        return result;
    verb->jobs = client_jobs_create((struct client_filter){.any = true});
    if (!verb->jobs)
        return result;
    verb->error = call->error;
    call->error = NULL; /* which keeps what the request has ended with */
    call->take = client_jobs_take;
    call->restart = client_jobs_restart;
    call->data = verb->jobs;
    *call->request = (struct wire_message){
        .type = WIRE_query, .memory = call->request->memory, .u.query = {.running = true, .queued = true}};
    call->request->u.query.jobs.items = &verb->job;
    call->request->u.query.jobs.count = 1;
    return CLIENT_ASK;
}

static struct elmer_call *make(struct elmer *elmer, const struct wire_message *request, uint64_t job, enum trace trace)
{
    struct verb *verb = calloc(1, sizeof(*verb));
    const struct client_call call = {.take = take_done, .then = then_verb, .data = verb};
    struct elmer_call *made;

    if (verb) {
        verb->job = job;
        verb->trace = trace;
    }
    made = client_call_create(elmer, request, &call, verb, free_verb);
    if (made)
        made->text = &verb->text;
    return made;
}

static int tell(struct elmer *elmer, struct wire_message *request, uint64_t job, enum trace trace, int timeout_ms,
                struct elmer_error *text, struct elmer_error *error)
{
    void *answer;
    int result = client_call_run(make(elmer, request, job, trace), timeout_ms, &answer, error);

    if (text)
        *text = answer ? ((struct verb *)answer)->text : (struct elmer_error){{0}};
    if (answer)
        free_verb(answer);
    return result;
}

int elmer_cancel(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text, struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_cancel, .u.cancel = {.job = job, .tasks = ""}};

    return tell(elmer, &request, job, TRACE_CANCELLED, timeout_ms, text, error);
}

int elmer_kill(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text, struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_kill, .u.kill = {.job = job, .tasks = ""}};

    return tell(elmer, &request, job, TRACE_KILLED, timeout_ms, text, error);
}

int elmer_signal(struct elmer *elmer, uint64_t job, int number, int timeout_ms, struct elmer_error *text,
                 struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_signal_job, .u.signal_job = {.job = job, .number = (uint64_t)number}};

    if (number < 1 || number > 64) {
        if (text)
            *text = (struct elmer_error){{0}};
        return client_error(error, ELMER_USAGE, "%d is no signal", number);
    }
    return tell(elmer, &request, job, TRACE_NONE, timeout_ms, text, error);
}

int elmer_hold(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text, struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_hold, .u.hold = {.job = job, .tasks = ""}};

    return tell(elmer, &request, job, TRACE_NONE, timeout_ms, text, error);
}

int elmer_release(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text,
                  struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_release, .u.release = {.job = job, .tasks = ""}};

    return tell(elmer, &request, job, TRACE_STARTED, timeout_ms, text, error);
}

int elmer_top(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text, struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_top, .u.top = {.job = job, .tasks = ""}};

    return tell(elmer, &request, job, TRACE_STARTED, timeout_ms, text, error);
}

/* ---- tasks of an array ---- */

int elmer_cancel_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_error *text,
                       struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_cancel, .u.cancel = {.job = array, .tasks = tasks}};

    return tell(elmer, &request, array, TRACE_NONE, timeout_ms, text, error);
}

int elmer_kill_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_error *text,
                     struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_kill, .u.kill = {.job = array, .tasks = tasks}};

    return tell(elmer, &request, array, TRACE_NONE, timeout_ms, text, error);
}

int elmer_hold_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_error *text,
                     struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_hold, .u.hold = {.job = array, .tasks = tasks}};

    return tell(elmer, &request, array, TRACE_NONE, timeout_ms, text, error);
}

int elmer_release_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms,
                        struct elmer_error *text, struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_release, .u.release = {.job = array, .tasks = tasks}};

    return tell(elmer, &request, array, TRACE_NONE, timeout_ms, text, error);
}

int elmer_top_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_error *text,
                    struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_top, .u.top = {.job = array, .tasks = tasks}};

    return tell(elmer, &request, array, TRACE_NONE, timeout_ms, text, error);
}

/* ---- without blocking ---- */

#define BEGIN(name, traced)                                                                                            \
    int elmer_##name##_begin(struct elmer *elmer, uint64_t job, const char *tasks, int timeout_ms,                     \
                             struct elmer_call **call, struct elmer_error *error)                                      \
    {                                                                                                                  \
        const struct wire_message request = {.type = WIRE_##name,                                                      \
                                             .u.name = {.job = job, .tasks = tasks ? tasks : ""}};                     \
                                                                                                                       \
        return client_call_begin(make(elmer, &request, job, tasks ? TRACE_NONE : (traced)), timeout_ms, call, error);  \
    }

BEGIN(cancel, TRACE_CANCELLED)
BEGIN(kill, TRACE_KILLED)
BEGIN(hold, TRACE_NONE)
BEGIN(release, TRACE_STARTED)
BEGIN(top, TRACE_STARTED)

int elmer_signal_begin(struct elmer *elmer, uint64_t job, int number, int timeout_ms, struct elmer_call **call,
                       struct elmer_error *error)
{
    const struct wire_message request = {.type = WIRE_signal_job,
                                         .u.signal_job = {.job = job, .number = (uint64_t)number}};

    *call = NULL;
    if (number < 1 || number > 64)
        return client_error(error, ELMER_USAGE, "%d is no signal", number);
    return client_call_begin(make(elmer, &request, job, TRACE_NONE), timeout_ms, call, error);
}
