/* door.c - see door.h.
 *
 * rsd connects; we look who it is (lib/base/service.h), read the plan that root has written for it, and answer
 * with our process. What follows are frames (net.c). A plan that is not the first one's, byte by byte: the
 * configuration, the build, or rsd was started anew by an administrator. All of that we take up by beginning anew
 * ourselves, as a process that knows nothing of before. */
#include "config.h"

#include "rsd/net/door.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/service.h"

static bool read_plan(const struct door *door, struct net_plan *plan)
{
    return service_plan_read(door->plan_path, door->root, plan, sizeof(*plan)) == 0 && plan->size == sizeof(*plan) &&
           strncmp(plan->version, PACKAGE_VERSION, sizeof(plan->version)) == 0 && plan->task == NET_SERVE;
}

/* Bytes between the members too: rsd writes the same ones each time, and if not we begin anew in vain. */
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
    if (fd < 0) {
        if (fd != -ESRCH && log_allowed(&limit, 10, 60000))
            log_warning("the network half refuses a peer: %s", err.text);
        return -EAGAIN;
    }
    if (!read_plan(door, &said) || (door->plan.size > 0 && !is_same(&door->plan, &said, sizeof(said)))) {
        close(fd);
        return -EPROTO;
    }
    door->plan = said;
    if (send(fd, &own, sizeof(own), MSG_NOSIGNAL) == (ssize_t)sizeof(own))
        return fd;
    close(fd);
    return -EAGAIN; /* gone before it was there */
}

bool door_init(struct door *door)
{
    const struct passwd *entry = getpwnam("elmer-jobs");
    memset(door, 0, sizeof(*door));
    door->rsd = entry ? entry->pw_uid : 0;
    door->unit = SERVICE_OF_RSD;
    door->listener = service_listener("rsd");
    snprintf(door->plan_path, sizeof(door->plan_path), "%s", ELMER_RSD_RUNDIR "/" NET_PLAN_FILE);
    return door->listener >= 0;
}

int door_await(struct door *door)
{
    struct pollfd listener = {.fd = door->listener, .events = POLLIN};
    int result = -EAGAIN;
    service_notify("READY=1\nSTATUS=waits for rsd");
    while (result == -EAGAIN) {
        if (poll(&listener, 1, service_alive()) > 0)
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
