/* output.c - read_output: a part of what a process of a job has written, from the host that runs it.
 *
 * The supervisor of the job there reads it as the job's user, and answers with the number of the request. Only the
 * owner may ask, not even an administrator: what is read are the user's files. Of a job that does not run nobody holds
 * its files any more. No answer in time: the client asks again, nothing is changed by it. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "elmer/requests/internal.h"
#include "elmer/requests/view.h"
#include "lib/base/container.h"
#include "lib/base/str.h"

enum { WAIT_MS = 5000 };

static void on_timeout(struct deadline *deadline)
{
    struct request *request = CONTAINER_OF(deadline, struct request, deadline);
    request->holder = HOLDER_NONE;
    request_error(request, WIRE_CODE_UNAVAILABLE, "the host of the output has not answered in time: try again");
}

/* A task that waits in its array has no output yet. false: it is none. */
static bool refused_as_task(struct request *request, uint64_t id)
{
    struct engine *engine = request->requests->room.engine;
    const struct core_job *state = core_array_of(engine_core(engine), id);
    const struct engine_job *array = state ? engine_job(engine, state->id) : NULL;
    uint32_t ordinal = state ? (uint32_t)(id - state->id) - 1 : 0;
    if (!array || array->refused || core_next_task(state, ordinal) != ordinal)
        return false;
    if (array->uid != request->uid)
        request_error(request, WIRE_CODE_NOT_PERMITTED,
                      "job %" PRIu64 " belongs to %s: only its owner reads its output", id, array->user);
    else
        request_error(request, WIRE_CODE_WRONG_STATE, "job %" PRIu64 " is %s", id, view_state(state->state));
    return true;
}

/* It cannot be read for a reason that does not pass; the request has ended. */
static bool refused(struct request *request, const struct engine_job *job, const struct core_job *state)
{
    const struct wire_read_output *read = &request->message.u.read_output;
    uint32_t ranks = state && job_submit(job)->each ? state->nprocs : 1;
    if (!job && refused_as_task(request, read->job))
        return true;
    if (!job || job->refused) {
        request_no_job(request, read->job);
    } else if (job->uid != request->uid) {
        request_error(request, WIRE_CODE_NOT_PERMITTED,
                      "job %" PRIu64 " belongs to %s: only its owner reads its output", read->job, job->user);
    } else if (!state || state->state != JOB_RUNNING) {
        request_error(request, WIRE_CODE_WRONG_STATE, "job %" PRIu64 " is %s", read->job,
                      view_state(state ? state->state : JOB_DONE));
    } else if (read->rank >= ranks) {
        request_error(request, WIRE_CODE_REFUSED,
                      "job %" PRIu64 " has no rank %" PRIu64 ": its ranks are 0 to %" PRIu32, read->job, read->rank,
                      ranks - 1);
    } else {
        return false;
    }
    return true;
}

void output_begin(struct request *request)
{
    struct requests *requests = request->requests;
    const struct wire_read_output *read = &request->message.u.read_output;
    const struct engine_job *job = engine_job(requests->room.engine, read->job);
    const struct core_job *state = job ? core_job(engine_core(requests->room.engine), read->job) : NULL;
    if (refused(request, job, state))
        return;
    int host = state->processors[read->rank].host;
    struct wire_message message = {.type = WIRE_read_file,
                                   .id = request->number,
                                   .u.read_file = {.job = read->job,
                                                   .attempt = state->attempt,
                                                   .process = read->rank,
                                                   .errors = read->errors,
                                                   .offset = read->offset}};
    const char *name = engine_host_name(requests->room.engine, host);
    unsigned minor = hosts_minor(requests->hosts, host);
    if (minor > 0 && minor < WIRE_READ_MINOR) {
        request_error(request, WIRE_CODE_REFUSED, "the rsd of %s is too old (version %d.%u): upgrade it there", name,
                      WIRE_MAJOR, minor);
    } else if (!minor || !hosts_send(requests->hosts, host, &message)) {
        request_error(request, WIRE_CODE_UNAVAILABLE, "%s, where the output is, has no link now: try again", name);
    } else {
        request->host = host;
        request->holder = HOLDER_HOST;
        request->deadline.fire = on_timeout;
        deadline_set(requests->room.deadlines, &request->deadline, engine_now_ms() + WAIT_MS);
    }
}

void output_abandon(struct request *request)
{
    deadline_clear(request->requests->room.deadlines, &request->deadline);
    request_end(request);
}

/* What a host says is believed of its own part only: it must be the one that was asked, about this job. */
void requests_file_part(struct requests *requests, int host, const struct wire_message *message)
{
    const struct wire_file_part *part = &message->u.file_part;
    struct request *request = requests_find(requests, message->id);
    if (!request || request->type != WIRE_read_output || request->holder != HOLDER_HOST || request->host != host ||
        request->job != part->job)
        return;
    deadline_clear(requests->room.deadlines, &request->deadline);
    request->holder = HOLDER_NONE;
    if (*part->text) {
        char text[1000];
        request_error(request, part->again ? WIRE_CODE_UNAVAILABLE : WIRE_CODE_REFUSED, "%s: %s",
                      engine_host_name(requests->room.engine, host),
                      str_printable(text, sizeof(text), part->text, strlen(part->text)));
        return;
    }
    struct wire_message answer = {.type = WIRE_output_part,
                                  .id = request->id,
                                  .u.output_part = {.offset = part->offset, .size = part->size, .data = part->data}};
    request_send(request, &answer);
    request_end(request);
}
