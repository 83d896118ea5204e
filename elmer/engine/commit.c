/* commit.c - answers, opens, starts and acknowledgements wait here for the commit of what they follow from, in order,
 * but the answers of a commit go first. */
#include "config.h"

#include "elmer/engine/commit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/hosts/hosts.h"
#include "elmer/membership/join.h"
#include "elmer/launch/launch.h"
#include "elmer/requests/requests.h"
#include "lib/base/log.h"

static bool job_is(struct daemon *d, uint64_t id, uint32_t attempt, enum job_state state)
{
    const struct core_job *job = core_job(d->core, id);
    return job && job->attempt == attempt && job->state == state;
}

/* It has come back with another rsd since that was decided. */
static void refuse_lease(struct daemon *d, const struct deferred *w)
{
    char text[400];
    snprintf(
        text, sizeof(text),
        "%s: its rsd speaks version %d.%u and cannot hold the lease of a job with --requeue, which came with %d.%d: "
        "upgrade it",
        core_host(d->core, w->host)->name, WIRE_MAJOR, hosts_minor(d->hosts, w->host), WIRE_MAJOR, WIRE_LEASE_MINOR);
    struct event event = {.type = EVENT_OPEN_FAILED, .host = w->host, .job = w->job, .attempt = w->attempt};
    event.u.failed.reason = REASON_START_FAILED;
    event.u.failed.text = text;
    daemon_event(d, &event);
}

static void send_open(struct daemon *d, const struct deferred *w)
{
    const struct job *job = jobs_find(&d->jobs, w->job);
    if (!job || !job_is(d, w->job, w->attempt, JOB_STARTING))
        return; /* it has been ended meanwhile */
    if (w->lease_ms && hosts_facts(d->hosts, w->host).linked && hosts_minor(d->hosts, w->host) < WIRE_LEASE_MINOR) {
        refuse_lease(d, w);
        return;
    }
    struct wire_message message = {.type = WIRE_open};
    message.u.open.job = w->job;
    message.u.open.attempt = w->attempt;
    message.u.open.generation = w->generation;
    message.u.open.uid = job->uid;
    message.u.open.user = job->user;
    message.u.open.cpus = (struct wire_uints){w->cpus, w->ncpus};
    message.u.open.pvm = job_submit(job)->pvm;
    message.u.open.lease_ms = (uint64_t)w->lease_ms;
    hosts_send(d->hosts, w->host, &message);
}

static void send_taken(struct daemon *d, const struct deferred *w)
{
    struct wire_message message = {.type = WIRE_taken,
                                   .u.taken = {.job = w->job, .attempt = w->attempt, .process = w->rank}};
    hosts_send(d->hosts, w->host, &message);
}

static void send_forget(struct daemon *d, const struct deferred *w)
{
    struct wire_message message = {.type = WIRE_forget, .u.forget = {.job = w->job, .attempt = w->attempt}};
    hosts_send(d->hosts, w->host, &message);
}

static void settled(struct daemon *d, uint64_t id)
{
    struct job *job = jobs_find(&d->jobs, id);
    job->settled = true;
    waits_release(d, job);
    jobs_note_ended(&d->jobs, job);
    if (jobs_oldest(&d->jobs, JOBS_ENDED_KEPT))
        daemon_tidy_soon(d);
}

static void go_on(struct daemon *d, const struct deferred *w)
{
    struct job *job = jobs_find(&d->jobs, w->job);
    switch (w->kind) {
    case WAIT_ANSWER:
        requests_answered(d->requests, w->request, w->answer, w->job);
        break;
    case WAIT_SUBMITTED:
        requests_submitted(d->requests, w->request);
        break;
    case WAIT_OPEN:
        send_open(d, w);
        break;
    case WAIT_TAKEN:
        send_taken(d, w);
        break;
    case WAIT_FORGET:
        send_forget(d, w);
        break;
    case WAIT_SETTLED:
        settled(d, w->job);
        break;
    case WAIT_CERTIFICATE:
        joins_committed(d->joins, w->request);
        break;
    case WAIT_REMOVED:
        requests_removed(d->requests, w->request);
        break;
    case WAIT_LAUNCH:
        if (job)
            launch_begin(d, job);
        break;
    }
}

