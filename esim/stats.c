#include "config.h"

#include "esim/stats.h"

#include <math.h>
#include <stdlib.h>

#include "lib/memory/mem.h"

enum { MSER = 5 };
#define GROWS 1.5 /* a second half so much larger than the first */
#define SAME  1e-20

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
        return (struct estimate){mean, NAN, (double)count};
    return (struct estimate){mean, student(count - 1) * sqrt(squares / (double)(count - 1) / (double)count),
                             (double)count};
}

/* The means of batches, the last of which ends with the values. */
static void batch(const double *values, size_t count, size_t batches, double *means)
{
    size_t size = count / batches;

    for (size_t b = 0; b < batches; b++)
        means[b] = mean_of(values + count - (batches - b) * size, size);
}

/* How much larger the variance of their mean is than that of as many independent ones. Neighbours are alike if batches
 * are short against the time that a queue needs to forget. With a correlation r from one to the next, and r^2 to the
 * one after that, it is (1 + r) / (1 - r). What is seen of r is too small by about (1 + 4 r) / count (Kendall 1954). */
static double alike(const double *values, size_t count)
{
    const double most = 0.9;
    double mean = mean_of(values, count), squares = 0, products = 0, r;

    for (size_t i = 0; i < count; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
        if (i > 0)
            products += (values[i] - mean) * (values[i - 1] - mean);
    }
    if (!(squares > 0))
        return 1;
    r = products / squares;
    r = fmin(most, r + (1 + 4 * fmax(0, r)) / (double)count);
    return r > 0 ? (1 + r) / (1 - r) : 1;
}

/* The long-run variance of a series, that of the mean of n values times n, by batches of several sizes, of which the
 * most careful one is believed: few long ones know more of what is far apart, many short ones more of the rest. */
struct spread {
    double unit;        /* half-width of a 95 % interval, times the square root of n */
    double independent; /* values among those that were looked at */
};

static struct spread spread(const double *values, size_t count)
{
    enum { MOST = 30 };
    static const size_t batches[] = {10, 15, MOST};
    struct spread spread = {NAN, 0};
    double means[MOST], mean, variance = 0, most = 0;

    if (count < MOST)
        return spread;
    mean = mean_of(values, count);
    for (size_t i = 0; i < count; i++)
        variance += (values[i] - mean) * (values[i] - mean) / (double)(count - 1);
    spread.unit = 0;
    for (size_t k = 0; k < sizeof(batches) / sizeof(batches[0]); k++) {
        size_t n = batches[k], of_batch = count / n;
        double factor, half;
        batch(values, count, n, means);
        factor = alike(means, n) * (double)of_batch;
        half = stats_replications(means, n).half / student(n - 1) * sqrt((double)n);
        most = fmax(most, half * half * factor);
        spread.unit = fmax(spread.unit, student(n - 1) * half * sqrt(factor));
    }
    /* the mean of equal values is off in the last bit */
    spread.independent = most > SAME * mean * mean ? (double)count * variance / most : INFINITY;
    return spread;
}

struct estimate stats_series(const double *values, size_t count, const double *all, size_t nall)
{
    struct spread found = spread(all, nall);

    if (count == 0)
        return (struct estimate){NAN, NAN, 0};
    return (struct estimate){mean_of(values, count),
                             found.independent >= STATS_LEAST ? found.unit / sqrt((double)count) : NAN,
                             found.independent};
}

struct estimate stats_batches(const double *values, size_t count)
{
    double means[STATS_BATCHES];
    struct estimate estimate;

    if (count < STATS_BATCHES)
        return stats_replications(values, count);
    batch(values, count, STATS_BATCHES, means);
    estimate = stats_replications(means, STATS_BATCHES);
    estimate.mean = mean_of(values, count); /* batches are of one size, so they leave out a few values */
    return estimate;
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
