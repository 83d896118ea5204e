/* client_call.c - a request, from the first try to its end.
 *
 *   CONNECT -> (TICKET -> CONNECT ->) TURN -> SEND -> ANSWER -> DONE
 *
 * CONNECT waits until the connection is open (client_link.c; who finds none begins it). Meanwhile a submission is
 * signed by the local rsd (TICKET, client_ticket.c), once. TURN: until the frame before it has gone out, and elmer has
 * fewer than AT_ONCE requests of this connection. SEND: until all of it is written. ANSWER: each message with its id is
 * taken. All but submissions, and what comes behind them, follow our hello at once (doc/03-daemons.md, "What the kernel
 * keeps"), in the minor version that is presumed. If another one is agreed and writes them otherwise, the peer refuses
 * them, and they go once more on a new connection.
 *
 * What fails before an answer (nobody listens, the connection breaks, rsd says that it has no link to elmer) is tried
 * again after a PAUSE, from CONNECT, with the same request: all requests may be repeated, and a submission has its
 * token. That ends with the call's deadline, or when nobody has been there for the handle's patience. What elmer
 * answers, an error too, ends the call; but where it does not permit a decision that could be signed, it is asked for a
 * challenge (CLIENT_CHALLENGE), rsd signs (WARRANT), and the request goes once more, signed (CLIENT_DECIDE).
 *
 * A call that is over before its answer leaves a gap on the connection: the answer is thrown away when it comes. Where
 * no other call is on it the connection is closed instead, so that elmer drops what nobody waits for.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/moves.h"
#include "libelmer/client_internal.h"

enum {
    PAUSE_MIN_MS = 50,
    PAUSE_MAX_MS = 1000,
    TELL_MS = 500,
    AT_ONCE = 64,     /* rsd refuses more, see rsd/net/outstanding.h */
    GIVEN_UP_MAX = 16 /* client_calls.c leaves as many places to what is no wait */
};

#define TO(state) MOVE_TO(CLIENT_##state)
static const struct moves_row states[CLIENT_STATE_COUNT] = {
    [CLIENT_IDLE] = {"idle", TO(CONNECT)},
    [CLIENT_CONNECT] = {"connect", TO(TICKET) | TO(TURN) | TO(PAUSE) | TO(DONE)},
    [CLIENT_TICKET] = {"ticket", TO(CONNECT) | TO(DONE)},
    [CLIENT_TURN] = {"turn", TO(CONNECT) | TO(SEND) | TO(ANSWER) | TO(PAUSE) | TO(DONE)},
    [CLIENT_SEND] = {"send", TO(ANSWER) | TO(TURN) | TO(WARRANT) | TO(PAUSE) | TO(DONE)},
    [CLIENT_ANSWER] = {"answer", TO(TURN) | TO(WARRANT) | TO(PAUSE) | TO(DONE)},
    [CLIENT_WARRANT] = {"warrant", TO(TURN) | TO(PAUSE) | TO(DONE)},
    [CLIENT_PAUSE] = {"pause", TO(CONNECT) | TO(DONE)},
    [CLIENT_DONE] = {"done", TO(CONNECT)}, /* client_then */
};
#undef TO

bool client_call_on_link(const struct client_call *c)
{
    return c->state == CLIENT_SEND || c->state == CLIENT_ANSWER;
}

static void move(struct elmer *e, struct client_call *c, enum client_state to)
{
    MOVES_CHECK("call", states, c->state, to);
    if (client_call_on_link(c))
        e->on_link--;
    c->state = to;
    if (client_call_on_link(c))
        e->on_link++;
}

static void list_add(struct elmer *e, struct client_call *c)
{
    struct client_call **at = &e->first;

    while (*at)
        at = &(*at)->next;
    c->next = NULL;
    *at = c;
}

static void list_remove(struct elmer *e, struct client_call *c)
{
    struct client_call **at = &e->first;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->next = NULL;
}

/* ---- the end of a call ---- */

static void start(struct elmer *e, struct client_call *c)
{
    c->step = CLIENT_REQUEST;
    c->missing_since_ms = -1;
    c->pause_ms = PAUSE_MIN_MS;
    c->repeated = false;
    move(e, c, CLIENT_CONNECT);
    list_add(e, c);
}

/* Nobody waits for an answer, or for the hello. */
static void release_link(struct elmer *e)
{
    if (e->link == LINK_HELLO ? !e->first : e->on_link == 0)
        client_link_end(e);
}

