/* listener.c - accepts links. One listener outlives its links: it is freed when it is closed and the last of them has
 * gone. Beyond max_links a connection gets an error message; beyond a few of those it is closed without one, so that a
 * flood costs little.
 *
 * With TLS an accepted link is WAITING until its handshake is done. A verified certificate makes it OWNED: offered to
 * the owner, one of max_links. One without a certificate is JOINING: offered too, but still a stranger. A refused one
 * is TURNED_AWAY. Strangers (WAITING and JOINING) are few of one address and bounded in all, and where there are too
 * many, the oldest goes: so idle connections, however many, neither keep a host out nor use up descriptors. A handshake
 * costs a signature, so only so many begin in a second, in all and from one address (handshakes.h); those beyond wait
 * with their first bytes kept and nothing more read, the oldest first. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/clock.h"
#include "lib/net/address.h"
#include "lib/net/handshakes.h"
#include "lib/net/link_internal.h"

enum {
    BACKLOG = 512,
    REFUSED_MAX = 32,
    RETRY_MS = 100,
    PACE_MS = 10,
    STRANGERS_MIN = 1024,
    STRANGERS_OF_ADDRESS = 64,
    BUCKETS = 1024, /* of addresses; two in one share their allowance */
    STRANGER_FRAME_MAX = 16 * 1024,
    LOG_BURST = 30,
    LOG_WINDOW_MS = 10000,
};

struct listener {
    uv_loop_t *loop;
    union link_io io;
    struct link_options options;
    struct link_callbacks callbacks;
    listener_accept accept;
    void *data;
    unsigned max_links, links, refused;
    struct link *oldest, *newest; /* strangers */
    unsigned strangers, of_bucket[BUCKETS];
    uv_timer_t retry; /* libuv accepts nothing more until we have taken what there is, and there was no memory */
    unsigned handles;
    bool closing;
    struct handshakes *handshakes;
    uv_timer_t pace; /* runs while handshakes wait */
    struct log_limit limit, stranger_limit, pace_limit;
    struct log_repeats repeats;
    char path[sizeof((struct sockaddr_un *)0)->sun_path + 1]; /* of a socket file that we made */
    dev_t device;
    ino_t inode;
};

static void free_if_done(struct listener *listener)
{
    if (listener->handles > 0 || listener->links > 0 || listener->refused > 0 || listener->strangers > 0)
        return;
    tls_context_unref(listener->options.tls);
    free(listener->handshakes);
    free(listener);
}

/* ---- strangers ---- */

static unsigned bucket(const struct link *link)
{
    unsigned hash = 5381;

    for (const char *c = link->peer; *c != '\0'; c++)
        hash = hash * 33 + (unsigned char)*c;
    return hash % BUCKETS;
}

static void log_stranger(struct listener *listener, const struct link *link, const char *text)
{
    if (!listener->closing && log_repeats_allowed(&listener->repeats, link->peer, text) &&
        log_allowed(&listener->stranger_limit, LOG_BURST, LOG_WINDOW_MS))
        log_warning("connection from %s refused: %s", link->peer, text);
}

static void add_stranger(struct listener *listener, struct link *link)
{
    link->place = LINK_WAITING;
    link->older = listener->newest;
    if (listener->newest)
        listener->newest->newer = link;
    else
        listener->oldest = link;
    listener->newest = link;
    listener->strangers++;
    listener->of_bucket[bucket(link)]++;
}

static void remove_stranger(struct listener *listener, struct link *link)
{
    *(link->older ? &link->older->newer : &listener->oldest) = link->newer;
    *(link->newer ? &link->newer->older : &listener->newest) = link->older;
    link->older = link->newer = NULL;
    listener->strangers--;
    listener->of_bucket[bucket(link)]--;
}

/* The oldest of those that are not being closed, and of the address's bucket if there is one. */
static void drop_oldest(struct listener *listener, const struct link *like)
{
    for (struct link *link = listener->oldest; link; link = link->newer) {
        if (link->state == LINK_CLOSED || (like && bucket(link) != bucket(like)))
            continue;
        link_drop(link, "too many connections %swithout a certificate; this was the oldest",
                  like ? "of this address " : "");
        remove_stranger(listener, link); /* it closes a little later: meanwhile it does not count */
        listener->refused++;
        log_stranger(listener, link, link->text);
        if (link->place == LINK_WAITING)
            link->callbacks = (struct link_callbacks){0};
        link->place = LINK_TURNED_AWAY;
        return;
    }
}

static void limit_strangers(struct listener *listener, const struct link *newcomer)
{
    unsigned max = listener->max_links > STRANGERS_MIN ? listener->max_links : STRANGERS_MIN;

    if (listener->of_bucket[bucket(newcomer)] >= STRANGERS_OF_ADDRESS)
        drop_oldest(listener, newcomer);
    else if (listener->strangers >= max)
        drop_oldest(listener, NULL);
}

