/* decide.c - what a person decides about a job or a host, on its way to the core: with who he is and from where, so
 * that it stays as a line. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/requests/admin.h"
#include "lib/base/str.h"

enum { TOP_FREE = 1000, TOP_SHARE = 10 };

void decide_begin(const struct request *request, const char *what, struct decision *d)
{
    const struct engine_job *job = engine_job(request->requests->room.engine, request->job);
    char who[WHO_BYTES];
    *d = (struct decision){.job = request->job, .uid = request->uid};
    d->admin = request->admin && !(job && job->uid == request->uid);
    snprintf(d->what, sizeof(d->what), "%s", what);
    snprintf(d->user, sizeof(d->user), "%s", job ? job->user : "");
    snprintf(d->from, sizeof(d->from), "%s", client_host_name(request->client));
    snprintf(d->by, sizeof(d->by), "%s", verb_who(request, who));
    if (!*d->by)
        snprintf(d->by, sizeof(d->by), "uid:%u", (unsigned)request->uid);
}

/* ---- jobs ---- */

static const char *what_of(enum event_type type)
{
    return type == EVENT_CANCEL    ? "cancelled"
           : type == EVENT_KILL    ? "ended"
           : type == EVENT_HOLD    ? "held"
           : type == EVENT_RELEASE ? "released"
                                   : "moved";
}

void decide_job(struct request *request, enum event_type type)
{
    struct event event = {.type = type, .request = request->number, .job = request->job};
    const char *tasks = tasks_text_of(request);
    struct core_range *ranges;
    struct decision decision;
    event.u.by.uid = request->uid;
    event.u.by.admin = request->admin;
    if (tasks_fill(request, &event, &ranges)) {
        decide_begin(request, what_of(type), &decision);
        verb_sign(request, type, event.u.by.text);
        const char *reason = type == EVENT_KILL ? request->message.u.kill.reason : "";
        size_t used = *tasks ? (size_t)snprintf(decision.text, sizeof(decision.text), "tasks %.*s%s",
                                                *reason ? 90 : 150, tasks, *reason ? ": " : "")
                             : 0;
        str_printable(decision.text + used, sizeof(decision.text) - used, reason, strlen(reason));
        request->holder = HOLDER_CORE;
        engine_decide(request->requests->room.engine, &event, &decision);
    }
    free(ranges);
}

/* Moving a job costs as much as there is before it, and meanwhile nobody is served: a tenth of the time at most. In a
 * queue in which it costs next to nothing nobody is refused. */
void decide_top(struct request *request)
{
    struct requests *requests = request->requests;
    const struct core *core = engine_core(requests->room.engine);
    const struct core_job *job = core_job(core, request->job);
    int64_t begin_ms = engine_now_ms();
    job = job ? job : core_array_of(core, request->job); /* a task that waits in it */
    if (!job || job->ahead < TOP_FREE) {
        decide_job(request, EVENT_TOP);
        return;
    }
    if (begin_ms < requests->top_ms) {
        request_error(request, WIRE_CODE_UNAVAILABLE,
                      "elmer has moved another job a moment ago, which takes long in such a queue: try again");
        return;
    }
    decide_job(request, EVENT_TOP);
    requests->top_ms = engine_now_ms() + (TOP_SHARE - 1) * (engine_now_ms() - begin_ms);
}

/* ---- hosts ---- */

void decide_drain(struct request *request)
{
    const struct wire_drain *drain = &request->message.u.drain;
    int host = core_member_by_name(engine_core(request->requests->room.engine), drain->host);
    struct event event = {
        .type = drain->drained ? EVENT_DRAIN : EVENT_UNDRAIN, .request = request->number, .host = host};
    struct decision decision;
    if (!request->admin) {
        request_not_admin(request, "drain hosts");
    } else if (host < 0) {
        request_error(request, WIRE_CODE_REFUSED, "there is no host %s in the cluster", drain->host);
    } else {
        decide_begin(request, drain->drained ? "drained" : "resumed", &decision);
        snprintf(decision.host, sizeof(decision.host), "%s", drain->host);
        str_printable(decision.text, sizeof(decision.text), drain->reason, strlen(drain->reason));
        request->holder = HOLDER_CORE;
        engine_decide(request->requests->room.engine, &event, &decision);
    }
}

/* ---- what eadmin does itself ---- */

static bool may_be_noted(const char *what)
{
    static const char *const words[] = {"backed-up", "shut-down", "rebooted", "token-made", "initialised", "restored"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(what, words[i]) == 0)
            return true;
    return false;
}

void decide_note(struct request *request)
{
    const struct wire_note *note = &request->message.u.note;
    struct decision decision;
    if (!request->admin) {
        request_not_admin(request, "write into the log of what was decided");
    } else if (!may_be_noted(note->what)) {
        request_error(request, WIRE_CODE_REFUSED, "elmer does not note '%s': it is older than this eadmin", note->what);
    } else if (*note->host && core_member_by_name(engine_core(request->requests->room.engine), note->host) < 0) {
        request_error(request, WIRE_CODE_REFUSED, "there is no host %s in the cluster", note->host);
    } else {
        decide_begin(request, note->what, &decision);
        snprintf(decision.host, sizeof(decision.host), "%s", note->host);
        str_printable(decision.text, sizeof(decision.text), note->text, strlen(note->text));
        engine_note(request->requests->room.engine, &decision);
        request_done(request, "noted");
    }
}
