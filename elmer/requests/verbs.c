/* verbs.c - what is done to a job that is no event of the core, and what is said of those that are. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elmer/requests/admin.h"
#include "elmer/requests/view.h"
#include "lib/base/str.h"
#include "lib/net/link.h"
#include "lib/wire/channel.h"

/* Who is root by sudo, as root of this host says on elmer's own socket; "": nobody, or it is not known. In lines and
 * reasons it stands in parentheses, so it has none. */
static const char *sudo_of(const struct request *request)
{
    const struct client *client = request->client;
    const char *said = client && client->link && client->uid == 0 ? link_peer_capability(client->link) : "";
    char printable[256];
    if (strncmp(said, WIRE_CAPABILITY_SUDO, strlen(WIRE_CAPABILITY_SUDO)) != 0)
        return "";
    said += strlen(WIRE_CAPABILITY_SUDO);
    if (strcmp(str_printable(printable, sizeof(printable), said, strlen(said)), said) != 0)
        return "";
    for (const char *c = said; *c; c++)
        if ((unsigned char)*c <= 0x20 || *c == 0x7f || strchr("()\"'", *c))
            return "";
    return said;
}

/* Who asks, as far as it is known: of an owner nobody was asked (needs_user()). "": not known. */
const char *verb_who(const struct request *request, char text[WHO_BYTES])
{
    const struct engine_job *job = engine_job(request->requests->room.engine, request->job);
    const char *sudo = sudo_of(request);
    if (job && job->uid == request->uid)
        return job->user;
    if (request->uid == 0 && *sudo) {
        snprintf(text, WHO_BYTES, "root (%s)", sudo);
        return text;
    }
    if (request->client && *request->client->user)
        return request->client->user;
    return request->uid == 0 ? "root" : "";
}

