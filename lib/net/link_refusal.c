/* link_refusal.c - a request for which there is no memory is refused, and the link lives on.
 *
 * Of such a message only the beginning is known, or all of it but not decoded. A request that comes from a client, or
 * relayed by a host for one, has its number in its first bytes, as our encoder writes them; so it can be answered.
 * Anything else must not get lost in silence: the link is dropped then, and what it carried is said again over the next
 * one. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/net/link_internal.h"

enum { BEGINNING = 480 /* as much as frame.c keeps: a name of 255 bytes, and the rest */ };

struct beginning {
    char type[32];
    uint64_t id, client; /* client: of relay */
};

/* The request within relay is JSON in a string: its quotes are escaped. */
static bool read_relayed(const char *text, struct beginning *b)
{
    const char *frame = strstr(text, "\"frame\":\"{\\\"type\\\":\\\"");

    return sscanf(text, "{\"type\":\"relay\",\"id\":%*u,\"client\":%" SCNu64, &b->client) == 1 && frame &&
           sscanf(frame, "\"frame\":\"{\\\"type\\\":\\\"%31[a-z_]\\\",\\\"id\\\":%" SCNu64, b->type, &b->id) == 2;
}

static bool read_beginning(const struct link *link, const char *json, size_t size, struct beginning *b)
{
    char text[BEGINNING + 1];
    size_t length = size < BEGINNING ? size : BEGINNING;

    static const char *const no_requests[] = {"hello", "ping", "pong", "error"};

    memcpy(text, json, length);
    text[length] = 0;
    *b = (struct beginning){.client = 0};
    if ((link->options.peer & WIRE_FROM_HOST) != 0)
        return read_relayed(text, b) && b->id > 0;
    if ((link->options.peer & WIRE_FROM_CLIENT) == 0 ||
        sscanf(text, "{\"type\":\"%31[a-z_]\",\"id\":%" SCNu64, b->type, &b->id) != 2)
        return false;
    for (size_t i = 0; i < sizeof(no_requests) / sizeof(*no_requests); i++)
        if (strcmp(b->type, no_requests[i]) == 0)
            return false;
    return b->id > 0;
}

static void answer(struct link *link, const struct beginning *b, const struct wire_message *error)
{
    struct wire_message relayed = {.type = WIRE_relayed, .u.relayed = {.client = b->client}};
    char *frame;
    size_t size;

    if ((link->options.peer & WIRE_FROM_HOST) == 0) {
        (void)link_send(link, error);
    } else if (wire_encode(error, link->minor, &frame, &size, NULL) == 0) {
        relayed.u.relayed.frame = frame;
        (void)link_send(link, &relayed);
        free(frame);
    } else {
        link_drop(link, "out of memory");
    }
}

void link_no_memory(struct link *link, const char *json, size_t size)
{
    struct wire_message error = {.type = WIRE_error};
    struct beginning b;
    char text[160];

    if (link->state != LINK_READY || !read_beginning(link, json, size, &b)) {
        link_drop(link, "out of memory");
        return;
    }
    (void)snprintf(text, sizeof(text), "%s has no memory for this request (%s) now; try again later",
                   link->options.program ? link->options.program : "the daemon", b.type);
    error.id = b.id;
    error.u.error.code = WIRE_CODE_UNAVAILABLE;
    error.u.error.text = text;
    answer(link, &b, &error);
}
