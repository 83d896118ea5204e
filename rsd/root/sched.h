/* sched.h - give real threads their rank and their CPUs. */
#ifndef RSD_SCHED_H
#define RSD_SCHED_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rsd/root/group.h"
#include "rsd/root/order.h"

/* Set the rank of one thread (0: the caller) if it is another. 1: changed; 0: had it; -ESRCH: gone; -EPERM, -EINVAL. */
int sched_rank(pid_t tid, struct order_rank rank, bool reset_on_fork);
bool sched_is_rt(pid_t tid);

struct sched_target {
    struct order_ranks ranks; /* task with SCHED_FIFO: may become SCHED_RR, see crowded */
    bool no_rank;             /* leave classes alone, only the mask */
    const cpu_set_t *cpus;    /* no thread runs elsewhere; NULL: leave masks alone */
    size_t ncpus;
    const pid_t *helpers; /* processes that have the rank of helpers, with SCHED_RESET_ON_FORK */
    size_t helper_count;
    bool exact;   /* a nicer value than that of the rank is not the user's choice but ours: take it back */
    bool crowded; /* in, out: has ever had more task threads than ncpus */
};
struct sched_count {
    size_t threads, changed, vanished, refused;
};

/* One walk over all threads of the group. */
int sched_pass(const struct cgroup *group, struct sched_target *target, struct sched_count *count);
/* Several groups, walked in their order again and again until walks change nothing; one that keeps forking is frozen
 * for some milliseconds in between. Result of each: 0; -ETIME: not clean after limit_ms; -errno. */
struct sched_walk {
    const struct cgroup *group;
    struct sched_target target;
    struct sched_count count; /* of the last walk */
    int result;
    unsigned passes; /* these are of sched_apply() */
    bool freezing, done;
};
void sched_apply(struct sched_walk *walks, size_t count, int64_t limit_ms);
/* A process with one thread (just born, or a helper), if it is in the group. */
void sched_process(const struct cgroup *group, pid_t pid, struct sched_target *target, struct sched_count *count);
/* What is left after cgroup.kill: above all jobs, so that it can die. */
void sched_let_die(const struct cgroup *group, bool rt);

#endif
