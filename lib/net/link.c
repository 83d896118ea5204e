/* link.c - a link's life:
 *
 *   RESOLVING -> CONNECTING (dial.c) -> SECURING (link_tls.c) -> HELLO -> READY -> DRAINING -> CLOSED -> freed
 *
 * An accepted link and one around a given socket begin in SECURING, or in HELLO when there is no TLS. Both ends send
 * their hello at once; the first frame that comes must be a hello (or an error: the peer refuses us). In READY each
 * frame is decoded, checked against what the peer may send, and handed to the owner. link_close() drains: what is
 * queued is written, then our side is shut down, and what still comes is thrown away until the peer closes, because
 * closing a TCP socket with unread bytes would destroy our last message on its way. A second bounds this.
 *
 * Failures: an undecodable frame, a frame that the peer may not send, a missing or wrong hello: an error message, then
 * DRAINING. End of file, a broken socket, a peer that does not read (out_max, stall_ms, its budget): CLOSED at once.
 *
 * Invariants: on_close comes exactly once, last, and from libuv's close callback, so never from within a call of the
 * owner; no callback of the owner comes in DRAINING or CLOSED; the link is freed when libuv has let go of its last
 * handle. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "lib/net/link_internal.h"

enum { DRAIN_MS = 1000 };

void link_move(struct link *link, enum link_state to)
{
    static const struct moves_row states[LINK_STATE_COUNT] = {
        [LINK_RESOLVING] = {"resolving", MOVE_TO(LINK_CONNECTING) | MOVE_TO(LINK_CLOSED)},
        [LINK_CONNECTING] = {"connecting", MOVE_TO(LINK_SECURING) | MOVE_TO(LINK_HELLO) | MOVE_TO(LINK_CLOSED)},
        [LINK_SECURING] = {"securing", MOVE_TO(LINK_HELLO) | MOVE_TO(LINK_DRAINING) | MOVE_TO(LINK_CLOSED)},
        [LINK_HELLO] = {"hello", MOVE_TO(LINK_READY) | MOVE_TO(LINK_DRAINING) | MOVE_TO(LINK_CLOSED)},
        [LINK_READY] = {"ready", MOVE_TO(LINK_DRAINING) | MOVE_TO(LINK_CLOSED)},
        [LINK_DRAINING] = {"draining", MOVE_TO(LINK_CLOSED)},
        [LINK_CLOSED] = {"closed", 0},
    };
    MOVES_CHECK("link", states, link->state, to);
    link->state = to;
}

bool link_is_open(const struct link *link)
{
    return link->state == LINK_HELLO || link->state == LINK_READY;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf);

/* ---- the end ---- */

void link_handle_gone(struct link *link)
{
    assert(link->handles > 0);
    if (--link->handles > 0)
        return;
    assert(link->state == LINK_CLOSED);
    if (link->callbacks.on_close)
        link->callbacks.on_close(link, link->text, link->data);
    if (link->listener)
        listener_link_gone(link);
    frame_reader_fini(&link->in);
    free(link->first);
    tls_destroy(link->tls);
    tls_context_unref(link->options.tls);
    free(link);
}

static void on_gone(uv_handle_t *handle)
{
    link_handle_gone(handle->data);
}

static void set_text(struct link *link, const char *text)
{
    if (link->text[0] == '\0' && text)
        (void)str_printable(link->text, sizeof(link->text), text, strlen(text));
}

void link_drop(struct link *link, const char *format, ...)
{
    char text[sizeof(link->text)];
    va_list args;

    if (link->state == LINK_CLOSED)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (link->state != LINK_DRAINING) /* else the reason has been given */
        set_text(link, text);
    link_move(link, LINK_CLOSED);
    dial_cancel(link);
    uv_close((uv_handle_t *)&link->timer, on_gone);
    if (link->io_open && !uv_is_closing(&link->io.handle))
        uv_close(&link->io.handle, on_gone);
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct link *link = request->data;

    if (link->state == LINK_DRAINING && status < 0)
        link_drop(link, "%s", "");
}

