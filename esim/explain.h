/* explain.h - tells the way of one job: why it waits, and where it starts. */
#ifndef ESIM_EXPLAIN_H
#define ESIM_EXPLAIN_H

#include <stdio.h>

#include "elmer/core/core.h"
#include "esim/job.h"

struct explain {
    FILE *told;      /* there */
    uint64_t number; /* of the job; 0: none */
    uint64_t id;     /* the core's, while it is told of; 0: not yet, or no more */
    bool seen;
    char last[300];
    char ended[100]; /* the end of another job, which is told if it changes something for this one */
};

/* At ms of virtual time. */
void explain_say(struct explain *explain, int64_t ms, const char *why);
/* Before what follows from it; explain_wait() comes behind. */
void explain_ended(struct explain *explain, int64_t ms, const struct sim_job *job);
/* If it waits for something else than before. */
void explain_wait(struct explain *explain, struct core *core, int64_t ms);
/* It is over for the one that is told of, as why says; NULL: as all know. */
void explain_end(struct explain *explain, int64_t ms, const char *why);

#endif
