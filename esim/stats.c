#include "config.h"

#include "esim/stats.h"

#include <math.h>
#include <stdlib.h>

#include "lib/memory/mem.h"

enum { MSER = 5, BATCHES = 30 };

size_t stats_warmup(const double *values, size_t count)
{
    size_t n = count / MSER, best = 0;
    double sum = 0, squares = 0, least = INFINITY;

    for (size_t i = n; i-- > 0;) { /* from the end: sums of what would be left */
        double mean = 0, left = (double)(n - i);
        for (size_t k = 0; k < MSER; k++)
            mean += values[i * MSER + k] / MSER;
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
    return best >= n / 2 && n > 0 ? count : best * MSER;
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

struct estimate stats_batches(const double *values, size_t count)
{
    double means[BATCHES] = {0};
    size_t size = count / BATCHES;

    if (size == 0)
        return stats_replications(values, count);
    for (size_t b = 0; b < BATCHES; b++)
        for (size_t i = 0; i < size; i++)
            means[b] += values[count - (BATCHES - b) * size + i] / (double)size;
    return stats_replications(means, BATCHES);
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
