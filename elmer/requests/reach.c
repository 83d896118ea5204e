/* reach.c - the message reach: a process of a job asks where the courier of one of its hosts listens, or a process of
 * its user where its terminal is. What it gets is an address; that it may have something started there, or see that
 * terminal, says its pass, to the courier or what holds the terminal. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "elmer/requests/internal.h"

static void fail(struct request *request, const char *failure)
{
    const struct wire_reach *reach = &request->message.u.reach;
    if (reach->terminal)
        request_error(request, WIRE_CODE_UNAVAILABLE, "the terminal of job %" PRIu64 " cannot be reached: %s",
                      request->job, failure);
    else
        request_error(request, WIRE_CODE_UNAVAILABLE, "nothing of job %" PRIu64 " can be started on %s: %s",
                      request->job, reach->host, failure);
}

/* The queue host's own rsd has no TCP link, so none says its address: another host sees elmer at this one. */
static const char *queue_address(const struct requests *requests, const char *from)
{
    int host = core_host_by_name(engine_core(requests->room.engine), from);
    return host < 0 ? "" : hosts_local_address(requests->hosts, host);
}

static void on_reached(uint64_t number, const struct launches_reached *reached, void *data)
{
    struct request *request = requests_find(data, number);
    if (!request)
        return;
    struct wire_message message = {.type = WIRE_reached, .id = request->id};
    const char *name = engine_host_name(request->requests->room.engine, reached->place);
    const char *from = request->client ? client_host_name(request->client) : "";
    bool here = strcmp(from, name) == 0;
    const char *address = here ? "" : reached->address;
    if (!here && !*address && strcmp(name, request->requests->settings->queue_host) == 0)
        address = queue_address(request->requests, from);
    message.u.reached.attempt = reached->attempt;
    message.u.reached.address = address;
    message.u.reached.port = reached->port;
    message.u.reached.host = name;
    if (reached->failure) {
        fail(request, reached->failure);
    } else if (!here && !*address) {
        fail(request, "elmer does not know its address; give it in elmer.conf");
    } else {
        request_send(request, &message);
        request_end(request);
    }
}

static void reach_terminal(struct request *request, const struct engine_job *job)
{
    const char *refusal;
    if (!*job_submit(job)->terminal) {
        request_error(request, WIRE_CODE_REFUSED,
                      "job %" PRIu64 " has no terminal: it was submitted without --pty; etail shows its output",
                      request->job);
        return;
    }
    request->holder = HOLDER_CORE;
    refusal = launches_reach_terminal(request->requests->launches, request->job, request->number);
    if (refusal)
        request_error(request, WIRE_CODE_WRONG_STATE, "the terminal of job %" PRIu64 " cannot be seen: %s",
                      request->job, refusal);
}

void reach_begin(struct request *request)
{
    struct requests *requests = request->requests;
    const struct wire_reach *reach = &request->message.u.reach;
    const struct engine_job *job = engine_job(requests->room.engine, request->job);
    const struct core *core = engine_core(requests->room.engine);
    const int from = request->client ? core_host_by_name(core, client_host_name(request->client)) : -1;
    const char *refusal;
    if (!job) {
        request_error(request, WIRE_CODE_NO_SUCH_JOB, "there is no job %" PRIu64 " that runs", request->job);
        return;
    }
    if (job->uid != request->uid) {
        request_error(request, WIRE_CODE_NOT_PERMITTED, "job %" PRIu64 " belongs to %s: %s", request->job, job->user,
                      reach->terminal ? "only he may see its terminal" : "only its own processes may do this");
        return;
    }
    if (reach->terminal) {
        reach_terminal(request, job);
        return;
    }
    request->holder = HOLDER_CORE;
    refusal = launches_reach(requests->launches, request->job, from, core_host_by_name(core, reach->host),
                             (uint16_t)reach->gone, request->number);
    if (refusal)
        fail(request, refusal);
}

void reach_connect(struct requests *requests)
{
    launches_connect(requests->launches, on_reached, requests);
}
