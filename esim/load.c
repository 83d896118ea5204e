/* load.c - the models. In `space` each job ends after its own time: a heap. In `shared` a job is one thread, or one for
 * each of its processors, that goes on with what the jobs above leave. A processor of speed s does s ms of work in a
 * ms, computing and waiting alike, so that a job alone is busy for its share on any; with others of its processors it
 * waits for the slowest. All rates are computed anew when a job comes or goes, or changes between computing and
 * waiting; from there the next such moment follows. */
#include "config.h"

#include "esim/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory/mem.h"

struct run {
    uint64_t id, rank;
    int64_t end_ms;               /* space */
    double work_ms, share, speed; /* speed: of its slowest processor */
    uint32_t nprocs, nthreads;
    size_t *at;          /* [nprocs] processors */
    double *done, *rate; /* [nthreads] of work_ms, and how much of it a ms brings */
    bool *over;          /* [nthreads] */
};

struct load {
    const struct world_settings *settings;
    struct run **runs; /* shared: in the order of allocation; space: a heap by end_ms */
    size_t nruns, capacity, nprocessors;
    double *speed;       /* [nprocessors] */
    double *left;        /* [nprocessors] after those above */
    uint32_t *jobs;      /* [nprocessors] space: that have it */
    double used;         /* processors that are, in all; shared: the sum of use */
    double used_ms;      /* ... for so long until now_ms */
    double *sum, *use;   /* [nprocessors] busy ms since the last report, as far as counted; busy share now */
    int64_t *since_ms;   /* ... of each host: that report ... */
    int64_t *counted_ms; /* ... and until when that is; from there on use is the same */
    int64_t dropped_ms;  /* what was before is nobody's any more */
    int64_t *changed_ms; /* of each host: something of use */
    bool *is_changed;    /* those of changed_hosts[nchanged] */
    int *changed_hosts, nchanged;
    int64_t now_ms;
    bool stale; /* rates */
};

static bool shared(const struct load *load)
{
    return load->settings->model == MODEL_SHARED;
}

static double *processor_speeds(const struct world_settings *settings)
{
    size_t ncpus = (size_t)settings->ncpus;
    double *hosts = world_speeds(settings), *speeds = mem_array((size_t)settings->nhosts * ncpus, sizeof(*speeds));

    for (size_t i = 0; i < (size_t)settings->nhosts * ncpus; i++)
        speeds[i] = hosts[i / ncpus];
    free(hosts);
    return speeds;
}

struct load *load_create(const struct world_settings *settings)
{
    struct load *load = mem_zalloc(sizeof(*load));

    load->settings = settings;
    load->nprocessors = (size_t)settings->nhosts * (size_t)settings->ncpus;
    load->speed = processor_speeds(settings);
    load->left = mem_array(load->nprocessors, sizeof(*load->left));
    load->jobs = mem_array(load->nprocessors, sizeof(*load->jobs));
    load->sum = mem_array(load->nprocessors, sizeof(*load->sum));
    load->use = mem_array(load->nprocessors, sizeof(*load->use));
    load->since_ms = mem_array((size_t)settings->nhosts, sizeof(*load->since_ms));
    load->counted_ms = mem_array((size_t)settings->nhosts, sizeof(*load->counted_ms));
    load->changed_ms = mem_array((size_t)settings->nhosts, sizeof(*load->changed_ms));
    load->is_changed = mem_array((size_t)settings->nhosts, sizeof(*load->is_changed));
    load->changed_hosts = mem_array((size_t)settings->nhosts, sizeof(*load->changed_hosts));
    return load;
}

static void run_destroy(struct run *run)
{
    free(run->at);
    free(run->done);
    free(run->rate);
    free(run->over);
    free(run);
}

