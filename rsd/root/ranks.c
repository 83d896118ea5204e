/* ranks.c - from the order to the threads: who has which rank now, and the sweeps. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/base/clock.h"
#include "libelmer/base/log.h"
#include "rsd/root/cpus.h"
#include "rsd/root/internal.h"
#include "rsd/root/sessions.h"

static bool is_live(const struct job *job)
{
    return job->state == JOB_OPENING || job->state == JOB_OPEN || job->state == JOB_TERMINATING;
}

static struct order_ranks ranks_of(const struct root *root, const struct job *job)
{
    return order_ranks(root->mode, job->level, job->lowest, job->crowded, job->boost.on);
}

static struct sched_target target_of(const struct root *root, const struct job *job)
{
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

void ranks_tell(struct root *root, struct job *job)
{
    struct order_ranks ranks = ranks_of(root, job);
    struct wire_message message = {.type = WIRE_rank};
    if (!job->connected || !job->ranked || (job->told_any && memcmp(&job->told, &ranks, sizeof ranks) == 0))
        return;
    message.u.rank.policy = (uint64_t)ranks.task.policy;
    message.u.rank.priority = ranks.task.priority;
    message.u.rank.helper_policy = (uint64_t)ranks.helper.policy;
    message.u.rank.helper_priority = ranks.helper.priority;
    tell_supervisor(job, &message);
    job->told = ranks;
    job->told_any = true;
}

/* Take what the order says of the job. A job that it does not name is ending or not yet ordered: its rank stays. */
static void take_item(struct root *root, struct job *job)
{
    const struct order_item *item = order_find(&root->order, job->id, job->attempt);
    cpu_set_t cpus;
    if (!item)
        return;
    job->renice |= root->mode == ORDER_MODE_IDLE && (item->level != job->level || item->lowest != job->lowest);
    job->ranked = true;
    job->level = item->level;
    job->lowest = item->lowest;
    if (item->ncpus > 0 && cpus_from_list(item->cpus, item->ncpus, &cpus) && cpus_within(&cpus, &root->cpus)) {
        job->cpus = cpus;
        job->ncpus = item->ncpus;
    }
}

/* What came out of the walks over a job's threads. */
static void take_walk(struct root *root, struct job *job, const struct sched_walk *walk, bool say)
{
    if (walk->target.crowded != job->crowded) {
        job->crowded = walk->target.crowded;
        ranks_tell(root, job);
    }
    if (walk->result == -ETIME && say)
        log_warning("job=%s: %zu threads kept changing for %d ms while they got their rank; the sweep goes on with it",
                    job->name, walk->count.threads, APPLY_MS);
    else if (walk->result < 0 && walk->result != -ETIME)
        log_warning("job=%s: cannot walk its group: %s", job->name, strerror(-walk->result));
    else if (walk->count.refused > 0 && !job->refusal_logged) {
        log_warning("job=%s: the kernel refused rank or CPUs for %zu of its threads", job->name, walk->count.refused);
        job->refusal_logged = true;
    }
}

static struct sched_walk walk_of(const struct root *root, const struct job *job)
{
    return (struct sched_walk){.group = &job->group, .target = target_of(root, job)};
}

static void apply_one(struct root *root, struct job *job, int64_t limit_ms)
{
    struct sched_walk walk = walk_of(root, job);
    sched_apply(&walk, 1, limit_ms);
    take_walk(root, job, &walk, limit_ms == APPLY_MS);
}

void ranks_apply(struct root *root, struct job *job)
{
    if (!is_live(job))
        return;
    take_item(root, job);
    ranks_tell(root, job);
    apply_one(root, job, APPLY_MS);
}

/* Each look interrupts the first job for some 40 us, and most spawn at their start only: the longer it has been calm,
 * the longer it may be until the next look. On average a new task waits for half of that part of it. */
static void plan_new_tasks(struct root *root, int64_t now)
{
    int64_t step = (now - root->pvm_news_ms) / PVM_CALM_PART;
    if (step < PVM_SWEEP_MS)
        step = PVM_SWEEP_MS;
    root->pvm_sweep_ms = now + (step < PVM_SWEEP_MAX_MS ? step : PVM_SWEEP_MAX_MS);
}

/* All jobs together, from the top down, so that nobody is above a job that was ordered above him, and that the pauses
 * of the walks are taken once and not for each. */