void link_close(struct link *link, const char *text)
{
    if (link->state == LINK_DRAINING || link->state == LINK_CLOSED)
        return;
    set_text(link, text);
    if (!link_is_open(link)) {
        link_drop(link, "%s", "");
        return;
    }
    if (link->tls)
        link_tls_goodbye(link);
    if (link_is_open(link)) /* else the goodbye could not be written */
        link_drain(link, NULL);
}

void link_drain(struct link *link, const char *text)
{
    set_text(link, text);
    link_move(link, LINK_DRAINING);
    link_timer(link, DRAIN_MS);
    (void)uv_read_start(&link->io.stream, on_alloc, on_read); /* the end of the stream must be seen; -EALREADY mostly */
    link->shutdown.data = link;
    if (uv_shutdown(&link->shutdown, &link->io.stream, on_shutdown) != 0)
        link_drop(link, "%s", "");
}

/* ---- reading ---- */

int link_start_reading(struct link *link)
{
    int result = uv_read_start(&link->io.stream, on_alloc, on_read);

    if (result != 0)
        link_drop(link, "reading failed: %s", uv_strerror(result));
    return result;
}

void link_stop_reading(struct link *link)
{
    (void)uv_read_stop(&link->io.stream);
}

static void become_ready(struct link *link)
{
    (void)uv_timer_stop(&link->timer);
    if (link->options.no_hello && link_start_reading(link) != 0)
        return;
    link_move(link, LINK_READY);
    if (link->callbacks.on_ready)
        link->callbacks.on_ready(link, link->data);
}

static void keep_capability(struct link *link, const struct wire_strs *capabilities)
{
    const char *first = capabilities->count > 0 ? capabilities->items[0] : "";

    if (strlen(first) < sizeof(link->capability))
        (void)snprintf(link->capability, sizeof(link->capability), "%s", first);
}

static void take_hello(struct link *link, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    int minor;

    if (message->type != WIRE_hello) {
        link_refuse(link, WIRE_CODE_BAD_MESSAGE, "the first message must be hello");
        return;
    }
    minor = wire_hello_check(&message->u.hello, &err);
    if (minor < 0) {
        link_refuse(link, WIRE_CODE_VERSION, err.text);
        return;
    }
    link->minor = (unsigned)minor;
    keep_capability(link, &message->u.hello.capabilities);
    become_ready(link);
}

static void take_message(struct link *link, struct wire_message *message)
{
    char text[100];

    if (message->type == WIRE_error && message->id == 0) {
        link->was_refused = true;
        link_close(link, message->u.error.text[0] == '\0' ? "refused by the other side" : message->u.error.text);
    } else if (link->state == LINK_HELLO) {
        take_hello(link, message);
    } else if (message->type == WIRE_hello || !wire_may_send(message->type, link->options.peer)) {
        (void)snprintf(text, sizeof(text), "%s: not a message that you may send now", wire_type_name(message->type));
        link_refuse(link, WIRE_CODE_BAD_MESSAGE, text);
    } else if (link->callbacks.on_message) {
        link->callbacks.on_message(link, message, link->data);
    }
}

static void take_frames(struct link *link)
{
    const char *json;
    size_t size;
    int got;

    while (link_is_open(link) && (got = frame_reader_next(&link->in, &json, &size)) > 0) {
        struct wire_message message;
        struct err err = ERR_INIT;
        int result = got == 1 ? wire_decode(json, size, link->minor, &message, &err) : -ENOMEM;

        if (result == -ENOMEM) {
            link_no_memory(link, json, size);
        } else if (result != 0) {
            link_refuse(link, WIRE_CODE_BAD_MESSAGE, err.text);
        } else {
            take_message(link, &message);
            wire_message_fini(&message);
        }
    }
}

