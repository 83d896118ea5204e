/* clients.c - programs of local users.
 *
 * A connection: the kernel names the user (SO_PEERCRED), a worker thread finds his name meanwhile (name services may be slow, the loop
 * must not be), each request is decoded, encoded anew and sent to elmer inside relay; the answer comes back inside relayed. We remember the
 * ids that wait for an answer: when the link to elmer is lost, each gets an error `unreachable` and may ask again.
 * Failures: no link to elmer: `unreachable` at once. A user without a name, garbage, a message that is no request, an id twice: an error, and
 * the connection ends. Too many connections or requests: an error.
 *
 * Invariants: elmer hears relay_closed for each client that it has heard of on the present link; a client is freed when both its link and
 * its worker have ended.
 */
#include "config.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libelmer/base/log.h"
#include "libelmer/base/str.h"
#include "libelmer/net/link.h"
#include "rsd/net/clients.h"

enum {
    CLIENTS_MAX = 4096,
    CLIENTS_PER_USER = 1024,
    REQUESTS_MAX = 64, /* outstanding, of one client */
    FRAME_MAX = 786432,
    OUT_MAX = 64 << 20,
    HELLO_MS = 5000,
    LOG_BURST = 30,
    LOG_WINDOW_MS = 10000,
};

struct client {
    struct clients *all;
    struct client *next;
    struct link *link; /* NULL: gone */
    uint64_t id;
    uid_t uid;
    char user[256];
    uv_work_t lookup;
    bool looking, named;
    bool heard_of; /* by elmer, on the present link */
    uint64_t requests[REQUESTS_MAX];
    unsigned nrequests;
    struct held {
        uint64_t id;
        char *frame;
    } held[REQUESTS_MAX]; /* until the user has a name */
    unsigned nheld;
};

struct clients {
    uv_loop_t *loop;
    struct clients_callbacks callbacks;
    void *data;
    struct listener *listener;
    struct client *first;
    uint64_t next_id;
    struct log_limit limit;
    bool stopping;
};

static const bool relayable[WIRE_TYPE_COUNT] = {
    [WIRE_submit] = true, [WIRE_cancel] = true, [WIRE_kill] = true, [WIRE_hold] = true,
    [WIRE_release] = true, [WIRE_drain] = true, [WIRE_query] = true, [WIRE_wait] = true,
};

static void send_error(struct client *c, uint64_t id, const char *code, const char *text)
{
    struct wire_message error = {.type = WIRE_error, .id = id, .u.error = {.code = code, .text = text}};

    (void)link_send(c->link, &error);
}

/* An error, and the end of the connection. */
static void refuse(struct client *c, uint64_t id, const char *code, const char *text)
{
    if (!c->link)
        return;
    if (id == 0) { /* perhaps before the peer's hello, when nothing else may be sent */
        link_refuse(c->link, code, text);
        return;
    }
    send_error(c, id, code, text);
    link_close(c->link, text);
}

static void send_unreachable(struct client *c, uint64_t id)
{
    const char *why = c->all->callbacks.why(c->all->data);
    char text[1024];

    (void)snprintf(text, sizeof(text), "the rsd of this host has no link to elmer (%.700s); see that elmer runs, and elmer = in rsd.conf",
                   why[0] ? why : "not yet");
    send_error(c, id, WIRE_CODE_UNREACHABLE, text);
}

/* ---- requests ---- */

static bool is_outstanding(const struct client *c, uint64_t id)
{
    for (unsigned i = 0; i < c->nrequests; i++)
        if (c->requests[i] == id)
            return true;
    return false;
}

static void forget_request(struct client *c, uint64_t id)
{
    for (unsigned i = 0; i < c->nrequests; i++)
        if (c->requests[i] == id)
            c->requests[i--] = c->requests[--c->nrequests];
}

static void send_relay(struct client *c, uint64_t id, const char *frame)
{
    struct wire_message relay = {.type = WIRE_relay, .u.relay = {.client = c->id, .uid = c->uid, .user = c->user, .frame = frame}};
    int code = c->all->callbacks.send(&relay, c->all->data);

    if (code == 0) {
        c->heard_of = true;
        return;
    }
    forget_request(c, id);
    if (code == -ENOTCONN || code == -ENOBUFS)
        send_unreachable(c, id);
    else
        send_error(c, id, WIRE_CODE_REFUSED, "the request is too long; use a shorter command, fewer or shorter variables");
}

