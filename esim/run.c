#include "config.h"

#include "esim/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esim/feedback.h"
#include "esim/json.h"
#include "esim/run_internal.h"
#include "esim/swf.h"
#include "lib/memory/mem.h"

enum { HOLDS = 2 /* times one after the other: the first may be chance, and one would stop at such */ };
enum { FIRST_JOBS = 4000 };
enum { PROCESSOR_EFFORT = 32 /* what is done for a processor of a job, in looks at a host for a job */ };
enum { HOPELESS_JOBS = 8000 /* of fewer a queue may grow by chance */, LONG_JOBS = 128000 };

/* All of a run, by the order in which jobs ended; and every TICK_JOBS jobs how much was used until then. */
struct record {
    const struct config *config;
    struct world *world;
    double *turnaround, *wait, *stretch;
    double *share, *tick_s, *used_s, *work_s; /* of each tick: share is the utilisation */
    size_t count, ticks, unticked, ended;     /* that are measured; their ticks; those since the last tick; all */
    bool behind;               /* these come after those that were asked for, and only tell how much jobs depend */
    size_t asked, asked_ticks; /* on each other */
    double effort;             /* of those behind */
    size_t capacity[7];
    double now_s, used_until_s, last_s, last_used_s, work_sum_s, processors; /* now: at the last end; last: tick */
    double *series;
    size_t room, filled; /* of the series */
};

static void add(double **values, size_t *capacity, size_t at, double value)
{
    *values = mem_grow(*values, capacity, at + 1, sizeof(**values));
    (*values)[at] = value;
}

/* A trace or a history begins with its first job: before that there is nothing to be known of the machine. */
static void tick(struct record *r)
{
    double span, used_s;
    if (r->ticks == 0 && r->config->whole) {
        r->last_s = world_first_s(r->world);
        r->last_used_s = world_first_used_s(r->world);
    }
    span = r->now_s - r->last_s;
    used_s = r->used_until_s - r->last_used_s;
    add(&r->share, &r->capacity[3], r->ticks, span > 0 ? used_s / (span * r->processors) : 0);
    add(&r->tick_s, &r->capacity[4], r->ticks, span);
    add(&r->work_s, &r->capacity[5], r->ticks, r->work_sum_s);
    add(&r->used_s, &r->capacity[6], r->ticks, used_s / r->processors);
    if (r->config->world.saturated && r->filled + 2 <= r->room) {
        r->series[r->filled++] = r->used_s[r->ticks];
        r->series[r->filled++] = span;
    }
    r->ticks++;
    r->last_s = r->now_s;
    r->last_used_s = r->used_until_s;
    r->work_sum_s = 0;
    r->unticked = 0;
}

static void ended(const struct sim_job *job, void *data)
{
    struct record *r = data;
    double turnaround = (double)(job->end_ms - job->submit_ms) / 1000, work = (double)job->work_ms / 1000;

    r->ended++;
    if (r->behind)
        r->effort += r->config->world.nhosts + (double)PROCESSOR_EFFORT * job->nprocs;
    if (job->unmeasured)
        return;
    add(&r->turnaround, &r->capacity[0], r->count, turnaround);
    add(&r->wait, &r->capacity[1], r->count, (double)(job->start_ms - job->submit_ms) / 1000);
    add(&r->stretch, &r->capacity[2], r->count, work > 0 ? turnaround / work : NAN);
    r->count++;
    r->now_s = (double)world_now_ms(r->world) / 1000;
    r->used_until_s = world_used_ms(r->world) / 1000;
    r->work_sum_s += work;
    if (!r->config->world.saturated && job->index <= r->room) {
        while (r->filled < job->index) /* those between may come yet */
            r->series[r->filled++] = NAN;
        r->series[job->index - 1] = turnaround;
    }
    if (++r->unticked == TICK_JOBS)
        tick(r);
    if (r->config->records && !r->behind)
        json_record(r->config->records, job);
}

/* Of a quotient, what was used or done and time. Its mean is off by what the former of ticks is off, if each had the
 * same part of its time (Cochran 1977, 6.4). */
static struct estimate quotient(const struct record *r, const double *done, size_t first, size_t first_all)
{
    double sum = 0, all = 0, *off;
    struct estimate estimate;
    size_t count = r->asked_ticks - first;

