/* door.c - see door.h.
 *
 * rsd connects and says its plan in the same moment; we look who it is (lib/base/service.h), compare the plan, and
 * answer with our process. What follows are frames (net.c). A plan that is not the first one's, byte by byte: the
 * configuration, the build, or rsd was started anew by an administrator. All of that we take up by beginning anew
 * ourselves, as a process that knows nothing of before. */
#include "config.h"

#include "rsd/net/door.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/service.h"

enum { PLAN_MS = 2000 };

static void wait_at_most(int fd, int ms)
{
    const struct timeval most = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000L};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
}

static bool is_of_this_build(const struct net_plan *plan)
{
    return plan->size == sizeof(*plan) && strncmp(plan->version, PACKAGE_VERSION, sizeof(plan->version)) == 0 &&
           plan->task == NET_SERVE;
}

/* Bytes between the members too: rsd sends the same ones each time, and if not we begin anew in vain. */
static bool is_same(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

/* -EAGAIN: nobody, or no one who counts. -EPROTO: another plan. */
static int take(struct door *door)
{
    static struct net_plan said;
    static struct log_limit limit;
    const int32_t own = getpid();
    struct err err = ERR_INIT;
    int fd = service_accept(door->listener, door->rsd, door->unit, &err);
    ssize_t got;
    if (fd < 0) {
        if (fd != -ESRCH && log_allowed(&limit, 10, 60000))
            log_warning("the network half refuses a peer: %s", err.text);
        return -EAGAIN;
    }
    wait_at_most(fd, PLAN_MS);
    got = recv(fd, &said, sizeof(said), MSG_WAITALL);
    wait_at_most(fd, 0);
    if (got == (ssize_t)sizeof(said) && is_of_this_build(&said) &&
        (door->plan.size == 0 || is_same(&door->plan, &said, sizeof(said)))) {
        door->plan = said;
        if (send(fd, &own, sizeof(own), MSG_NOSIGNAL) == (ssize_t)sizeof(own))
            return fd;
        got = 0;
    }
    close(fd);
    return got == 0 ? -EAGAIN : -EPROTO; /* gone before it was there */
}

bool door_init(struct door *door)
{
    const struct passwd *entry = getpwnam("elmer-jobs");
    memset(door, 0, sizeof(*door));
    door->rsd = entry ? entry->pw_uid : 0;
    door->unit = SERVICE_OF_RSD;
    door->listener = service_listener("rsd");
    return door->listener >= 0;
}

int door_await(struct door *door)
{
    int alive_ms = service_watchdog_ms(), result = -EAGAIN;
    service_notify("READY=1\nSTATUS=waits for rsd");
    while (result == -EAGAIN) {
        struct pollfd listener = {.fd = door->listener, .events = POLLIN};
        int ready = poll(&listener, 1, alive_ms > 0 ? alive_ms : -1);
        if (ready == 0)
            service_notify("WATCHDOG=1");
        if (ready > 0)
            result = take(door);
    }
    service_notify("STATUS=");
    return result;
}

/* ---- in the loop ---- */

static void on_knock(uv_poll_t *poll, int status, int events)
{
    struct door *door = poll->data;
    int fd = status < 0 || !(events & UV_READABLE) ? -EAGAIN : take(door);
    if (fd == -EPROTO)
        log_notice("the network half begins anew, as rsd has");
    if (fd != -EAGAIN)
        door->joined(fd < 0 ? -1 : fd, door->data);
}

static void on_alive(uv_timer_t *timer)
{
    (void)timer;
    service_notify("WATCHDOG=1");
}

int door_open(struct door *door, uv_loop_t *loop, door_joined joined, void *data, struct err *err)
{
    uint64_t alive_ms = (uint64_t)service_watchdog_ms();
    int result;
    door->joined = joined;
    door->data = data;
    door->poll.data = door;
    (void)uv_timer_init(loop, &door->alive);
    if (alive_ms > 0)
        (void)uv_timer_start(&door->alive, on_alive, alive_ms, alive_ms);
    result = uv_poll_init(loop, &door->poll, door->listener);
    if (result == 0)
        result = uv_poll_start(&door->poll, UV_READABLE, on_knock);
    return result < 0 ? err_set(err, result, "cannot watch a socket: %s", uv_strerror(result)) : 0;
}

static void close_handle(uv_handle_t *handle)
{
    if (handle->loop && !uv_is_closing(handle))
        uv_close(handle, NULL);
}

void door_close(struct door *door)
{
    close_handle((uv_handle_t *)&door->poll);
    close_handle((uv_handle_t *)&door->alive);
}