void verb_sign(const struct request *request, enum event_type event, char text[CORE_BY_TEXT])
{
    const struct engine_job *job = engine_job(request->requests->room.engine, request->job);
    char who[WHO_BYTES];
    const char *name = verb_who(request, who);
    const char *reason = request->type == WIRE_kill ? request->message.u.kill.reason : "";
    *text = 0;
    if (*name && event == EVENT_KILL && *reason) {
        int size = snprintf(text, CORE_BY_TEXT, "ended by %s: ", name);
        str_printable(text + size, CORE_BY_TEXT - (size_t)size, reason, strlen(reason));
    } else if (*name && event == EVENT_KILL)
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

enum { NAME = 60 };
/* What the signal is for. A task that waits in its array is no job yet, and belongs to whom its array does. */
struct target {
    const struct engine_job *job; /* NULL: there is none */
    bool array, waits;
    char name[NAME]; /* "job 7", "array 57", "task 57[12]" */
};

static void find(const struct request *request, struct target *target)
{
    struct engine *engine = request->requests->room.engine;
    const struct engine_job *job = engine_job(engine, request->job);
    const struct core_job *state = job ? core_job(engine_core(engine), request->job) : NULL;
    struct record *task = job ? NULL : tasks_waiting(engine, request->job);
    int64_t index = job ? job_index(job) : task ? view_index(task) : -1;
    uint64_t array = job ? job->array : task ? task->array : 0;
    *target =
        (struct target){.job = task ? engine_job(engine, array) : job, .array = state && state->ntasks, .waits = task};
    if (index >= 0)
        snprintf(target->name, NAME, "task %" PRIu64 "[%" PRId64 "]", array, index);
    else
        snprintf(target->name, NAME, "%s %" PRIu64, target->array ? "array" : "job", request->job);
    record_destroy(task);
}

/* What a message to a host costs elmer, whenever it is written; a share of what its user may cause (quota_worked()). */
#define MESSAGE_MS 0.05

struct sent {
    int messages;
    int run, told;     /* jobs: those that run, and those of which a host gets it */
    int hosts, partly; /* that have no link and get nothing; jobs of which some have none */
};

static void send_signal(struct engine *engine, uint64_t job, int number, struct sent *sent)
{
    int away, hosts = engine_signal(engine, job, number, &away);
    if (hosts < 0)
        return;
    sent->messages += hosts;
    sent->run++;
    sent->told += hosts > 0;
    sent->hosts += away;
    sent->partly += away > 0;
}

/* Of an array to all its tasks that run. */
static struct sent send_all(struct engine *engine, uint64_t job, int number)
{
    const struct core *core = engine_core(engine);
    const struct core_job *state = core_job(core, job), *task;
    uint64_t cursor = job, last = state ? job + state->ntasks : job;
    struct sent sent = {0};
    if (last == job)
        send_signal(engine, job, number, &sent);
    while (cursor < last && (task = core_next_job(core, &cursor)) && task->id <= last)
        send_signal(engine, task->id, number, &sent);
    return sent;
}

/* One request is a message for each task that runs, so these are counted. The request is answered. */
static bool is_too_often(struct request *request, const struct target *target)
{
    struct quota *quota = target->array ? request->client->quota : NULL;
    int64_t wait_ms = quota ? quota_work_wait(quota, engine_now_ms()) : 0;
    if (wait_ms > 0)
        request_error(request, WIRE_CODE_REFUSED,
                      "too many signals and lists: elmer has spent its time for you; try again in %" PRId64 " s",
                      wait_ms / 1000 + 1);
    return wait_ms > 0;
}

/* The request is answered. */
static bool refused(struct request *request, const struct target *target)
{
    const struct core *core = engine_core(request->requests->room.engine);
    const struct engine_job *job = target->job;
    const char *helpers = job ? launcher_needs(launcher_of(job_submit(job))) : NULL;
    if (!job || job->refused) {
        bool never = !request->job || request->job >= core_next_id(core);
        request_error(request, never ? WIRE_CODE_NO_SUCH_JOB : WIRE_CODE_WRONG_STATE,
                      never ? "there is no job %" PRIu64 : "job %" PRIu64 " has ended already", request->job);
        return true;
    }
    if (!may(request, job))
        return true;
    if (helpers)
        request_error(request, WIRE_CODE_REFUSED, "jobs with %s get no signals: its daemons would get them, too",
                      helpers);
    else if (!request->message.u.signal_job.number)
        request_error(request, WIRE_CODE_REFUSED, "there is no signal 0");
    else if (target->waits)
        request_error(request, WIRE_CODE_WRONG_STATE, "%s waits: no process of it can get a signal", target->name);
    else
        return false;
    return true;
}

static void tell(struct request *request, const struct target *target, const struct sent *sent)
{
    uint64_t number = request->message.u.signal_job.number;
    char who[NAME + 20], but[80] = "";
    snprintf(who, sizeof(who), "%s", target->name);
    if (target->array)
        snprintf(who, sizeof(who), "%d task%s of %s", sent->told, sent->told == 1 ? "" : "s", target->name);
    if (target->array && sent->partly)
        snprintf(but, sizeof(but), ", but not to all hosts of %d of its tasks: no link", sent->partly);
    else if (sent->hosts)
        snprintf(but, sizeof(but), ", but not to %d of its hosts: no link", sent->hosts);
    request_done(request, "signal %" PRIu64 " is sent to %s%s", number, who, but);
}

void signal_begin(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    uint64_t number = request->message.u.signal_job.number;
    struct decision decision;
    struct target target;
    find(request, &target);
    if (refused(request, &target) || is_too_often(request, &target))
        return;
    decide_begin(request, "signalled", &decision);
    snprintf(decision.text, sizeof(decision.text), "signal %" PRIu64, number);
    struct sent sent = send_all(engine, request->job, (int)number);
    if (target.array && request->client->quota)
        quota_worked(request->client->quota, engine_now_ms(), MESSAGE_MS * sent.messages);
    if (!sent.run) {
        request_error(request, WIRE_CODE_WRONG_STATE,
                      target.array ? "no task of %s runs: no process of it can get a signal"
                                   : "%s does not run: no process of it can get a signal",
                      target.name);
    } else if (!sent.told) {
        request_error(request, WIRE_CODE_UNAVAILABLE, "no host of %s has a link now: try again", target.name);
    } else {
        engine_note(engine, &decision);
        tell(request, &target, &sent);
    }
}