static void finish(struct elmer *e, struct client_call *c, int result)
{
    c->too_old = result == TOO_OLD;
    move(e, c, CLIENT_DONE);
    list_remove(e, c);
    client_signing_drop(&e->desk, &c->signing);
    if (result == ELMER_UNREACHABLE)
        client_call_doubt(c);
    if (result == ELMER_UNREACHABLE || result == ELMER_FAILED)
        release_link(e);
    if (c->too_old)
        result = ELMER_FAILED;
    if (c->then)
        result = c->then(c, result);
    if (result == CLIENT_ASK) {
        start(e, c);
        return;
    }
    c->result = result;
    if (c->on_done)
        c->on_done(e, c);
}

/* Before its answer. */
static void give_up(struct elmer *e, struct client_call *c, int result)
{
    if (client_call_on_link(c))
        e->given_up++;
    c->repeated |= c->state == CLIENT_ANSWER && c->step != CLIENT_CHALLENGE;
    finish(e, c, result);
}

static void retry(struct elmer *e, struct client_call *c, bool sent)
{
    int64_t now = mono_now_ms();

    c->repeated |= sent;
    if (c->restart)
        c->restart(c->data);
    if (c->missing_since_ms < 0 || (sent && e->heard))
        c->missing_since_ms = now;
    if (now + c->pause_ms >= c->deadline_ms || now - c->missing_since_ms >= e->patience_ms) {
        finish(e, c, ELMER_UNREACHABLE);
        return;
    }
    if (!c->signs)
        client_signing_drop(&e->desk, &c->signing);
    c->step = CLIENT_REQUEST;
    c->pause_until_ms = now + c->pause_ms;
    c->pause_ms = (int)earlier((int64_t)c->pause_ms * 2, PAUSE_MAX_MS);
    move(e, c, CLIENT_PAUSE);
    if (!c->told && e->on_wait && now - c->missing_since_ms >= TELL_MS) {
        c->told = true;
        e->on_wait(c->error ? c->error->text : "", e->data);
    }
}

/* ---- administrators on hosts of admin_hosts ---- */

static void ask_for_warrant(struct elmer *e, struct client_call *c)
{
    int result;

    move(e, c, CLIENT_WARRANT);
    c->link = e->link_number;
    result = client_warrant_begin(&e->desk, &c->signing, c->request, c->signed_minor, c->challenge, c->deadline_ms,
                                  c->error);
    if (result != ELMER_OK)
        finish(e, c, result);
}

/* A challenge is good on the connection that it came by. */
static bool has_lost_challenge(struct elmer *e, struct client_call *c)
{
    if (e->link == LINK_OPEN && e->link_number == c->link)
        return false;
    client_error(c->error, 0, "elmer is not reachable: the connection broke while the request was signed");
    retry(e, c, false);
    return true;
}

static void use_warrant(struct elmer *e, struct client_call *c)
{
    int result;

    if (has_lost_challenge(e, c))
        return;
    result = client_warrant_take(&c->signing, c->signed_minor, &c->decide, c->error);
    if (result != ELMER_OK) {
        finish(e, c, result);
        return;
    }
    c->step = CLIENT_DECIDE;
    move(e, c, CLIENT_TURN);
}

/* ---- the end of a try ---- */

void client_call_tried(struct elmer *e, struct client_call *c, int result, bool sent)
{
    if (result == TRY_AGAIN || result == NOT_LINKED) {
        retry(e, c, sent && c->step != CLIENT_CHALLENGE);
    } else if (c->step == CLIENT_CHALLENGE) { /* refused to all who are no administrators: they get the first answer */
        if (result == ELMER_OK)
            ask_for_warrant(e, c);
        else
            finish(e, c, ELMER_NOT_PERMITTED);
    } else if (result == ELMER_NOT_PERMITTED && c->step == CLIENT_REQUEST && wire_may_be_signed(c->request->type) &&
               e->link == LINK_OPEN && e->channel.minor >= WIRE_WARRANT_MINOR) {
        c->step = CLIENT_CHALLENGE;
        move(e, c, CLIENT_TURN);
    } else {
        finish(e, c, result);
    }
}

void client_calls_tell(struct elmer *e, int result, const char *text)
{
    struct client_call *c;

    do {
        for (c = e->first; c && !c->chosen;)
            c = c->next;
        if (!c)
            return;
        c->chosen = false;
        client_error(c->error, 0, "%s", text);
        client_call_tried(e, c, result, result == TRY_AGAIN && c->state == CLIENT_ANSWER);
    } while (c);
}

