/* order.h - which rank a job's processes have on this host. Pure: no system call; the one table of priorities is in
 * order.c. */
#ifndef RSD_ORDER_H
#define RSD_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum order_mode { ORDER_MODE_RT, ORDER_MODE_IDLE, ORDER_MODE_NONE, ORDER_MODE_COUNT };

enum {
    ORDER_DAEMON = 60, /* elmer, rsd, supervisors */
    ORDER_BIRTH = 59,  /* a new process until exec; from here it only goes down */
    ORDER_DYING = 55,  /* what has SIGKILL pending and cannot refuse */
    ORDER_BOOST = 52,  /* daemons while their virtual machine starts or ends, or when they have starved */
    ORDER_LEVELS = 16
};

/* priority: 1..99 of SCHED_FIFO and SCHED_RR; of SCHED_OTHER it is the nice value; 0 of SCHED_IDLE. */
struct order_rank {
    int policy, priority;
};
struct order_ranks {
    struct order_rank task, helper;
};
/* Above an ordinary process: what forks children must not give it to them. */
bool order_is_raised(struct order_rank rank);

/* crowded: the job has more threads than processors on this host. boosted: its helpers are. */
struct order_ranks order_ranks(enum order_mode mode, unsigned level, bool lowest, bool crowded, bool boosted);
/* What its group weighs in the controller cpu, 100 being everybody's. */
unsigned order_weight(enum order_mode mode, unsigned level, bool lowest);
/* What a session of such tasks should have where the kernel shares by session; 0 in real time, where that does not
 * count. */
int order_session_nice(struct order_rank task);
const char *order_mode_name(enum order_mode mode); /* rt idle none */

/* The whole list of this host, as last ordered. */
struct order_item {
    uint64_t job;
    uint32_t attempt;
    unsigned level;
    bool lowest;
    uint64_t *cpus;
    size_t ncpus;
};
struct order {
    uint64_t generation;
    struct order_item *items;
    size_t count;
};

struct wire_order;
/* Take the list over the old one, sorted from the top down. 1: taken; 0: not newer than what we have, nothing changed;
 * -ENOMEM. */
int order_replace(struct order *order, const struct wire_order *message);
const struct order_item *order_find(const struct order *order, uint64_t job, uint32_t attempt);
void order_fini(struct order *order);

#endif