    for (size_t i = first; i < r->asked_ticks; i++) {
        sum += done[i];
        all += r->tick_s[i];
    }
    if (!(all > 0))
        return (struct estimate){NAN, NAN, 0};
    off = mem_array(r->ticks + 1, sizeof(*off));
    for (size_t i = 0; i < r->ticks; i++)
        off[i] = (done[i] - sum / all * r->tick_s[i]) / (all / (double)count);
    estimate = r->config->whole ? stats_batches(off + first, count)
                                : stats_series(off + first, count, off + first_all, r->ticks - first_all);
    estimate.mean = sum / all;
    free(off);
    return estimate;
}

static bool is_drawn(const struct config *c)
{
    return !c->trace && !c->history;
}

/* Batches of one run do, as long as it may be as long as it must. If its length is said, and a precision, there are
 * other runs of the same length, with other jobs. */
static bool has_other_runs(const struct config *c)
{
    return is_drawn(c) && c->exactly && c->precision_said;
}

/* Where the measured part begins; the whole is steady or not. Several runs of one length are asked for that length,
 * with its beginning. */
static size_t warmup(const struct record *r, size_t count, size_t ticks, bool *steady)
{
    bool saturated = r->config->world.saturated; /* turnaround has no meaning there: steady is what is used */
    size_t cut = 0, n = saturated ? ticks : count;

    if (!r->config->whole)
        cut = saturated ? stats_warmup(r->share, n, false) : stats_warmup(r->turnaround, n, true);
    *steady = cut < n || n == 0;
    return !*steady || has_other_runs(r->config) ? 0 : saturated ? cut * TICK_JOBS : cut;
}

static struct estimate estimate(const struct record *r, const double *values, size_t cut, size_t cut_all)
{
    return r->config->whole ? stats_batches(values + cut, r->asked - cut)
                            : stats_series(values + cut, r->asked - cut, values + cut_all, r->count - cut_all);
}

/* Of those that are known: a job that takes no time has no stretch. */
static struct estimate estimate_known(const struct record *r, const double *values, size_t cut, size_t cut_all)
{
    double *known = mem_array(r->count + 1, sizeof(*known));
    size_t count = 0, from = 0, from_all = 0, until = 0;
    struct estimate estimate = {NAN, NAN, 0};

    for (size_t i = 0; i <= r->count; i++) {
        from = i == cut ? count : from;
        from_all = i == cut_all ? count : from_all;
        until = i == r->asked ? count : until;
        if (i < r->count && !isnan(values[i]))
            known[count++] = values[i];
    }
    if (until > from)
        estimate = r->config->whole ? stats_batches(known + from, until - from)
                                    : stats_series(known + from, until - from, known + from_all, count - from_all);
    free(known);
    return estimate;
}

/* Which part of the turnarounds is below it is a mean, too, whose interval ends at the ends of this one. */
static struct estimate quantile(const struct record *r, double *sorted, double q, size_t cut, size_t cut_all)
{
    size_t n = r->asked - cut;
    double at = stats_quantile(sorted, n, q), part, *below = mem_array(r->count + 1, sizeof(*below));

    for (size_t i = 0; i < r->count; i++)
        below[i] = r->turnaround[i] <= at;
    part = estimate(r, below, cut, cut_all).half;
    free(below);
    if (!(part <= q && part <= 1 - q)) /* also if it is not known */
        return (struct estimate){at, NAN, 0};
    return (struct estimate){
        at, fmax(stats_quantile(sorted, n, q + part) - at, at - stats_quantile(sorted, n, q - part)), 0};
}

static void evaluate_quantiles(const struct record *r, struct result *result, size_t cut, size_t cut_all)
{
    size_t n = r->asked - cut;
    double *sorted = mem_array(n + 1, sizeof(*sorted));

    if (n > 0)
        memcpy(sorted, r->turnaround + cut, n * sizeof(*sorted));
    result->median = quantile(r, sorted, 0.5, cut, cut_all);
    result->p95 = quantile(r, sorted, 0.95, cut, cut_all);
    free(sorted);
}

