/* uplink.c - the life of the link to elmer.
 *
 *   OFFLINE --timer--> DIALING --hellos exchanged--> GREETING --host_welcome--> READY
 *
 * GREETING: the owner asks the root half for its state and calls uplink_greet(); elmer answers host_hello with
 * host_welcome, or with an error: then it does not want this host, and the next try is late. What the owner sends
 * meanwhile is kept and follows the welcome in its order. READY: a ping each heartbeat; nothing heard for three of them
 * means that elmer or the way to it is gone. A contact, from which leases count: elmer's answer to a ping, whose id is
 * the moment when it was sent (it answers with another id while it does not count us as up), and the first order of a
 * link, which is an answer to host_hello. A failure in any state: the link is closed (CLOSING), from its last callback
 * on we are OFFLINE, and a timer with a growing, random pause leads to the next try. Each reason is logged once, until
 * it changes or a link was READY.
 *
 * elmer may have several addresses, because a queue host that is lost for good is replaced by another one. They are
 * tried in turn, each after the failure of the one before; where a link was READY is tried again first. The pause grows
 * when all of them have failed. A queue host that comes back after it was replaced is refused by the counter in its
 * certificate (lib/pki/counter.h), so two of them do not share the hosts.
 *
 * Invariants: link is NULL exactly in OFFLINE; every state but CLOSING has a deadline of its own (link.c bounds DIALING
 * and CLOSING).
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "rsd/config.h"
#include "rsd/net/uplink.h"

enum {
    PAUSE_MIN_MS = 400,
    PAUSE_MAX_MS = 5000,
    PAUSE_REFUSED_MS = 10000,
    DIAL_MS = 10000,
    GREETING_MS = 15000,
    HEARTBEAT_MIN_MS = 50,
    MISSED_MAX = 3,
    OUT_MAX = 64 << 20,
    KEPT_MAX = 32 << 20,
    HELLO_ID = 1,
};

struct kept {
    char *json;
    size_t size;
};

struct place {
    const char *address;
    char logged[1024]; /* why there is no link to it */
};

struct uplink {
    uv_loop_t *loop;
    char *addresses, *pki;
    struct place places[RSD_ELMER_MAX];
    size_t nplaces, at, tried; /* at: where the link leads, or the last try went; tried: since one was READY */
    bool again;                /* the next try goes there once more */
    struct uplink_callbacks callbacks;
    void *data;
    enum uplink_state state;
    struct link *link;
    uv_timer_t timer;
    unsigned pause_ms;
    unsigned heartbeat_ms, missed;
    bool greeted, refused, stopping, held; /* held: nobody is there for whom a link would be */
    uint64_t heard_ping;                   /* its id, 0: welcome; and when */
    int64_t heard_ms;                      /* CLOCK_BOOTTIME */
    int64_t hello_ms; /* host_hello was sent, and no order has come since; 0: not so. CLOCK_BOOTTIME */
    struct kept *kept;
    size_t nkept, kept_bytes;
    char why[1024];
    struct log_limit limit;
};

static void dial(struct uplink *u);
static void on_timer(uv_timer_t *timer);

static void move(struct uplink *u, enum uplink_state to)
{
    static const struct moves_row states[UPLINK_STATE_COUNT] = {
        [UPLINK_OFFLINE] = {"offline", MOVE_TO(UPLINK_DIALING)},
        [UPLINK_DIALING] = {"dialing", MOVE_TO(UPLINK_GREETING) | MOVE_TO(UPLINK_CLOSING) | MOVE_TO(UPLINK_OFFLINE)},
        [UPLINK_GREETING] = {"greeting", MOVE_TO(UPLINK_READY) | MOVE_TO(UPLINK_CLOSING) | MOVE_TO(UPLINK_OFFLINE)},
        [UPLINK_READY] = {"ready", MOVE_TO(UPLINK_CLOSING) | MOVE_TO(UPLINK_OFFLINE)},
        [UPLINK_CLOSING] = {"closing", MOVE_TO(UPLINK_OFFLINE)},
    };
    MOVES_CHECK("link to elmer", states, u->state, to);
    u->state = to;
}

