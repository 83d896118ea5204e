/* dial.c - the way to a connected stream: the name is resolved in libuv's thread pool, then the addresses are tried in
 * turn. Each attempt has an equal part of what is left of the deadline, so that one address from
 * which nothing comes back does not use up all of it. A failed attempt's handle must be closed before the next one
 * begins. A resolution cannot be interrupted: it lives on by itself, and finds out at its end that its link has gone.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "lib/base/clock.h"
#include "lib/net/address.h"
#include "lib/net/link_internal.h"

struct resolution {
    uv_getaddrinfo_t request;
    struct link *link; /* NULL: gone */
};

static void try_next(struct link *link);

void dial_cancel(struct link *link)
{
    if (link->resolution) {
        link->resolution->link = NULL;
        (void)uv_cancel((uv_req_t *)&link->resolution->request);
        link->resolution = NULL;
    }
    if (link->addresses) {
        uv_freeaddrinfo(link->addresses);
        link->addresses = NULL;
        link->next = NULL;
    }
}

static void on_attempt_gone(uv_handle_t *handle)
{
    struct link *link = handle->data;
    bool closed = link->state == LINK_CLOSED;

    link->io_open = false;
    if (!closed)
        try_next(link);
    link_handle_gone(link);
}

static void end_attempt(struct link *link, int error)
{
    link->last_error = error;
    uv_close(&link->io.handle, on_attempt_gone);
}

static void on_connect(uv_connect_t *request, int status)
{
    struct link *link = request->data;

    if (link->state != LINK_CONNECTING || uv_is_closing(&link->io.handle))
        return;
    if (status != 0) {
        end_attempt(link, status);
        return;
    }
    dial_cancel(link);
    link_move(link, link_first_state(&link->options));
    link_note_addresses(link);
    link_begin(link);
}

static unsigned count(const struct addrinfo *info)
{
    unsigned n = 0;

    for (; info; info = info->ai_next)
        n++;
    return n;
}

/* What to look at, behind the error. */
static const char *hint(int error)
{
    switch (error) {
    case UV_ECONNREFUSED:
        return ": nothing listens there, or a firewall refuses it; is it the right port, and does elmer run?";
    case UV_ETIMEDOUT:
        return ": nothing answers there; is that host on, and does a firewall let this port through?";
    case UV_EHOSTUNREACH:
    case UV_ENETUNREACH:
        return ": is that host on, and in this network, or does a firewall refuse it?";
    case UV_EACCES:
    case UV_EPERM:
        return ": a firewall or a route of this host forbids it (nft list ruleset, ip route); let it pass";
    default:
        return "";
    }
}

static void try_next(struct link *link)
{
    struct addrinfo *info = link->next;
    int64_t left = link->deadline_ms - mono_ms(mono_now());
    int result;

    if (!info || left <= 0) {
        link_drop(link, "cannot connect to %s: %s%s", link->target, uv_strerror(link->last_error),
                  hint(link->last_error));
        return;
    }
    link_timer(link, left / count(info) + 1);
    link->next = info->ai_next;
    result = link_io_init(link, false, -1);
    if (result != 0) {
        link_drop(link, "cannot connect to %s: %s", link->target, uv_strerror(result));
        return;
    }
    link->connect.data = link;
    result = uv_tcp_connect(&link->connect, &link->io.tcp, info->ai_addr, on_connect);
    if (result != 0)
        end_attempt(link, result);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *info)
{
    struct resolution *resolution = (struct resolution *)request;
    struct link *link = resolution->link;

    free(resolution);
    if (!link) {
        uv_freeaddrinfo(info);
        return;
    }
    link->resolution = NULL;
    if (status != 0) {
        link_drop(link,
                  "cannot find the address of %s: %s: write the name with its address into /etc/hosts, or into the "
                  "DNS",
                  link->target, uv_strerror(status));
        return;
    }
    link->addresses = info;
    link->next = info;
    link_move(link, LINK_CONNECTING);
    try_next(link);
}

void dial_timeout(struct link *link)
{
    if (link->state == LINK_RESOLVING)
        link_drop(link, "cannot find the address of %s: no answer in time", link->target);
    else if (!link->next)
        link_drop(link, "cannot connect to %s: no answer in time%s", link->target, hint(UV_ETIMEDOUT));
    else if (!uv_is_closing(&link->io.handle))
        end_attempt(link, UV_ETIMEDOUT);
}

static int resolve(struct link *link, const struct address *address)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct resolution *resolution = calloc(1, sizeof(*resolution));
    int result;

    if (!resolution)
        return -ENOMEM;
    resolution->link = link;
    result = uv_getaddrinfo(link->loop, &resolution->request, on_resolved, address->host, address->port, &hints);
    if (result != 0)
        free(resolution);
    else
        link->resolution = resolution;
    return result;
}

static int connect_path(struct link *link, const char *path)
{
    int result;

    link_move(link, LINK_CONNECTING);
    result = link_io_init(link, true, -1);
    if (result != 0)
        return result;
    link->connect.data = link;
    uv_pipe_connect(&link->connect, &link->io.pipe, path, on_connect);
    return 0;
}

int link_connect(uv_loop_t *loop, const char *text, unsigned timeout_ms, const struct link_options *options,
                 const struct link_callbacks *callbacks, void *data, struct link **out, struct err *err)
{
    struct address address;
    struct link *link;
    int result = address_parse(text, &address, err);

    if (result != 0)
        return result;
    if (!address.path && !options->tls)
        return err_set(err, -EPERM, "cannot connect to %s: without TLS there are unix sockets only", text);
    link = link_create(loop, LINK_RESOLVING, options, callbacks, data);
    if (!link)
        return err_set(err, -ENOMEM, "out of memory");
    (void)snprintf(link->target, sizeof(link->target), "%s", text);
    link->last_error = UV_ETIMEDOUT;
    link->deadline_ms = mono_ms(mono_now()) + timeout_ms;
    link_timer(link, timeout_ms);
    result = address.path ? connect_path(link, text) : resolve(link, &address);
    if (result != 0) {
        link->callbacks = (struct link_callbacks){0};
        link_drop(link, "%s", "");
        return err_set(err, result, "cannot connect to %s: %s", text, uv_strerror(result));
    }
    *out = link;
    return 0;
}
