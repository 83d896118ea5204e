/* boost.c - helpers (daemon, agent) of a virtual machine that starts or ends, or that have starved, above all jobs.
 *
 * A daemon is a process of the user, who may have put whatever he likes in its place, so a boost is bounded by what it
 * uses, not by the clock alone. A job has JOB_US when it is opened and PER_SECOND_US more for each second that it runs,
 * never more than JOB_US at once: its start, its end and its starved periods all live on that. Starts and ends of all
 * jobs of the host together have HOST_US, and HOST_PER_SECOND_US for each second, so that nobody gets more by many
 * short jobs. A starved boost is not charged to the host, because short jobs of others must not starve a machine to
 * death; there are at most as many as levels, of STARVED_NS in EVERY_MS each.
 *
 * What was used is read from the CPU clocks of the helpers, often enough that no more than CHECK_MS can be overdrawn.
 * What the reading costs is charged too: a helper that has made thousands of threads, which the kernel adds up one by
 * one, only shortens its boost. Whether a helper wants to run would be in /proc only, and whoever walks that above jobs
 * may spin in the kernel: so one that got nothing for EVERY_MS is boosted, and one that sleeps does not
 * notice.
 */
#include "config.h"

#include <string.h>

#include "lib/base/clock.h"
#include "rsd/root/boost.h"
#include "rsd/root/budget.h"
#include "rsd/root/internal.h"

enum {
    MACHINE_MS = 3000,
    STARVED_MS = 10,
    EVERY_MS = 10000,
    CHECK_MS = 10,
    CHECK_LEAST_MS = 1,
    JOB_US = 50000,
    PER_SECOND_US = 200,
    HOST_US = 50000,
    HOST_PER_SECOND_US = 10000
};
#define MS_NS      INT64_C(1000000)
#define STARVED_NS (2 * MS_NS)
#define LEAST_NS   (MS_NS / 2) /* less is not worth two changes of rank */

void boost_init(struct root *root, int64_t now_ms)
{
    root->boost_ms = now_ms;
    budget_init(&root->boosts, HOST_US, HOST_PER_SECOND_US, HOST_US, now_ms);
}

void boost_init_job(struct root_job *job)
{
    budget_init(&job->boost.left, JOB_US, PER_SECOND_US, JOB_US, job->since_ms);
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
    ms = ms > CHECK_MS ? CHECK_MS : ms < CHECK_LEAST_MS ? CHECK_LEAST_MS : ms;
    boost->check_ms = earlier(now + ms, boost->end_ms);
}

/* Nobody is above a job of level 0: it needs none. */
static void begin(struct root *root, struct root_job *job, bool starved, int64_t now)
{
    struct boost *boost = &job->boost;
    int64_t allowed_ns;
    if (root->mode != ORDER_MODE_RT || (job->ranked && job->level == 0))
        return;
    budget_charge(&boost->left, 0, now);
    budget_charge(&root->boosts, 0, now);
    allowed_ns = starved ? STARVED_NS : root->boosts.left_ns;
    boost->allowed_ns = boost->left.left_ns < allowed_ns ? boost->left.left_ns : allowed_ns;
    if (boost->allowed_ns < LEAST_NS)
        return;
    boost->on = true;
    boost->starved = starved;
    boost->end_ms = now + (starved ? STARVED_MS : MACHINE_MS);
    for (size_t i = 0; i < job->helper_count; i++)
        job->helper_cpu_ns[i] = budget_process_ns(job->helpers[i]);
    plan(job, now);
    rank_helpers(root, job);
}

static void charge(struct root *root, struct root_job *job, int64_t now)
{
    struct boost *boost = &job->boost;
    int64_t before = budget_own_ns(), used = 0;
    for (size_t i = 0; i < job->helper_count; i++) {
        int64_t now_ns = budget_process_ns(job->helpers[i]);
        if (now_ns > job->helper_cpu_ns[i])
            used += now_ns - job->helper_cpu_ns[i];
        job->helper_cpu_ns[i] = now_ns;
    }
    used += budget_own_ns() - before;
    boost->allowed_ns -= used;
    budget_charge(&boost->left, used, now);
    if (!boost->starved)
        budget_charge(&root->boosts, used, now);
}

static void end(struct root *root, struct root_job *job, int64_t now)
{
    charge(root, job, now);
    job->boost.on = false;
    rank_helpers(root, job);
}

void boost_new(struct root *root, struct root_job *job)
{
    begin(root, job, false, mono_ms(mono_now()));
}

void boost_finish(struct root *root, struct root_job *job)
{
    int64_t now = mono_ms(mono_now());
    if (job->boost.on)
        end(root, job, now);
    begin(root, job, false, now);
}

void boost_stop(struct root *root, struct root_job *job)
{
    if (job->boost.on)
        end(root, job, mono_ms(mono_now()));
}

static void check_job(struct root *root, struct root_job *job, int64_t now)
{
    struct boost *boost = &job->boost;
    if (!boost->on || now < boost->check_ms)
        return;
    charge(root, job, now);
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
        int64_t now_ns = budget_process_ns(job->helpers[i]);
        any |= now_ns == job->helper_seen_ns[i];
        job->helper_seen_ns[i] = now_ns;
    }
    return any;
}

void boost_check(struct root *root, int64_t now)
{
    for (size_t i = 0; i < root->job_count; i++)
        check_job(root, root->jobs[i], now);
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
        if (boost->on)
            next = earlier(next, boost->check_ms);
    }
    return next;
}
