/* agreement_world.c - a workload in the cluster of tests/sim.
 *
 * The cluster has hosts of its own, links that take time, and a judge; esim has neither. Here a unit of time is a
 * millisecond in esim and UNIT_MS in the cluster, in which all that follows from an event is long over: the ends of a
 * unit come first, then the reports of the hosts, then what is submitted. How far jobs are is counted unit by unit, in
 * the plainest way.
 */
#include "tests/unit/esim/agreement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

/* In a unit: ends from 0 on, reports at 120, submissions at 140; all is over at 380. Jobs begin at FIRST_UNIT. */
enum { UNIT_MS = 400, EVENT_MS = 12, REPORTS_AT = 120, SUBMIT_AT = 140, FIRST_UNIT = 100, UNITS_MAX = 5000 };

struct progress {
    double done[SIM_PROCS];
    bool over[SIM_PROCS];
};

struct play {
    const struct agreement_case *of;
    struct world *world;
    struct progress progress[AGREEMENT_JOBS];
    struct outcome *outcomes;
    double use[SIM_HOSTS][SIM_CPUS]; /* since the last report, in units */
    int submitted;
};

static uint32_t nthreads(const struct play *p, int job)
{
    return p->of->by_itself ? p->of->jobs[job].nprocs : 1;
}

/* Runs all until something of this unit is due. */
static void until(struct play *p, int64_t unit, int64_t ms)
{
    world_run_until(p->world, (unit + FIRST_UNIT) * UNIT_MS + ms);
}

static void end_jobs(struct play *p, int64_t unit)
{
    int ended = 0;

    for (int i = 0; i < p->submitted; i++) {
        const struct core_job *job = core_job(p->world->core, (uint64_t)i + 1);
        bool over = true;
        if (!job || job->state != JOB_RUNNING)
            continue;
        for (uint32_t t = 0; t < nthreads(p, i); t++)
            over = over && p->progress[i].over[t];
        if (!over)
            continue;
        p->outcomes[i].end = unit;
        world_end_process(p->world, job->id, 0, 0, 0);
        until(p, unit, ++ended * EVENT_MS);
    }
}

static void report(struct play *p)
{
    for (int h = 0; h < p->world->nhosts; h++) {
        double busy[SIM_CPUS];
        for (int i = 0; i < SIM_CPUS; i++)
            busy[i] = fmin(1, p->use[h][i] / REPORT_UNITS);
        world_report(p->world, h, busy, busy, (int64_t)REPORT_UNITS * UNIT_MS);
    }
    memset(p->use, 0, sizeof(p->use));
}

static void submit(struct play *p, int64_t unit)
{
    int count = 0;

    while (p->submitted < AGREEMENT_JOBS && p->of->jobs[p->submitted].submit_ms == unit) {
        struct event event = {.type = EVENT_SUBMIT, .host = -1};
        event.u.submit.uid = 1000;
        event.u.submit.nprocs = p->of->jobs[p->submitted++].nprocs;
        world_step(p->world, &event);
        until(p, unit, SUBMIT_AT + ++count * EVENT_MS);
    }
}

static uint64_t place_of(const struct core_job *job)
{
    uint64_t place = 0xcbf29ce484222325u;

    for (uint32_t i = 0; i < job->nprocs; i++)
        place = (place ^ ((uint64_t)job->processors[i].host << 16 | (uint64_t)job->processors[i].cpu)) * 0x100000001b3u;
    return place;
}

/* What a thread asks of each of its processors. */
static double wants(const struct play *p, int i, double done)
{
    double share = p->of->jobs[i].share, period = p->of->period;

    if (period == 0 || share == 1)
        return share;
    return fmod(done + 1e-6, period) < share * period ? 1 : 0;
}

static void compute_thread(struct play *p, int i, uint32_t thread, const struct core_job *job,
                           double left[SIM_HOSTS][SIM_CPUS])
{
    struct progress *progress = &p->progress[i];
    double share = wants(p, i, progress->done[thread]), rate = INFINITY;
    const double *speeds = p->of->speeds;
    bool each = nthreads(p, i) > 1;

    if (progress->over[thread])
        return;
    for (uint32_t k = each ? thread : 0; k < (each ? thread + 1 : job->nprocs); k++) {
        const struct core_processor *at = &job->processors[k];
        rate = fmin(rate, speeds[at->host] * (share > 0 ? fmin(1, left[at->host][at->cpu] / share) : 1));
    }
    for (uint32_t k = each ? thread : 0; k < (each ? thread + 1 : job->nprocs); k++) {
        const struct core_processor *at = &job->processors[k];
        left[at->host][at->cpu] -= rate * share / speeds[at->host];
        p->use[at->host][at->cpu] += rate * share / speeds[at->host];
    }
    progress->done[thread] += rate;
}

/* One unit of computing: each job after those that came before it, which is the order of their ids. */
static void compute(struct play *p, int64_t unit)
{
    double left[SIM_HOSTS][SIM_CPUS];

    for (int h = 0; h < SIM_HOSTS; h++)
        for (int i = 0; i < SIM_CPUS; i++)
            left[h][i] = 1;
    for (int i = 0; i < p->submitted; i++) {
        const struct core_job *job = core_job(p->world->core, (uint64_t)i + 1);
        if (!job || !job->processors || p->outcomes[i].end >= 0)
            continue;
        if (p->outcomes[i].start < 0)
            p->outcomes[i] = (struct outcome){unit, -1, place_of(job)};
        for (uint32_t t = 0; t < nthreads(p, i); t++)
            compute_thread(p, i, t, job, left);
    }
    for (int i = 0; i < p->submitted; i++)
        for (uint32_t t = 0; t < nthreads(p, i); t++)
            p->progress[i].over[t] = p->progress[i].done[t] >= (double)p->of->jobs[i].work_ms - 1e-6;
}

bool agreement_play(const struct agreement_case *of, struct outcome *outcomes, char *text, size_t size)
{
    struct core_options options = of->core;
    struct world *world = mem_zalloc(sizeof(*world));
    struct sim_coverage coverage = {.walks = 0};
    struct play p = {.of = of, .world = world, .outcomes = outcomes};
    int open = AGREEMENT_JOBS;

    options.settle_ms = SETTLE_UNITS * UNIT_MS - 272; /* a launch is up to 380 ms late, a report 120 */
    options.fresh_ms = FRESH_UNITS * UNIT_MS + 270;
    world_init(world, &options, 1, &coverage);
    world->keep_ended = true;
    for (int h = 0; h < of->nhosts; h++) {
        char name[16];
        snprintf(name, sizeof(name), "h%d", h);
        world_add_host(world, name, of->ncpus, 0);
    }
    for (int h = 0; h < of->nhosts; h++)
        world_connect(world, h);
    for (int64_t unit = 0; open > 0 && unit < UNITS_MAX && !world_failed(world); unit++) {
        until(&p, unit, 0);
        end_jobs(&p, unit);
        until(&p, unit, REPORTS_AT);
        if (of->reports && unit % REPORT_UNITS == 0)
            report(&p);
        until(&p, unit, SUBMIT_AT);
        submit(&p, unit);
        until(&p, unit, UNIT_MS - 20);
        compute(&p, unit);
        open = 0;
        for (int i = 0; i < AGREEMENT_JOBS; i++)
            open += outcomes[i].end < 0;
    }
    snprintf(text, size, "%s", world_failed(world) ? world->error : open > 0 ? "there is no end" : "");
    world_fini(world);
    free(world);
    return text[0] == '\0';
}