void load_destroy(struct load *load)
{
    for (size_t i = 0; i < load->nruns; i++)
        run_destroy(load->runs[i]);
    free(load->runs);
    free(load->speed);
    free(load->left);
    free(load->jobs);
    free(load->sum);
    free(load->use);
    free(load->since_ms);
    free(load->counted_ms);
    free(load->changed_ms);
    free(load->is_changed);
    free(load->changed_hosts);
    free(load);
}

/* ---- space: a heap ---- */

static void heap_up(struct load *load, size_t at)
{
    struct run *run = load->runs[at];

    for (; at > 0 && load->runs[(at - 1) / 2]->end_ms > run->end_ms; at = (at - 1) / 2)
        load->runs[at] = load->runs[(at - 1) / 2];
    load->runs[at] = run;
}

static void heap_down(struct load *load, size_t at)
{
    struct run *run = load->runs[at];
    size_t child;

    for (; (child = 2 * at + 1) < load->nruns; at = child) {
        if (child + 1 < load->nruns && load->runs[child + 1]->end_ms < load->runs[child]->end_ms)
            child++;
        if (load->runs[child]->end_ms >= run->end_ms)
            break;
        load->runs[at] = load->runs[child];
    }
    load->runs[at] = run;
}

/* ---- time goes by ---- */

static void advance(struct load *load, int64_t now_ms)
{
    double ms = (double)(now_ms - load->now_ms);

    load->now_ms = now_ms;
    if (ms <= 0)
        return;
    load->used_ms += load->used * ms;
    for (size_t i = 0; shared(load) && i < load->nruns; i++)
        for (uint32_t t = 0; t < load->runs[i]->nthreads; t++)
            load->runs[i]->done[t] += load->runs[i]->rate[t] * ms;
}

/* Where a thread changes next: the end of its work, or of a phase. Computing comes first in each period. */
static double next_mark(const struct load *load, const struct run *run, double done)
{
    double period = (double)load->settings->period_ms, begin, middle;

    if (period <= 0 || run->share >= 1)
        return run->work_ms;
    begin = floor(done / period + 1e-9) * period;
    middle = begin + run->share * period;
    return fmin(run->work_ms, done < middle - 1e-6 ? middle : begin + period);
}

static bool computes(const struct load *load, const struct run *run, double done)
{
    double period = (double)load->settings->period_ms;

    if (period <= 0 || run->share >= 1)
        return true;
    return done < floor(done / period + 1e-9) * period + run->share * period - 1e-6;
}

/* A machine of 1,000 hosts has few that change between two events, so what they used is added up when they do. */
static void count(struct load *load, int host)
{
    size_t ncpus = (size_t)load->settings->ncpus, first = (size_t)host * ncpus;
    double ms;

    if (load->settings->report_ms <= 0)
        return;
    if (load->since_ms[host] < load->dropped_ms) {
        memset(&load->sum[first], 0, ncpus * sizeof(*load->sum));
        load->since_ms[host] = load->counted_ms[host] = load->dropped_ms;
    }
    ms = (double)(load->now_ms - load->counted_ms[host]);
    if (ms <= 0)
        return;
    for (size_t i = first; i < first + ncpus; i++)
        load->sum[i] += load->use[i] * ms;
    load->counted_ms[host] = load->now_ms;
}

/* Before its use is. */
static void mark_changed(struct load *load, size_t processor)
{
    int host = (int)(processor / (size_t)load->settings->ncpus);

    count(load, host);
    load->changed_ms[host] = load->now_ms;
    if (load->is_changed[host])
        return;
    load->is_changed[host] = true;
    load->changed_hosts[load->nchanged++] = host;
}

/* ---- shared: rates ---- */

