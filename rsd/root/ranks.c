/* ranks.c - from the order to the threads: who has which rank now, and the sweeps. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/root/cpus.h"
#include "rsd/root/guard.h"
#include "rsd/root/internal.h"
#include "rsd/root/sessions.h"

static bool is_live(const struct root_job *job)
{
    return job->state == JOB_OPENING || job->state == JOB_OPEN || job->state == JOB_TERMINATING;
}

static struct order_ranks ranks_of(const struct root *root, const struct root_job *job)
{
    return order_ranks(root->mode, job->level, job->lowest, job->crowded, job->boost.on);
}

struct sched_target ranks_target(const struct root *root, const struct root_job *job)
{
    if (!is_live(job) && !death_at_own_rank(root, job)) /* in SCHED_OTHER: see death.c */
        return (struct sched_target){.ncpus = job->ncpus, .crowded = job->crowded};
    return (struct sched_target){
        .ranks = ranks_of(root, job),
        .no_rank = root->mode == ORDER_MODE_NONE || !job->ranked,
        .exact = job->renice,
        .cpus = job->ncpus ? &job->cpus : NULL,
        .ncpus = job->ncpus,
        .helpers = job->helpers,
        .helper_count = job->helper_count,
        .crowded = job->crowded,
    };
}

void ranks_tell(struct root *root, struct root_job *job)
{
    struct order_ranks ranks = ranks_of(root, job);
    struct wire_message message = {.type = WIRE_rank};
    if (!job->connected || !job->ranked || (job->told_any && memcmp(&job->told, &ranks, sizeof(ranks)) == 0))
        return;
    message.u.rank.policy = (uint64_t)ranks.task.policy;
    message.u.rank.priority = ranks.task.priority;
    message.u.rank.helper_policy = (uint64_t)ranks.helper.policy;
    message.u.rank.helper_priority = ranks.helper.priority;
    tell_supervisor(job, &message);
    job->told = ranks;
    job->told_any = true;
    job->rank_changes++;
}

static bool is_alone(const struct root_job *job)
{
    return job->ranked && job->level == 0 && job->lowest;
}

/* A supervisor of before would put it down together with the job. */
void ranks_look(struct root_job *job)
{
    struct wire_message message = {.type = WIRE_look};
    if (!job->connected || wire_minor_of(WIRE_look, job->supervisor.minor) < WIRE_WAITS_MINOR)
        return;
    message.u.look.alone = job->told_alone = is_alone(job);
    message.u.look.processors = job->ncpus;
    tell_supervisor(job, &message);
}

void ranks_look_again(struct root_job *job)
{
    if (job->told_alone != is_alone(job))
        ranks_look(job);
}

/* Take what the order says of the job. A job that it does not name is ending or not yet ordered: its rank stays. */
static void take_item(struct root *root, struct root_job *job)
{
    const struct order_item *item = order_find(&root->order, job->id, job->attempt);
    cpu_set_t cpus;
    if (!item)
        return;
    job->renice |= root->mode == ORDER_MODE_IDLE && (item->level != job->level || item->lowest != job->lowest);
    job->ranked = true;
    job->level = item->level;
    job->lowest = item->lowest;
    if (item->ncpus > 0 && tickets_within(job, item->ncpus) && cpus_from_list(item->cpus, item->ncpus, &cpus) &&
        cpus_within(&cpus, &root->cpus)) {
        job->cpus = cpus;
        job->ncpus = item->ncpus;
    }
}

/* Of a new job, in which nobody is yet. */
void ranks_new(struct root *root, struct root_job *job)
{
    take_item(root, job);
    ranks_tell(root, job);
    weights_apply(root, false);
}

/* Each scan interrupts the first job for some 40 us, and most spawn at their start only: the longer it has been calm,
 * the longer it may be until the next scan. On average a new task waits for half of that part of it. */
static void plan_scan(struct root_job *job, int64_t now)
{
    int64_t step = (now - job->news_ms) / NEW_TASKS_CALM_PART;
    if (step < NEW_TASKS_MS)
        step = NEW_TASKS_MS;
    job->scan_ms = now + (step < NEW_TASKS_MAX_MS ? step : NEW_TASKS_MAX_MS);
}

/* Those of all calm jobs come together: each waking up costs the first job. */
static void plan_sweep(struct root_job *job, int64_t now)
{
    job->sweep_step_ms = job->sweep_step_ms * 4 < SWEEP_MS ? job->sweep_step_ms * 4 : SWEEP_MS;
    job->sweep_ms = now + job->sweep_step_ms - (job->sweep_step_ms == SWEEP_MS ? now % SWEEP_MS : 0);
}

