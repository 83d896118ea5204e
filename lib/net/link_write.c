/* link_write.c - what a link has to say, until the kernel has taken it; and peers that do not read. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/net/link_internal.h"

struct sending {
    uv_write_t request;
    struct link *link;
    uint8_t *bytes;
    size_t size;
    struct budget *budget;
};

static void on_written(uv_write_t *request, int status)
{
    struct sending *sending = (struct sending *)request;
    struct link *link = sending->link;

    if (sending->budget)
        budget_give(sending->budget, sending->size);
    free(sending->bytes);
    free(sending);
    if (status < 0)
        link_drop(link, "writing failed: %s", uv_strerror(status));
    else if (link->state == LINK_READY && link->callbacks.on_room && link_unsent(link) <= LINK_LITTLE)
        link->callbacks.on_room(link, link->data);
}

/* The deadline of READY runs while something is unsent. */
static void watch_again(struct link *link)
{
    link->watching = link->options.stall_ms > 0 && link->state == LINK_READY && link_unsent(link) > 0;
    link->taken = link->given - link_unsent(link);
    link->suspect = false;
    if (link->watching)
        link_timer(link, link->options.stall_ms);
}

/* After this process itself stood still, timers fire before it can see what the peer has read meanwhile: so a peer is
 * suspected first, and cut off only if the next check a little later shows the same. */
void link_watch_reader(struct link *link)
{
    size_t unsent = link_unsent(link);

    if (unsent == 0 || link->taken != link->given - unsent) {
        watch_again(link);
    } else if (!link->suspect) {
        link->suspect = true;
        link_timer(link, link->options.stall_ms / 16);
    } else {
        link_drop(link, "the other side has read nothing for %u s: %zu bytes are waiting for it",
                  link->options.stall_ms / 1000, unsent);
    }
}

/* What the kernel takes at once needs no request, and the loop need not look at the socket again. Returns how many
 * bytes; what is wrong with the socket is found by the request for the rest. */
static size_t write_at_once(struct link *link, const uint8_t *bytes, size_t size)
{
    uv_buf_t buf = uv_buf_init((char *)bytes, (unsigned)size);
    int taken = uv_try_write(&link->io.stream, &buf, 1);

    return taken > 0 ? (size_t)taken : 0;
}

int link_write(struct link *link, uint8_t *bytes, size_t size)
{
    size_t waiting = uv_stream_get_write_queue_size(&link->io.stream), at_once;
    struct sending *sending;
    uv_buf_t buf;
    int result;

    assert(link->state != LINK_CLOSED && size > 0);
    if (waiting + size > link->options.out_max) {
        free(bytes);
        link_drop(link, "the other side does not read: %zu bytes are waiting for it", waiting + size);
        return -ENOBUFS;
    }
    at_once = waiting == 0 ? write_at_once(link, bytes, size) : 0;
    link->given += at_once;
    if (at_once == size) {
        free(bytes);
        return 0;
    }
    buf = uv_buf_init((char *)bytes + at_once, (unsigned)(size - at_once)); /* all of it stays in memory until then */
    if (link->budget && !budget_take(link->budget, size)) {
        free(bytes);
        link_drop(link, "the programs of this user do not read: %zu MiB are waiting for them, and no more may",
                  link->budget->used >> 20);
        return -ENOBUFS;
    }
    sending = malloc(sizeof(*sending));
    if (!sending) {
        if (link->budget)
            budget_give(link->budget, size);
        free(bytes);
        link_drop(link, "out of memory");
        return -ENOMEM;
    }
    *sending = (struct sending){.link = link, .bytes = bytes, .size = size, .budget = link->budget};
    result = uv_write(&sending->request, &link->io.stream, &buf, 1, on_written);
    if (result != 0) {
        if (link->budget)
            budget_give(link->budget, size);
        free(bytes);
        free(sending);
        link_drop(link, "writing failed: %s", uv_strerror(result));
        return result;
    }
    link->given += size - at_once;
    if (!link->watching)
        watch_again(link);
    return 0;
}

/* Takes over frame. */
static int send_frame(struct link *link, uint8_t *frame, size_t size)
{
    return link->tls ? link_tls_send(link, frame, size) : link_write(link, frame, size);
}

int link_put(struct link *link, const struct wire_message *message)
{
    uint8_t *frame;
    size_t size;
    int result = wire_encode_frame(message, link->minor, &frame, &size, NULL);

    if (result == -ENOMEM)
        link_drop(link, "out of memory");
    return result != 0 ? result : send_frame(link, frame, size);
}

int link_send(struct link *link, const struct wire_message *message)
{
    return link->state == LINK_READY ? link_put(link, message) : -ENOTCONN;
}

int link_offer(struct link *link, const struct wire_message *message)
{
    uint8_t *frame;
    size_t size;
    int result = link->state == LINK_READY ? wire_encode_frame(message, link->minor, &frame, &size, NULL) : -ENOTCONN;

    return result != 0 ? result : send_frame(link, frame, size);
}

int link_send_json(struct link *link, const char *json, size_t size)
{
    uint8_t *frame;

    if (link->state != LINK_READY)
        return -ENOTCONN;
    if (size == 0 || size > WIRE_MAX_FRAME)
        return -EMSGSIZE;
    frame = malloc(WIRE_FRAME_HEADER + size);
    if (!frame) {
        link_drop(link, "out of memory");
        return -ENOMEM;
    }
    wire_frame_header(frame, size);
    memcpy(frame + WIRE_FRAME_HEADER, json, size);
    return send_frame(link, frame, WIRE_FRAME_HEADER + size);
}

void link_refuse(struct link *link, const char *code, const char *text)
{
    char shown[sizeof(link->text)];
    struct wire_message message = {.type = WIRE_error};

    message.u.error.code = code;
    message.u.error.text = str_printable(shown, sizeof(shown), text, strlen(text));
    if (link_is_open(link))
        (void)link_put(link, &message);
    link_close(link, shown);
}

void link_set_budget(struct link *link, struct budget *budget)
{
    link->budget = budget;
}
