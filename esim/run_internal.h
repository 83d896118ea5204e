/* run_internal.h - shared by run.c and replications.c. */
#ifndef ESIM_RUN_INTERNAL_H
#define ESIM_RUN_INTERNAL_H

#include "esim/run.h"

/* Turnarounds of all runs. */
struct pool {
    double *values;
    size_t count, capacity;
};

void pool_add(struct pool *pool, const double *values, size_t count);
/* pool: gets the turnarounds that were measured; may be NULL. */
void run_once(const struct config *config, struct result *result, double *series, size_t room, struct pool *pool,
              FILE *progress);
bool run_is_precise(const struct config *c, const struct result *result);
/* Runs of one length with other random numbers, until their means are as precise as they must be. The same comes out of
 * them however many there are at a time. */
void replicate(const struct config *config, struct result *result, double *series, size_t room, int at_a_time,
               FILE *progress);

#endif