/* After an order, what was in the middle of a fork for long has to be found, see walks.c. Only sooner, never later than
 * it was to be: however fast orders follow each other, there are sweeps and scans. */
static void plan_soon(struct root_job *job, int64_t now)
{
    job->sweep_step_ms = SWEEP_SOON_MS;
    job->sweep_ms = earlier(job->sweep_ms, now + SWEEP_SOON_MS);
    job->news_ms = now;
    job->scan_ms = earlier(job->scan_ms, now + NEW_TASKS_MS);
}

static bool same_target(const struct sched_target *a, const struct sched_target *b)
{
    return memcmp(&a->ranks, &b->ranks, sizeof(a->ranks)) == 0 && a->no_rank == b->no_rank && a->exact == b->exact;
}

/* One that is being killed may be first only now. */
static void apply_to_dying(struct root *root, struct root_job *job, int64_t now)
{
    struct sched_target before = ranks_target(root, job), after;
    take_item(root, job);
    after = ranks_target(root, job);
    if (same_target(&before, &after))
        return;
    death_moved(root, job);
    plan_soon(job, now);
}

/* All jobs together, from the top down, so that nobody is above a job that was ordered above him. A job whose rank and
 * CPUs are as they were needs no walk: the sweeps that follow find whoever is not as he should be. */
void ranks_apply_all(struct root *root)
{
    int64_t now = mono_ms(mono_now()), begin = budget_own_ns();
    for (size_t i = 0; i < root->order.count; i++) {
        struct root_job *job = job_find(root, root->order.items[i].job, root->order.items[i].attempt);
        struct sched_target before, after;
        cpu_set_t cpus;
        bool alone;
        if (job && job->state == JOB_KILLING)
            apply_to_dying(root, job, now);
        if (!job || !is_live(job))
            continue;
        before = ranks_target(root, job);
        cpus = job->cpus;
        alone = is_alone(job);
        take_item(root, job);
        ranks_tell(root, job);
        if (job->waits && alone != is_alone(job)) /* before the job below is opened */
            ranks_look(job);
        after = ranks_target(root, job);
        if (!same_target(&before, &after) || !CPU_EQUAL(&cpus, &job->cpus) ||
            (!job->walked && job->walk.why != WALK_ORDER)) {
            walk_begin(job, WALK_ORDER);
            plan_soon(job, now);
            job->rank_changes++;
        }
    }
    weights_apply(root, false);
    walks_charge(root, NULL, PAYER_ORDERS, begin);
    walks_run(root);
}

static void tell_applied(struct root *root)
{
    root->applied = root->order.generation;
    if (root->order_asked) {
        log_debug("order %" PRIu64 " of %zu jobs is applied in %" PRId64 " us", root->applied, root->order.count,
                  (mono_now().ns - root->ordered_ns) / 1000);
        tell_ordered(root, root->order_id);
    }
    root->order_asked = false;
}

void ranks_settle(struct root *root)
{
    if (!walks_of_order(root) && (root->applied != root->order.generation || root->order_asked))
        tell_applied(root);
    for (size_t i = 0; i < root->job_count; i++)
        job_try_opened(root, root->jobs[i]);
}

void ranks_process(struct root *root, struct root_job *job, pid_t pid)
{
    struct sched_target target = ranks_target(root, job);
    struct sched_count count = {0};
    int64_t before = budget_own_ns();
    if (is_live(job))
        sched_process(&job->group, pid, &target, &count);
    walks_charge(root, job, walks_payer(root, job, true), before);
}

/* Its supervisor has given it the rank that it knew of (sup/process.c). If that has changed since the start was passed
 * on, a walk may have gone past it before. To look for it at once would read all of its group, as often as its user
 * starts something; the sweeps are paid for. But a helper may be above all jobs, by a boost that has ended meanwhile,
 * and no budget is to keep it there; it is elmer that starts those, one for each daemon of the machine. */
void ranks_started(struct root *root, struct root_job *job, const struct job_process *process, bool first)
{
    if (process->rank_changes == job->rank_changes)
        return;
    plan_soon(job, mono_ms(mono_now()));
    if (first && process->role != ROLE_COMMAND)
        ranks_process(root, job, process->pid);
}

/* A walk that is under way finds them as well. */
static bool may_have_new_tasks(const struct root *root, const struct root_job *job)
{
    return root->mode == ORDER_MODE_RT && job->state == JOB_OPEN && job->ranked && !job->lowest &&
           job->helper_count > 0 && job->walk.why == WALK_NONE;
}

static int64_t next_scan_ms(const struct root *root, const struct root_job *job)
{
    int64_t paid = walks_paid_ms(root, job, false);
    return paid > job->scan_ms ? paid : job->scan_ms;
}

