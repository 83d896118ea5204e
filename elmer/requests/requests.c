/* requests.c - from the message to the answer.
 *
 * Normal: a message of a client -> a request with a number -> who the user is, where that matters (users.c, perhaps
 * later) -> an event with the number -> the core's ANSWER, after the commit -> the client. Queries are in query.c,
 * waits in wait.c, submissions in submit.c. A client that goes away leaves requests without client: they go on, and
 * their answers are dropped; queries and waits end at once. Invariant: a request is in the table by number until
 * request_end(), and in its client's list while there is one. */
#include "config.h"

#include "elmer/requests/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/requests/admin.h"

enum { MAX_OUTSTANDING = 256 };

static void leave_client(struct request *request)
{
    if (!request->client)
        return;
    assert(request->client->nrequests > 0 && *request->place == request);
    request->client->nrequests--;
    *request->place = request->next;
    if (request->next)
        request->next->place = request->place;
    request->client = NULL;
}

static void release(struct request *request)
{
    leave_client(request);
    query_abandon(request);
    clients_give(request->requests->clients, request->quota, request->kept);
    wire_message_fini(&request->message);
    free(request->after);
    free(request);
}

/* ---- answers ---- */

void request_end(struct request *request)
{
    assert(requests_find(request->requests, request->number) == request); /* once */
    map_remove(&request->requests->by_number, request->number);
    release(request);
}

void request_send(struct request *request, const struct wire_message *message)
{
    if (request->client)
        client_send(request->client, message);
}

void request_error(struct request *request, const char *code, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (request->client)
        client_error(request->client, request->id, code, text);
    request_end(request);
}

void request_no_job(struct request *request, uint64_t job)
{
    bool never = !job || job >= core_next_id(engine_core(request->requests->room.engine));
    request_error(request, never ? WIRE_CODE_NO_SUCH_JOB : WIRE_CODE_WRONG_STATE,
                  never ? "there is no job %" PRIu64 : "job %" PRIu64 " has ended", job);
}

void request_done(struct request *request, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    struct wire_message message = {.type = WIRE_done, .id = request->id, .u.done = {.text = text}};
    request_send(request, &message);
    request_end(request);
}

/* ---- cancel, kill, hold, release, top: what decide.c has asked the core ---- */

static const struct verb {
    enum wire_type type;
    enum event_type event;
    const char *name, *done;
} verbs[] = {
    {WIRE_cancel, EVENT_CANCEL, "cancelled", "job %" PRIu64 " is cancelled"},
    {WIRE_kill, EVENT_KILL, "killed", "job %" PRIu64 " is being ended"},
    {WIRE_hold, EVENT_HOLD, "held", "job %" PRIu64 " is held"},
    {WIRE_release, EVENT_RELEASE, "released", "job %" PRIu64 " is released"},
    {WIRE_top, EVENT_TOP, "moved", "job %" PRIu64 " is before all other waiting jobs of its owner"},
};

static const struct verb *verb_of(enum wire_type type)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (verbs[i].type == type)
            return &verbs[i];
    return NULL;
}

static void explain_state(struct request *request, const struct verb *verb)
{
    const struct core_job *job = core_job(engine_core(request->requests->room.engine), request->job);
    enum job_state state = job ? job->state : JOB_DONE;
    const char *advice = "";
    if (verb->event == EVENT_CANCEL && (state == JOB_STARTING || state == JOB_RUNNING))
        advice = "; end it with ekill";
    else if (verb->event == EVENT_KILL && (state == JOB_QUEUED || state == JOB_HELD))
        advice = "; remove it with ecancel";
    if (state == JOB_DONE || state == JOB_CANCELLED)
        request_error(request, WIRE_CODE_WRONG_STATE, "job %" PRIu64 " has ended already: it cannot be %s",
                      request->job, verb->name);
    else
        request_error(request, WIRE_CODE_WRONG_STATE, "job %" PRIu64 " is %s: it cannot be %s%s", request->job,
                      job_state_name(state), verb->name, advice);
}