static void arm(struct uplink *u, uint64_t ms, uint64_t repeat_ms)
{
    if (u->stopping)
        return;
    uv_update_time(u->loop);
    (void)uv_timer_start(&u->timer, on_timer, ms, repeat_ms);
}

static void drop_kept(struct uplink *u)
{
    for (size_t i = 0; i < u->nkept; i++)
        free(u->kept[i].json);
    free(u->kept);
    u->kept = NULL;
    u->nkept = u->kept_bytes = 0;
}

/* ---- the end of a link ---- */

static void note_why(struct uplink *u, const char *text)
{
    struct place *place = &u->places[u->at];
    bool new;

    if (u->stopping)
        return;
    (void)str_printable(u->why, sizeof(u->why), text, strlen(text));
    new = strcmp(u->why, place->logged) != 0;
    memcpy(place->logged, u->why, sizeof(place->logged));
    if (new || u->nplaces > 1)
        u->callbacks.on_why(u->data);
    if (new &&log_allowed(&u->limit, 10, 60000))
        log_warning("elmer=%s no link: %s; trying again", place->address, u->why);
}

/* GREETING or READY ends; once for each. */
static void leave(struct uplink *u, const char *text)
{
    bool told = u->state == UPLINK_GREETING || u->state == UPLINK_READY;

    if (u->state == UPLINK_CLOSING)
        return;
    note_why(u, text[0] ? text : "the link was closed");
    (void)uv_timer_stop(&u->timer);
    drop_kept(u);
    move(u, UPLINK_CLOSING);
    if (told && !u->stopping)
        u->callbacks.on_offline(u->data);
}

/* Somewhere between half of it and all of it, so that the hosts of a cluster do not come back in one moment. */
static unsigned with_jitter(unsigned ms)
{
    return ms / 2 + (unsigned)random() % (ms / 2 + 1);
}

static void schedule_dial(struct uplink *u)
{
    unsigned pause = u->refused ? PAUSE_REFUSED_MS : u->pause_ms;

    if (++u->tried % u->nplaces == 0)
        u->pause_ms = u->pause_ms * 2 < PAUSE_MAX_MS ? u->pause_ms * 2 : PAUSE_MAX_MS;
    arm(u, with_jitter(pause), 0);
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct uplink *u = data;

    if (link_was_refused(link)) /* elmer shows us the door with a sentence; it did not just go away */
        u->refused = true;
    leave(u, text);
    u->link = NULL;
    move(u, UPLINK_OFFLINE);
    schedule_dial(u);
}

void uplink_drop(struct uplink *u, const char *text)
{
    if (u->state != UPLINK_DIALING && u->state != UPLINK_GREETING && u->state != UPLINK_READY)
        return;
    leave(u, text);
    link_close(u->link, text);
}

void uplink_hold(struct uplink *u, const char *why)
{
    u->held = why != NULL;
    if (why)
        uplink_drop(u, why);
    else if (u->state == UPLINK_OFFLINE)
        arm(u, 0, 0);
}

/* ---- the beginning of a link ---- */

static void on_ready(struct link *link, void *data)
{
    struct uplink *u = data;

    (void)link;
    if (u->state != UPLINK_DIALING)
        return;
    move(u, UPLINK_GREETING);
    u->greeted = u->refused = false;
    arm(u, GREETING_MS, 0);
    u->callbacks.on_greeting(u->data);
}

void uplink_greet(struct uplink *u, const struct wire_host_hello *hello)
{
    struct wire_message message = {.type = WIRE_host_hello, .id = HELLO_ID, .u.host_hello = *hello};
    int result;

    if (u->state != UPLINK_GREETING || u->greeted)
        return;
    u->hello_ms = boot_ms();
    result = link_send(u->link, &message);
    if (result == 0)
        u->greeted = true;
    else
        uplink_drop(u, "host_hello cannot be sent");
}

