/* stats.h - what a series of values says: its steady part, its mean, and how sure that is. */
#ifndef ESIM_STATS_H
#define ESIM_STATS_H

#include <stddef.h>

struct estimate {
    double mean, half; /* half-width of the 95 % confidence interval; NAN: too few values */
};

/* How many values at the beginning are warm-up, by MSER-5 (White 1997): the means of five at a time, cut where the
 * standard error of the rest is least. More than half of the series: it is not steady, and the result is its length. */
size_t stats_warmup(const double *values, size_t count);
/* By the means of 30 batches. */
struct estimate stats_batches(const double *values, size_t count);
/* Of values that are each the mean of a run of its own. */
struct estimate stats_replications(const double *values, size_t count);
/* Sorts them; q: 0..1. */
double stats_quantile(double *values, size_t count, double q);

#endif
