/* client.c - the blocking connection of a program to Elmer.
 *
 * A call: connect (elmer's own socket, the local rsd's where nobody serves that one), exchange hellos, send the
 * request, take the answers with its id. The connection stays for the next call. What fails before an answer (nobody
 * listens, the link breaks, rsd says that it has no link to elmer) is tried again after a pause, with the same request:
 * all requests may be repeated. That ends with the call's deadline, or when nobody has been there for the handle's
 * patience. What elmer answers, an error too, ends the call.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "libelmer/client.h"
#include "lib/wire/channel.h"

enum {
    PATIENCE_MS = 5000,
    HELLO_MS = 5000,
    PAUSE_MIN_MS = 50,
    TELL_MS = 500,
    PAUSE_MAX_MS = 1000,
    OUT_MAX = 2 * WIRE_MAX_FRAME,
    CHALLENGE_TEXT = 65, /* as in messages.def, with the NUL */
    /* Inside a call, beside enum elmer_result: */
    TRY_AGAIN = -1,  /* the connection failed */
    NOT_LINKED = -2, /* rsd has no link to elmer now */
    GO_ON = -3,      /* more answers are to come */
    TOO_OLD = -4,    /* the other side, or elmer behind it, does not know the request */
};

struct elmer {
    const char *sockets[2]; /* in the order of trying */
    size_t nsockets;
    char *own_socket;
    int patience_ms;
    void (*on_wait)(const char *why, void *data);
    void *data;
    struct channel channel;
    bool connected;
    struct client_desk desk;
    size_t at; /* index of the socket in use */
    uint64_t next_id;
};

int client_error(struct elmer_error *error, int result, const char *format, ...)
{
    va_list args;

    if (!error)
        return result;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return result;
}

int elmer_open(const struct elmer_options *options, struct elmer **elmer, struct elmer_error *error)
{
    struct elmer *e = calloc(1, sizeof(*e));

    *elmer = NULL;
    if (!e)
        return client_error(error, ELMER_FAILED, "out of memory");
    e->patience_ms = options && options->patience_ms > 0 ? options->patience_ms : PATIENCE_MS;
    e->on_wait = options ? options->on_wait : NULL;
    e->data = options ? options->data : NULL;
    if (options && options->socket) {
        if (strlen(options->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
            free(e);
            return client_error(error, ELMER_USAGE,
                                "the path of the socket is too long (%zu bytes; a socket may have 107)",
                                strlen(options->socket));
        }
        e->own_socket = strdup(options->socket);
        if (!e->own_socket) {
            free(e);
            return client_error(error, ELMER_FAILED, "out of memory");
        }
        e->sockets[e->nsockets++] = e->own_socket;
    } else {
        e->sockets[e->nsockets++] = ELMER_RUNDIR "/elmer.sock"; /* first: an rsd's word for an administrator is none */
        e->sockets[e->nsockets++] = ELMER_RSD_RUNDIR "/rsd.sock";
    }
    *elmer = e;
    return ELMER_OK;
}

struct client_desk *client_desk(struct elmer *elmer)
{
    elmer->desk.beside = elmer->own_socket;
    return &elmer->desk;
}

static void disconnect(struct elmer *e)
{
    if (e->connected)
        channel_fini(&e->channel);
    e->connected = false;
}

void elmer_close(struct elmer *elmer)
{
    if (!elmer)
        return;
    disconnect(elmer);
    client_desk_close(&elmer->desk);
    free(elmer->own_socket);
    free(elmer);
}

/* A connected socket, or -errno. A unix socket connects at once or not at all. */
static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    memcpy(address.sun_path, path, strlen(path));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        int result = -errno;

        close(fd);
        return result;
    }
    return fd;
}