/* The means, and how sure they are by all that there is. */
static void evaluate_means(const struct record *r, struct result *result)
{
    struct estimate utilised;
    bool steady;
    size_t cut = (size_t)result->warmup, cut_all = warmup(r, r->count, r->ticks, &steady);

    result->steady = result->steady && steady;
    result->judged = r->count;
    result->turnaround = estimate(r, r->turnaround, cut, cut_all);
    result->wait = estimate(r, r->wait, cut, cut_all);
    result->stretch = estimate_known(r, r->stretch, cut, cut_all);
    evaluate_quantiles(r, result, cut, cut_all);
    if (isnan(result->turnaround.half)) /* what depends on the same queue */
        result->wait.half = result->stretch.half = result->median.half = result->p95.half = NAN;
    utilised = quotient(r, r->used_s, cut / TICK_JOBS, cut_all / TICK_JOBS);
    result->load_out = quotient(r, r->work_s, cut / TICK_JOBS, cut_all / TICK_JOBS);
    if (isnan(utilised.mean)) /* few jobs: from the first to the last */
        utilised.mean = result->utilisation.mean;
    result->utilisation = utilised;
    result->too_short = !r->config->whole && isnan((r->config->world.saturated ? utilised : result->turnaround).half);
}

static void evaluate(struct record *r, struct result *result)
{
    size_t cut;
    double all;

    r->asked = r->count;
    r->asked_ticks = r->ticks;
    cut = warmup(r, r->count, r->ticks, &result->steady);
    result->warmup = cut;
    result->jobs = r->count - cut;
    all = (double)world_now_ms(r->world) / 1000 * r->processors;
    result->utilisation.mean = all > 0 ? world_used_ms(r->world) / 1000 / all : 0;
    evaluate_means(r, result);
    result->seconds = 0;
    for (size_t i = cut / TICK_JOBS; i < r->ticks; i++)
        result->seconds += r->tick_s[i];
}

bool run_is_precise(const struct config *c, const struct result *result)
{
    const struct estimate *e = c->world.saturated ? &result->utilisation : &result->turnaround;

    return result->steady && (e->independent >= STATS_ENOUGH || result->replications > 1) &&
           e->half <= c->precision * e->mean;
}

static bool is_known(const struct record *r, const struct result *result)
{
    const struct estimate *e = r->config->world.saturated ? &result->utilisation : &result->turnaround;
    bool ticks = r->asked_ticks > result->warmup / TICK_JOBS;

    return result->steady && e->independent >= STATS_ENOUGH &&
           (!ticks || result->utilisation.independent >= STATS_LEAST);
}

/* The queue grows, and would for as long as one looks. A beginning may look so by chance, but not with so many who
 * wait; in the long run fewer are no chance. */
static bool is_hopeless(const struct record *r, const struct result *result)
{
    return !result->steady && world_waiting(r->world) > r->ended / (r->ended < LONG_JOBS ? 10 : 100);
}

/* Until so many have ended. False: there are no more, or all the others would take too long on so large a machine. */
static bool run_behind(struct record *r, size_t goal)
{
    const size_t some = 100;
    bool more = true;

    while (more && r->ended < goal && r->effort < r->config->effort_max)
        more = world_run(r->world, r->ended + some < goal ? r->ended + some : goal);
    return more && r->ended >= goal;
}

/* Of so few nobody knows how much they depend on each other. */
static void forget_intervals(struct result *result)
{
    struct estimate *all[] = {&result->turnaround, &result->wait, &result->stretch, &result->utilisation,
                              &result->median,     &result->p95,  &result->load_out};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        all[i]->half = NAN;
    result->too_short = true;
}

/* A run whose length was said may be too short to show how much jobs depend on those before, and would then be taken
 * for more than it is: so the workload goes on behind it until that is known. */
static void look_behind(struct record *r, struct result *result, FILE *progress)
{
    size_t goal = r->ended;
    bool more = true, hopeless = false;

    world_tell_no_more(r->world);
    r->behind = true;
    while (more && !hopeless && goal < JUDGED_MAX && (goal < FIRST_JOBS || !is_known(r, result))) {
        goal = goal < FIRST_JOBS / 2 ? FIRST_JOBS : goal < JUDGED_MAX / 2 ? 2 * goal : JUDGED_MAX;
        if (progress)
            fprintf(progress, "\r%s: %zu jobs, and others to know how sure that is ", r->config->label, r->asked);
        more = run_behind(r, goal);
        result->steady = true;
        evaluate_means(r, result);
        hopeless = is_hopeless(r, result);
    }
    if (r->ended < FIRST_JOBS && r->effort >= r->config->effort_max)
        forget_intervals(result);
    if (progress)
        fprintf(progress, "\r\033[K");
}