void listener_link_gone(struct link *link)
{
    struct listener *listener = link->listener;

    switch (link->place) {
    case LINK_OWNED:
        listener->links--;
        break;
    case LINK_TURNED_AWAY:
        listener->refused--;
        break;
    case LINK_WAITING:
        log_stranger(listener, link, link->text);
        remove_stranger(listener, link);
        break;
    case LINK_JOINING:
        remove_stranger(listener, link);
        break;
    }
    free_if_done(listener);
}

/* ---- offering ---- */

/* Nobody's link: it says why it is refused, and goes. */
static void turn_away(struct link *link, const char *code, const char *text)
{
    struct listener *listener = link->listener;

    if (link->place == LINK_OWNED)
        listener->links--;
    else
        remove_stranger(listener, link);
    listener->refused++;
    link->place = LINK_TURNED_AWAY;
    link->callbacks = (struct link_callbacks){0};
    if (listener->refused > REFUSED_MAX) {
        link_drop(link, "%s", "");
        return;
    }
    link_refuse(link, code, text);
}

static void offer(struct listener *listener, struct link *link)
{
    void *data;

    if (listener->links > listener->max_links) {
        turn_away(link, WIRE_CODE_REFUSED, "too many connections; try again later");
        return;
    }
    data = listener->accept(link, listener->data);
    if (!data) {
        turn_away(link, WIRE_CODE_NOT_PERMITTED,
                  "this user may not connect here, or has too many connections already; end some (esubmit -w), or try "
                  "again later");
        return;
    }
    link->data = data;
    link->callbacks = listener->callbacks;
}

void listener_link_secured(struct link *link)
{
    struct listener *listener = link->listener;
    const char *refusal = tls_refusal(link->tls);

    if (refusal) {
        log_stranger(listener, link, refusal);
        turn_away(link, WIRE_CODE_NOT_PERMITTED, refusal);
        return;
    }
    if (link_peer_name(link)) {
        remove_stranger(listener, link);
        link->place = LINK_OWNED;
        listener->links++;
        link->in.max = WIRE_MAX_FRAME;
    } else {
        link->place = LINK_JOINING;
        link->options.peer = WIRE_FROM_JOINER;
    }
    offer(listener, link);
    if (link_is_open(link))
        link_say_hello(link);
}

/* ---- handshakes that wait ---- */

static void go_on(struct link *link)
{
    uint8_t *bytes = link->first;

    link->first = NULL;
    if (link_start_reading(link) == 0)
        link_tls_input(link, bytes, link->first_size);
    free(bytes);
}

static void on_pace(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    bool waiting = false;

    for (struct link *link = listener->oldest, *newer; link; link = newer) {
        newer = link->newer;
        if (!link->first || link->state != LINK_SECURING)
            continue;
        if (handshakes_may_begin(listener->handshakes, link->peer, mono_ms(mono_now())))
            go_on(link);
        else
            waiting = true;
    }
    if (!waiting)
        (void)uv_timer_stop(timer);
}

bool listener_link_begins(struct link *link, const uint8_t *bytes, size_t size)
{
    struct listener *listener = link->listener;

    if (link->first_size > 0 || /* it has waited */
        handshakes_may_begin(listener->handshakes, link->peer, mono_ms(mono_now())))
        return true;
    link->first = size <= STRANGER_FRAME_MAX ? malloc(size) : NULL;
    if (!link->first) {
        link_drop(link, "its first message cannot be kept: it has %zu bytes", size);
        return false;
    }
    memcpy(link->first, bytes, size);
    link->first_size = size;
    link_stop_reading(link);
    if (!uv_is_active((uv_handle_t *)&listener->pace)) {
        (void)uv_timer_start(&listener->pace, on_pace, PACE_MS, PACE_MS);
        if (log_allowed(&listener->pace_limit, 1, 60000))
            log_warning("more connections than may begin in a second, %s is the latest: they wait their turn",
                        link->peer);
    }
    return false;
}

static void on_connection(uv_stream_t *server, int status);

static void on_retry(uv_timer_t *timer)
{
    struct listener *listener = timer->data;

    on_connection(&listener->io.stream, 0);
}

static void meet_stranger(struct listener *listener, struct link *link)
{
    limit_strangers(listener, link);
    listener->links--;
    add_stranger(listener, link);
    link->in.max = STRANGER_FRAME_MAX;
}

static void on_connection(uv_stream_t *server, int status)
{
    struct listener *listener = server->data;
    struct link *link;

    if (listener->closing)
        return;
    if (status != 0) {
        if (log_allowed(&listener->limit, 1, 60000))
            log_warning("cannot accept a connection: %s", uv_strerror(status));
        return;
    }
    link = link_create(listener->loop, link_first_state(&listener->options), &listener->options, NULL, NULL);
    if (!link) {
        (void)uv_timer_start(&listener->retry, on_retry, RETRY_MS, 0);
        return;
    }
    link->listener = listener;
    listener->links++;
    status = link_io_init(link, listener->io.handle.type == UV_NAMED_PIPE, -1);
    if (status == 0)
        status = uv_accept(server, &link->io.stream);
    if (status != 0) {
        link_drop(link, "%s", "");
        return;
    }
    link_note_addresses(link);
    if (listener->options.tls)
        meet_stranger(listener, link);
    else
        offer(listener, link);
    if (link->state == LINK_SECURING || link->state == LINK_HELLO)
        link_begin(link);
}

