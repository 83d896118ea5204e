#include "config.h"

#include "esim/stats.h"

#include <math.h>
#include <stdlib.h>

#include "lib/memory/mem.h"

enum { MSER = 5 };
#define GROWS 1.5 /* a second half so much larger than the first */

static double mean_of(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* Where the rest has the least marginal standard error: MSER-5. It may be anywhere, so it alone is no sign of anything:
 * the ends are few values, and few values may be like each other by chance. */
static size_t mser(const double *values, size_t count)
{
    size_t n = count / MSER, best = 0;
    double sum = 0, squares = 0, least = INFINITY;

    for (size_t i = n; i-- > 0;) { /* from the end: sums of what would be left */
        double mean = mean_of(values + i * MSER, MSER), left = (double)(n - i);
        sum += mean;
        squares += mean * mean;
        if (i <= n / 2 + 5 && left >= 10) {
            double score = (squares - sum * sum / left) / (left * left);
            if (score <= least) {
                least = score;
                best = i;
            }
        }
    }
    return best * MSER;
}

size_t stats_warmup(const double *values, size_t count, bool begins_low)
{
    size_t cut = mser(values, count), half = count / MSER / 2 * MSER;

    if (cut == 0)
        return 0;
    if (cut >= half)
        return mean_of(values + half, count - half) > GROWS * mean_of(values, half) ? count : 0;
    if (begins_low && mean_of(values, cut) >= mean_of(values + cut, count - cut))
        return 0; /* what was taken for a warm-up are some large values, and without them the mean would be too small */
    return cut;
}

/* 97.5 % of Student's distribution. */
static double student(size_t freedom)
{
    static const double table[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
                                   2.228, 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
                                   2.086, 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045};

    return freedom < sizeof(table) / sizeof(table[0]) ? table[freedom] : 1.96 + 2.5 / (double)freedom;
}

struct estimate stats_replications(const double *values, size_t count)
{
    double mean = 0, squares = 0;

    for (size_t i = 0; i < count; i++)
        mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    if (count < 2)
        return (struct estimate){mean, NAN};
    return (struct estimate){mean, student(count - 1) * sqrt(squares / (double)(count - 1) / (double)count)};
}

/* Neighbours are alike if batches are short against the time that a queue needs to forget. With a correlation r from
 * one to the next, and r^2 to the one after that, the variance of the mean is (1 + r) / (1 - r) times as large. What is
 * seen of r is too small by about (1 + 4 r) / count (Kendall 1954). */
struct estimate stats_series(const double *values, size_t count)
{
    const double most = 0.9;
    struct estimate estimate = stats_replications(values, count);
    double squares = 0, products = 0, r;

    for (size_t i = 0; i < count; i++) {
        squares += (values[i] - estimate.mean) * (values[i] - estimate.mean);
        if (i > 0)
            products += (values[i] - estimate.mean) * (values[i - 1] - estimate.mean);
    }
    if (!(squares > 0))
        return estimate;
    r = products / squares;
    r = fmin(most, r + (1 + 4 * fmax(0, r)) / (double)count);
    if (r > 0)
        estimate.half *= sqrt((1 + r) / (1 - r));
    return estimate;
}

struct estimate stats_batches(const double *values, size_t count, bool fixed)
{
    double means[STATS_BATCHES];
    size_t size = count / STATS_BATCHES;

    if (size == 0)
        return fixed ? stats_replications(values, count) : stats_series(values, count);
    for (size_t b = 0; b < STATS_BATCHES; b++)
        means[b] = mean_of(values + count - (STATS_BATCHES - b) * size, size);
    return fixed ? stats_replications(means, STATS_BATCHES) : stats_series(means, STATS_BATCHES);
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double stats_quantile(double *values, size_t count, double q)
{
    double place = q * (double)(count - 1);
    size_t low = (size_t)place;

    if (count == 0)
        return NAN;
    qsort(values, count, sizeof(*values), compare);
    return low + 1 < count ? values[low] + (place - (double)low) * (values[low + 1] - values[low]) : values[low];
}
