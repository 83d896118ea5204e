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
/* The rank that a thread has; of SCHED_BATCH and others only the policy counts. 0 or -ESRCH. */
int sched_of(pid_t tid, struct order_rank *rank, bool *reset_on_fork);

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
    size_t threads, changed, vanished, refused; /* threads: without helpers */
};

/* One walk over all threads of a group, in slices. */
struct sched_pass {
    struct group_reader reader;
    bool verifying; /* all are set: are those that were changed still in the group? */
    struct sched_count count;
    struct group_pids changed, members;
};
#define SCHED_PASS_INIT                                                                                                \
    {                                                                                                                  \
        .reader = {.fd = -1 }                                                                                          \
    }
/* 0 or -errno. Ends the one before. */
int sched_pass_begin(struct sched_pass *pass, const struct cgroup *group);
/* A slice of it. 1: there is more; 0: count is that of the whole walk; -errno. */
int sched_pass_step(struct sched_pass *pass, const struct cgroup *group, struct sched_target *target);
void sched_pass_end(struct sched_pass *pass); /* frees it, at any moment */

/* A process with one thread (just born, or a helper), if it is in the group. */
void sched_process(const struct cgroup *group, pid_t pid, struct sched_target *target, struct sched_count *count);

/* Of what is left after cgroup.kill, raise up to max threads above all jobs, so that they can die, and lower those that
 * have not done so. For a moment only: it is CPU time of everybody else's. */
size_t sched_raise_some(const struct cgroup *group, pid_t *tids, size_t max);
void sched_lower(const pid_t *tids, size_t count);

#endif