static void simulate(const struct config *c, struct record *r, struct result *result, FILE *progress)
{
    int held = 0, hopeless = 0;
    uint64_t goal = c->exactly || c->jobs_max < FIRST_JOBS ? c->jobs_max : FIRST_JOBS;

    for (bool more = true, last;;) {
        for (uint64_t part = r->ended; more && r->ended < goal;) {
            part = part + 20000 < goal ? part + 20000 : goal;
            more = world_run(r->world, part);
            if (progress)
                fprintf(progress, "\r%s: %zu jobs ", c->label, r->ended);
        }
        last = !more || goal >= c->jobs_max || c->exactly;
        if (last && c->whole && r->unticked > 0)
            tick(r);
        evaluate(r, result);
        result->waiting = more ? 0 : world_waiting(r->world);
        held = run_is_precise(c, result) ? held + 1 : 0;
        hopeless = is_drawn(c) && r->ended >= HOPELESS_JOBS && is_hopeless(r, result) ? hopeless + 1 : 0;
        if (last || held == HOLDS || hopeless == HOLDS)
            break;
        goal = goal * 2 < c->jobs_max ? goal * 2 : c->jobs_max;
    }
    if (progress)
        fprintf(progress, "\r\033[K");
    result->refused = world_refused(r->world);
    result->unexplained = !world_explained(r->world);
    result->done = true;
}

void pool_add(struct pool *pool, const double *values, size_t count)
{
    pool->values = mem_grow(pool->values, &pool->capacity, pool->count + count + 1, sizeof(*pool->values));
    memcpy(pool->values + pool->count, values, count * sizeof(*pool->values));
    pool->count += count;
}

/* Part of a trace, or no job at all, is no answer. */
static void judge(const struct record *r, const char *fault, struct result *result)
{
    if (!fault)
        fault = world_fault(r->world);
    if (!fault && world_now_ms(r->world) >= WORLD_TIME_MAX_MS)
        fault = "the jobs take longer than 36 million years";
    if (!fault && r->ended == 0)
        fault = result->refused > 0   ? "no job has ended: the machine is too small for them"
                : result->waiting > 0 ? "no job has ended: those that wait have no place"
                                      : "there is no job";
    result->done = !fault;
    if (fault)
        snprintf(result->fault, sizeof(result->fault), "%s", fault);
}

void run_once(const struct config *config, struct result *result, double *series, size_t room, struct pool *pool,
              FILE *progress)
{
    struct swf *swf = config->trace ? swf_open(config->trace, config->quiet) : NULL;
    struct source *source;
    struct record r = {.config = config, .series = series, .room = room};

    *result = (struct result){.nseries = 0};
    if (config->trace && !swf) {
        snprintf(result->fault, sizeof(result->fault), "%.150s: %s", config->trace, strerror(errno));
        return;
    }
    source = swf               ? feedback_source(swf, config->trace, !config->no_feedback)
             : config->history ? history_source(config->history, config->without)
                               : workload_source(&config->workload);
    if (swf)
        result->trace = feedback_counts(source);
    r.processors = (double)world_processors(&config->world);
    r.world = world_create(&config->world, source, ended, &r);
    if (r.world)
        simulate(config, &r, result, progress);
    else
        snprintf(result->fault, sizeof(result->fault),
                 "the core refuses these settings: the allocators of a cube need --cube, and D = 1");
    if (swf)
        result->lines = swf_counts(swf);
    if (result->done)
        judge(&r, swf ? swf_fault(swf) : NULL, result);
    result->nseries = r.filled;
    result->replications = 1;
    if (pool && result->jobs > 0)
        pool_add(pool, r.turnaround + (r.asked - result->jobs), result->jobs);
    if (result->done && is_drawn(config) && !has_other_runs(config))
        look_behind(&r, result, progress);
    result->nall = r.filled;
    world_destroy(r.world);
    source->destroy(source);
    free(r.turnaround);
    free(r.wait);
    free(r.stretch);
    free(r.share);
    free(r.tick_s);
    free(r.used_s);
    free(r.work_s);
}

void run(const struct config *config, struct result *result, double *series, size_t room, int at_a_time, FILE *progress)
{
    if (has_other_runs(config))
        replicate(config, result, series, room, at_a_time, progress);
    else
        run_once(config, result, series, room, NULL, progress);
}
