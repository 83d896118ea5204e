/* clients.c - programs of local users.
 *
 * A connection: the kernel names the user (SO_PEERCRED), a worker thread finds his name meanwhile (name services may be
 * slow, the loop must not be), each request is decoded, encoded anew and sent to elmer inside relay; the answer comes
 * back inside relayed, and goes on as it is. We remember the ids that wait for an answer: when the link to elmer is
 * lost, each gets an error `unreachable` and may ask again. A program that reads slower than elmer answers: elmer is
 * told (relay_room), and goes on with its list when there is room. Failures: no link to elmer: `unreachable` at once. A
 * user without a name, garbage, a message that is no request, an id twice: an error, and the connection ends. Too many
 * connections or requests: an error.
 *
 * Invariants: elmer hears relay_closed for each client that it has heard of on the present link; a client is freed when
 * both its link and its worker have ended.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/net/link.h"
#include "rsd/net/clients_internal.h"

enum {
    CLIENTS_MAX = 4096,
    FRAME_MAX = 786432,
    OUT_MAX = 16 << 20,
    BYTES_OF_ALL = 128 << 20,
    STALL_MS = 30000,
    HELLO_MS = 5000,
    LOG_BURST = 30,
    LOG_WINDOW_MS = 10000,
};

/* What users may say and not everybody: so a new request needs no list here. */
static bool is_request(enum wire_type type)
{
    return wire_may_send(type, WIRE_FROM_CLIENT) && !wire_may_send(type, WIRE_FROM_AGENT);
}

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

    (void)snprintf(text, sizeof(text),
                   "the rsd of this host has no link to elmer (%.700s); see that elmer runs, and elmer = in rsd.conf",
                   why[0] ? why : "not yet");
    send_error(c, id, WIRE_CODE_UNREACHABLE, text);
}

/* ---- requests ---- */

/* It is one JSON string inside another message, and for a link that speaks another minor version perhaps than our
 * client. */
static int send_relay(struct client *c, const struct wire_message *message, struct err *err)
{
    struct clients *all = c->all;
    struct wire_message relay = {.type = WIRE_relay, .u.relay = {.client = c->id, .uid = c->uid, .user = c->user}};
    char *frame;
    size_t size;
    int minor = all->callbacks.minor(all->data);
    int result = minor < 0 ? minor : wire_check_said(message, (unsigned)minor, err);

    if (result == 0)
        result = wire_encode(message, (unsigned)minor, &frame, &size, err);
    if (result != 0)
        return result;
    relay.u.relay.frame = frame;
    result = size > FRAME_MAX ? -EMSGSIZE : all->callbacks.send(&relay, all->data);
    free(frame);
    return result;
}

static void relay_request(struct client *c, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    int result = send_relay(c, message, &err);

    if (result == 0) {
        c->heard_of = true;
        return;
    }
    outstanding_remove(&c->requests, message->id);
    if (result == -ENOTCONN || result == -ENOBUFS)
        send_unreachable(c, message->id);
    else if (result == -EPROTONOSUPPORT)
        send_error(c, message->id, WIRE_CODE_VERSION, err.text);
    else if (result == -ENOMEM)
        send_error(c, message->id, WIRE_CODE_UNAVAILABLE,
                   "the rsd of this host has no memory for this request now; try again later");
    else
        send_error(c, message->id, WIRE_CODE_REFUSED,
                   "the request is too long; use a shorter command, fewer or shorter variables");
}

static void log_refusal(struct clients *all, uid_t uid, const char *text)
{
    if (log_allowed(&all->limit, LOG_BURST, LOG_WINDOW_MS))
        log_warning("uid=%lu refused: %s", (unsigned long)uid, text);
}

static void free_held(struct wire_message *held)
{
    wire_message_fini(held);
    free(held);
}

static void take_request(struct client *c, struct wire_message *message)
{
    char text[QUOTA_TEXT];

    assert(c->nheld < REQUESTS_MAX);
    if (!outstanding_add(&c->requests, c->all->quotas, message->id, message->bytes, text)) {
        log_refusal(c->all, c->uid, text);
        send_error(c, message->id, WIRE_CODE_REFUSED, text);
        return;
    }
    if (c->named) {
        relay_request(c, message);
    } else {
        struct wire_message *held = malloc(sizeof(*held));

        if (!held) {
            outstanding_remove(&c->requests, message->id);
            send_error(c, message->id, WIRE_CODE_REFUSED, "out of memory; try again later");
            return;
        }
        *held = *message;
        message->memory = NULL;
        c->held[c->nheld++] = held;
    }
}