/* Nobody notices whether these come some milliseconds later, and then they are written together. */
static bool may_linger(struct daemon *d, const struct deferred *wait)
{
    const struct job *job = wait->kind == WAIT_SETTLED ? jobs_find(&d->jobs, wait->job) : NULL;
    return wait->kind == WAIT_TAKEN || wait->kind == WAIT_FORGET || (job && !job->waiting);
}

void later_put(struct daemon *d, const struct deferred *wait)
{
    uint64_t number = d->last_put;
    if (!d->deferred && store_committed(d->store) >= number) {
        go_on(d, wait);
        return;
    }
    if (!may_linger(d, wait))
        store_want(d->store, number);
    struct deferred *copy = mem_zalloc(sizeof(*copy));
    *copy = *wait;
    copy->number = number;
    copy->next = NULL;
    if (wait->ncpus)
        copy->cpus = memcpy(mem_array(wait->ncpus, sizeof(uint64_t)), wait->cpus, wait->ncpus * sizeof(uint64_t));
    *d->last_deferred = copy;
    d->last_deferred = &copy->next;
}

static void deferred_free(struct deferred *wait)
{
    free(wait->cpus);
    free(wait);
}

static bool is_answer(const struct deferred *wait)
{
    return wait->kind == WAIT_ANSWER || wait->kind == WAIT_SUBMITTED;
}

/* Take it out of the list, and do it. */
static void take(struct daemon *d, struct deferred **place)
{
    struct deferred *wait = *place;
    *place = wait->next;
    if (!*place)
        d->last_deferred = place;
    go_on(d, wait);
    deferred_free(wait);
}

/* Answers first: people wait for them, and the start of a job on many hosts takes a while to be sent. */
void later_commit(uint64_t number, void *data)
{
    struct daemon *d = data;
    d->stepping = true; /* what arises from one waits until the next has gone out */
    for (struct deferred **place = &d->deferred; *place && (*place)->number <= number;) {
        if (is_answer(*place))
            take(d, place);
        else
            place = &(*place)->next;
    }
    while (d->deferred && d->deferred->number <= number)
        take(d, &d->deferred);
    d->stepping = false;
    daemon_run_events(d);
}

void daemon_later(struct daemon *d, enum later what, uint64_t request, int host, uint64_t job, uint32_t attempt)
{
    static const enum wait_kind kinds[LATER_COUNT] = {[LATER_SUBMITTED] = WAIT_SUBMITTED,
                                                      [LATER_FORGET] = WAIT_FORGET,
                                                      [LATER_CERTIFICATE] = WAIT_CERTIFICATE,
                                                      [LATER_REMOVED] = WAIT_REMOVED};
    struct deferred wait = {.kind = kinds[what], .request = request, .host = host, .job = job, .attempt = attempt};
    later_put(d, &wait);
}

/* ---- the store fails ---- */

static void undo(struct daemon *d, uint64_t id)
{
    struct job *job = jobs_find(&d->jobs, id);
    const struct core_job *state = core_job(d->core, id);
    if (!job || !state || job->refused || daemon_job_accepted(d, job))
        return;
    job->refused = true;
    bool queued = state->state == JOB_QUEUED || state->state == JOB_HELD;
    struct event event = {
        .type = queued ? EVENT_CANCEL : EVENT_KILL, .job = id, .u.by = {.uid = job->uid, .admin = true}};
    daemon_event(d, &event);
}

void later_store_failure(const char *text, void *data)
{
    struct daemon *d = data;
    if (text && !d->store_failure) /* once, however often it is tried again */
        log_error("the store cannot be written: %s; new jobs are refused until it can", text);
    else if (!text && d->store_failure)
        log_notice("the store can be written again");
    free(d->store_failure);
    d->store_failure = text ? mem_format("elmer's store cannot be written: %s", text) : NULL;
    if (!text)
        return;
    for (struct deferred *wait = d->deferred; wait; wait = wait->next) {
        if (wait->kind != WAIT_ANSWER && wait->kind != WAIT_SUBMITTED)
            continue;
        struct job *job = jobs_find(&d->jobs, wait->job);
        if (job && daemon_job_accepted(d, job)) /* what fails is something else */
            requests_submitted(d->requests, wait->request);
        else if (requests_store_failed(d->requests, wait->request, d->store_failure))
            undo(d, wait->job);
    }
}

void later_fini(struct daemon *d)
{
    while (d->deferred) {
        struct deferred *wait = d->deferred;
        d->deferred = wait->next;
        deferred_free(wait);
    }
}
