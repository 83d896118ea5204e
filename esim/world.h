/* world.h - the core of Elmer in virtual time: hosts that obey at once, and jobs that use their processors by a model.
 *
 * The core decides here as it does in elmer: the same code, driven by the same events. What is not there: messages,
 * failures but for the time that a host is away, what owners of hosts do, and the time that a start takes.
 */
#ifndef ESIM_WORLD_H
#define ESIM_WORLD_H

#include <stdio.h>

#include "elmer/core/core.h"
#include "esim/job.h"

enum model {
    MODEL_SPACE, /* a job runs as long as it runs alone */
    MODEL_SHARED /* ... if it gets its share of each processor: the first what it asks, the next what is left */
};

#define WORLD_TIME_MAX_MS                                                                                              \
    ((int64_t)1 << 60) /* 36 million years, and a job of 10^15 ms at a speed of 0.001 fits behind */

enum { SPEEDS_MAX = 64 };
struct speeds { /* so many hosts with this one */
    double speed;
    int hosts;
};

struct away { /* a host takes no new jobs; times since the first job could be submitted */
    int host;
    int64_t from_ms, until_ms;
};

struct world_settings {
    struct core_options core;
    int nhosts, ncpus; /* processors of each host, at most */
    const int *known;  /* [nknown] of the first hosts, if they are different; those that follow have cpus_more */
    int nknown, cpus_more;
    const char *const *names;         /* [nknown] */
    struct speeds speeds[SPEEDS_MAX]; /* [nspeeds] of the first hosts, those that follow are like the last; none: 1 */
    int nspeeds;
    const struct away *away; /* [naway]; the caller's */
    int naway;
    uint64_t memory_bytes; /* of each host, for jobs; 0: as much as they ask for */
    enum model model;
    bool by_itself;    /* SHARED: each processor of a job goes on by itself; else all in step, with the slowest */
    int64_t period_ms; /* SHARED: a job computes for its share of this time and then waits; 0: it does both at once */
    int64_t report_ms; /* how often a host tells its load; 0: never */
    bool every_report; /* also those that tell nothing new, which is slow and changes nothing: for tests */
    bool every_job; /* also those far behind are given to the core, which takes memory and changes nothing: for tests */
    bool saturated; /* the next job comes when nobody waits */
    uint64_t explain; /* number of a job whose way is told; 0: none */
    FILE *told;       /* there */
};

struct world;
/* Told of each job that has ended, in that order. */
typedef void world_ended(const struct sim_job *job, void *data);

/* The source must outlive it. NULL: a setting that the core refuses. */
struct world *world_create(const struct world_settings *settings, struct source *source, world_ended *ended,
                           void *data);
void world_destroy(struct world *world);
/* Until so many jobs have ended in all; false: there are no more. */
bool world_run(struct world *world, uint64_t jobs);

int world_cpus(const struct world_settings *settings, int host);
/* How fast they are, [settings->nhosts]; the caller's. */
double *world_speeds(const struct world_settings *settings);
uint64_t world_processors(const struct world_settings *settings);
int64_t world_now_ms(const struct world *world); /* since the first could be submitted */
double world_used_ms(const struct world *world); /* processor time, in all: load_used_ms() */
/* The same in seconds when the first job came that is measured; 0: none has. */
double world_first_s(const struct world *world);
double world_first_used_s(const struct world *world);
/* Why it cannot go on; NULL: nothing is wrong. */
const char *world_fault(const struct world *world);
uint64_t world_refused(const struct world *world); /* jobs that are too large for the machine */
uint64_t world_waiting(const struct world *world);
void world_tell_no_more(struct world *world);    /* of the job that is to be explained */
bool world_explained(const struct world *world); /* there was such a job, or none is to be explained */

uint64_t world_place(const struct core_processor *processors, uint32_t n); /* sim_job.place */

#endif
