/* job.h - a job of a workload, and what becomes of it; where jobs come from. Times are milliseconds of virtual time. */
#ifndef ESIM_JOB_H
#define ESIM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/job/after.h"

struct sim_job {
    uint64_t number; /* its name in its workload */
    uint64_t index;  /* its place there, from 1: the same job has the same in each simulation */
    int64_t submit_ms;
    int64_t work_ms; /* how long it runs alone */
    uint32_t nprocs, mesh_rows, uid;
    bool nobody;           /* it is not known whose it is: uid is nobody's */
    uint64_t memory_bytes; /* for each processor; 0: none */
    uint32_t per_host;     /* processors of a host at most; 0: any number */
    const int *hosts;      /* those that it may use; NULL: all */
    int nhosts;
    const struct after *after; /* [nafter] jobs that it waits for, by their numbers */
    int nafter;
    uint64_t array;           /* of which it is a task: others wait for all of its tasks by this number; 0: of none */
    uint32_t ntasks;          /* of the first: so many, with those that come next, are tasks of one array; else 0 */
    uint32_t task_limit;      /* ... of which so many may run at a time; 0: any number */
    uint64_t preceding;       /* of a trace: the number of the job that it follows; 0: none */
    int64_t think_ms;         /* ... so long after its end; -1: not known */
    bool unmeasured;          /* it is there, and what becomes of it does not count */
    double share;             /* of each processor that it uses, 0..1 */
    int64_t start_ms, end_ms; /* -1: not yet */
    const int64_t *level_ms;  /* [CORE_MAX_LEVELS] its time at each level; only while its end is told */
    uint64_t id;              /* the core's */
    uint64_t place;           /* a number for its processors: equal for equal ones in the same order */
};

/* Jobs in the order of their submission. */
struct source {
    bool has_after; /* jobs may wait for others; then no two have the same number */
    bool (*next)(struct source *source, struct sim_job *job); /* false: there are no more */
    /* Told when job has run, or has been refused, as others may follow it. given, if has_given, is the last that next()
     * gave and that is not submitted yet: it may be exchanged for one that comes before. Returns has_given. NULL: who
     * comes next does not depend on that. */
    bool (*over)(struct source *source, const struct sim_job *job, int64_t now_ms, bool has_run, struct sim_job *given,
                 bool has_given);
    void (*destroy)(struct source *source);
};

#endif
