/* stats.h - what a series of values says: its steady part, its mean, and how sure that is. */
#ifndef ESIM_STATS_H
#define ESIM_STATS_H

#include <stdbool.h>
#include <stddef.h>

struct estimate {
    double mean, half;  /* half-width of the 95 % confidence interval; NAN: too few values */
    double independent; /* so many values that do not depend on each other would say as much of it */
};

enum {
    STATS_BATCHES = 15,
    STATS_ENOUGH = 150, /* independent values, so that it is known how values hang together */
    STATS_LEAST = 50    /* of fewer no interval is said */
};

/* How many values at the beginning are warm-up, by MSER-5 (White 1997): the means of five at a time, cut where the
 * standard error of the rest is least. begins_low: the first are too small, if anything, so that a beginning above the
 * rest is none, but chance. The result is count if the series grows: then no part of it is like the rest. */
size_t stats_warmup(const double *values, size_t count, bool begins_low);
/* The mean of values[count], which follow each other, and depend on those before. How much they do is judged by
 * all[nall], a longer part of the same series, or the same: a part that is short for this shows neither what it depends
 * on, nor that it is short. half is NAN if all is still too short. */
struct estimate stats_series(const double *values, size_t count, const double *all, size_t nall);
/* By the means of STATS_BATCHES batches as if they were independent, of few values by these: the jobs are those of a
 * trace or a history, in which a rush is no chance, so that neighbours in it may be alike. */
struct estimate stats_batches(const double *values, size_t count);
/* Of values that are each the mean of a run of its own. NAN if there are none. */
struct estimate stats_replications(const double *values, size_t count);
/* Sorts them; q: 0..1. */
double stats_quantile(double *values, size_t count, double q);

#endif