static void set_rate(struct load *load, struct run *run, uint32_t thread)
{
    uint32_t first = run->nthreads > 1 ? thread : 0, end = run->nthreads > 1 ? thread + 1 : run->nprocs;
    double wants = load->settings->period_ms > 0 ? 1 : run->share;
    double rate = run->nthreads > 1 ? load->speed[run->at[thread]] : run->speed;

    if (run->over[thread])
        wants = rate = 0;
    else if (!computes(load, run, run->done[thread]))
        wants = 0;
    for (uint32_t i = first; i < end && wants > 0; i++)
        rate = fmin(rate, load->left[run->at[i]] * load->speed[run->at[i]] / wants);
    run->rate[thread] = rate;
    for (uint32_t i = first; i < end; i++)
        load->left[run->at[i]] = fmax(0, load->left[run->at[i]] - rate * wants / load->speed[run->at[i]]);
}

static void set_rates(struct load *load)
{
    if (!shared(load) || !load->stale)
        return;
    for (size_t i = 0; i < load->nprocessors; i++)
        load->left[i] = 1;
    for (size_t i = 0; i < load->nruns; i++)
        for (uint32_t t = 0; t < load->runs[i]->nthreads; t++)
            set_rate(load, load->runs[i], t);
    load->used = 0;
    for (size_t i = 0; i < load->nprocessors; i++) {
        if (load->use[i] != 1 - load->left[i])
            mark_changed(load, i);
        load->use[i] = 1 - load->left[i];
        load->used += load->use[i];
    }
    load->stale = false;
}

static bool is_done(const struct run *run, uint32_t thread)
{
    return run->done[thread] >= run->work_ms - 1e-6;
}

static int64_t next_of(const struct load *load, const struct run *run)
{
    double least = INFINITY;

    for (uint32_t t = 0; t < run->nthreads; t++)
        if (!run->over[t] && is_done(run, t))
            return load->now_ms; /* at the same time as another one, after which nothing may be left for it */
        else if (!run->over[t] && run->rate[t] > 1e-12)
            least = fmin(least, (next_mark(load, run, run->done[t]) - run->done[t]) / run->rate[t]);
    return least > 2e18 ? INT64_MAX : load->now_ms + (int64_t)ceil(fmax(least, 0) - 1e-6);
}

int64_t load_next(const struct load *load)
{
    int64_t next = INT64_MAX;

    if (!shared(load))
        return load->nruns > 0 ? load->runs[0]->end_ms : INT64_MAX;
    set_rates((struct load *)load);
    for (size_t i = 0; i < load->nruns; i++) {
        int64_t ms = next_of(load, load->runs[i]);
        next = ms < next ? ms : next;
    }
    return next;
}

uint64_t load_pass(struct load *load, int64_t now_ms)
{
    advance(load, now_ms);
    if (!shared(load))
        return load->runs[0]->id;
    load->stale = true;
    for (size_t i = 0; i < load->nruns; i++) {
        struct run *run = load->runs[i];
        uint32_t over = 0;
        for (uint32_t t = 0; t < run->nthreads; t++) {
            run->over[t] = run->over[t] || is_done(run, t);
            over += run->over[t];
        }
        if (over == run->nthreads)
            return run->id;
    }
    return 0;
}

/* ---- jobs ---- */

bool load_endless(const struct load *load, const struct sim_job *job)
{
    const double periods_max = 1e7, period = (double)load->settings->period_ms;

    return shared(load) && period > 0 && job->share < 1 && (double)job->work_ms > period * periods_max;
}

/* Those that were allocated in one step may be launched in any order. */
static void insert_by_rank(struct load *load)
{
    struct run *run = load->runs[load->nruns - 1];
    size_t at = load->nruns - 1;

    for (; at > 0 && load->runs[at - 1]->rank > run->rank; at--)
        load->runs[at] = load->runs[at - 1];
    load->runs[at] = run;
}

static double slowest(const struct load *load, const struct run *run)
{
    double speed = INFINITY;

    for (uint32_t i = 0; i < run->nprocs; i++)
        speed = fmin(speed, load->speed[run->at[i]]);
    return speed;
}