/* Every request fits or is refused: it is one JSON string inside another message. */
static void take_request(struct client *c, const struct wire_message *message)
{
    char *frame = NULL;
    size_t size;

    if (wire_encode(message, WIRE_MINOR, &frame, &size, NULL) != 0 || size > FRAME_MAX) {
        send_error(c, message->id, WIRE_CODE_REFUSED, "the request is too long; use a shorter command, fewer or shorter variables");
        free(frame);
        return;
    }
    c->requests[c->nrequests++] = message->id;
    if (c->named) {
        send_relay(c, message->id, frame);
        free(frame);
    } else {
        c->held[c->nheld++] = (struct held){message->id, frame};
    }
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct client *c = data;

    if (message->type == WIRE_pong)
        return;
    if (message->type == WIRE_ping) {
        struct wire_message pong = {.type = WIRE_pong, .id = message->id};

        (void)link_send(link, &pong);
    } else if (!relayable[message->type]) {
        refuse(c, message->id, WIRE_CODE_BAD_MESSAGE, "this message is no request; the connection ends");
    } else if (message->id == 0 || is_outstanding(c, message->id)) {
        refuse(c, message->id, WIRE_CODE_BAD_MESSAGE, "each request needs an id of its own, from 1 on; the connection ends");
    } else if (c->nrequests == REQUESTS_MAX) {
        send_error(c, message->id, WIRE_CODE_REFUSED, "too many requests at once on this connection; wait for answers");
    } else {
        take_request(c, message);
    }
}

/* ---- the user's name ---- */

static void look_up(uv_work_t *work)
{
    struct client *c = work->data;
    struct passwd passwd, *found = NULL;
    char buffer[16384];

    if (getpwuid_r(c->uid, &passwd, buffer, sizeof(buffer), &found) == 0 && found && strlen(found->pw_name) < sizeof(c->user))
        memcpy(c->user, found->pw_name, strlen(found->pw_name) + 1);
}

static void destroy(struct client *c)
{
    for (unsigned i = 0; i < c->nheld; i++)
        free(c->held[i].frame);
    free(c);
}

static void remove_client(struct client *c)
{
    struct client **at = &c->all->first;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    destroy(c);
}

static void on_looked_up(uv_work_t *work, int status)
{
    struct client *c = work->data;
    unsigned nheld = c->nheld;

    c->looking = false;
    c->nheld = 0;
    if (!c->link) {
        c->nheld = nheld;
        remove_client(c);
        return;
    }
    if (status != 0 || c->user[0] == '\0')
        refuse(c, 0, WIRE_CODE_NOT_PERMITTED, "your user id has no name on this host; ask its administrator");
    else
        c->named = true;
    for (unsigned i = 0; i < nheld; i++) {
        if (c->named)
            send_relay(c, c->held[i].id, c->held[i].frame);
        free(c->held[i].frame);
    }
}

/* ---- links ---- */

static void on_close(struct link *link, const char *text, void *data)
{
    struct client *c = data;
    struct clients *all = c->all;

    (void)link;
    c->link = NULL;
    /* A closed connection is how a program ends; anything else is a fact to know. */
    if (!all->stopping && strcmp(text, "the other side closed the connection") != 0 && log_allowed(&all->limit, LOG_BURST, LOG_WINDOW_MS))
        log_warning("uid=%lu connection of a local program ended: %s", (unsigned long)c->uid, text);
    if (c->heard_of && !all->stopping) {
        struct wire_message closed = {.type = WIRE_relay_closed, .u.relay_closed = {.client = c->id}};

        (void)all->callbacks.send(&closed, all->data);
    }
    if (!c->looking)
        remove_client(c);
}

static unsigned count_user(const struct clients *all, uid_t uid)
{
    unsigned count = 0;

    for (const struct client *c = all->first; c; c = c->next)
        count += c->uid == uid;
    return count;
}