/* ---- limits ---- */

static bool is_within_limits(struct client *c, const struct wire_message *message)
{
    enum quota_verdict verdict;
    char text[QUOTA_TEXT];

    if (!c->quota)
        return true;
    verdict = quota_request(c->all->quotas, c->quota, mono_ms(mono_now()), message->bytes, text);
    if (verdict == QUOTA_FINE)
        return true;
    log_refusal(c->all, c->uid, text);
    send_error(c, message->id, WIRE_CODE_REFUSED, text);
    if (verdict == QUOTA_CUT)
        link_close(c->link, text);
    return false;
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct client *c = data;

    if (!is_within_limits(c, message) || message->type == WIRE_pong)
        return;
    if (message->type == WIRE_ping) {
        struct wire_message pong = {.type = WIRE_pong, .id = message->id};

        (void)link_send(link, &pong);
    } else if (!is_request(message->type)) {
        refuse(c, message->id, WIRE_CODE_BAD_MESSAGE, "this message is no request; the connection ends");
    } else if (message->id == 0 || outstanding_has(&c->requests, message->id)) {
        refuse(c, message->id, WIRE_CODE_BAD_MESSAGE,
               "each request needs an id of its own, from 1 on; the connection ends");
    } else if (c->requests.count == REQUESTS_MAX) {
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

    if (getpwuid_r(c->uid, &passwd, buffer, sizeof(buffer), &found) == 0 && found &&
        strlen(found->pw_name) < sizeof(c->user))
        memcpy(c->user, found->pw_name, strlen(found->pw_name) + 1);
}

static void destroy(struct client *c)
{
    for (unsigned i = 0; i < c->nheld; i++)
        free_held(c->held[i]);
    while (c->requests.count > 0)
        outstanding_remove(&c->requests, c->requests.items[0].id);
    free(c);
}

static void remove_client(struct client *c)
{
    struct client **at = &c->all->first;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    assert(!c->link && !c->looking && c->all->count > 0);
    c->all->count--;
    if (c->quota)
        quota_disconnect(c->quota);
    clients_wake_user(c->all, c->quota);
    destroy(c);
}

static void on_looked_up(uv_work_t *work, int status)
{
    struct client *c = work->data;
    unsigned nheld = c->nheld;

    assert(c->looking && !c->named);
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
            relay_request(c, c->held[i]);
        free_held(c->held[i]);
    }
}

/* ---- links ---- */

static void on_room(struct link *link, void *data)
{
    (void)link;
    client_note_room(data);
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct client *c = data;
    struct clients *all = c->all;

    (void)link;
    c->link = NULL;
    /* A closed connection is how a program ends; anything else is a fact to know. */
    if (!all->stopping && strcmp(text, "the other side closed the connection") != 0 &&
        log_allowed(&all->limit, LOG_BURST, LOG_WINDOW_MS))
        log_warning("uid=%lu connection of a local program ended: %s", (unsigned long)c->uid, text);
    if (c->heard_of && !all->stopping) {
        struct wire_message closed = {.type = WIRE_relay_closed, .u.relay_closed = {.client = c->id}};

        (void)all->callbacks.send(&closed, all->data);
    }
    if (!c->looking)
        remove_client(c);
}

/* NULL: he may not, why in text. */
static struct quota *connect_user(struct clients *all, uid_t uid, char *text)
{
    int64_t now_ms = mono_ms(mono_now());
    struct quota *quota = quota_of(all->quotas, uid, now_ms);
    bool crowded = all->count >= CLIENTS_MAX * 3 / 4;

    if (!quota)
        (void)snprintf(text, QUOTA_TEXT, "out of memory; try again later");
    else if (quota_connect(all->quotas, quota, now_ms, crowded, text) == QUOTA_FINE)
        return quota;
    return NULL;
}