static void explain_refusal(struct request *request, enum answer answer)
{
    struct engine *engine = request->requests->room.engine;
    const struct verb *verb = verb_of(request->type);
    const struct engine_job *job = engine_job(engine, request->job);
    char text[700];
    assert(verb && answer >= ANSWER_NO_SUCH_JOB && answer < ANSWER_COUNT);
    if (answer == ANSWER_NOT_PERMITTED)
        request_error(request, WIRE_CODE_NOT_PERMITTED,
                      "job %" PRIu64 " belongs to %s: only its owner, and administrators (group %s), may do this%s",
                      request->job, job ? job->user : "another user", request->requests->settings->admin_group,
                      request_how_to_rule(request, text, sizeof(text)));
    else if (tasks_explain(request, verb->name, answer))
        return;
    else if (answer == ANSWER_TOO_MANY)
        request_error(request, WIRE_CODE_REFUSED,
                      "job %" PRIu64
                      " is not moved: more than %d jobs of its owner are before it, held ones included. Cancel some of "
                      "them, or move one that is further ahead",
                      request->job, CORE_MAX_TOP);
    else if (answer == ANSWER_NO_SUCH_JOB && (!request->job || request->job >= core_next_id(engine_core(engine))))
        request_error(request, WIRE_CODE_NO_SUCH_JOB, "there is no job %" PRIu64, request->job);
    else
        explain_state(request, verb);
}

static void answer_verb(struct request *request, enum answer answer)
{
    const struct verb *verb = verb_of(request->type);
    if (answer != ANSWER_OK)
        explain_refusal(request, answer);
    else if (request->type == WIRE_set)
        setting_answer(request);
    else if (!verb)
        request_done(request, "host %s %s", request->message.u.drain.host,
                     request->message.u.drain.drained ? "takes no new jobs" : "takes jobs again");
    else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        request_done(request, verb->done, request->job);
#pragma GCC diagnostic pop
}

/* ---- dispatch ---- */

static uint64_t job_of(const struct wire_message *message)
{
    switch ((int)message->type) {
#define JOB_OF(name)                                                                                                   \
    case WIRE_##name:                                                                                                  \
        return message->u.name.job
        JOB_OF(cancel);
        JOB_OF(kill);
        JOB_OF(hold);
        JOB_OF(release);
        JOB_OF(top);
        JOB_OF(wait);
        JOB_OF(explain);
        JOB_OF(signal_job);
        JOB_OF(reach);
        JOB_OF(read_output);
        JOB_OF(query_asked);
#undef JOB_OF
    default:
        return 0;
    }
}

static void dispatch(struct request *request)
{
    switch ((int)request->type) {
    case WIRE_submit:
    case WIRE_rehearse:
        submit_begin(request);
        break;
    case WIRE_query:
    case WIRE_query_lines:
    case WIRE_query_asked:
    case WIRE_history:
        query_begin(request);
        break;
    case WIRE_wait:
    case WIRE_wait_any:
        wait_begin(request);
        break;
    case WIRE_explain:
        explain_begin(request);
        break;
    case WIRE_signal_job:
        signal_begin(request);
        break;
    case WIRE_reach:
        reach_begin(request);
        break;
    case WIRE_read_output:
        output_begin(request);
        break;
    case WIRE_query_hosts:
        admin_query_hosts(request);
        break;
    case WIRE_remove_host:
        admin_remove_host(request);
        break;
    case WIRE_drain:
        decide_drain(request);
        break;
    case WIRE_top:
        decide_top(request);
        break;
    case WIRE_note:
        decide_note(request);
        break;
    case WIRE_query_log:
        log_query(request);
        break;
    case WIRE_query_settings:
        setting_query(request);
        break;
    case WIRE_challenge_ask:
        warrant_challenge(request);
        break;
    case WIRE_decide:
        warrant_decide(request);
        break;
    case WIRE_set:
        setting_begin(request);
        break;
    default:
        decide_job(request, verb_of(request->type)->event);
        break;
    }
}