void client_calls_lost(struct elmer *e, int result, const char *text)
{
    for (struct client_call *c = e->first; c; c = c->next)
        c->chosen = client_call_on_link(c) || c->state == CLIENT_CONNECT || c->state == CLIENT_TURN;
    client_calls_tell(e, result, text);
}

/* ---- going on ---- */

void client_calls_written(struct elmer *e)
{
    for (struct client_call *c = e->first; c; c = c->next)
        if (c->state == CLIENT_SEND)
            move(e, c, CLIENT_ANSWER);
}

void client_calls_unsaid(struct elmer *e)
{
    for (struct client_call *c = e->first; c; c = c->next)
        if (client_call_on_link(c))
            move(e, c, CLIENT_TURN);
}

void client_calls_heard(struct elmer *e, unsigned minor)
{
    bool same = true, unread = minor != e->channel.minor && e->given_up > 0;

    for (struct client_call *c = e->first; c; c = c->next) {
        same = same && wire_is_same(c->request->type, minor, e->channel.minor);
        unread |= client_call_on_link(c) && !same;
        c->repeated |= c->state == CLIENT_ANSWER && unread && same; /* it was read, perhaps */
    }
    if (!unread)
        return;
    client_link_end(e);
    client_calls_unsaid(e);
}

/* What would be done twice, or be told as failed, is answered first: that is soon. */
static bool may_repeat_all(const struct elmer *e)
{
    const struct client_call *c = e->first;

    while (c && !(c->state == CLIENT_ANSWER && wire_may_be_signed(c->request->type)))
        c = c->next;
    return !c;
}

static bool has_place(struct elmer *e)
{
    if (channel_wants_write(&e->channel))
        return false;
    if (e->on_link + e->given_up < AT_ONCE)
        return true;
    if (e->given_up >= GIVEN_UP_MAX && may_repeat_all(e)) { /* elmer drops them with the connection */
        client_link_end(e);
        client_calls_lost(e, TRY_AGAIN, "elmer is busy with answers that this program has given up");
    }
    return false;
}

/* elmer keeps one challenge for a connection. */
static bool is_challenged(const struct elmer *e, const struct client_call *but)
{
    const struct client_call *c = e->first;

    while (c && (c == but || !(c->step == CLIENT_DECIDE || (c->step == CLIENT_CHALLENGE && c->state != CLIENT_TURN))))
        c = c->next;
    return c;
}

static bool may_speak(const struct elmer *e, const struct client_call *c)
{
    const struct client_call *before = e->first;

    if (e->link != LINK_HELLO)
        return e->link == LINK_OPEN;
    while (before != c && client_call_on_link(before) && !wire_may_be_signed(before->request->type))
        before = before->next; /* a deed is the last: what the peer cannot read is behind none that is done again */
    return before == c && c->step == CLIENT_REQUEST && c->request->type != WIRE_submit &&
           wire_minor_said(c->request) <= e->channel.minor;
}

static bool say(struct elmer *e, struct client_call *c)
{
    struct wire_message challenge_ask = {.type = WIRE_challenge_ask};
    struct wire_message *message = c->step == CLIENT_REQUEST  ? c->request
                                   : c->step == CLIENT_DECIDE ? &c->decide
                                                              : &challenge_ask;
    struct err err = ERR_INIT;
    int result;

    if (c->step == CLIENT_DECIDE && has_lost_challenge(e, c))
        return true;
    if (!may_speak(e, c)) {
        move(e, c, CLIENT_CONNECT);
        return true;
    }
    if (c->step == CLIENT_CHALLENGE && is_challenged(e, c))
        return false;
    if (!has_place(e))
        return c->state != CLIENT_TURN;
    message->id = c->id = ++e->next_id;
    c->pages = 0;
    result = wire_check_said(message, e->channel.minor, &err);
    if (result == 0)
        result = channel_send(&e->channel, message, &err);
    if (result == 0)
        move(e, c, channel_wants_write(&e->channel) ? CLIENT_SEND : CLIENT_ANSWER);
    else if (result == -EPIPE || result == -ECONNRESET) /* a peer that has refused us: its reason can still be read */
        move(e, c, CLIENT_SEND);
    else if (result == -EMSGSIZE)
        client_call_tried(
            e, c, client_error(c->error, ELMER_REFUSED, "the request is too long to be sent: %s", err.text), false);
    else if (result == -EPROTONOSUPPORT)
        client_call_tried(e, c, client_error(c->error, TOO_OLD, "%s", err.text), false);
    else if (!e->channel.dead)
        client_call_tried(e, c, client_error(c->error, ELMER_FAILED, "the request cannot be sent: %s", err.text),
                          false);
    else
        client_link_lose(e, err.text);
    return true;
}

