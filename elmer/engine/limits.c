/* limits.c - how long a job may run, and how much CPU time it may use.
 *
 * The wall clock of a job begins when the row says that it runs, with started_ms. What is armed here is only the next
 * moment at which something is due: the warning, or the end. After a restart of elmer it follows from what is stored,
 * so the time while elmer was away counts; but a notice, which asks elmer before it tells anybody, has its minute anew
 * when elmer is back, or what it runs then would be ended in the middle. CPU time is what its hosts say with each
 * report; a job that has used its limit is over it by what it uses between two reports at most. The end is that of
 * ekill, with a reason of its own.
 *
 * A job whose time is over may have ended by itself meanwhile, on a host without link, which has the result: nothing
 * is struck until all hosts of the job are up and have had a moment to say so (AGAIN_MS). That comes to an end, because
 * a host that does not come up is given up, and the job with it.
 *
 * A warning goes once to each host of the job: to those that have no link at that moment when they have one again, as
 * long as the job runs. After a restart of elmer within that time it may come twice. Nothing is struck before all hosts
 * have been warned: a warning that comes late, because a host or elmer was away or the CPU time went by between two
 * reports, leaves the job the time that it has asked for, LATE_MS at most. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "elmer/engine/internal.h"
#include "elmer/store/boot.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"

enum { AGAIN_MS = 1000, LATE_MS = 60000, CLOCK_SET_MS = 1000, DURATION_MAX = 48 };

/* "2h30m": days, hours, minutes, seconds, those that there are. */
static const char *duration(int64_t ms, char *text, size_t size)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    int64_t seconds = ms / 1000;
    size_t used = 0;
    snprintf(text, size, "%" PRId64 "ms", ms);
    for (size_t i = 0; i < sizeof(units) / sizeof(*units) && used < size && ms % 1000 == 0; i++) {
        if (seconds / units[i].seconds)
            used +=
                (size_t)snprintf(text + used, size - used, "%" PRId64 "%c", seconds / units[i].seconds, units[i].unit);
        seconds %= units[i].seconds;
    }
    return text;
}

static const struct core_job *running(const struct engine *engine, const struct engine_job *job)
{
    const struct core_job *state = core_job(engine->core, job->id);
    return state && state->state == JOB_RUNNING ? state : NULL;
}

/* ---- the warning ---- */

/* Whether all its hosts have been told. */
static bool warn_hosts(struct engine *engine, struct engine_job *job, const struct core_job *state)
{
    struct engine_limits *limits = job->limits;
    bool all = true;
    for (uint32_t i = 0; i < state->nprocs; i++) {
        int host = state->processors[i].host;
        if (limits->told[i] || (i > 0 && state->processors[i - 1].host == host))
            continue; /* those of a host stand together */
        limits->told[i] = core_host(engine->core, host)->state == CORE_HOST_UP;
        all = all && limits->told[i];
        if (limits->told[i])
            engine->hosts.signal(host, state->id, state->attempt, (int)job_submit(job)->warning_signal,
                                 engine->hosts_data);
    }
    return all;
}

int engine_signal(struct engine *engine, uint64_t id, int number, int *away)
{
    const struct core_job *state = core_job(engine->core, id);
    int sent = 0;
    *away = 0;
    if (!state || state->state != JOB_RUNNING)
        return -1;
    for (uint32_t i = 0; i < state->nprocs; i++) {
        int host = state->processors[i].host;
        if (i > 0 && state->processors[i - 1].host == host)
            continue;
        if (core_host(engine->core, host)->state != CORE_HOST_UP) {
            ++*away;
            continue;
        }
        engine->hosts.signal(host, id, state->attempt, number, engine->hosts_data);
        sent++;
    }
    return sent;
}

static void warn(struct engine *engine, struct engine_job *job, const struct core_job *state)
{
    job->limits->warning = true;
    job->limits->warned = warn_hosts(engine, job, state);
    if (job->limits->warned)
        job->limits->warned_ms = engine_now_ms();
}

/* ---- the end ---- */