void request_replace(struct request *request, struct wire_message *message)
{
    wire_message_fini(&request->message);
    request->message = *message;
    message->memory = NULL;
    request->type = request->message.type;
    request->job = job_of(&request->message);
    request->admin = true;
    dispatch(request);
}

static void on_user(const struct request_user *user, void *data)
{
    struct request *request = data;
    struct client *client = request->client;
    request->holder = HOLDER_NONE;
    if (!client) {
        request_end(request);
        return;
    }
    char text[700];
    if (!*client->user)
        snprintf(client->user, sizeof(client->user), "%s", user->name);
    if (users_conflict(user, client->user, client_host_name(client), text, sizeof(text))) {
        request_error(request, WIRE_CODE_NOT_PERMITTED, "%s", text);
        return;
    }
    bool is_one = user->admin || (user->uid == 0 && client->queue_host);
    request->admin = request->admin || (user->admin && client->may_rule);
    request->admin_elsewhere = is_one && !client->may_rule;
    request->reads_all = is_one && client->may_vouch;
    dispatch(request);
}

/* An owner needs no lookup of groups, so that he can end his jobs whatever name services do. For a submission the
 * name is needed, and must belong to the uid. */
static bool needs_user(const struct request *request)
{
    const struct engine_job *job = engine_job(request->requests->room.engine, request->job);
    if (request->type == WIRE_submit || request->type == WIRE_rehearse)
        return true;
    if (request->admin || request->type == WIRE_query_hosts || request->type == WIRE_query_settings ||
        request->type == WIRE_query_asked)
        return false;
    if (request->type == WIRE_query || request->type == WIRE_query_lines || request->type == WIRE_history ||
        request->type == WIRE_wait || request->type == WIRE_wait_any || request->type == WIRE_explain)
        return request->requests->settings->private_jobs;
    return !job || job->uid != request->client->uid;
}

bool request_sees(const struct request *request, uint32_t owner)
{
    return !request->requests->settings->private_jobs || request->admin || request->reads_all || request->uid == owner;
}

static bool known_request(enum wire_type type)
{
    return type == WIRE_submit || type == WIRE_rehearse || type == WIRE_query || type == WIRE_query_lines ||
           type == WIRE_history || type == WIRE_explain || type == WIRE_wait || type == WIRE_wait_any ||
           type == WIRE_drain || type == WIRE_query_hosts || type == WIRE_remove_host || type == WIRE_set ||
           type == WIRE_query_settings || type == WIRE_query_log || type == WIRE_signal_job || type == WIRE_reach ||
           type == WIRE_read_output || type == WIRE_challenge_ask || type == WIRE_decide || type == WIRE_note ||
           type == WIRE_query_asked || verb_of(type);
}

void requests_begin(struct client *client, struct wire_message *message)
{
    if (!known_request(message->type) || client->nrequests >= MAX_OUTSTANDING) {
        client_error(client, message->id, WIRE_CODE_REFUSED,
                     known_request(message->type) ? "too many requests without answer on one link; wait for answers"
                                                  : "elmer has no answer to this message");
        return;
    }
    struct requests *requests = clients_requests(client->clients);
    struct request *request;
    size_t kept = sizeof(*request) + message->bytes;
    char text[QUOTA_TEXT];
    if (!client_keep(client, kept, text)) {
        client_error(client, message->id, WIRE_CODE_REFUSED, text);
        return;
    }
    request = mem_zalloc(sizeof(*request));
    *request = (struct request){.requests = requests,
                                .number = requests->next++,
                                .client = client,
                                .uid = client->uid,
                                .admin = client->uid == 0 && client->queue_host && client->may_rule,
                                .message = *message,
                                .type = message->type,
                                .id = message->id,
                                .job = job_of(message),
                                .quota = client->quota,
                                .kept = kept,
                                .next = client->requests,
                                .place = &client->requests};
    message->memory = NULL;
    if (client->requests)
        client->requests->place = &request->next;
    client->requests = request;
    client->nrequests++;
    assert(!requests_find(requests, request->number));
    map_put(&requests->by_number, request->number, request);
    if (!needs_user(request)) {
        dispatch(request);
        return;
    }
    request->holder = HOLDER_USERS;
    if (!users_ask(requests->users, client->uid, client->host, client->user, on_user, request)) {
        request->holder = HOLDER_NONE;
        request_error(request, WIRE_CODE_REFUSED,
                      "too many users of this host at once of whom elmer does not know yet who they are; try again");
    }
}