static void use_ticket(struct elmer *e, struct client_call *c)
{
    int result = client_ticket_take(&c->signing, c->request, c->error);

    if (result != ELMER_OK && e->link != LINK_NONE) {
        finish(e, c, result);
        return;
    }
    c->is_signed = result == ELMER_OK;
    if (!c->is_signed) /* rsd went away with its sockets one by one: elmer is looked for as where none was ever there */
        client_signing_drop(&e->desk, &c->signing);
    move(e, c, CLIENT_CONNECT);
}

static void connect_or_sign(struct elmer *e, struct client_call *c)
{
    if (e->link == LINK_NONE) {
        int result = client_link_begin(e, c->error);

        if (result != ELMER_OK)
            client_call_tried(e, c, result, false);
    } else if (c->signs && !c->is_signed) {
        move(e, c, CLIENT_TICKET);
        client_ticket_begin(&e->desk, &c->signing, c->request, c->deadline_ms);
    } else {
        move(e, c, CLIENT_TURN);
    }
}

/* Whether anything was done. */
static bool advance(struct elmer *e, struct client_call *c)
{
    switch (c->state) {
    case CLIENT_CONNECT:
        if (e->link == LINK_HELLO && !may_speak(e, c) && (!c->signs || c->is_signed))
            return false;
        connect_or_sign(e, c);
        return true;
    case CLIENT_TURN:
        return say(e, c);
    case CLIENT_TICKET:
    case CLIENT_WARRANT:
        if (c->signing.state != SIGNING_DONE)
            return false;
        if (c->state == CLIENT_TICKET)
            use_ticket(e, c);
        else
            use_warrant(e, c);
        return true;
    case CLIENT_PAUSE:
        if (mono_now_ms() < c->pause_until_ms)
            return false;
        move(e, c, CLIENT_CONNECT);
        return true;
    case CLIENT_SEND:
    case CLIENT_ANSWER:
        return false;
    case CLIENT_IDLE:
    case CLIENT_DONE:
    case CLIENT_STATE_COUNT:
        break;
    }
    assert(0);
    return false;
}

static bool is_bound(const struct client_call *c) /* by its own deadline, not by that of the signing or of the pause */
{
    return client_call_on_link(c) || c->state == CLIENT_CONNECT || c->state == CLIENT_TURN;
}

void client_calls_step(struct elmer *e)
{
    struct client_call *c = e->first;
    int64_t now = mono_now_ms();

    e->again = false;
    while (c) { /* what is done to one may end others, or let them go on */
        if (advance(e, c))
            c = e->first;
        else
            c = c->next;
    }
    for (c = e->first; c;) {
        if (is_bound(c) && now >= c->deadline_ms) {
            give_up(e, c, client_call_late(e, c));
            e->again = true;
            c = e->first;
        } else {
            c = c->next;
        }
    }
}

int64_t client_calls_until_ms(const struct elmer *e)
{
    int64_t until = e->link == LINK_HELLO ? e->hello_deadline_ms : INT64_MAX;

    if (e->again && e->first)
        return 0;
    for (const struct client_call *c = e->first; c; c = c->next) {
        if (c->state == CLIENT_PAUSE)
            until = earlier(until, c->pause_until_ms);
        else if (is_bound(c))
            until = earlier(until, c->deadline_ms);
    }
    return until;
}

void client_begin(struct elmer *e, struct wire_message *request, struct client_call *c, int timeout_ms,
                  struct elmer_error *error)
{
    assert(c->state == CLIENT_IDLE || c->state == CLIENT_DONE);
    c->state = CLIENT_IDLE;
    c->request = request;
    c->error = error;
    c->begun_ms = mono_now_ms();
    c->deadline_ms = c->begun_ms + (timeout_ms > 0 ? timeout_ms : 0);
    c->pages = 0;
    c->is_signed = c->told = c->chosen = c->too_old = false;
    start(e, c);
    client_calls_step(e);
}

void client_drop(struct elmer *e, struct client_call *c)
{
    if (c->state == CLIENT_IDLE || c->state == CLIENT_DONE)
        return;
    if (client_call_on_link(c))
        e->given_up++;
    move(e, c, CLIENT_DONE);
    list_remove(e, c);
    client_signing_drop(&e->desk, &c->signing);
    if (e->link == LINK_HELLO || e->given_up > 0)
        release_link(e);
    e->again = true;
}