static void *on_accept(struct link *link, void *data)
{
    struct clients *all = data;
    struct client *c = calloc(1, sizeof(*c));
    char text[QUOTA_TEXT];
    gid_t gid;
    pid_t pid;

    if (!c || all->stopping || link_peer_cred(link, &c->uid, &gid, &pid) != 0) {
        free(c);
        return NULL;
    }
    if (c->uid != 0 && !(c->quota = connect_user(all, c->uid, text))) {
        log_refusal(all, c->uid, text);
        link_refuse(link, WIRE_CODE_REFUSED, text);
        free(c);
        return NULL;
    }
    c->all = all;
    c->link = link;
    c->id = all->next_id++;
    c->lookup.data = c;
    c->looking = uv_queue_work(all->loop, &c->lookup, look_up, on_looked_up) == 0;
    if (!c->looking) {
        if (c->quota)
            quota_disconnect(c->quota);
        free(c);
        return NULL;
    }
    c->requests.quota = c->quota;
    if (c->quota)
        link_set_budget(link, &c->quota->bytes);
    c->next = all->first;
    all->first = c;
    all->count++;
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

/* As it came if the program speaks the minor of the link to elmer; it is the one who decodes it. */
static int pass_on(struct client *c, const char *frame, size_t size, unsigned minor, struct err *err)
{
    struct wire_message answer;
    int result;

    if (link_minor(c->link) == minor) {
        (void)link_send_json(c->link, frame, size);
        return 0;
    }
    result = wire_decode(frame, size, minor, &answer, err);
    if (result != 0)
        return result;
    (void)link_send(c->link, &answer);
    wire_message_fini(&answer);
    return 0;
}

void clients_relayed(struct clients *all, const struct wire_relayed *relayed)
{
    struct client *c = find(all, relayed->client);
    const int minor = all->callbacks.minor(all->data);
    size_t size = strlen(relayed->frame);
    struct wire_head head;
    struct err err = ERR_INIT;
    int result;

    if (!c || minor < 0) /* it has left, or what it waits for has been answered */
        return;
    result = wire_decode_head(relayed->frame, size, (unsigned)minor, &head, &err);
    if (result == 0 && wire_may_send(head.type, WIRE_FROM_ELMER) &&
        (head.id == 0 || outstanding_has(&c->requests, head.id))) {
        if (!head.more)
            outstanding_remove(&c->requests, head.id);
        result = pass_on(c, relayed->frame, size, (unsigned)minor, &err);
        client_note_full(c);
    }
    if (result != 0 && log_allowed(&all->limit, LOG_BURST, LOG_WINDOW_MS))
        log_error("an answer of elmer to a local program cannot be decoded: %s", err.text);
}

void clients_offline(struct clients *all)
{
    for (struct client *c = all->first; c; c = c->next) {
        c->heard_of = c->full = false;
        while (c->link && c->named && c->requests.count > 0) { /* what is held has not been sent */
            uint64_t id = c->requests.items[0].id;

            outstanding_remove(&c->requests, id);
            send_unreachable(c, id);
        }
    }
}

/* ---- the whole ---- */

int clients_create(uv_loop_t *loop, int listen_fd, const struct clients_limits *limits,
                   const struct clients_callbacks *callbacks, void *data, struct clients **out, struct err *err)
{
    static const struct link_callbacks link_callbacks = {
        .on_message = on_message, .on_close = on_close, .on_room = on_room};
    struct link_options options = {.program = "rsd",
                                   .peer = WIRE_FROM_CLIENT,
                                   .out_max = OUT_MAX,
                                   .stall_ms = STALL_MS,
                                   .hello_timeout_ms = HELLO_MS};
    const struct quota_limits quota_limits = {.daemon = "rsd",
                                              .config = "rsd.conf",
                                              .connections = limits->connections,
                                              .requests = limits->requests,
                                              .burst = limits->burst,
                                              .bytes_of_all = BYTES_OF_ALL};
    struct clients *all = calloc(1, sizeof(*all));
    int result;

    if (!all || !(all->quotas = quotas_create(&quota_limits))) {
        free(all);
        close(listen_fd);
        return err_set(err, -ENOMEM, "out of memory");
    }
    all->loop = loop;
    all->callbacks = *callbacks;
    all->data = data;
    all->next_id = 1;
    result = listener_create_fd(loop, listen_fd, CLIENTS_MAX, &options, &link_callbacks, on_accept, all, &all->listener,
                                err);
    if (result != 0) {
        quotas_destroy(all->quotas);
        free(all);
        return result;
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
    quotas_destroy(all->quotas);
    free(all);
}
