/* replications.c - independent runs of one length, of which the intervals are. */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "esim/processes.h"
#include "esim/random.h"
#include "esim/run_internal.h"
#include "lib/memory/mem.h"

enum {
    AT_LEAST = 10,          /* of fewer the spread is too uncertain to stop at */
    SIDE_BY_SIDE = 1 << 22, /* jobs of a run at most, if others are beside it: their turnarounds are in shared memory */
};

struct sums { /* of each run, in the order of the runs */
    double turnaround[REPLICATIONS_MAX], wait[REPLICATIONS_MAX], stretch[REPLICATIONS_MAX];
    double utilisation[REPLICATIONS_MAX], load_out[REPLICATIONS_MAX];
    double median[REPLICATIONS_MAX], p95[REPLICATIONS_MAX];
    double work; /* load_out * seconds */
    size_t count, steady;
};

static void add_run(struct sums *sums, const struct result *one, struct result *all)
{
    sums->turnaround[sums->count] = one->turnaround.mean;
    sums->wait[sums->count] = one->wait.mean;
    sums->stretch[sums->count] = one->stretch.mean;
    sums->utilisation[sums->count] = one->utilisation.mean;
    sums->load_out[sums->count] = one->load_out.mean;
    sums->median[sums->count] = one->median.mean;
    sums->p95[sums->count] = one->p95.mean;
    sums->work += one->seconds > 0 ? one->load_out.mean * one->seconds : 0;
    sums->steady += one->steady;
    sums->count++;
    if (sums->count > 1) {
        all->jobs += one->jobs;
        all->warmup += one->warmup;
        all->refused += one->refused;
        all->waiting += one->waiting;
        all->seconds += one->seconds;
    }
    all->turnaround = stats_replications(sums->turnaround, sums->count);
    all->wait = stats_replications(sums->wait, sums->count);
    all->stretch = stats_replications(sums->stretch, sums->count);
    all->utilisation = stats_replications(sums->utilisation, sums->count);
    all->load_out = stats_replications(sums->load_out, sums->count);
    all->load_out.mean = all->seconds > 0 ? sums->work / all->seconds : NAN;
    all->steady = true; /* for run_is_precise() */
    all->replications = sums->count;
}

/* Of the jobs of all runs; how much it may be off as those of single runs say. */
static struct estimate of_all(struct pool *pool, double q, const double *of_runs, size_t count)
{
    struct estimate estimate = stats_replications(of_runs, count);

    estimate.mean = stats_quantile(pool->values, pool->count, q);
    return estimate;
}

static void evaluate_runs(const struct sums *sums, struct pool *pool, bool saturated, struct result *result,
                          double *series, size_t room)
{
    const double *means = saturated ? sums->utilisation : sums->turnaround;

    result->steady = 2 * sums->steady > sums->count;
    result->median = of_all(pool, 0.5, sums->median, sums->count);
    result->p95 = of_all(pool, 0.95, sums->p95, sums->count);
    result->too_short = false;
    for (result->nseries = 0; result->nseries < room && result->nseries < sums->count; result->nseries++)
        series[result->nseries] = means[result->nseries];
    result->nall = result->nseries;
}

static void run_number(const struct config *config, size_t number, struct result *one, struct pool *pool,
                       FILE *progress)
{
    struct config other = *config;

    other.workload.seed = stream_seed(config->workload.seed, number);
    other.world.core.seed = stream_seed(config->world.core.seed, number);
    run_once(&other, one, NULL, 0, pool, progress);
}

/* Some runs side by side. They are taken in their order, so the last ones may be more than is needed. */
struct round {
    const struct config *config;
    struct result *results; /* [size], shared with the processes of the runs; NULL: one run after the other, here */
    double *turnarounds;    /* [size][room], behind them */
    size_t size, room, first, end; /* first, end: runs of this round */
};

static size_t round_bytes(const struct round *round)
{
    return round->size * (sizeof(*round->results) + round->room * sizeof(*round->turnarounds));
}

static void round_make(struct round *round, const struct config *config, int at_a_time)
{
    *round = (struct round){.config = config, .size = (size_t)at_a_time, .room = (size_t)config->jobs_max};
    if (at_a_time == 1 || config->jobs_max > SIDE_BY_SIDE)
        return;
    round->results = processes_memory(round_bytes(round));
    round->turnarounds = round->results ? (double *)(void *)(round->results + round->size) : NULL;
}

/* The result comes last: whoever has ended before that, for want of memory, has none. */
static void run_of_round(size_t i, void *data)
{
    struct round *round = data;
    struct result one = round->results[i];
    struct pool pool = {.count = 0};

    run_number(round->config, round->first + i, &one, &pool, NULL);
    assert(pool.count == one.jobs && pool.count <= round->room);
    if (pool.count > 0)
        memcpy(round->turnarounds + i * round->room, pool.values, pool.count * sizeof(*pool.values));
    free(pool.values);
    round->results[i] = one;
}

static void take_run(struct round *round, size_t number, struct result *one, struct pool *pool, FILE *progress)
{
    size_t i;

    if (!round->results) {
        run_number(round->config, number, one, pool, number == 0 ? progress : NULL);
        return;
    }
    if (number == round->end) {
        round->first = number;
        round->end = number + round->size;
        memset(round->results, 0, round->size * sizeof(*round->results));
        processes_run(round->results, round->size, (int)round->size, run_of_round, round, NULL);
    }
    i = number - round->first;
    *one = round->results[i];
    if (one->jobs > 0)
        pool_add(pool, round->turnarounds + i * round->room, one->jobs);
}

void replicate(const struct config *config, struct result *result, double *series, size_t room, int at_a_time,
               FILE *progress)
{
    struct sums *sums = mem_zalloc(sizeof(*sums));
    struct pool pool = {.count = 0};
    struct round round;
    struct result one;

    round_make(&round, config, at_a_time);
    do {
        if (progress && sums->count > 0)
            fprintf(progress, "\r%s: %zu runs ", config->label, sums->count);
        take_run(&round, sums->count, &one, &pool, progress);
        if (sums->count == 0 || !one.done)
            *result = one;
        if (one.done)
            add_run(sums, &one, result);
    } while (one.done && sums->count < REPLICATIONS_MAX && (sums->count < AT_LEAST || !run_is_precise(config, result)));
    if (progress)
        fprintf(progress, "\r\033[K");
    if (result->done)
        evaluate_runs(sums, &pool, config->world.saturated, result, series, room);
    if (round.results)
        munmap(round.results, round_bytes(&round));
    free(pool.values);
    free(sums);
}