static void on_listener_gone(uv_handle_t *handle)
{
    struct listener *listener = handle->data;

    listener->handles--;
    free_if_done(listener);
}

/* Only the file that we made: another process may have put its own there. */
static void remove_path(const struct listener *listener)
{
    struct stat st;

    if (listener->path[0] != '\0' && lstat(listener->path, &st) == 0 && st.st_dev == listener->device &&
        st.st_ino == listener->inode)
        (void)unlink(listener->path);
}

void listener_close(struct listener *listener)
{
    if (!listener || listener->closing)
        return;
    listener->closing = true;
    remove_path(listener);
    for (struct link *link = listener->oldest; link; link = link->newer)
        if (link->place == LINK_WAITING)
            link_drop(link, "%s", "the listener closes");
    uv_close((uv_handle_t *)&listener->retry, on_listener_gone);
    uv_close((uv_handle_t *)&listener->pace, on_listener_gone);
    uv_close(&listener->io.handle, on_listener_gone);
}

static int open_stream(struct listener *listener, int fd, bool pipe)
{
    int result =
        pipe ? uv_pipe_init(listener->loop, &listener->io.pipe, 0) : uv_tcp_init(listener->loop, &listener->io.tcp);

    if (result != 0) {
        (void)close(fd);
        free_if_done(listener);
        return result;
    }
    (void)uv_timer_init(listener->loop, &listener->retry);
    (void)uv_timer_init(listener->loop, &listener->pace);
    listener->retry.data = listener->pace.data = listener;
    listener->io.handle.data = listener;
    listener->handles = 3;
    result = pipe ? uv_pipe_open(&listener->io.pipe, fd) : uv_tcp_open(&listener->io.tcp, fd);
    if (result != 0)
        (void)close(fd);
    if (result == 0)
        result = uv_listen(&listener->io.stream, BACKLOG, on_connection);
    if (result != 0)
        listener_close(listener);
    return result;
}

void listener_allow(struct listener *listener, unsigned max_links)
{
    listener->max_links = max_links;
}

int listener_create_fd(uv_loop_t *loop, int fd, unsigned max_links, const struct link_options *options,
                       const struct link_callbacks *callbacks, listener_accept accept, void *data,
                       struct listener **out, struct err *err)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    struct listener *listener = calloc(1, sizeof(*listener));
    int result;

    if (!listener || getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        result = !listener ? -ENOMEM : -errno;
        free(listener);
        (void)close(fd);
        return err_set(err, result, "cannot listen on descriptor %d: %s", fd, strerror(-result));
    }
    if (options->tls && !(listener->handshakes = calloc(1, sizeof(*listener->handshakes)))) {
        free(listener);
        (void)close(fd);
        return err_set(err, -ENOMEM, "cannot listen: out of memory");
    }
    if (options->tls) {
        listener->handshakes->per_second = options->handshakes > 0 ? options->handshakes : HANDSHAKES_PER_SECOND;
        if (getrandom(&listener->handshakes->salt, sizeof(listener->handshakes->salt), GRND_NONBLOCK) < 0)
            listener->handshakes->salt = (uint64_t)mono_now().ns;
    }
    if (address.ss_family != AF_UNIX && !options->tls) {
        free(listener);
        (void)close(fd);
        return err_set(err, -EPERM, "cannot listen: without TLS there are unix sockets only");
    }
    listener->loop = loop;
    listener->max_links = max_links;
    listener->options = *options;
    if (options->tls)
        (void)tls_context_ref(options->tls);
    listener->callbacks = *callbacks;
    listener->accept = accept;
    listener->data = data;
    result = open_stream(listener, fd, address.ss_family == AF_UNIX);
    if (result != 0)
        return err_set(err, result, "cannot listen: %s", uv_strerror(result));
    *out = listener;
    return 0;
}

int listener_create(uv_loop_t *loop, const char *address, unsigned mode, unsigned max_links,
                    const struct link_options *options, const struct link_callbacks *callbacks, listener_accept accept,
                    void *data, struct listener **out, struct err *err)
{
    struct stat st;
    int fd, result = address_bind(address, mode, &fd, err);

    if (result != 0)
        return result;
    result = listener_create_fd(loop, fd, max_links, options, callbacks, accept, data, out, err);
    if (result != 0) {
        err_prefix(err, "%s", address);
        return result;
    }
    if (address[0] == '/' && lstat(address, &st) == 0) {
        (void)snprintf((*out)->path, sizeof(*out)->path, "%s", address);
        (*out)->device = st.st_dev;
        (*out)->inode = st.st_ino;
    }
    return 0;
}

unsigned listener_port(const struct listener *listener)
{
    struct sockaddr_storage address;
    int size = sizeof(address);

    if (listener->io.handle.type != UV_TCP ||
        uv_tcp_getsockname(&listener->io.tcp, (struct sockaddr *)&address, &size) != 0)
        return 0;
    return ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)(void *)&address)->sin_port
                                              : ((struct sockaddr_in6 *)(void *)&address)->sin6_port);
}
