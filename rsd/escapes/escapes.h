/* escapes.h - who has left a job's group keeps no rank of Elmer's. */
#ifndef RSD_ESCAPES_H
#define RSD_ESCAPES_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rsd/root/order.h"

/* A thread in real time that is outside of the jobs' groups, as the kernel shows it. */
struct escapes_thread {
    struct order_rank rank;
    bool reset_on_fork;
    bool known;                   /* what follows could be read */
    bool own_namespace;           /* it is in our user namespace; else its capabilities say nothing */
    uint64_t permitted, bounding; /* capabilities */
    uint64_t rt_priority_max;     /* RLIMIT_RTPRIO, the hard one */
    uint64_t rt_time_max_us;      /* RLIMIT_RTTIME, the hard one */
};
struct escapes_host {
    uint64_t bounding;    /* capabilities that jobs are born with */
    bool jobs_are_marked; /* others have more: who has no more in our namespace was born in a job */
    bool rtkit;           /* it runs, and may have given somebody a class */
};
/* Whether it has its rank from a job. Pure. */
bool escapes_from_job(const struct escapes_thread *thread, const struct escapes_host *host);
/* By the group of its unit, beside users: nobody else is in that. */
bool escapes_rtkit_runs(const char *users);

struct escapes_round {
    const char *users, *groups; /* directories: of the users' own groups; of the jobs', which is left out */
    const cpu_set_t *cpus;      /* that who has left may use again */
    struct escapes_host host;
    size_t scanned, threads; /* groups and threads */
    size_t lowered, missed;  /* threads; groups that are closed to us */
    bool unreachable;        /* who is in these cannot be found otherwise */
    pid_t first;             /* thread that was lowered */
    uid_t first_uid;
    int64_t used_ns, since_ns; /* of CPU time; at the end of the last rest */
};
/* All groups below users once. Sleeps between slices, so that it takes no more than a hundredth of a CPU. */
void escapes_scan(struct escapes_round *round);

/* That every second, as long as there are jobs in groups, for ever. */
_Noreturn void escapes_watch(const char *users, const char *groups, const cpu_set_t *cpus);

#endif