void load_start(struct load *load, const struct sim_job *job, const struct core_job *info, int64_t now_ms)
{
    struct run *run = mem_zalloc(sizeof(*run));

    advance(load, now_ms);
    run->id = info->id;
    run->rank = info->allocation;
    run->work_ms = (double)job->work_ms;
    run->share = job->share;
    run->nprocs = job->nprocs;
    run->nthreads = load->settings->by_itself ? job->nprocs : 1;
    run->at = mem_array(run->nprocs, sizeof(*run->at));
    run->done = mem_array(run->nthreads, sizeof(*run->done));
    run->rate = mem_array(run->nthreads, sizeof(*run->rate));
    run->over = mem_array(run->nthreads, sizeof(*run->over));
    for (uint32_t i = 0; i < run->nprocs; i++)
        run->at[i] = (size_t)info->processors[i].host * (size_t)load->settings->ncpus + (size_t)info->processors[i].cpu;
    run->speed = slowest(load, run);
    run->end_ms = now_ms + (int64_t)ceil(run->work_ms / run->speed - 1e-6);
    for (uint32_t i = 0; i < run->nprocs; i++)
        mark_changed(load, run->at[i]);
    for (uint32_t i = 0; !shared(load) && i < run->nprocs; i++) {
        load->use[run->at[i]] += run->share * run->speed / load->speed[run->at[i]];
        load->used += load->jobs[run->at[i]]++ == 0;
    }
    load->runs = mem_grow(load->runs, &load->capacity, load->nruns + 1, sizeof(struct run *));
    load->runs[load->nruns++] = run;
    load->stale = true;
    if (shared(load))
        insert_by_rank(load);
    else
        heap_up(load, load->nruns - 1);
}

void load_end(struct load *load, uint64_t id, int64_t now_ms)
{
    size_t i = 0;
    struct run *run;

    advance(load, now_ms);
    while (load->runs[i]->id != id)
        i++;
    run = load->runs[i];
    load->nruns--;
    if (shared(load)) {
        memmove(&load->runs[i], &load->runs[i + 1], (load->nruns - i) * sizeof(struct run *));
    } else if (i < load->nruns) {
        load->runs[i] = load->runs[load->nruns];
        heap_up(load, i);
        heap_down(load, i);
    }
    for (uint32_t k = 0; k < run->nprocs; k++)
        mark_changed(load, run->at[k]);
    for (uint32_t k = 0; !shared(load) && k < run->nprocs; k++) {
        load->use[run->at[k]] -= run->share * run->speed / load->speed[run->at[k]];
        load->used -= --load->jobs[run->at[k]] == 0;
    }
    load->stale = true;
    run_destroy(run);
}

/* ---- reports ---- */

void load_bring(struct load *load, int64_t now_ms)
{
    set_rates(load);
    advance(load, now_ms);
}

void load_report(struct load *load, int host, int64_t now_ms, double *busy)
{
    size_t first = (size_t)host * (size_t)load->settings->ncpus;
    int64_t ms;

    load_bring(load, now_ms);
    count(load, host);
    ms = now_ms - load->since_ms[host];
    for (int i = 0; i < world_cpus(load->settings, host); i++) {
        busy[i] = ms > 0 ? fmin(1, fmax(0, load->sum[first + (size_t)i] / (double)ms)) : 0;
        load->sum[first + (size_t)i] = 0;
    }
    load->since_ms[host] = now_ms;
}

double load_used_ms(const struct load *load, int64_t now_ms)
{
    return load->used_ms + load->used * (double)(now_ms - load->now_ms);
}

int64_t load_changed(const struct load *load, int host)
{
    return load->changed_ms[host];
}

const int *load_take_changed(struct load *load, int *count)
{
    *count = load->nchanged;
    for (int i = 0; i < load->nchanged; i++)
        load->is_changed[load->changed_hosts[i]] = false;
    load->nchanged = 0;
    return load->changed_hosts;
}

void load_drop(struct load *load, int64_t now_ms)
{
    advance(load, now_ms);
    load->dropped_ms = now_ms;
}
