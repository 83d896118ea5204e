/* death.c - how the processes of a job are signalled and killed, whatever their number.
 *
 * A signal is delivered only when its thread gets a CPU, and whoever dies needs 0.1 ms of it and more: a job of 4,000
 * processes half a second. None of that may be taken from the jobs above. So the job that is first dies at its own
 * rank, where nobody is above it, also if an order makes it the first meanwhile. The others die in SCHED_OTHER: that
 * gets what the kernel keeps from real time, and a real-time rank below a job that spins gets nothing at all. Beside
 * that some are raised above all jobs, for RAISED_MS, within a budget (DYING_FULL_US, and DYING_US in each second): so
 * that a few die at once, and that all do where nothing is kept. What was used is read from the group's cpu.stat, and
 * what we use ourselves is charged too.
 *
 * To kill more than FEW_KILLED takes milliseconds by itself: a child does it, at the rank at which they die. If it has
 * not come to that in INLINE_MS, it is done here. Signals that a process may refuse are sent by the job's supervisor
 * (rsd/sup/signals.c). Nobody is raised before he is killed, because he might refuse to go.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/root/internal.h"

enum {
    DYING_FULL_US = 1000,
    DYING_US = 1000,
    DYING_DEBT_US = 10000,
    RAISED_MS = 2,
    FEW_KILLED = 500, /* cgroup.kill, 4 us: a child would wait for the CPU among those whom it is to kill */
    ERRAND_S = 20,
    KILL_AGAIN_MS = 1000,
    INLINE_MS = 15000, /* one such kill takes up to 15 ms: no more often than that */
    FD_LEAF = 3,
    SIGNALS_AT_ONCE = 5,
    SIGNALS_PER_SECOND = 5
};
#define SIGNAL_US INT64_C(1000) /* what one counts as */

void death_init(struct root *root)
{
    budget_init(&root->dying, DYING_FULL_US, DYING_US, DYING_DEBT_US, mono_ms(mono_now()));
}

void death_init_job(struct root_job *job)
{
    budget_init(&job->signalling, SIGNALS_AT_ONCE * SIGNAL_US, SIGNALS_PER_SECOND * SIGNAL_US, 0, job->since_ms);
}

bool death_at_own_rank(const struct root *root, const struct root_job *job)
{
    return root->mode == ORDER_MODE_RT && job->ranked && job->level == 0;
}

static struct order_rank errand_rank(const struct root *root, const struct root_job *job)
{
    if (death_at_own_rank(root, job))
        return order_ranks(root->mode, job->level, job->lowest, job->crowded, false).helper;
    return (struct order_rank){SCHED_OTHER, 0};
}

static int kill_now(const struct cgroup *group)
{
    return group_write(group->job_fd, "cgroup.kill", "1");
}

/* Nobody must take it for the root half: nothing of its is open. */
static _Noreturn void errand_child(const struct root *root, const struct root_job *job)
{
    struct cgroup group = {.job_fd = FD_LEAF, .sup_fd = -1, .events_fd = -1};
    sched_rank(0, errand_rank(root, job), false);
    alarm(ERRAND_S);
    if (dup2(job->group.job_fd, group.job_fd) < 0)
        _exit(1);
    (void)syscall(SYS_close_range, FD_LEAF + 1U, ~0U, 0U);
    _exit(kill_now(&group) < 0);
}

/* false: it has to be done here. */
static bool errand_start(const struct root *root, struct root_job *job)
{
    pid_t pid;
    if (!group_has_more_than(job->group.job_fd, FEW_KILLED))
        return false;
    pid = fork();
    if (pid == 0)
        errand_child(root, job);
    if (pid < 0)
        return false;
    job->errand = pid;
    job->errand_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return true;
}

void death_errand_forget(struct root_job *job)
{
    if (job->errand_fd >= 0)
        close(job->errand_fd);
    job->errand_fd = -1;
    job->errand = 0;
}

/* Only who is the user, or root, may. One that does not do it, or has died, holds nothing up: KILL needs nobody. */
void death_signal(struct root *root, struct root_job *job, int number)
{
    struct wire_message message = {.type = WIRE_send_signal};
    struct order_rank rank = errand_rank(root, job);
    int64_t before = budget_own_ns();
    message.u.send_signal.number = (uint64_t)number;
    message.u.send_signal.policy = (uint64_t)rank.policy;
    message.u.send_signal.priority = rank.priority;
    if (!job->by_root) {
        tell_supervisor(job, &message);
    } else {
        (void)spawn_signal(root, job, "job", number);
        if (number == SIGTERM)
            (void)spawn_signal(root, job, "job", SIGCONT); /* a stopped process takes TERM only then */
    }
    walks_charge(root, NULL, PAYER_ORDERS, before);
}