static int keep(struct uplink *u, const struct wire_message *message)
{
    struct kept *grown, item;
    int result = wire_encode(message, WIRE_MINOR, &item.json, &item.size, NULL);

    if (result != 0)
        return result;
    grown = u->kept_bytes + item.size > KEPT_MAX ? NULL : reallocarray(u->kept, u->nkept + 1, sizeof(*grown));
    if (!grown) {
        free(item.json);
        uplink_drop(u, "too much to tell before elmer has said welcome");
        return -ENOBUFS;
    }
    assert(u->state == UPLINK_GREETING);
    u->kept = grown;
    u->kept[u->nkept++] = item;
    u->kept_bytes += item.size;
    return 0;
}

int uplink_send(struct uplink *u, const struct wire_message *message)
{
    if (u->state == UPLINK_GREETING)
        return keep(u, message);
    return u->state == UPLINK_READY ? link_send(u->link, message) : -ENOTCONN;
}

int uplink_offer(struct uplink *u, const struct wire_message *message)
{
    return u->state == UPLINK_READY ? link_offer(u->link, message) : -ENOTCONN;
}

static void take_welcome(struct uplink *u, const struct wire_host_welcome *welcome)
{
    assert(u->greeted && u->link);
    move(u, UPLINK_READY);
    log_notice("elmer=%s linked", uplink_address(u));
    u->why[0] = '\0';
    for (size_t i = 0; i < u->nplaces; i++)
        u->places[i].logged[0] = '\0';
    u->again = true;
    u->tried = 0;
    u->callbacks.on_why(u->data);
    u->pause_ms = PAUSE_MIN_MS;
    u->missed = 0;
    u->heard_ping = 0;
    u->heard_ms = boot_ms();
    u->heartbeat_ms = welcome->heartbeat_ms > HEARTBEAT_MIN_MS ? (unsigned)welcome->heartbeat_ms : HEARTBEAT_MIN_MS;
    arm(u, u->heartbeat_ms, u->heartbeat_ms);
    for (size_t i = 0; i < u->nkept; i++)
        if (link_send_json(u->link, u->kept[i].json, u->kept[i].size) != 0)
            break; /* the link closes itself, and everything is said again on the next one */
    drop_kept(u);
    u->callbacks.on_ready(welcome, u->data);
}

/* ---- messages ---- */

static void take_greeting_answer(struct uplink *u, const struct wire_message *message)
{
    if (message->type == WIRE_host_welcome && u->greeted) {
        take_welcome(u, &message->u.host_welcome);
    } else if (message->type == WIRE_error) {
        u->refused = true;
        uplink_drop(u, message->u.error.text);
    } else {
        char text[100];

        (void)snprintf(text, sizeof(text), "elmer sent %s before welcome", wire_type_name(message->type));
        uplink_drop(u, text);
    }
}

static void take_pong(struct uplink *u, uint64_t said_ms)
{
    if (u->state == UPLINK_READY && said_ms > 0 && said_ms <= (uint64_t)boot_ms())
        u->callbacks.on_contact((int64_t)said_ms, u->data);
}

static void take_order(struct uplink *u)
{
    if (u->hello_ms > 0)
        u->callbacks.on_contact(u->hello_ms, u->data);
    u->hello_ms = 0;
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct uplink *u = data;

    u->missed = 0;
    if (message->type == WIRE_pong) {
        take_pong(u, message->id);
        return;
    }
    if (message->type == WIRE_ping) {
        struct wire_message pong = {.type = WIRE_pong, .id = message->id};

        u->heard_ping = message->id;
        u->heard_ms = boot_ms();
        (void)link_send(link, &pong);
    } else if (u->state == UPLINK_GREETING) {
        take_greeting_answer(u, message);
    } else if (u->state == UPLINK_READY) {
        if (message->type == WIRE_order)
            take_order(u);
        u->callbacks.on_message(message, u->data);
    }
}

void uplink_heard(const struct uplink *u, uint64_t *ping, uint64_t *since_ms)
{
    int64_t since = boot_ms() - u->heard_ms;

    *ping = u->heard_ping;
    *since_ms = since < 0 ? 0 : since > UINT32_MAX ? UINT32_MAX : (uint64_t)since;
}

/* ---- time ---- */

static void heartbeat(struct uplink *u)
{
    struct wire_message ping = {.type = WIRE_ping, .id = (uint64_t)boot_ms()};

    if (u->missed++ < MISSED_MAX) {
        (void)link_send(u->link, &ping);
        return;
    }
    uplink_drop(u, "elmer has been silent for three heartbeats");
}

