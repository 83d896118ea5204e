/* history.h - what elmer's store knows of jobs that have ended, as a workload, and of the machine that they had. */
#ifndef ESIM_HISTORY_H
#define ESIM_HISTORY_H

#include "elmer/core/core.h"
#include "esim/job.h"
#include "esim/stats.h"
#include "esim/world.h"
#include "lib/memory/mem.h"

/* Of elmer/store/store.h: stores up to this one can be read. A test compares the two. */
enum { HISTORY_SCHEMA = 14 };

struct history_job {
    uint64_t id, allocation;
    uint32_t uid, nprocs, mesh_rows, per_host;
    uint64_t memory_bytes;
    const char *user;
    int64_t submitted_ms, started_ms, ended_ms; /* Unix time */
    int64_t allocated_ms;                       /* it had its processors from then until it ended */
    double cpu_s;                               /* of all its processors; -1: not known */
    const uint32_t *at;                         /* [nprocs] which processors it had; a number for each */
    const int *hosts;                           /* those that it may use; NULL: all */
    int nhosts;
    const struct after *after; /* [nafter] jobs that it waited for */
    int nafter;
    uint64_t array;        /* of which it was a task; 0: of none */
    uint32_t task_limit;   /* ... of which so many could run at a time; 0: any number */
    bool measured;         /* else it came before the time that is looked at */
    double share, work_ms; /* service_estimate() */
};

struct history {
    struct arena memory;
    struct history_job *jobs; /* as they were submitted */
    size_t njobs, measured;
    int *cpus; /* [nhosts] */
    const char **hosts;
    int nhosts, drained;           /* drained: of those, when the store was read */
    int levels;                    /* that jobs have been at */
    enum core_allocator allocator; /* that an administrator has set; ALLOCATOR_COUNT: none */
    enum core_policy policy;       /* POLICY_COUNT: none */
    /* left out: */
    uint64_t unfinished, cancelled, never_started, backwards; /* backwards: started before its submission, or so */
    /* not as the scheduler would have it: */
    uint64_t killed, lost, again, unknown_use;
    uint64_t bound;             /* to some of the hosts */
    struct estimate turnaround; /* as it was, of those that are measured; seconds */
    double median, p95, wait;
};

/* Jobs that were submitted from since until before until, Unix time in ms, and all from the last time on, before since,
 * at which there was no job: who was there when since began had waited for these. NULL: fault says why. The file is not
 * changed, nor is anything made beside it; elmer may use it meanwhile. */
struct history *history_read(const char *path, int64_t since_ms, int64_t until_ms, char *fault, size_t size);
void history_destroy(struct history *history);
/* "ws2=FROM..UNTIL", times as of lib/base/moment.h: a host of it was away. false: fault says why not. */
bool history_away(const struct history *history, const char *text, struct away *away, char *fault, size_t size);
/* Its jobs, but for those of a user (a name or a number; NULL: all). The history must outlive it. Numbers are the ids
 * of elmer. */
struct source *history_source(const struct history *history, const char *without);
bool history_has_user(const struct history *history, const char *user);

#endif
