/* verbs.c - what is done to a job that is no event of the core, and what is said of those that are. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elmer/requests/admin.h"

/* Who asks, as far as it is known: of an owner nobody was asked (needs_user()). "": not known. */
const char *verb_who(const struct request *request)
{
    const struct engine_job *job = engine_job(request->requests->room.engine, request->job);
    if (job && job->uid == request->uid)
        return job->user;
    if (request->client && *request->client->user)
        return request->client->user;
    return request->uid == 0 ? "root" : "";
}

void verb_sign(const struct request *request, enum event_type event, char text[CORE_BY_TEXT])
{
    const struct engine_job *job = engine_job(request->requests->room.engine, request->job);
    const char *name = verb_who(request);
    *text = 0;
    if (*name && event == EVENT_KILL)
        snprintf(text, CORE_BY_TEXT, "ended by ekill of %s", name);
    else if (*name && event == EVENT_CANCEL)
        snprintf(text, CORE_BY_TEXT, "removed from the queue by ecancel of %s", name);
    else if (*name && event == EVENT_HOLD && !(job && job->uid == request->uid))
        snprintf(text, CORE_BY_TEXT, "held by %s: it stays in the queue until it is released", name);
}

/* ---- a signal ---- */

static bool may(struct request *request, const struct engine_job *job)
{
    char text[700];
    if (request->admin || job->uid == request->uid)
        return true;
    request_error(request, WIRE_CODE_NOT_PERMITTED,
                  "job %" PRIu64 " belongs to %s: only its owner, and administrators (group %s), may do this%s",
                  request->job, job->user, request->requests->settings->admin_group,
                  request_how_to_rule(request, text, sizeof(text)));
    return false;
}

/* How many of its hosts get it; 0 or less: refused, and the request is gone. Those that have no link now do not. */
static int send_signal(struct request *request, const struct engine_job *job, int number, int *away)
{
    int sent = engine_signal(request->requests->room.engine, job->id, number, away);
    if (sent < 0)
        request_error(request, WIRE_CODE_WRONG_STATE, "job %" PRIu64 " does not run: no process of it can get a signal",
                      job->id);
    else if (!sent)
        request_error(request, WIRE_CODE_UNAVAILABLE, "no host of job %" PRIu64 " has a link now: try again", job->id);
    return sent;
}

void signal_begin(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    const struct wire_signal_job *signal = &request->message.u.signal_job;
    const struct engine_job *job = engine_job(engine, signal->job);
    const char *helpers = job ? launcher_needs(launcher_of(job_submit(job))) : NULL;
    int away = 0;
    if (!job || job->refused) {
        bool never = !signal->job || signal->job >= core_next_id(engine_core(engine));
        request_error(request, never ? WIRE_CODE_NO_SUCH_JOB : WIRE_CODE_WRONG_STATE,
                      never ? "there is no job %" PRIu64 : "job %" PRIu64 " has ended already", signal->job);
        return;
    }
    if (!may(request, job))
        return;
    if (helpers || !signal->number) {
        request_error(request, WIRE_CODE_REFUSED,
                      helpers ? "jobs with %s get no signals: its daemons would get them, too"
                              : "there is no signal %s",
                      helpers ? helpers : "0");
        return;
    }
    struct decision decision;
    decide_begin(request, "signalled", &decision);
    snprintf(decision.text, sizeof(decision.text), "signal %" PRIu64, signal->number);
    if (send_signal(request, job, (int)signal->number, &away) <= 0)
        return;
    engine_note(engine, &decision);
    if (away)
        request_done(request, "signal %" PRIu64 " is sent to job %" PRIu64 ", but not to %d of its hosts: no link",
                     signal->number, job->id, away);
    else
        request_done(request, "signal %" PRIu64 " is sent to job %" PRIu64, signal->number, job->id);
}