int64_t death_signals_next(const struct root_job *job)
{
    if (signal_queue_first(&job->signals) == 0 || job->state != JOB_OPEN || (!job->connected && !job->by_root))
        return INT64_MAX;
    return budget_when(&job->signalling, SIGNAL_US * 1000 - 1);
}

/* To tell its supervisor costs both 0.1 ms, whatever it has to do for that. */
void death_signals(struct root *root, struct root_job *job, int64_t now)
{
    if (death_signals_next(job) == INT64_MAX)
        return;
    budget_charge(&job->signalling, 0, now);
    if (death_signals_next(job) > now)
        return;
    budget_charge(&job->signalling, SIGNAL_US * 1000, now);
    death_signal(root, job, signal_queue_first(&job->signals));
    signal_queue_take(&job->signals);
}

void death_signal_asked(struct root *root, struct root_job *job, int number)
{
    signal_queue_add(&job->signals, number);
    death_signals(root, job, mono_ms(mono_now()));
}

void death_begin(struct root_job *job, int64_t now)
{
    death_errand_forget(job);
    job->raised_count = 0;
    job->kill_ms = now;
    job->kill_here_ms = now + INLINE_MS;
    walk_stop(job);
}

void death_moved(struct root *root, struct root_job *job)
{
    if (job->errand > 0)
        sched_rank(job->errand, errand_rank(root, job), false);
    walk_begin(job, WALK_SWEEP); /* no order waits for the dead */
}

static int kill_all(struct root *root, struct root_job *job, int64_t now)
{
    int64_t before = budget_own_ns();
    int result = 0;
    job->kill_ms = now + KILL_AGAIN_MS;
    if (now >= job->kill_here_ms || (job->errand == 0 && !errand_start(root, job)))
        result = kill_now(&job->group);
    if (result == -ENOENT) /* a kernel of before 5.14 */
        result = spawn_signal(root, job, "job", SIGKILL);
    if (now >= job->kill_here_ms)
        job->kill_here_ms = now + INLINE_MS;
    walks_charge(root, NULL, PAYER_ORDERS, before);
    return result;
}

static int64_t used_ns(const struct root_job *job)
{
    double seconds;
    int64_t peak;
    group_usage(&job->group, &seconds, &peak);
    return seconds < 0 ? 0 : (int64_t)(seconds * 1e9);
}

static void lower(struct root *root, struct root_job *job, int64_t now)
{
    int64_t begin = budget_own_ns(), used = used_ns(job) - job->raised_used_ns;
    sched_lower(job->raised, job->raised_count);
    job->raised_count = 0;
    budget_charge(&root->dying, budget_own_ns() - begin + (used > 0 ? used : 0), now);
}

/* On one CPU they run one after the other; on several each is on its own, so there is one. */
static void raise_some(struct root *root, struct root_job *job, int64_t now)
{
    int64_t begin = budget_own_ns();
    budget_charge(&root->dying, 0, now);
    if (budget_when(&root->dying, 0) > now)
        return;
    job->raised_used_ns = used_ns(job);
    job->raised_count = sched_raise_some(&job->group, job->raised, job->ncpus == 1 ? MAX_RAISED : 1);
    job->lower_ms = now + RAISED_MS;
    budget_charge(&root->dying, budget_own_ns() - begin, now);
}

int death_step(struct root *root, struct root_job *job, int64_t now, int64_t *again_ms)
{
    int result = 0;
    bool raises;
    if (job->raised_count > 0 && now < job->lower_ms) {
        *again_ms = job->lower_ms;
        return 0;
    }
    if (job->raised_count > 0)
        lower(root, job, now);
    if (now >= job->kill_ms)
        result = kill_all(root, job, now);
    raises = root->mode == ORDER_MODE_RT && !death_at_own_rank(root, job) && job->errand == 0;
    if (raises)
        raise_some(root, job, now);
    *again_ms = job->kill_ms;
    if (job->raised_count > 0)
        *again_ms = job->lower_ms;
    else if (raises && budget_when(&root->dying, 0) < *again_ms)
        *again_ms = budget_when(&root->dying, 0);
    if (*again_ms <= now)
        *again_ms = now + 1;
    return result;
}

void death_errand_done(struct root_job *job, int64_t now)
{
    death_errand_forget(job);
    job->retry_ms = job->state == JOB_KILLING ? now : job->retry_ms;
}