static void strike(struct engine *engine, const struct engine_limits *limits, const struct core_job *state)
{
    const struct wire_submit *submit = job_submit(limits->job);
    const bool cpu = limits->over == REASON_CPU_LIMIT;
    struct event event = {.type = EVENT_ABORT, .host = -1, .job = state->id, .attempt = state->attempt};
    char text[200], figure[DURATION_MAX];
    snprintf(text, sizeof(text), cpu ? "it has used its CPU time limit of %s" : "it has run for its time limit of %s",
             duration((int64_t)(cpu ? submit->cpu_limit_ms : submit->time_limit_ms), figure, sizeof(figure)));
    event.u.failed.reason = limits->over;
    event.u.failed.text = text;
    engine_event(engine, &event);
}

/* Whether all its hosts are up, and have said what they have of it. */
static bool heard(const struct engine *engine, struct engine_limits *limits, const struct core_job *state)
{
    bool waited = limits->unheard;
    limits->unheard = false;
    for (uint32_t i = 0; i < state->nprocs; i++)
        if (core_host(engine->core, state->processors[i].host)->state != CORE_HOST_UP)
            limits->unheard = true;
    return !waited && !limits->unheard;
}

/* How long it has still been warned of; its CPU time goes by on all its processors at once. */
static int64_t warned_for_ms(const struct engine_limits *limits, const struct core_job *state)
{
    const struct wire_submit *submit = job_submit(limits->job);
    int64_t ms = (int64_t)submit->warning_ms;
    if (!submit->warning_signal)
        return 0;
    if (limits->over == REASON_CPU_LIMIT)
        ms /= state->nprocs;
    return limits->warned_ms + (ms < LATE_MS ? ms : LATE_MS) - engine_now_ms();
}

/* It is over a limit: struck now, or looked at again. */
static void end(struct engine *engine, struct engine_limits *limits, const struct core_job *state)
{
    int64_t wait_ms = AGAIN_MS;
    if (heard(engine, limits, state)) {
        if (job_submit(limits->job)->warning_signal && !limits->warned)
            warn(engine, limits->job, state);
        wait_ms = warned_for_ms(limits, state);
    }
    if (wait_ms > 0)
        deadline_set(engine->deadlines, &limits->deadline, engine_now_ms() + wait_ms);
    else
        strike(engine, limits, state);
}

/* ---- the wall clock ---- */

/* Of its time; INT64_MAX: never. */
static int64_t end_of(const struct engine_limits *limits)
{
    uint64_t limit_ms = job_submit(limits->job)->time_limit_ms;
    return limit_ms ? limits->began_ms + limits->uncounted_ms + (int64_t)limit_ms : INT64_MAX;
}

static void arm(struct engine *engine, struct engine_job *job)
{
    const struct wire_submit *submit = job_submit(job);
    struct engine_limits *limits = job->limits;
    int64_t at_ms = end_of(limits);
    int64_t warn_ms = INT64_MAX;
    if (submit->warning_signal && submit->time_limit_ms && !limits->warned)
        warn_ms = at_ms - (int64_t)submit->warning_ms;
    if (limits->warning && !limits->warned)
        warn_ms = engine_now_ms() + AGAIN_MS;
    if (warn_ms < at_ms)
        at_ms = warn_ms;
    if (at_ms != INT64_MAX)
        deadline_set(engine->deadlines, &limits->deadline, at_ms);
}

static bool over(const struct engine_limits *limits)
{
    return engine_now_ms() >= end_of(limits);
}

static void on_due(struct deadline *deadline)
{
    struct engine_limits *limits = CONTAINER_OF(deadline, struct engine_limits, deadline);
    struct engine *engine = limits->engine;
    const struct core_job *state = running(engine, limits->job);
    if (!state)
        return;
    if (limits->over == REASON_NONE && over(limits))
        limits->over = REASON_TIME_LIMIT;
    if (limits->over != REASON_NONE) {
        end(engine, limits, state);
        return;
    }
    warn(engine, limits->job, state);
    arm(engine, limits->job);
}

