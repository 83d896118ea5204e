/* link_tls.c - TLS under a link's frames. An accepted link gets its session with the first byte, so that a connection
 * that says nothing costs little. A failed handshake drains, so that the alert arrives. The end of the stream without
 * TLS's own goodbye is an error: somebody has cut it. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/net/address.h"
#include "lib/net/link_internal.h"

enum { PLAIN_BYTES = 16 * 1024 };

static bool create_session(struct link *link)
{
    struct address address = {.host = ""};
    struct err err = ERR_INIT;
    int result = !link->listener ? address_parse(link->target, &address, &err) : 0;

    if (result == 0)
        result = tls_create(link->options.tls, address.host[0] != '\0' ? address.host : NULL, &link->tls, &err);
    if (result != 0)
        link_drop(link, "%s", err.text);
    return result == 0;
}

/* False: the link is gone. */
static bool flush(struct link *link)
{
    size_t size;
    uint8_t *bytes = tls_output(link->tls, &size);

    return !bytes || link_write(link, bytes, size) == 0;
}

/* The peer speaks Elmer's protocol in the open, so it can be told in it what is wrong. */
static void refuse_plain(struct link *link, const char *text)
{
    tls_destroy(link->tls);
    link->tls = NULL;
    link_move(link, LINK_HELLO);
    link_refuse(link, WIRE_CODE_NOT_PERMITTED, text);
}

static void shake_hands(struct link *link)
{
    struct err err = ERR_INIT;
    int result = tls_handshake(link->tls, &err);

    if (!flush(link) || result == 0)
        return;
    if (result == -EPROTONOSUPPORT && link->listener) {
        refuse_plain(link, err.text);
    } else if (result < 0) {
        link_drain(link, err.text);
    } else {
        link_move(link, LINK_HELLO);
        if (link->listener)
            listener_link_secured(link);
        else
            link_say_hello(link);
    }
}

static void take_plain(struct link *link)
{
    static _Thread_local uint8_t plain[PLAIN_BYTES]; /* used up before anything else is read */
    struct err err = ERR_INIT;
    ssize_t n;

    while (link_is_open(link) && (n = tls_read(link->tls, plain, sizeof(plain), &err)) != 0) {
        if (n > 0)
            link_take_bytes(link, plain, (size_t)n);
        else if (n == -EPIPE)
            link_drop(link, "%s", err.text);
        else if (flush(link))
            link_drain(link, err.text);
    }
    if (link_is_open(link))
        (void)flush(link);
}

void link_tls_begin(struct link *link)
{
    if (!link->listener && create_session(link))
        shake_hands(link);
}

void link_tls_input(struct link *link, const uint8_t *bytes, size_t size)
{
    if (link->state == LINK_DRAINING)
        return;
    if (!link->tls && link->listener && !listener_link_begins(link, bytes, size))
        return;
    if (!link->tls && !create_session(link))
        return;
    tls_feed(link->tls, bytes, size);
    if (link->state == LINK_SECURING)
        shake_hands(link);
    if (link->tls) {
        take_plain(link);
        tls_feed(link->tls, NULL, 0);
    }
}

int link_tls_send(struct link *link, uint8_t *frame, size_t size)
{
    size_t waiting = link_unsent(link);
    struct err err = ERR_INIT;
    int result;

    if (waiting + size > link->options.out_max) /* not worth the work; link_write() says it */
        return link_write(link, frame, size);
    result = tls_write(link->tls, frame, size, &err);
    free(frame);
    if (result != 0) {
        link_drop(link, "%s", err.text);
        return result;
    }
    frame = tls_output(link->tls, &size);
    return frame ? link_write(link, frame, size) : 0;
}

void link_tls_goodbye(struct link *link)
{
    tls_end(link->tls);
    (void)flush(link);
}

const char *link_tls_end_text(const struct link *link)
{
    if (link->state == LINK_SECURING)
        return !link->tls ? "the other side closed the connection before it said anything"
                          : "the other side closed the connection in the TLS handshake";
    return "the connection was cut off: the other side ended without TLS's goodbye";
}