void ranks_apply_all(struct root *root)
{
    size_t count = 0;
    struct job **jobs = calloc(root->order.count + 1, sizeof(struct job *));
    struct sched_walk *walks = calloc(root->order.count + 1, sizeof *walks);
    for (size_t i = 0; jobs && walks && i < root->order.count; i++) {
        struct job *job = job_find(root, root->order.items[i].job, root->order.items[i].attempt);
        if (!job || !is_live(job))
            continue;
        take_item(root, job);
        ranks_tell(root, job);
        walks[count] = walk_of(root, job);
        jobs[count++] = job;
    }
    for (size_t i = 0; !(jobs && walks) && i < root->job_count; i++)
        ranks_apply(root, root->jobs[i]); /* out of memory: it works without, only slower */
    if (count > 0)
        sched_apply(walks, count, APPLY_MS);
    for (size_t i = 0; i < count; i++)
        take_walk(root, jobs[i], &walks[i], true);
    free(walks);
    free(jobs);
    int64_t now = mono_ms(mono_now());
    root->sweep_ms = now + SWEEP_SOON_MS; /* for what was in the middle of a fork for long: see sched.c */
    root->sweep_step_ms = SWEEP_SOON_MS;
    root->pvm_news_ms = now;
    plan_new_tasks(root, now);
}

void ranks_process(struct root *root, struct job *job, pid_t pid)
{
    struct sched_target target = target_of(root, job);
    struct sched_count count = {0};
    if (is_live(job))
        sched_process(&job->group, pid, &target, &count);
}

static bool has_new_tasks_to_lower(const struct root *root, const struct job *job)
{
    return root->mode == ORDER_MODE_RT && job->state == JOB_OPEN && job->ranked && !job->lowest &&
           job->helper_count > 0;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

/* pvmds are born with SCHED_RESET_ON_FORK, so their tasks begin in SCHED_OTHER: only new processes are looked at, which
 * is cheap. Returns whether there were any. */
static bool sweep_new_tasks(struct root *root, struct job *job)
{
    struct group_pids pids = {0};
    bool any = false;
    if (group_pids(job->group.job_fd, &pids) < 0)
        return false;
    if (pids.count > 0)
        qsort(pids.items, pids.count, sizeof *pids.items, compare_pids);
    for (size_t i = 0; i < pids.count; i++) {
        if (job->seen.count == 0 ||
            !bsearch(&pids.items[i], job->seen.items, job->seen.count, sizeof *pids.items, compare_pids)) {
            ranks_process(root, job, pids.items[i]);
            any = true;
        }
    }
    group_pids_fini(&job->seen);
    job->seen = pids;
    return any;
}

/* An adopted supervisor names its helpers only once: drop those that have left the group, their pids may come again. */
static void prune_helpers(struct job *job)
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

static void sweep(struct root *root, struct job *job)
{
    struct sched_target target;
    struct sched_count count;
    if (!is_live(job))
        return;
    prune_helpers(job);
    target = target_of(root, job);
    if (sched_pass(&job->group, &target, &count) < 0)
        return;
    if (target.crowded != job->crowded) {
        job->crowded = target.crowded;
        ranks_tell(root, job);
    } else if (count.changed == 0 && !job->renice) {
        return;
    }
    apply_one(root, job, SWEEP_APPLY_MS);
    job->renice = false;
}

/* Sessions that are made later begin at nice 0: so again with each sweep. */
static void weigh_sessions(struct root *root, struct job *job)
{
    int nice = order_session_nice(ranks_of(root, job).task);
    if (root->mode != ORDER_MODE_IDLE || !is_live(job) || !job->ranked || job->weigher > 0 ||
        job->group.job_fd < 0)
        return;
    if ((nice == 0 && job->session_nice == 0) || !sessions_share(job->group.job_fd))
        return;
    job->weigher = sessions_weigh(job->group.job_fd, nice);
    job->session_nice = job->weigher > 0 ? nice : job->session_nice;
}

void ranks_sweep(struct root *root, int64_t now)
{
    for (size_t i = 0; i < root->job_count; i++) {
        struct job *job = root->jobs[i];
        if (now >= root->sweep_ms) {
            sweep(root, job);
            weigh_sessions(root, job);
        } else if (now >= root->pvm_sweep_ms && has_new_tasks_to_lower(root, job) && sweep_new_tasks(root, job)) {
            root->pvm_news_ms = now;
        }
    }
    boost_look(root, now);
    if (now >= root->sweep_ms) {
        root->sweep_step_ms = root->sweep_step_ms * 4 < SWEEP_MS ? root->sweep_step_ms * 4 : SWEEP_MS;
        root->sweep_ms = now + root->sweep_step_ms;
    }
    if (now >= root->pvm_sweep_ms)
        plan_new_tasks(root, now);
}

int64_t ranks_next(const struct root *root)
{
    int64_t next = root->sweep_ms;
    for (size_t i = 0; i < root->job_count; i++) {
        const struct job *job = root->jobs[i];
        if (has_new_tasks_to_lower(root, job) && root->pvm_sweep_ms < next)
            next = root->pvm_sweep_ms;
    }
    int64_t boost = boost_next(root);
    return next < boost ? next : boost;
}