/* The first socket that somebody serves; fills in why none does. */
static int dial_any(struct elmer *e, struct elmer_error *error)
{
    int codes[2] = {0};

    for (e->at = 0; e->at < e->nsockets; e->at++) {
        int fd = dial(e->sockets[e->at]);

        if (fd >= 0)
            return fd;
        codes[e->at] = fd;
    }
    e->at = 0;
    if (e->nsockets == 1)
        client_error(error, 0, "elmer is not reachable: nobody answers at %s (%s); is the daemon running?",
                     e->sockets[0], strerror(-codes[0]));
    else
        client_error(error, 0,
                     "elmer is not reachable: nobody answers at %s (%s) nor at %s (%s); start rsd on this host "
                     "(systemctl start rsd), or see why it stopped (systemctl status rsd)",
                     e->sockets[1], strerror(-codes[1]), e->sockets[0], strerror(-codes[0]));
    return -ENOTCONN;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int exchange_hello(struct elmer *e, int64_t deadline_ms, struct elmer_error *error)
{
    struct err err = ERR_INIT;
    int result = channel_hello(&e->channel, "libelmer", deadline_ms, &err);

    if (result == 0)
        return ELMER_OK;
    if (result == -EPROTONOSUPPORT || result == -EBADMSG)
        return client_error(error, ELMER_FAILED, "%s cannot be talked to: %s", e->sockets[e->at], err.text);
    if (result == -ETIMEDOUT)
        return client_error(
            error, TRY_AGAIN,
            "elmer is not reachable: %s accepts connections but does not answer; see the log of its daemon",
            e->sockets[e->at]);
    return client_error(error, TRY_AGAIN, "elmer is not reachable by %s: %s", e->sockets[e->at], err.text);
}

static int connect_once(struct elmer *e, int64_t deadline_ms, struct elmer_error *error)
{
    int fd, result;

    if (e->connected)
        return ELMER_OK;
    fd = dial_any(e, error);
    if (fd < 0)
        return TRY_AGAIN;
    if (channel_init(&e->channel, fd, WIRE_FROM_ELMER, OUT_MAX) < 0) {
        close(fd);
        return client_error(error, ELMER_FAILED, "cannot use a socket: %s", strerror(errno));
    }
    e->connected = true;
    result = exchange_hello(e, min64(deadline_ms, mono_ms(mono_now()) + HELLO_MS), error);
    if (result != ELMER_OK)
        disconnect(e);
    return result;
}

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

/* One message. ELMER_OK: it was the last answer. */
static int take_message(struct elmer *e, uint64_t id, struct wire_message *message, struct client_call *call,
                        struct elmer_error *error)
{
    int result;

    if (message->type == WIRE_ping) {
        struct wire_message pong = {.type = WIRE_pong, .id = message->id};

        return channel_send(&e->channel, &pong, NULL) < 0 ? TRY_AGAIN : GO_ON;
    }
    if (message->type == WIRE_error && (message->id == id || message->id == 0))
        return client_error(error, result_of_code(message->u.error.code), "%s", message->u.error.text);
    if (message->id != id) /* the answer to a call that was given up */
        return GO_ON;
    result = call->take(message, call->data);
    if (result == -ENOMEM)
        return client_error(error, ELMER_FAILED, "out of memory");
    if (result < 0)
        return client_error(error, ELMER_FAILED, "unexpected answer (%s) from %s; use programs of one release",
                            wire_type_name(message->type), e->sockets[e->at]);
    return result > 0 ? GO_ON : ELMER_OK;
}

static int receive_answers(struct elmer *e, uint64_t id, struct client_call *call, int64_t deadline_ms,
                           struct elmer_error *error)
{
    for (;;) {
        struct wire_message message = {0};
        struct err err = ERR_INIT;
        int result, received = channel_receive(&e->channel, &message, deadline_ms, &err);

        if (received == 0)
            return client_error(
                error, ELMER_UNREACHABLE,
                "elmer has not answered in time (by %s); whether the request was carried out is not known: see equery",
                e->sockets[e->at]);
        if (received < 0)
            return client_error(error, TRY_AGAIN,
                                "elmer is not reachable: the connection to %s broke (%s); see the log of its daemon",
                                e->sockets[e->at], err.text);
        result = take_message(e, id, &message, call, error);
        wire_message_fini(&message);
        if (result != GO_ON)
            return result;
    }
}

/* One try; *sent: it failed after the request may have arrived. */
static int try_call(struct elmer *e, struct wire_message *request, struct client_call *call, int64_t deadline_ms,
                    bool *sent, struct elmer_error *error)
{
    struct err err = ERR_INIT;
    int result = connect_once(e, deadline_ms, error);
    int written;

    *sent = false;
    if (result == ELMER_OK && call->prepare && !call->prepared) {
        result = call->prepare(request, deadline_ms, call->data, error);
        call->prepared = result == ELMER_OK;
    }
    if (result != ELMER_OK)
        return result;
    request->id = ++e->next_id;
    if (wire_check_said(request, e->channel.minor, &err) != 0)
        return client_error(error, TOO_OLD, "%s", err.text);
    written = channel_send_all(&e->channel, request, deadline_ms, &err);
    if (written == -EMSGSIZE)
        return client_error(error, ELMER_REFUSED, "the request is too long to be sent: %s", err.text);
    if (written == -EPROTONOSUPPORT)
        return client_error(error, TOO_OLD, "%s", err.text);
    if (written < 0 && written != -EPIPE && written != -ECONNRESET)
        return client_error(error, TRY_AGAIN,
                            "elmer is not reachable: the connection to %s broke (%s); see the log of its daemon",
                            e->sockets[e->at], err.text);
    result = receive_answers(e, request->id, call, deadline_ms,
                             error); /* a peer that has refused us: its reason can still be read */
    *sent = written == 0 && result == TRY_AGAIN;
    return result;
}

/* ---- administrators on hosts of admin_hosts ---- */

static bool may_be_signed(enum wire_type type)
{
    return type == WIRE_cancel || type == WIRE_kill || type == WIRE_hold || type == WIRE_release || type == WIRE_top ||
           type == WIRE_signal_job || type == WIRE_drain || type == WIRE_remove_host || type == WIRE_set ||
           type == WIRE_note;
}

static int take_challenge(struct wire_message *answer, void *data)
{
    char *challenge = data;

    if (answer->type != WIRE_challenge)
        return -EPROTO;
    snprintf(challenge, CHALLENGE_TEXT, "%s", answer->u.challenge.challenge);
    return 0;
}

/* elmer does not do that for who asks. If he is an administrator, and this a host of admin_hosts, it does when it is
 * signed here (lib/ticket/warrant.h): it gives a challenge for that, and refuses one to all others, who get their first
 * answer. */
static int try_signed(struct elmer *e, struct wire_message *request, struct client_call *call, int64_t deadline_ms,
                      bool *sent, struct elmer_error *error)
{
    char challenge[CHALLENGE_TEXT], *json = NULL;
    struct wire_message ask = {.type = WIRE_challenge_ask}, decide, answer = {.type = WIRE_pong};
    struct client_call asked = {.take = take_challenge, .data = challenge};
    struct elmer_error why = {{0}};
    int result;

    if (!e->connected || e->channel.minor < WIRE_WARRANT_MINOR || !may_be_signed(request->type))
        return ELMER_NOT_PERMITTED;
    result = try_call(e, &ask, &asked, deadline_ms, sent, &why);
    *sent = false;
    if (result == TRY_AGAIN || result == NOT_LINKED)
        return result;
    if (result != ELMER_OK)
        return ELMER_NOT_PERMITTED;
    result = client_warrant(client_desk(e), request, e->channel.minor, challenge, deadline_ms, &decide, &answer, &json,
                            &why);
    if (result == ELMER_OK)
        result = try_call(e, &decide, call, deadline_ms, sent, error);
    else
        client_error(error, result, "%s", why.text);
    wire_message_fini(&answer);
    free(json);
    return result;
}

unsigned client_minor(const struct elmer *elmer)
{
    return elmer->channel.minor;
}

int client_call(struct elmer *e, struct wire_message *request, struct client_call *call, int timeout_ms,
                struct elmer_error *error)
{
    int64_t deadline = mono_ms(mono_now()) + (timeout_ms > 0 ? timeout_ms : 0), missing_since = -1;
    int pause = PAUSE_MIN_MS;
    bool told = false;

    call->repeated = false;
    for (;;) {
        bool sent;
        int result = try_call(e, request, call, deadline, &sent, error);
        int64_t now;

        if (result == ELMER_NOT_PERMITTED)
            result = try_signed(e, request, call, deadline, &sent, error);
        now = mono_ms(mono_now());

        if (result == TRY_AGAIN || result == ELMER_UNREACHABLE || result == ELMER_FAILED)
            disconnect(e);
        call->too_old = result == TOO_OLD;
        if (result != TRY_AGAIN && result != NOT_LINKED)
            return call->too_old ? ELMER_FAILED : result;
        call->repeated |= sent;
        if (call->restart)
            call->restart(call->data);
        if (missing_since < 0 || sent)
            missing_since = now;
        if (now + pause >= deadline || now - missing_since >= e->patience_ms)
            return ELMER_UNREACHABLE;
        if (!told && e->on_wait && now - missing_since >= TELL_MS) {
            told = true;
            e->on_wait(error ? error->text : "", e->data);
        }
        poll(NULL, 0, pause);
        pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
    }
}
