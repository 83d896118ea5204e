/* client_link.c - the connection of a program to Elmer.
 *
 * NONE -> HELLO: the first socket that somebody serves (elmer's own, the local rsd's where nobody serves that one);
 * a unix socket connects at once or not at all. Our hello is written, the peer's is waited for; some requests are not
 * (client_call.c). -> OPEN: calls write their requests, and each message that comes is handed to the one whose id it
 * has. The connection stays for the next call. Whatever breaks it -> NONE: the calls on it are told, once, with the
 * reason. Never does anything here wait.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "libelmer/client_internal.h"

enum { HELLO_MS = 5000, OUT_MAX = 2 * WIRE_MAX_FRAME };

void client_called_by(struct elmer *e, const char *user)
{
    int size = snprintf(e->capability, sizeof(e->capability), "%s%s", WIRE_CAPABILITY_SUDO, user);

    if (size < 0 || (size_t)size >= sizeof(e->capability) || !str_valid_utf8(user, strlen(user)))
        e->capability[0] = '\0';
}

void client_link_end(struct elmer *e)
{
    if (e->link != LINK_NONE) {
        client_watch_end(&e->watch);
        channel_fini(&e->channel);
    }
    e->link = LINK_NONE;
    e->given_up = 0;
}

/* A connected socket, or -errno. */
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
                     "(systemctl start rsd), and elmer on the queue host, or see why it stopped (systemctl status rsd)",
                     e->sockets[1], strerror(-codes[1]), e->sockets[0], strerror(-codes[0]));
    return -ENOTCONN;
}

int client_link_begin(struct elmer *e, struct elmer_error *error)
{
    int fd, result;

    assert(e->link == LINK_NONE && e->on_link == 0);
    fd = dial_any(e, error);
    if (fd < 0)
        return TRY_AGAIN;
    result = channel_init(&e->channel, fd, WIRE_FROM_ELMER, OUT_MAX);
    if (result < 0) {
        close(fd);
        return client_error(error, ELMER_FAILED, "cannot use a socket: %s", strerror(-result));
    }
    e->channel.minor = e->minor;
    e->link = LINK_HELLO;
    e->heard = false;
    e->link_number++;
    e->hello_deadline_ms = mono_ms(mono_now()) + HELLO_MS;
    channel_hello_say(&e->channel, "libelmer", *e->capability ? e->capability : NULL);
    return ELMER_OK;
}

static void lose(struct elmer *e, int result, const char *text)
{
    client_link_end(e);
    client_calls_lost(e, result, text);
}

void client_link_lose(struct elmer *e, const char *why)
{
    struct elmer_error text;

    if (e->link == LINK_HELLO)
        client_error(&text, 0, "elmer is not reachable by %s: %s", e->sockets[e->at], why);
    else
        client_error(&text, 0, "elmer is not reachable: the connection to %s broke (%s); see the log of its daemon",
                     e->sockets[e->at], why);
    lose(e, TRY_AGAIN, text.text);
}

static void take_hello(struct elmer *e, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    struct elmer_error text;
    unsigned presumed = e->channel.minor;
    int result = channel_hello_take(&e->channel, message, &err);

    if (result == 0) {
        e->link = LINK_OPEN;
        e->heard = true;
        e->minor = e->channel.minor;
        client_calls_heard(e, presumed);
        return;
    }
    if (message->type == WIRE_error)
        client_calls_unsaid(e);
    if (result == -EPROTONOSUPPORT || result == -EBADMSG) {
        client_error(&text, 0, "%s cannot be talked to: %s", e->sockets[e->at], err.text);
        lose(e, ELMER_FAILED, text.text);
    } else {
        client_link_lose(e, err.text);
    }
}

static void take(struct elmer *e, struct wire_message *message)
{
    if (e->link == LINK_HELLO) {
        take_hello(e, message);
    } else if (message->type == WIRE_ping) {
        struct wire_message pong = {.type = WIRE_pong, .id = message->id};
        struct err err = ERR_INIT;
        int result = channel_send(&e->channel, &pong, &err);

        if (result < 0 && result != -EPIPE && result != -ECONNRESET) /* those show when we read */
            client_link_lose(e, err.text);
    } else {
        client_calls_take(e, message);
    }
}

/* What came before the end of the connection is taken first. Whoever takes something may end it, too. */
static void read_all(struct elmer *e, bool readable)
{
    struct err err = ERR_INIT, undecodable = ERR_INIT;
    int filled = readable ? channel_fill(&e->channel, &err) : 0, got;
    unsigned number = e->link_number;
    struct wire_message message = {0};

    while ((got = channel_next(&e->channel, &message, &undecodable)) == 1) {
        take(e, &message);
        wire_message_fini(&message);
        if (e->link == LINK_NONE || e->link_number != number)
            return;
    }
    if (got < 0 && e->link == LINK_HELLO && got == -EBADMSG) {
        struct elmer_error text;

        client_error(&text, 0, "%s cannot be talked to: %s", e->sockets[e->at], undecodable.text);
        lose(e, ELMER_FAILED, text.text);
    } else if (got < 0 || filled < 0) {
        client_link_lose(e, got < 0 ? undecodable.text : err.text);
    }
}

void client_link_step(struct elmer *e, bool readable)
{
    if (e->link == LINK_NONE)
        return;
    if (channel_wants_write(&e->channel)) {
        int flushed = channel_flush(&e->channel);

        if (flushed < 0 && flushed != -EPIPE && flushed != -ECONNRESET) { /* of those the reason can be read */
            client_link_lose(e, strerror(-flushed));
            return;
        }
        if (flushed == 0 && !channel_wants_write(&e->channel))
            client_calls_written(e);
    }
    read_all(e, readable);
    if (e->link == LINK_HELLO && mono_ms(mono_now()) >= e->hello_deadline_ms) {
        struct elmer_error text;

        client_error(&text, 0,
                     "elmer is not reachable: %s accepts connections but does not answer; see the log of its daemon",
                     e->sockets[e->at]);
        lose(e, TRY_AGAIN, text.text);
    }
}