static void begin(struct engine *engine, struct engine_job *job, const struct core_job *state, int64_t began_ms)
{
    const struct wire_submit *submit = job_submit(job);
    if (job->limits || (!submit->time_limit_ms && !submit->cpu_limit_ms))
        return;
    job->limits = mem_zalloc(sizeof(*job->limits));
    *job->limits = (struct engine_limits){.engine = engine, .job = job, .began_ms = began_ms, .deadline.fire = on_due};
    job->limits->told = mem_array(state->nprocs, sizeof(*job->limits->told));
    arm(engine, job);
}

void limits_note(struct engine *engine, struct engine_job *job, const struct core_job *state)
{
    if (state->state == JOB_RUNNING) {
        begin(engine, job, state, engine_now_ms());
        return;
    }
    job->started_ms = limits_started_ms(job, engine_now_ms(), wall_now().ms); /* as its rows have said */
    limits_clear(engine, job);
}

void limits_resume(struct engine *engine, struct engine_job *job, const struct record *r, int64_t until_ms)
{
    const struct core_job *state = running(engine, job);
    int64_t before_ms = r->accounted_ms > r->started_ms ? r->accounted_ms - r->started_ms : 0, now_ms = engine_now_ms();
    if (!state || r->started_ms < 0)
        return;
    begin(engine, job, state, (until_ms < now_ms ? until_ms : now_ms) - before_ms);
    if (!job->limits)
        return;
    if (state->notice) {
        job->limits->uncounted_ms = now_ms - job->limits->began_ms;
        arm(engine, job);
    }
    job->limits->unheard = over(job->limits); /* its hosts are heard first */
}

void limits_clear(struct engine *engine, struct engine_job *job)
{
    if (!job->limits)
        return;
    deadline_clear(engine->deadlines, &job->limits->deadline);
    free(job->limits->told);
    free(job->limits);
    job->limits = NULL;
}

/* The row says with the clock on the wall how long the job has run, so where that was set meanwhile the start is told
 * by the clock as it is now: an elmer that starts again would else count what the clock has jumped. */
int64_t limits_started_ms(const struct engine_job *job, int64_t until_ms, int64_t wall_ms)
{
    const struct engine_limits *limits = job->limits;
    int64_t off_ms = limits ? wall_ms - job->started_ms - (until_ms - limits->began_ms) : 0;
    return job->started_ms < 0 || (off_ms < CLOCK_SET_MS && off_ms > -CLOCK_SET_MS) ? job->started_ms
                                                                                    : job->started_ms + off_ms;
}

/* ---- CPU time ---- */

/* Of this attempt, on all its hosts. */
static double used_ms(const struct engine_job *job, uint32_t attempt)
{
    double sum = 0;
    for (size_t i = 0; i < job->nusage; i++)
        if (job->usage[i].attempt == attempt && job->usage[i].cpu_seconds > 0)
            sum += job->usage[i].cpu_seconds * 1000;
    return sum;
}

void engine_used(struct engine *engine, int host, uint64_t id, uint32_t attempt, double cpu_seconds, const char *polls)
{
    struct engine_job *job = jobs_find(&engine->jobs, id);
    const struct core_job *state = job ? running(engine, job) : NULL;
    int64_t memory = -1;
    if (!state || state->attempt != attempt || !usage_judge(engine, host, state, &cpu_seconds, &memory))
        return;
    job_set_usage(job, engine_host_name(engine, host), attempt, cpu_seconds, -1);
    polls_note(job, host, attempt, polls);
    if (!job->limits || !job_submit(job)->cpu_limit_ms)
        return;
    double left_ms = (double)job_submit(job)->cpu_limit_ms - used_ms(job, attempt);
    if (left_ms <= 0) {
        if (job->limits->over != REASON_NONE)
            return; /* it is being seen to */
        job->limits->over = REASON_CPU_LIMIT;
        end(engine, job->limits, state);
    } else if (job_submit(job)->warning_signal && !job->limits->warning &&
               left_ms <= (double)job_submit(job)->warning_ms) {
        warn(engine, job, state);
        arm(engine, job);
    }
}
