/* client_answer.c - what elmer says to a call. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "libelmer/client_internal.h"

enum { SLOW_MS = 5000 };

static int result_of_code(const char *code)
{
    static const struct {
        const char *code;
        int result;
    } table[] = {
        {WIRE_CODE_REFUSED, ELMER_REFUSED},         {WIRE_CODE_USAGE, ELMER_USAGE},
        {WIRE_CODE_NO_SUCH_JOB, ELMER_NO_SUCH_JOB}, {WIRE_CODE_WRONG_STATE, ELMER_WRONG_STATE},
        {WIRE_CODE_UNREACHABLE, NOT_LINKED},        {WIRE_CODE_NOT_PERMITTED, ELMER_NOT_PERMITTED},
        {WIRE_CODE_UNAVAILABLE, ELMER_UNAVAILABLE}, {WIRE_CODE_VERSION, TOO_OLD},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i].code, code) == 0)
            return table[i].result;
    return ELMER_FAILED;
}

/* What is signed is read by elmer, which may be older than all between it and here. */
static int take_challenge(struct elmer *e, struct wire_message *answer, struct client_call *c)
{
    const struct wire_challenge *challenge = &answer->u.challenge;
    const uint64_t minor = challenge->minor ? challenge->minor : WIRE_WARRANT_MINOR;

    if (answer->type != WIRE_challenge)
        return -EPROTO;
    snprintf(c->challenge, sizeof(c->challenge), "%s", challenge->challenge);
    c->signed_minor = minor < e->channel.minor ? (unsigned)minor : e->channel.minor;
    return 0;
}

static void take_answer(struct elmer *e, struct client_call *c, struct wire_message *message)
{
    int result;

    if (message->type == WIRE_error) {
        result = result_of_code(message->u.error.code);
        if (c->step != CLIENT_CHALLENGE || result == NOT_LINKED)
            client_error(c->error, 0, "%s", message->u.error.text);
        client_call_tried(e, c, result, false);
        return;
    }
    result = c->step == CLIENT_CHALLENGE ? take_challenge(e, message, c) : c->take(message, c->data);
    if (result > 0) {
        client_call_goes_on(e, c);
        return;
    }
    if (result == 0) {
        client_call_tried(e, c, ELMER_OK, false);
        return;
    }
    if (c->step != CLIENT_CHALLENGE) {
        if (result == -ENOMEM)
            client_error(c->error, 0, "out of memory");
        else
            client_error(c->error, 0, "unexpected answer (%s) from %s; use programs of one release",
                         wire_type_name(message->type), e->sockets[e->at]);
    }
    client_call_tried(e, c, ELMER_FAILED, false);
}

/* All else only asks. */
static bool is_deed(const struct client_call *c)
{
    return c->request->type == WIRE_submit || wire_may_be_signed(c->request->type);
}

void client_call_doubt(const struct client_call *c)
{
    size_t used = c->error ? strlen(c->error->text) : 0;

    if (c->error && c->repeated && is_deed(c))
        snprintf(c->error->text + used, sizeof(c->error->text) - used,
                 "; whether the request was carried out is not known: see equery");
}

int client_call_late(const struct elmer *e, const struct client_call *c)
{
    const char *socket = e->sockets[e->at];

    if (c->step == CLIENT_CHALLENGE)
        return ELMER_NOT_PERMITTED;
    if (c->state == CLIENT_CONNECT || e->link == LINK_HELLO)
        return client_error(c->error, ELMER_UNREACHABLE,
                            "elmer is not reachable: %s accepts connections but does not answer; see the log of its "
                            "daemon",
                            socket);
    if (c->state != CLIENT_ANSWER)
        return client_error(c->error, ELMER_UNREACHABLE,
                            "elmer is not reachable: %s has not taken the request in time; see the log of its daemon",
                            socket);
    if (c->pages > 0)
        return client_error(c->error, ELMER_UNREACHABLE,
                            "elmer has not sent all of the answer in time (by %s): it gives the lists of a user a part "
                            "of its time only; ask for less, or less often, or wait longer",
                            socket);
    return client_error(c->error, ELMER_UNREACHABLE, "elmer has not answered in time (by %s)%s", socket,
                        is_deed(c) ? "" : "; see the log of its daemon");
}

void client_wait_for_pages(struct elmer *e, int each_ms, void (*on_slow)(void))
{
    e->page_ms = each_ms;
    e->on_slow = on_slow;
}

void client_call_goes_on(struct elmer *e, struct client_call *c)
{
    int64_t now = mono_ms(mono_now());

    c->pages++;
    if (e->page_ms > 0 && now + e->page_ms > c->deadline_ms)
        c->deadline_ms = now + e->page_ms;
    if (e->on_slow && now >= c->begun_ms + SLOW_MS)
        e->on_slow();
}

static bool more_follows(const struct wire_message *message)
{
    return (message->type == WIRE_jobs && message->u.jobs.more) ||
           (message->type == WIRE_lines && message->u.lines.more) ||
           (message->type == WIRE_explained && message->u.explained.more) ||
           (message->type == WIRE_hosts && message->u.hosts.more) || (message->type == WIRE_log && message->u.log.more);
}

void client_calls_take(struct elmer *e, struct wire_message *message)
{
    struct client_call *c = e->first;

    if (message->type == WIRE_error && message->id == 0) { /* about the connection */
        for (; c; c = c->next)
            c->chosen = client_call_on_link(c) || c->state == CLIENT_TURN;
        client_link_end(e); /* as the peer does */
        client_calls_tell(e, result_of_code(message->u.error.code), message->u.error.text);
        return;
    }
    while (c && !(client_call_on_link(c) && c->id == message->id))
        c = c->next;
    if (c)
        take_answer(e, c, message);
    else if (e->given_up > 0 && message->id > 0 && !more_follows(message))
        e->given_up--;
}
