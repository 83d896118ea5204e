/* client_loop.c - waiting: here with poll(2), or in a loop of the caller's. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "libelmer/client_internal.h"

enum { BLIND_MS = 50 };

void client_step(struct elmer *e, bool link_readable, bool desk_readable)
{
    client_link_step(e, link_readable);
    client_desk_step(&e->desk, desk_readable);
    client_calls_step(e);
}

static short link_events(const struct elmer *e)
{
    if (e->link == LINK_NONE)
        return 0;
    return (short)(POLLIN | (channel_wants_write(&e->channel) ? POLLOUT : 0));
}

/* Milliseconds until something is to be done though nothing comes; -1: never. */
static int until_step(const struct elmer *e)
{
    int64_t until = earlier(client_calls_until_ms(e), client_desk_until_ms(&e->desk)), left;

    if (until == INT64_MAX)
        return -1;
    left = until - mono_ms(mono_now());
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Wait at most so long, and do what there is to do then. */
static void wait_and_step(struct elmer *e, int timeout_ms)
{
    struct pollfd fds[2] = {{.fd = -1}, {.fd = -1}};
    nfds_t count = 1;
    bool any;

    if (link_events(e))
        fds[0] = (struct pollfd){.fd = e->channel.fd, .events = link_events(e)};
    if (client_desk_events(&e->desk)) {
        fds[1] = (struct pollfd){.fd = e->desk.channel.fd, .events = client_desk_events(&e->desk)};
        count = 2;
    }
    any = poll(fds, count, timeout_ms) > 0;
    client_step(e, any && fds[0].revents & ~POLLOUT, any && fds[1].revents & ~POLLOUT);
}

void client_wait(struct elmer *e, const struct client_call *call)
{
    while (call->state != CLIENT_DONE)
        wait_and_step(e, until_step(e));
    client_watch_all(e);
}

int client_call(struct elmer *elmer, struct wire_message *request, struct client_call *call, int timeout_ms,
                struct elmer_error *error)
{
    client_begin(elmer, request, call, timeout_ms, error);
    client_wait(elmer, call);
    return call->result;
}

/* ---- a set for the caller's loop ---- */

bool client_watch_set(struct client_watch *watch, int epoll, int fd, short events)
{
    struct epoll_event event = {.events = (events & POLLIN ? EPOLLIN : 0U) | (events & POLLOUT ? EPOLLOUT : 0U)};

    if (events == 0) {
        client_watch_end(watch);
        return true;
    }
    if (watch->on && watch->fd == fd && watch->events == events)
        return true;
    if (epoll_ctl(epoll, watch->on ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0)
        return false;
    *watch = (struct client_watch){.on = true, .epoll = epoll, .fd = fd, .events = events};
    return true;
}

void client_watch_end(struct client_watch *watch)
{
    if (watch->on)
        (void)epoll_ctl(watch->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->on = false;
}

void client_watch_all(struct elmer *e)
{
    if (e->epoll < 0)
        return;
    e->unwatched = !client_watch_set(&e->watch, e->epoll, e->channel.fd, link_events(e)) |
                   !client_watch_set(&e->desk.watch, e->epoll, e->desk.channel.fd, client_desk_events(&e->desk));
}

int elmer_fd(struct elmer *elmer)
{
    if (elmer->epoll < 0)
        elmer->epoll = epoll_create1(EPOLL_CLOEXEC);
    client_watch_all(elmer);
    return elmer->epoll;
}

int elmer_timeout_ms(const struct elmer *elmer)
{
    int left = elmer->ended ? 0 : until_step(elmer);

    return elmer->unwatched && (left < 0 || left > BLIND_MS) ? BLIND_MS : left;
}

void elmer_step(struct elmer *elmer)
{
    wait_and_step(elmer, 0);
    client_watch_all(elmer);
}
