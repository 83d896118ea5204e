/* boost.c - helpers (pvmd, agent) of a virtual machine that starts or ends, or that have starved, above all jobs.
 *
 * A pvmd is a process of the user, who may have put whatever he likes in its place, so a boost is bounded by what it
 * uses, not by the clock alone. A job has JOB_NS when it is opened and PER_SECOND_NS more for each second that it runs,
 * never more than JOB_NS at once: its start, its end and its starved periods all live on that. Starts and ends of all
 * jobs of the host together have HOST_NS, and HOST_PER_SECOND_NS for each second, so that nobody gets more by many
 * short jobs. A starved boost is not charged to the host, because short jobs of others must not starve a machine to
 * death; there are at most as many as levels, of STARVED_NS in EVERY_MS each.
 *
 * What was used is read from the CPU clocks of the helpers, often enough that no more than LOOK_MS can be overdrawn.
 * What the reading costs is charged too: a helper that has made thousands of threads, which the kernel adds up one by
 * one, only shortens its boost. Whether a helper wants to run would be in /proc only, and whoever walks that above jobs
 * may spin in the kernel: so one that got nothing for EVERY_MS is boosted, and one that sleeps does not
 * notice.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "rsd/root/boost.h"
#include "rsd/root/budget.h"
#include "rsd/root/internal.h"

enum {
    MACHINE_MS = 3000,
    STARVED_MS = 10,
    EVERY_MS = 10000,
    LOOK_MS = 10,
    LOOK_LEAST_MS = 1,
};
#define MS_NS              INT64_C(1000000)
#define JOB_NS             (50 * MS_NS)
#define PER_SECOND_NS      (MS_NS / 5)
#define HOST_NS            (50 * MS_NS)
#define HOST_PER_SECOND_NS (10 * MS_NS)
#define STARVED_NS         (2 * MS_NS)
#define LEAST_NS           (MS_NS / 2) /* less is not worth two changes of rank */

int64_t boost_cpu_ns(pid_t pid)
{
    struct timespec used;
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
        return 0;
    return (int64_t)used.tv_sec * 1000 * MS_NS + used.tv_nsec;
}

static void fill(struct boost_bucket *bucket, int64_t max_ns, int64_t per_second_ns, int64_t now)
{
    int64_t passed = now - bucket->filled_ms;
    if (passed > 1000 * (max_ns / per_second_ns)) /* full in any case */
        passed = 1000 * (max_ns / per_second_ns);
    bucket->left_ns += passed * per_second_ns / 1000;
    if (bucket->left_ns > max_ns)
        bucket->left_ns = max_ns;
    bucket->filled_ms = now;
}

static void rank_helpers(struct root *root, struct root_job *job)
{
    ranks_tell(root, job);
    for (size_t i = 0; i < job->helper_count; i++)
        ranks_process(root, job, job->helpers[i]);
}

/* So soon that they cannot have used much more than what is left. */
static void plan(struct root_job *job, int64_t now)
{
    struct boost *boost = &job->boost;
    int64_t ms = boost->allowed_ns / MS_NS / (int64_t)(job->helper_count ? job->helper_count : 1);
    ms = ms > LOOK_MS ? LOOK_MS : ms < LOOK_LEAST_MS ? LOOK_LEAST_MS : ms;
    boost->check_ms = now + ms < boost->end_ms ? now + ms : boost->end_ms;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Nobody is above a job of level 0: it needs none. */
static void begin(struct root *root, struct root_job *job, bool starved, int64_t now)
{
    struct boost *boost = &job->boost;
    if (root->mode != ORDER_MODE_RT || (job->ranked && job->level == 0))
        return;
    fill(&boost->bucket, JOB_NS, PER_SECOND_NS, now);
    fill(&root->boost_bucket, HOST_NS, HOST_PER_SECOND_NS, now);
    boost->allowed_ns = least(boost->bucket.left_ns, starved ? STARVED_NS : root->boost_bucket.left_ns);
    if (boost->allowed_ns < LEAST_NS)
        return;
    boost->on = true;
    boost->starved = starved;
    boost->end_ms = now + (starved ? STARVED_MS : MACHINE_MS);
    for (size_t i = 0; i < job->helper_count; i++)
        job->helper_cpu_ns[i] = boost_cpu_ns(job->helpers[i]);
    plan(job, now);
    rank_helpers(root, job);
}

static void charge(struct root *root, struct root_job *job)
{
    struct boost *boost = &job->boost;
    int64_t before = budget_own_ns(), used = 0;
    for (size_t i = 0; i < job->helper_count; i++) {
        int64_t now_ns = boost_cpu_ns(job->helpers[i]);
        if (now_ns > job->helper_cpu_ns[i])
            used += now_ns - job->helper_cpu_ns[i];
        job->helper_cpu_ns[i] = now_ns;
    }
    used += budget_own_ns() - before;
    boost->allowed_ns -= used;
    boost->bucket.left_ns -= used;
    if (!boost->starved)
        root->boost_bucket.left_ns -= used;
}

static void end(struct root *root, struct root_job *job)
{
    charge(root, job);
    job->boost.on = false;
    rank_helpers(root, job);
}

void boost_new(struct root *root, struct root_job *job)
{
    int64_t now = mono_ms(mono_now());
    job->boost.bucket = (struct boost_bucket){JOB_NS, now};
    begin(root, job, false, now);
}

void boost_finish(struct root *root, struct root_job *job)
{
    int64_t now = mono_ms(mono_now());
    if (job->boost.on)
        end(root, job);
    begin(root, job, false, now);
}

void boost_stop(struct root *root, struct root_job *job)
{
    if (job->boost.on)
        end(root, job);
}

static void look(struct root *root, struct root_job *job, int64_t now)
{
    struct boost *boost = &job->boost;
    if (!boost->on || now < boost->check_ms)
        return;
    charge(root, job);
    if (boost->allowed_ns >= LEAST_NS && now < boost->end_ms) {
        plan(job, now);
        return;
    }
    boost->on = false;
    rank_helpers(root, job);
}

/* Has any of them got nothing since the last time? */
static bool starved(struct root_job *job)
{
    bool any = false;
    for (size_t i = 0; i < job->helper_count; i++) {
        int64_t now_ns = boost_cpu_ns(job->helpers[i]);
        any |= now_ns == job->helper_seen_ns[i];
        job->helper_seen_ns[i] = now_ns;
    }
    return any;
}

void boost_look(struct root *root, int64_t now)
{
    for (size_t i = 0; i < root->job_count; i++)
        look(root, root->jobs[i], now);
    if (now < root->boost_ms)
        return;
    root->boost_ms = now + EVERY_MS;
    for (size_t i = 0; i < root->job_count; i++) {
        struct root_job *job = root->jobs[i];
        if (job->state == JOB_OPEN && job->ranked && job->level > 0 && !job->boost.on && starved(job))
            begin(root, job, true, now);
    }
}

int64_t boost_next(const struct root *root)
{
    int64_t next = root->boost_ms;
    for (size_t i = 0; i < root->job_count; i++) {
        const struct boost *boost = &root->jobs[i]->boost;
        if (boost->on && boost->check_ms < next)
            next = boost->check_ms;
    }
    return next;
}
