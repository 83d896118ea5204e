/* plan.h - several simulations: what --sweep and --compare make of one, and how they are run on all CPUs. */
#ifndef ESIM_PLAN_H
#define ESIM_PLAN_H

#include "esim/run.h"

struct plan {
    struct config *configs;
    size_t count;
    size_t compared;                  /* configs 0..compared-1 differ in what is compared, and so on; 1: nothing is */
    char swept[40], compared_key[40]; /* "": nothing is */
    double *at;                       /* [count / compared] the value that is swept; NAN: no number */
    char **values, **names;           /* as they were said: [count / compared], [compared] */
    struct result *results;
    double **series;
    size_t room;
    bool failed;  /* it could not be made, and not for what the options say */
    void *shared; /* what results and series point into */
    size_t shared_size;
};

/* sweep, compare: "KEY=A,B,C", a sweep also "KEY=FROM..TO" or "KEY=FROM..TO:COUNT"; NULL: none. False: fault says why.
 */
bool plan_make(struct plan *plan, const struct config *base, const char *sweep, const char *compare, char *fault,
               size_t size);
/* All of them, at most so many at a time, or so many runs of a single one; each in a process of its own. */
void plan_run(struct plan *plan, int at_a_time, FILE *progress);
void plan_fini(struct plan *plan);
struct difference {             /* of jobs that ended in both */
    struct estimate turnaround; /* how much longer the second takes in the mean */
    double first;               /* the mean of the first */
    size_t jobs;                /* or pairs of runs, where there are several */
    bool of_means;              /* each has jobs of its own, of other traces or seeds, so these are not compared */
    bool cut_off;               /* there are more jobs than are kept: of the first ones */
};
struct difference plan_difference(const struct plan *plan, size_t first, size_t second);
/* How much more of the time the second uses, with a queue that is never empty; how sure that is by what both did with
 * the same jobs, if they had so many. */
struct estimate plan_used(const struct plan *plan, size_t first, size_t second);

#endif
