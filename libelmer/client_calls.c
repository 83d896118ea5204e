/* client_calls.c - calls of the public functions: the blocking ones wait for theirs, the others hand it out. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "libelmer/client_internal.h"

enum {
    WAITS_MAX = 48
}; /* of the 64 requests that a connection may have: the others are for what is answered at once */

struct elmer_call *client_call_create(struct elmer *elmer, const struct wire_message *request,
                                      const struct client_call *call, void *answer, void (*free_answer)(void *answer))
{
    struct elmer_call *made = answer ? calloc(1, sizeof(*made)) : NULL;

    if (!made) {
        if (answer)
            free_answer(answer);
        return NULL;
    }
    made->call = *call;
    made->elmer = elmer;
    made->request = *request;
    made->answer = answer;
    made->free_answer = free_answer;
    return made;
}

void *client_call_answer(struct elmer_call *call, void (*free_answer)(void *answer))
{
    void *answer = call->answer;

    if (call->call.state != CLIENT_DONE || call->call.result != ELMER_OK || call->free_answer != free_answer)
        return NULL;
    call->answer = NULL;
    return answer;
}

int client_call_run(struct elmer_call *call, int timeout_ms, void **answer, struct elmer_error *error)
{
    int result;

    if (answer)
        *answer = NULL;
    if (!call)
        return client_error(error, ELMER_FAILED, "out of memory");
    result = client_call(call->elmer, &call->request, &call->call, timeout_ms, error);
    if (answer)
        *answer = client_call_answer(call, call->free_answer);
    elmer_call_free(call);
    return result;
}

static void on_done(struct elmer *elmer, struct client_call *done)
{
    struct elmer_call *call = (struct elmer_call *)done;

    *elmer->last_ended = call;
    elmer->last_ended = &call->next_ended;
}

/* The caller's texts may go: the call has its own. */
static int keep_request(struct elmer_call *call, struct elmer_error *error)
{
    struct wire_message kept;
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    int result = wire_encode(&call->request, WIRE_MINOR, &json, &size, &err);

    if (result == -EMSGSIZE)
        return client_error(error, ELMER_REFUSED, "the request is too long to be sent: %s", err.text);
    if (result < 0)
        return client_error(error, ELMER_FAILED, "the request cannot be sent: %s", err.text);
    result = wire_decode(json, size, WIRE_MINOR, &kept, &err);
    free(json);
    if (result < 0)
        return client_error(error, ELMER_FAILED, "the request cannot be sent: %s", err.text);
    call->request = kept;
    return ELMER_OK;
}

static bool waits_too_much(const struct elmer *elmer)
{
    unsigned count = 0;

    for (const struct elmer_call *call = elmer->calls; call; call = call->next)
        count += call->waits && call->call.state != CLIENT_DONE;
    return count >= WAITS_MAX;
}

int client_call_begin(struct elmer_call *call, int timeout_ms, struct elmer_call **begun, struct elmer_error *error)
{
    struct elmer *elmer;
    int result;

    *begun = NULL;
    if (!call)
        return client_error(error, ELMER_FAILED, "out of memory");
    elmer = call->elmer;
    result =
        call->waits && waits_too_much(elmer)
            ? client_error(error, ELMER_REFUSED,
                           "%d waits are outstanding on this connection: wait for the first of several jobs", WAITS_MAX)
            : keep_request(call, error);
    if (result != ELMER_OK) {
        elmer_call_free(call);
        return result;
    }
    call->next = elmer->calls;
    call->place = &elmer->calls;
    if (call->next)
        call->next->place = &call->next;
    elmer->calls = call;
    call->call.on_done = on_done;
    client_begin(elmer, &call->request, &call->call, timeout_ms, &call->error);
    client_watch_all(elmer);
    *begun = call;
    return ELMER_OK;
}

static void forget_ended(struct elmer *elmer, const struct elmer_call *call)
{
    struct elmer_call **at = &elmer->ended;

    while (*at && *at != call)
        at = &(*at)->next_ended;
    if (!*at)
        return;
    *at = call->next_ended;
    if (!*at)
        elmer->last_ended = at;
}

void elmer_call_free(struct elmer_call *call)
{
    if (!call)
        return;
    client_drop(call->elmer, &call->call);
    if (call->place) {
        forget_ended(call->elmer, call);
        *call->place = call->next;
        if (call->next)
            call->next->place = call->place;
        client_watch_all(call->elmer);
    }
    if (call->answer)
        call->free_answer(call->answer);
    wire_message_fini(&call->request);
    free(call->ids);
    free(call);
}

struct elmer_call *elmer_next_ended(struct elmer *elmer)
{
    struct elmer_call *call = elmer->ended;

    if (call) {
        forget_ended(elmer, call);
        call->next_ended = NULL;
    }
    return call;
}

int elmer_call_result(const struct elmer_call *call, struct elmer_error *error)
{
    if (call->call.state != CLIENT_DONE)
        return -1;
    if (call->call.result != ELMER_OK)
        client_error(error, 0, "%s", call->error.text);
    return call->call.result;
}

const char *elmer_call_text(const struct elmer_call *call)
{
    return call->text ? call->text->text : "";
}

void elmer_call_set_data(struct elmer_call *call, void *data)
{
    call->data = data;
}

void *elmer_call_data(const struct elmer_call *call)
{
    return call->data;
}