static void on_timer(uv_timer_t *timer)
{
    struct uplink *u = timer->data;

    switch (u->state) {
    case UPLINK_OFFLINE:
        if (!u->held)
            dial(u);
        break;
    case UPLINK_GREETING:
        uplink_drop(u, u->greeted ? "elmer does not answer host_hello"
                                  : "the root half of rsd did not say its state in time");
        break;
    case UPLINK_READY:
        heartbeat(u);
        break;
    case UPLINK_DIALING: /* bounded by link.c */
    case UPLINK_CLOSING:
    case UPLINK_STATE_COUNT:
        break;
    }
}

static int read_certificates(struct uplink *u, struct tls_context **tls, struct err *err)
{
    struct err why = ERR_INIT;
    int result = u->pki ? tls_context_client(u->pki, tls, &why) : 0;

    if (result == 0)
        return 0;
    return err_set(
        err, result,
        "this host's certificate cannot be used (%s): make a token on the queue host (eadmin token) and join "
        "the cluster here (rsd --join %s TOKEN)",
        why.text, uplink_address(u));
}

static void dial(struct uplink *u)
{
    static const struct link_callbacks callbacks = {
        .on_ready = on_ready, .on_message = on_message, .on_close = on_close};
    struct link_options options = {
        .program = "rsd", .peer = WIRE_FROM_ELMER, .out_max = OUT_MAX, .hello_timeout_ms = DIAL_MS};
    struct err err = ERR_INIT;
    int result;

    if (!u->again)
        u->at = (u->at + 1) % u->nplaces;
    u->again = false;
    result = read_certificates(u, &options.tls, &err);
    if (result == 0)
        result = link_connect(u->loop, uplink_address(u), DIAL_MS, &options, &callbacks, u, &u->link, &err);
    tls_context_unref(options.tls); /* the link has its own reference */
    if (result == 0) {
        move(u, UPLINK_DIALING);
        return;
    }
    u->link = NULL;
    note_why(u, err.text);
    schedule_dial(u);
}

/* ---- the handle ---- */

/* False: out of memory. */
static bool read_addresses(struct uplink *u, const char *addresses)
{
    char *rest = u->addresses = strdup(addresses);

    for (char *word; u->addresses && u->nplaces < RSD_ELMER_MAX && (word = strsep(&rest, " "));)
        u->places[u->nplaces++].address = word;
    return u->addresses != NULL;
}

struct uplink *uplink_create(uv_loop_t *loop, const char *addresses, const char *pki,
                             const struct uplink_callbacks *callbacks, void *data)
{
    struct uplink *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->again = true;
    u->pki = pki ? strdup(pki) : NULL;
    if (!read_addresses(u, addresses) || (pki && !u->pki)) {
        uplink_free(u);
        return NULL;
    }
    u->loop = loop;
    u->callbacks = *callbacks;
    u->data = data;
    u->pause_ms = PAUSE_MIN_MS;
    srandom((unsigned)mono_now().ns ^ (unsigned)uv_os_getpid() << 16);
    (void)uv_timer_init(loop, &u->timer);
    u->timer.data = u;
    arm(u, 0, 0);
    return u;
}

void uplink_stop(struct uplink *u)
{
    if (u->stopping)
        return;
    u->stopping = true;
    uplink_drop(u, "rsd ends");
    uv_close((uv_handle_t *)&u->timer, NULL);
}

void uplink_free(struct uplink *u)
{
    if (!u)
        return;
    drop_kept(u);
    free(u->addresses);
    free(u->pki);
    free(u);
}

enum uplink_state uplink_state(const struct uplink *u)
{
    return u->state;
}

const char *uplink_address(const struct uplink *u)
{
    return u->places[u->at].address;
}

const char *uplink_why(const struct uplink *u)
{
    return u->why;
}

unsigned uplink_minor(const struct uplink *u)
{
    return u->link ? link_minor(u->link) : 0;
}

const char *uplink_local_address(const struct uplink *u)
{
    return u->link ? link_local_address(u->link) : "";
}
