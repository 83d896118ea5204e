/* stats.h - what a series of values says: its steady part, its mean, and how sure that is. */
#ifndef ESIM_STATS_H
#define ESIM_STATS_H

#include <stdbool.h>
#include <stddef.h>

struct estimate {
    double mean, half; /* half-width of the 95 % confidence interval; NAN: too few values */
};

enum { STATS_BATCHES = 15 };

/* How many values at the beginning are warm-up, by MSER-5 (White 1997): the means of five at a time, cut where the
 * standard error of the rest is least. begins_low: the first are too small, if anything, so that a beginning above the
 * rest is none, but chance. The result is count if the series grows: then no part of it is like the rest. */
size_t stats_warmup(const double *values, size_t count, bool begins_low);
/* Of values that follow each other, and may depend on the one before. */
struct estimate stats_series(const double *values, size_t count);
/* By the means of STATS_BATCHES batches, as a series; of few values by these. fixed: the jobs are those of a trace or a
 * history, in which a rush is no chance, so that neighbours in it may be alike. */
struct estimate stats_batches(const double *values, size_t count, bool fixed);
/* Of values that are each the mean of a run of its own. NAN if there are none. */
struct estimate stats_replications(const double *values, size_t count);
/* Sorts them; q: 0..1. */
double stats_quantile(double *values, size_t count, double q);

#endif
