/* door.h - where rsd's jobs half joins the network half that is a unit of its own (rsd-net.service). */
#ifndef RSD_DOOR_H
#define RSD_DOOR_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "rsd/net/plan.h"

/* A connection of the jobs half, to be taken over; -1: it has another plan, and the process is to be started anew. */
typedef void (*door_joined)(int fd, void *data);

struct door {
    int listener;     /* systemd's */
    uid_t rsd;        /* who may come, beside root, ... */
    const char *unit; /* ... of this unit: SERVICE_OF_RSD */
    char plan_path[108];
    uid_t root; /* whose that file must be: 0 */
    struct net_plan plan;
    uv_poll_t poll;
    uv_timer_t alive;
    door_joined joined;
    void *data;
};

/* Of a process that systemd has started. False: it has been given no such socket. */
bool door_init(struct door *door);
/* Waits for the first who joins, with whose plan all others are compared. The connection; -EPROTO: the plan is of
 * another build, start anew. */
int door_await(struct door *door);
/* Then in the loop, with what is said to systemd's watchdog. 0 or -errno. */
int door_open(struct door *door, uv_loop_t *loop, door_joined joined, void *data, struct err *err);
void door_close(struct door *door);

#endif