static void *on_accept(struct link *link, void *data)
{
    struct clients *all = data;
    struct client *c = calloc(1, sizeof(*c));
    gid_t gid;
    pid_t pid;

    if (!c || all->stopping || link_peer_cred(link, &c->uid, &gid, &pid) != 0) {
        free(c);
        return NULL;
    }
    if (c->uid != 0 && count_user(all, c->uid) >= CLIENTS_PER_USER) {
        if (log_allowed(&all->limit, LOG_BURST, LOG_WINDOW_MS))
            log_warning("uid=%lu refused: has %d connections already", (unsigned long)c->uid, CLIENTS_PER_USER);
        free(c);
        return NULL;
    }
    c->all = all;
    c->link = link;
    c->id = all->next_id++;
    c->lookup.data = c;
    c->looking = uv_queue_work(all->loop, &c->lookup, look_up, on_looked_up) == 0;
    if (!c->looking) {
        free(c);
        return NULL;
    }
    c->next = all->first;
    all->first = c;
    return c;
}

/* ---- elmer ---- */

static struct client *find(struct clients *all, uint64_t id)
{
    struct client *c = all->first;

    while (c && (c->id != id || !c->link))
        c = c->next;
    return c;
}

void clients_relayed(struct clients *all, const struct wire_relayed *relayed)
{
    struct client *c = find(all, relayed->client);
    struct wire_message answer;
    struct err err = ERR_INIT;

    if (!c) /* it has left */
        return;
    if (wire_decode(relayed->frame, strlen(relayed->frame), WIRE_MINOR, &answer, &err) != 0) {
        if (log_allowed(&all->limit, LOG_BURST, LOG_WINDOW_MS))
            log_error("an answer of elmer to a local program cannot be decoded: %s", err.text);
        return;
    }
    if (wire_may_send(answer.type, WIRE_FROM_ELMER) && (answer.id == 0 || is_outstanding(c, answer.id))) {
        if (answer.type != WIRE_jobs || !answer.u.jobs.more)
            forget_request(c, answer.id);
        (void)link_send(c->link, &answer);
    }
    wire_message_fini(&answer);
}

void clients_offline(struct clients *all)
{
    for (struct client *c = all->first; c; c = c->next) {
        unsigned count = c->named ? c->nrequests : 0; /* what is held has not been sent */

        c->heard_of = false;
        if (!c->link || count == 0)
            continue;
        c->nrequests = 0;
        for (unsigned i = 0; i < count; i++)
            send_unreachable(c, c->requests[i]);
    }
}

/* ---- the whole ---- */

int clients_create(uv_loop_t *loop, int listen_fd, const struct clients_callbacks *callbacks, void *data, struct clients **out, struct err *err)
{
    static const struct link_callbacks link_callbacks = {.on_message = on_message, .on_close = on_close};
    struct link_options options = {.program = "rsd", .peer = WIRE_FROM_CLIENT, .out_max = OUT_MAX, .hello_timeout_ms = HELLO_MS};
    struct clients *all = calloc(1, sizeof(*all));
    int code;

    if (!all) {
        close(listen_fd);
        return err_set(err, -ENOMEM, "out of memory");
    }
    all->loop = loop;
    all->callbacks = *callbacks;
    all->data = data;
    all->next_id = 1;
    code = listener_create_fd(loop, listen_fd, CLIENTS_MAX, &options, &link_callbacks, on_accept, all, &all->listener, err);
    if (code != 0) {
        free(all);
        return code;
    }
    *out = all;
    return 0;
}

void clients_stop(struct clients *all)
{
    if (all->stopping)
        return;
    all->stopping = true;
    listener_close(all->listener);
    for (struct client *c = all->first; c; c = c->next) {
        if (c->link)
            link_close(c->link, "rsd ends");
        if (c->looking)
            (void)uv_cancel((uv_req_t *)&c->lookup);
    }
}

void clients_free(struct clients *all)
{
    if (!all)
        return;
    for (struct client *c = all->first, *next; c; c = next) {
        next = c->next;
        destroy(c);
    }
    free(all);
}