/* Daemons are born with SCHED_RESET_ON_FORK, so their tasks begin in SCHED_OTHER. Is any process new? Then all are
 * walked. */
static bool sweep_new_tasks(struct root *root, struct root_job *job)
{
    struct group_pids pids = {0};
    bool any = false;
    int64_t before = budget_own_ns();
    if (group_pids(job->group.job_fd, &pids) < 0)
        return false;
    group_pids_sort(&pids);
    for (size_t i = 0; i < pids.count && !any; i++)
        any = !group_pids_have(&job->seen, pids.items[i]);
    group_pids_fini(&job->seen);
    job->seen = pids;
    if (any)
        walk_begin(job, WALK_SWEEP);
    walks_charge(root, job, walks_payer(root, job, false), before);
    return any;
}

/* An adopted supervisor names its helpers only once: drop those that have left the group, their pids may come again. */
void ranks_prune_helpers(struct root_job *job)
{
    struct group_pids pids = {0};
    if (job->helper_count == 0 || group_pids(job->group.job_fd, &pids) < 0)
        return;
    for (size_t i = job->helper_count; i-- > 0;) {
        size_t k = 0;
        while (k < pids.count && pids.items[k] != job->helpers[i])
            k++;
        if (k == pids.count)
            job_helper_remove(job, job->helpers[i]);
    }
    group_pids_fini(&pids);
}

static void sweep(struct root_job *job)
{
    if (is_live(job) || job->state == JOB_KILLING)
        walk_begin(job, WALK_SWEEP);
}

/* Sessions that are made later begin at nice 0: so again with each sweep, but for 0, which the supervisor keeps until
 * it is done. */
static void weigh_sessions(struct root *root, struct root_job *job)
{
    struct wire_message message = {.type = WIRE_weigh_sessions};
    int nice = order_session_nice(ranks_of(root, job).task);
    if (root->mode != ORDER_MODE_IDLE || !is_live(job) || !job->ranked || job->by_root || job->group.job_fd < 0)
        return;
    if ((nice == 0 && job->session_nice == 0) || !sessions_share(job->group.job_fd))
        return;
    message.u.weigh_sessions.nice = nice;
    tell_supervisor(job, &message);
    job->session_nice = nice;
}

/* Of processes that do not wait it is asked less often: each time wakes the supervisor up. */
static void look(struct root *root, struct root_job *job, int64_t now)
{
    int64_t before = budget_own_ns();
    if (!job->waits || !is_live(job) || now < job->look_ms)
        return;
    ranks_look(job);
    job->look_ms = now + (SWEEP_MS << job->still) - SWEEP_MS / 2;
    walks_charge(root, job, walks_payer(root, job, false), before);
}

/* What it was bringing forth may have gone on at ORDER_BIRTH: it is soon looked for, but once only, because whoever
 * does this does it as often as he likes. */
static void guard(struct root *root, struct root_job *job, int64_t now)
{
    int64_t before = budget_own_ns();
    bool changed =
        !job->supervisor_gone && guard_supervisor(job->supervisor_pid, job->supervisor_pidfd, root->spawn_pid);
    walks_charge(root, job, walks_payer(root, job, false), before);
    if (!changed || job->guard_logged)
        return;
    plan_soon(job, now);
    log_warning("job=%s: its supervisor had other class or CPUs than elmer-spawn: put back, as often as it happens",
                job->name);
    job->guard_logged = true;
}

void ranks_sweep(struct root *root, int64_t now)
{
    bool swept = false;
    walks_run(root); /* before anything else is paid for */
    for (size_t i = 0; i < root->job_count; i++) {
        struct root_job *job = root->jobs[i];
        if (now >= job->sweep_ms) {
            guard(root, job, now);
            sweep(job);
            weigh_sessions(root, job);
            look(root, job, now);
            plan_sweep(job, now);
            swept = true;
        } else if (may_have_new_tasks(root, job) && now >= next_scan_ms(root, job)) {
            if (sweep_new_tasks(root, job))
                job->news_ms = now;
            plan_scan(job, now);
        }
    }
    boost_check(root, now);
    if (swept)
        weights_apply(root, true);
    walks_run(root);
    ranks_settle(root);
}

int64_t ranks_next(const struct root *root)
{
    int64_t next = walks_next(root);
    for (size_t i = 0; i < root->job_count; i++) {
        const struct root_job *job = root->jobs[i];
        next = earlier(next, job->sweep_ms);
        if (may_have_new_tasks(root, job))
            next = earlier(next, next_scan_ms(root, job));
    }
    return earlier(next, boost_next(root));
}
