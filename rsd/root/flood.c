/* flood.c - jobs that flood their processors.
 *
 * A job floods when FLOOD_THREADS threads for each of its processors want to run at once, twice in a row, and, if it
 * is not the lowest, it has used most of its processors for PATIENCE_MS. In real time such a job gains nothing (the
 * kernel's throttle takes 5 % of it, and a program that waits never uses all of the CPU) and leaves 50 ms of each
 * second to the whole host: no login, no ekill. Of 300 equals in SCHED_OTHER a login would get a 300th. So while it
 * floods, its tasks are in SCHED_OTHER at nice 19, and the jobs below it on its processors in SCHED_IDLE: the order is
 * kept (15 to 3 for each thread), and whoever just wants to log in is before all of them. When a job comes below it, it
 * is in real time first: a build that starts many short processes is no flood, and whoever comes later begins below it.
 *
 * A job that spins in real time above it leaves those 50 ms only, and of 300 equals at nice 19 a login would still get
 * a fifth of them (seen: 4 to 5 s). So then, in its shadow, the flood is in real time below that job: it gets nothing,
 * and the throttle's rest belongs to the others. The job above pays the throttle anyway; as soon as it leaves more,
 * which the flood then gets, the flood goes back to nice 19, because real time adds up and its throttle would hit both.
 *
 * Where sessions share (sched_autogroup_enabled, outside of the controller cpu) a nice value counts within a session
 * only, and so does SCHED_IDLE; and a process may make a session for itself. There the looks give each session the
 * value of its tasks too, whatever made them nice: a flood, one above, or mode idle.
 */
#include "config.h"

#include <string.h>

#include "libelmer/base/log.h"
#include "rsd/root/flood.h"

enum { FLOOD_THREADS = 16, LOOK_MS = 250, LOOKS = 2, SHARE_MS = 900, FLOOD_NICE = 19, PATIENCE_MS = 3000 };
static const double much = 0.75; /* of its processors: where v2 would put nobody below it */
static const double rest = 0.1;  /* more than the throttle leaves */

/* Of what its processors could give. A shorter time than the throttle's second may have two of its gaps. */
static void update_share(struct job *job, int64_t now)
{
    int64_t peak, passed = now - job->flood.share_ms;
    double before = job->flood.cpu_seconds;
    if (passed < SHARE_MS)
        return;
    group_usage(&job->group, &job->flood.cpu_seconds, &peak);
    job->flood.share = (job->flood.cpu_seconds - before) * 1000 / ((double)passed * (double)job->ncpus);
    job->flood.share_ms = now;
}

/* What a look has seen, or no look because there are too few threads. Returns whether job->flood.on has changed. */
static bool judge(struct job *job, size_t running, size_t many, int64_t now)
{
    bool greedy = job->flood.share >= much && now - job->flood.above_ms >= PATIENCE_MS;
    bool fits = running >= many && (job->flood.on || job->lowest || greedy);
    if (fits == job->flood.on) {
        job->flood.looks = 0;
        return false;
    }
    if (++job->flood.looks < LOOKS)
        return false;
    job->flood.on = fits;
    job->flood.looks = 0;
    job->flood.ended = !fits;
    if (fits)
        log_notice("job=%s: %zu of its threads want to run at once on %zu processor(s): it gets them at nice %d",
                   job->name, running, job->ncpus, FLOOD_NICE);
    return true;
}

bool flood_look(struct job *job, int session_nice, int64_t now)
{
    size_t many = FLOOD_THREADS * job->ncpus / (job->flood.on ? 2 : 1); /* near the border it does not go to and fro */
    int nice = job->flood.on ? FLOOD_NICE : session_nice; /* also in the shadow, which may end at any moment */
    long running;
    if (job->ncpus == 0)
        return false;
    if (look_end(&job->flood.look, &running, now))
        return running >= 0 && judge(job, (size_t)running, many, now);
    if (job->flood.look.fd >= 0 || now - job->flood.look_ms < LOOK_MS)
        return false;
    job->flood.look_ms = now;
    update_share(job, now);
    if (job->threads < many && nice == 0 && job->flood.session_nice == 0)
        return judge(job, 0, many, now);
    job->flood.session_nice = nice;
    look_begin(&job->flood.look, LOOK_RUNNING, job->group.job_fd, (long)many, nice, now);
    return false;
}

int64_t flood_next(const struct job *job)
{
    if (job->flood.look.fd >= 0)
        return job->flood.look.again_ms;
    return job->flood.looks > 0 ? job->flood.look_ms + LOOK_MS : INT64_MAX;
}

static bool takes_much(const struct job *job)
{
    return job->state < JOB_KILLING && job->ranked && !job->lowest && !job->flood.on && job->flood.share >= much;
}

bool flood_shadow(const struct root *root, struct job *job)
{
    cpu_set_t taken, both;
    bool before = job->flood.shadowed;
    CPU_ZERO(&taken);
    for (size_t i = 0; root->mode == ORDER_MODE_RT && job->flood.on && i < root->job_count; i++) {
        const struct job *other = root->jobs[i];
        if (other->level < job->level && takes_much(other))
            CPU_OR(&taken, &taken, &other->cpus);
    }
    CPU_AND(&both, &taken, &job->cpus);
    job->flood.shadowed = job->flood.on && job->flood.share < rest && CPU_EQUAL(&both, &job->cpus);
    return job->flood.shadowed != before;
}

void flood_begin_above(struct job *job, int64_t now)
{
    job->flood.ended |= job->flood.on;
    job->flood.on = job->flood.shadowed = false;
    job->flood.looks = 0;
    job->flood.above_ms = now;
}

bool flood_above(const struct root *root, const struct job *job)
{
    for (size_t i = 0; i < root->job_count; i++) {
        const struct job *other = root->jobs[i];
        cpu_set_t both;
        if (!other->flood.on || other == job || other->state >= JOB_KILLING || other->level >= job->level)
            continue;
        CPU_AND(&both, &other->cpus, &job->cpus);
        if (CPU_COUNT(&both) > 0)
            return true;
    }
    return false;
}