void requests_client_gone(struct client *client)
{
    while (client->requests) {
        struct request *request = client->requests;
        query_leave_turn(request);
        leave_client(request);
        if (request->holder == HOLDER_HOST)
            output_abandon(request);
        else if (request->holder == HOLDER_QUERY || request->holder == HOLDER_WAIT)
            request_end(request);
    }
}

struct request *requests_find(const struct requests *requests, uint64_t number)
{
    return map_get(&requests->by_number, number);
}

/* ---- from the engine ---- */

static void on_answered(uint64_t number, enum answer answer, uint64_t job, void *data)
{
    struct request *request = requests_find(data, number);
    if (!request)
        return;
    assert(request->holder == HOLDER_CORE);
    if (request->type == WIRE_cancel || request->type == WIRE_kill)
        waits_release_tasks(data, request->job);
    if (request->type != WIRE_submit)
        answer_verb(request, answer);
    else if (answer == ANSWER_OK)
        submit_answer(request, job);
    /* else submit.c has seen it at once */
}

static bool on_failed(uint64_t number, bool accepted, const char *text, void *data)
{
    struct request *request = requests_find(data, number);
    if (!request || request->type != WIRE_submit)
        return false; /* it waits: what is told must be on disk */
    if (accepted)
        submit_answer(request, request->job);
    else
        request_error(request, WIRE_CODE_UNAVAILABLE, "the job is not accepted: %s", text);
    return !accepted;
}

static void on_ended(const struct engine_job *job, void *data)
{
    waits_release(data, job);
}

/* ---- begin and end ---- */

int requests_create(const struct room *room, const struct requests_settings *settings, struct hosts *hosts,
                    struct membership *membership, struct launches *launches, struct requests **out, struct err *err)
{
    static const struct engine_requests callbacks = {on_answered, on_failed, on_ended};
    static const struct clients_callbacks clients = {requests_begin, requests_client_gone, query_room};
    struct requests *requests = mem_zalloc(sizeof(*requests));
    *requests = (struct requests){
        .room = *room, .settings = settings, .hosts = hosts, .membership = membership, .launches = launches, .next = 1};
    requests->users = users_create(room->loop, settings->admin_group);
    reach_connect(requests);
    engine_connect_requests(room->engine, &callbacks, requests);
    *out = requests;
    return clients_create(requests, &clients, &requests->clients, err);
}

void requests_close(struct requests *requests)
{
    if (!requests)
        return;
    clients_close(requests->clients);
    users_destroy(requests->users);
    requests->users = NULL;
}

void requests_destroy(struct requests *requests)
{
    size_t cursor = 0;
    if (!requests)
        return;
    for (struct request *request; (request = map_next(&requests->by_number, &cursor));)
        release(request);
    map_fini(&requests->by_number);
    map_fini(&requests->waiting);
    clients_destroy(requests->clients);
    free(requests);
}

void requests_relay(struct requests *requests, int host, bool on_queue_host, struct wire_message *message)
{
    clients_relay(requests->clients, host, on_queue_host, message);
}

void requests_host_cut(struct requests *requests, int host)
{
    clients_host_cut(requests->clients, host);
}

void requests_host_room(struct requests *requests, int host)
{
    clients_host_room(requests->clients, host);
}
