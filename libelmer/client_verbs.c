/* client_verbs.c - what is done to a job that is there: cancel, kill, hold and the like. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "libelmer/client.h"

/* What the second try of a request finds where the first has done it. */
enum trace { TRACE_NONE, TRACE_CANCELLED, TRACE_KILLED, TRACE_STARTED };

struct text {
    struct elmer_error *text;
};

static int take_done(struct wire_message *answer, void *data)
{
    struct text *text = data;

    if (answer->type != WIRE_done)
        return -EPROTO;
    client_error(text->text, 0, "%s", answer->u.done.text);
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
 * has made. */
static bool was_done(struct elmer *elmer, uint64_t id, enum trace trace, int timeout_ms)
{
    struct elmer_jobs *jobs;
    bool yes;

    if (trace == TRACE_NONE || elmer_query(elmer, false, false, &id, 1, timeout_ms, &jobs, NULL) != ELMER_OK || !jobs)
        return false;
    yes = jobs->count == 1 && has_trace(&jobs->items[0], trace);
    elmer_jobs_free(jobs);
    return yes;
}

static int tell(struct elmer *elmer, struct wire_message *request, uint64_t job, enum trace trace, int timeout_ms,
                struct elmer_error *text, struct elmer_error *error)
{
    struct text answer = {text};
    struct client_call call = {.take = take_done, .data = &answer};
    int result;

    if (text)
        text->text[0] = '\0';
    result = client_call(elmer, request, &call, timeout_ms, error);
    if (result == ELMER_WRONG_STATE && call.repeated && was_done(elmer, job, trace, timeout_ms))
        return ELMER_OK;
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

    if (number < 1 || number > 64)
        return client_error(error, ELMER_USAGE, "%d is no signal", number);
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
