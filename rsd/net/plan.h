/* plan.h - what rsd tells the program of its network half: a sealed file in memory, or, where that is a unit of its
 * own, a file of root's in RUNDIR (service_plan_write()) that is read whenever rsd joins; then NET_SERVE, and rsd is
 * answered with an int32_t, the number of the process. Both are of one build. */
#ifndef RSD_NET_PLAN_H
#define RSD_NET_PLAN_H

#include <stdint.h>

#include "lib/pki/token.h"
#include "rsd/config.h"

/* The descriptors that it is started with, beside 0 to 2. NET_ENROL has the last one, and writes to the first one what
 * elmer has answered for the ticket key (lib/ticket/program.h). */
enum { NET_FD_ROOT = 3, NET_FD_LISTEN = 4, NET_FD_PLAN = 5 };

enum { NET_TICKET_KEY_SIZE = 65 }; /* hexadecimal, with the NUL */

#define NET_PLAN_FILE "net.plan"

enum net_task { NET_SERVE, NET_ENROL };

struct net_plan {
    uint32_t size; /* of this struct: another one is of another build */
    char version[28];
    enum net_task task;
    uint64_t begun; /* of a unit: see rsd_begun() */
    struct rsd_config config;
    char elmer[sizeof((struct rsd_config *)0)->elmer], name[sizeof((struct rsd_config *)0)->name]; /* NET_ENROL */
    struct token token;
    char ticket_key[NET_TICKET_KEY_SIZE]; /* "": there is none */
};
/* Size, version, task and configuration. */
void net_plan_serve(struct net_plan *plan, const struct rsd_config *config);

#endif