/* libuv reads into it and calls on_read at once, so all streams of a thread can share it. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static _Thread_local char bytes[64 * 1024];

    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(bytes, sizeof(bytes));
}

static const char *end_text(const struct link *link)
{
    return link->options.tls ? link_tls_end_text(link) : "the other side closed the connection";
}

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct link *link = stream->data;

    if (link->state == LINK_CLOSED || nread == 0)
        return;
    if (nread < 0)
        link_drop(link, "%s", nread == UV_EOF ? end_text(link) : uv_strerror((int)nread));
    else if (link->tls || link->state == LINK_SECURING)
        link_tls_input(link, (const uint8_t *)buf->base, (size_t)nread);
    else
        link_take_bytes(link, (const uint8_t *)buf->base, (size_t)nread);
}

void link_take_bytes(struct link *link, const uint8_t *bytes, size_t size)
{
    char text[100];
    int result;

    if (!link_is_open(link))
        return;
    result = frame_reader_push(&link->in, bytes, size);
    if (result == -ENOMEM) {
        link_drop(link, "out of memory");
        return;
    }
    take_frames(link);
    if (result != 0 && link_is_open(link)) {
        (void)snprintf(text, sizeof(text), "not Elmer's protocol: a frame has a length of 4 bytes and at most %zu KiB",
                       link->in.max / 1024);
        link_refuse(link, WIRE_CODE_BAD_MESSAGE, text);
    }
}

/* ---- the beginning ---- */

static void on_timer(uv_timer_t *timer)
{
    struct link *link = timer->data;
    char text[100];

    switch (link->state) {
    case LINK_RESOLVING:
    case LINK_CONNECTING:
        dial_timeout(link);
        break;
    case LINK_SECURING:
        link_drop(link, "the TLS handshake was not done within %u ms", link->options.hello_timeout_ms);
        break;
    case LINK_HELLO:
        if (link->options.no_hello) {
            become_ready(link);
            break;
        }
        (void)snprintf(text, sizeof(text), "no hello came within %u ms", link->options.hello_timeout_ms);
        link_refuse(link, WIRE_CODE_BAD_MESSAGE, text);
        break;
    case LINK_DRAINING:
        link_drop(link, "%s", "");
        break;
    case LINK_READY:
        link_watch_reader(link);
        break;
    case LINK_CLOSED:
    case LINK_STATE_COUNT:
        break;
    }
}

void link_timer(struct link *link, int64_t ms)
{
    uv_update_time(link->loop);
    (void)uv_timer_start(&link->timer, on_timer, ms > 0 ? (uint64_t)ms : 0, 0);
}

struct link *link_create(uv_loop_t *loop, enum link_state state, const struct link_options *options,
                         const struct link_callbacks *callbacks, void *data)
{
    struct link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->loop = loop;
    link->state = state;
    link->options = *options;
    if (callbacks)
        link->callbacks = *callbacks;
    link->data = data;
    if (options->tls)
        (void)tls_context_ref(options->tls);
    link->minor = options->no_hello ? WIRE_MINOR : 0;
    frame_reader_init(&link->in, WIRE_MAX_FRAME);
    link->in.may_lose = true;
    (void)uv_timer_init(loop, &link->timer);
    link->timer.data = link;
    link->handles = 1;
    return link;
}

enum link_state link_first_state(const struct link_options *options)
{
    return options->tls ? LINK_SECURING : LINK_HELLO;
}

void link_begin(struct link *link)
{
    if (link->options.no_hello) {
        link_timer(link, 0);
        return;
    }
    if (link_start_reading(link) != 0)
        return;
    link_timer(link, link->options.hello_timeout_ms);
    if (link->state == LINK_SECURING)
        link_tls_begin(link);
    else
        link_say_hello(link);
}

void link_say_hello(struct link *link)
{
    struct wire_message hello;

    wire_hello_fill(&hello, link->options.program);
    (void)link_put(link, &hello);
}

int link_open_fd(uv_loop_t *loop, int fd, const struct link_options *options, const struct link_callbacks *callbacks,
                 void *data, struct link **out, struct err *err)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    struct link *link;
    int result;

    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        result = -errno;
        (void)close(fd);
        return err_set(err, result, "not a socket: %s", strerror(-result));
    }
    link = link_create(loop, link_first_state(options), options, callbacks, data);
    if (!link) {
        (void)close(fd);
        return err_set(err, -ENOMEM, "out of memory");
    }
    result = link_io_init(link, address.ss_family == AF_UNIX, fd);
    if (result != 0) {
        link->callbacks = (struct link_callbacks){0};
        link_drop(link, "%s", "");
        return err_set(err, result, "cannot use the socket: %s", uv_strerror(result));
    }
    link_note_addresses(link);
    link_begin(link);
    *out = link;
    return 0;
}
