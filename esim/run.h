/* run.h - one simulation: a machine, a workload and how sure the answer must be. */
#ifndef ESIM_RUN_H
#define ESIM_RUN_H

#include <stdio.h>

#include "esim/feedback.h"
#include "esim/history.h"
#include "esim/stats.h"
#include "esim/workload.h"
#include "esim/world.h"

enum { RUN_LABEL_MAX = 120 };

struct config {
    struct world_settings world;
    struct workload workload;
    char workload_name[RUN_LABEL_MAX];
    const char *trace;             /* a file in the Standard Workload Format instead */
    const struct history *history; /* or what elmer has kept; the caller's */
    const char *without;           /* HISTORY: the user whose jobs are left out; NULL: none */
    const char *drawn_said;        /* the last of the keys that are for drawn jobs only; NULL: none */
    const char *times_said, *shared_said, *threshold_said, *max_said; /* load, steps, .. in the same way */
    const char *swept, *compared;                                     /* keys that vary; NULL: none */
    int cube;          /* a hypercube of 2^cube hosts was said; -1: not */
    int more_hosts;    /* beside those of the machine */
    bool model_said;   /* else HISTORY has MODEL_SHARED */
    double precision;  /* relative half-width of the mean turnaround that is wanted (saturated: of the utilisation) */
    uint64_t jobs_max; /* give up then */
    double effort_max; /* of the jobs behind a run, in looks at a host for a job */
    bool jobs_said;
    bool precision_said;
    bool no_feedback; /* the jobs of a trace come at its times, whatever they follow */
    const char *feedback_said;
    bool quiet;   /* wrong lines of the trace are told by another simulation */
    bool exactly; /* so many jobs, whatever the precision; with one that was said in each of several runs */
    bool failed;  /* what is wrong is not in the options: the trace cannot be read */
    bool whole;   /* no warm-up is cut off: a trace is what it is */
    bool records_said;
    FILE *records;             /* a line of JSON for each job; may be NULL */
    char label[RUN_LABEL_MAX]; /* what is particular of it, like "load=2 allocator=v1" */
};

struct result {
    bool done;
    char fault[200]; /* why not */
    uint64_t jobs, warmup, refused, waiting;
    struct swf_counts lines; /* of a trace */
    struct feedback_counts trace;
    bool unexplained; /* there was no such job */
    bool steady;
    uint64_t replications; /* runs with other random numbers, from which the intervals are; 1: by batches of one run */
    double seconds;        /* of virtual time, measured */
    struct estimate turnaround, wait, stretch, utilisation; /* seconds, seconds, 1 and more but for speeds, 0..1 */
    struct estimate median, p95;                            /* of the turnaround */
    struct estimate load_out;                               /* in units of load; NAN: too few jobs */
    uint64_t judged; /* jobs by which it was judged how much one depends on those before: these, and others behind */
    bool too_short;  /* even those are too few for an interval of what is asked for */
    size_t nseries;  /* how much of the series there is */
    size_t nall;     /* ... and with the others behind */
};

enum { REPLICATIONS_MAX = 1000, JUDGED_MAX = 128000, TICK_JOBS = 20 };

/* series: [room] turnarounds by the number of the job, as far as the last that ended, NAN where one did not; of several
 * runs the mean of each, if there is room for REPLICATIONS_MAX. With a queue that is never empty, where turnarounds
 * have no meaning: for every TICK_JOBS jobs that ended the seconds in which a processor was used in the mean, and how
 * many went by; of several runs the utilisation of each. Behind a run whose length was said the jobs go on for a while,
 * JUDGED_MAX at most, until it is known how much they depend on each other; nothing else is said of those. Several runs
 * are side by side, so many at a time, in processes of their own. progress: a line on a terminal, or NULL.
 */
void run(const struct config *config, struct result *result, double *series, size_t room, int at_a_time,
         FILE *progress);

#endif
