/* world_internal.h - the state of a world, for the files that make it go on: world.c, and world_hosts.c for the hosts.
 */
#ifndef ESIM_WORLD_INTERNAL_H
#define ESIM_WORLD_INTERNAL_H

#include "esim/explain.h"
#include "esim/load.h"
#include "esim/waits.h"
#include "esim/world.h"

enum { OFFSET_MS = 10000 /* before the first job, so that hosts can have told their load */ };

struct follows { /* an event without more than this: a whole one is large, and a job on 1,000 hosts has 2,000 of them */
    enum event_type type;
    int host;
    uint32_t attempt;
    uint64_t job;
};

struct pending { /* events that follow from actions, first come, first served */
    struct follows *items;
    size_t first, count, capacity;
};

struct change {
    int64_t ms;
    int host;
    bool away;
};

struct behind {
    struct sim_job job;
    struct behind *next;
};

struct world {
    struct world_settings settings;
    struct core *core;
    struct source *source;
    world_ended *ended;
    void *data;
    struct actions actions;
    struct pending pending;
    struct load *load;
    struct sim_job **jobs; /* [njobs] by the core's id; NULL: over */
    size_t njobs, jobs_capacity;
    struct waits waits;  /* the same, of a source with jobs that wait for others */
    struct sim_job next; /* the next to be submitted */
    bool has_next;
    struct behind *behind, **last_behind; /* those that wait and that the core has not been given yet */
    int64_t now_ms, report_ms;            /* of the last report */
    bool measured;                        /* a job has come that is */
    double first_s, first_used_s;         /* ... then, and what was used until then */
    int64_t *told_ms;                     /* of each host, where the report that the core has begins; -1: it has none */
    struct change *changes;               /* [nchanges] in the order of time: hosts go away, and come back */
    int *away;                            /* of each host: times that it is away, which may overlap */
    size_t nchanges, changed;             /* changed: of these */
    int64_t *ordered_ms; /* ... when a job on it has got another level, also because of what is on another host */
    bool *tells;         /* those of tellers[ntellers], hosts whose next report may say something new */
    int *tellers, ntellers;
    bool reports;
    unsigned idle_reports;
    int64_t quiet_reports;                                  /* since something else happened */
    uint64_t nended, nwaiting, nbehind, nrunning, nrefused; /* waiting: in the core */
    uint64_t nphases;                                       /* that have ended */
    char fault[160];
    uint32_t *nobodies, all_nobodies; /* [nnobodies] users that stand for nobody and have no job; so many in all */
    size_t nnobodies, nobodies_capacity;
    struct explain explain;
};

/* One step of the core, and all that follows from it. The answer to the event itself, if it has one. */
enum answer world_pass(struct world *world, const struct event *event, uint64_t *job);

/* ---- hosts ---- */
void hosts_create(struct world *world); /* and they come up */
void hosts_destroy(struct world *world);
void hosts_report(struct world *world);
/* It may be something new that it reports next. */
void hosts_has_news(struct world *world, int host);
/* When that is to be done next, if nothing else happens; INT64_MAX: never. */
int64_t hosts_next_report(struct world *world, int64_t arrival_ms);
/* The last of the reports from then on that come before an event: it says all that those before it would. */
int64_t hosts_telling_report(struct world *world, int64_t report_ms, int64_t event_ms);
/* When next a host goes away or comes back, INT64_MAX: none does; and that it does. */
int64_t hosts_next_change(const struct world *world);
void hosts_change(struct world *world);

#endif
