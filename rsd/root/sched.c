/* sched.c - walk over the threads of a group and set what is not as it should be.
 *
 * Class and mask are inherited, so once every living thread is right, new ones are born right. But one clean walk does
 * not prove that everybody is: a fork that was under way when its parent was set right takes the old class along and
 * shows up later, and a process that vanishes before we look may have left a child. A chain of processes that fork and
 * exit (seen: all the time) would so run away from us. Therefore, after a change, the next walk waits until such forks
 * are through (SETTLE_MS; the fork of a large process takes longer: the sweep that follows an order finds it), and a
 * walk is clean only if nothing was changed and nobody vanished. A group that forks too fast for that is frozen: when
 * cgroup.events says frozen, no thread is in a fork, and one clean walk is a proof. Freezing interrupts system calls
 * (epoll_wait(2) returns EINTR), so it is not done to groups that behave. What is still missed (the fork of a process
 * that waits behind a higher job) is found by the sweeps that follow each order.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libelmer/base/clock.h"
#include "rsd/root/cpus.h"
#include "rsd/root/sched.h"

enum { SETTLE_MS = 1, FREEZE_AFTER_PASSES = 12, FREEZE_AFTER_MS = 30, RESET_ON_FORK = 1 };

/* struct sched_attr of the kernel; the C library has it only since 2.41, and then clashes with the kernel's header. */
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static int attr_get(pid_t tid, struct attr *attr)
{
    *attr = (struct attr){0};
    return syscall(SYS_sched_getattr, tid, attr, (unsigned)sizeof *attr, 0U) < 0 ? -errno : 0;
}

static bool policy_is_rt(uint32_t policy)
{
    return policy == SCHED_FIFO || policy == SCHED_RR;
}

bool sched_is_rt(pid_t tid)
{
    struct attr attr;
    return attr_get(tid, &attr) == 0 && policy_is_rt(attr.policy);
}

/* SCHED_BATCH is a user's own choice within SCHED_OTHER, and so is being nicer: both are left to him. */
static bool attr_fits(const struct attr *attr, struct order_rank rank, bool reset, bool exact)
{
    if (((attr->flags & RESET_ON_FORK) != 0) != reset)
        return false;
    if (rank.policy == SCHED_OTHER && rank.priority == 0 && !exact)
        return attr->policy == SCHED_OTHER || attr->policy == SCHED_BATCH;
    if (attr->policy != (uint32_t)rank.policy)
        return false;
    if (policy_is_rt(attr->policy))
        return attr->priority == (uint32_t)rank.priority;
    return rank.policy == SCHED_IDLE || attr->nice == rank.priority;
}

static int set_rank(pid_t tid, struct order_rank rank, bool reset_on_fork, bool exact)
{
    struct attr attr;
    bool rt = policy_is_rt((uint32_t)rank.policy);
    int result = attr_get(tid, &attr);
    if (result < 0)
        return result;
    if (attr_fits(&attr, rank, reset_on_fork, exact))
        return 0;
    attr = (struct attr){.size = sizeof attr,
                         .policy = (uint32_t)rank.policy,
                         .flags = reset_on_fork ? RESET_ON_FORK : 0,
                         .nice = rt ? 0 : rank.priority,
                         .priority = rt ? (uint32_t)rank.priority : 0};
    return syscall(SYS_sched_setattr, tid, &attr, 0U) < 0 ? -errno : 1;
}

int sched_rank(pid_t tid, struct order_rank rank, bool reset_on_fork)
{
    return set_rank(tid, rank, reset_on_fork, false);
}

/* A process may be kept to fewer CPUs than the job has (a rank of --each), never to others. */
static int confine(pid_t tid, const cpu_set_t *cpus)
{
    cpu_set_t now, both;
    if (sched_getaffinity(tid, sizeof now, &now) < 0)
        return -errno;
    if (cpus_within(&now, cpus))
        return 0;
    CPU_AND(&both, &now, cpus);
    if (CPU_COUNT(&both) == 0)
        both = *cpus;
    return sched_setaffinity(tid, sizeof both, &both) < 0 ? -errno : 1;
}

static void count_result(struct sched_count *count, int result)
{
    if (result == 1)
        count->changed++;
    else if (result == -ESRCH)
        count->vanished++;
    else if (result < 0)
        count->refused++;
}

/* A thread has ended while we set it, and its number may already be a stranger's, who would now have a job's rank: he
 * has just been born, so he gets what everybody is born with. */
static void amend(pid_t tid)
{
    cpu_set_t all;
    sched_rank(tid, (struct order_rank){SCHED_OTHER, 0}, false);
    if (sched_getaffinity(0, sizeof all, &all) == 0)
        sched_setaffinity(tid, sizeof all, &all);
}

/* Returns whether something was changed. */
static bool fix_thread(pid_t tid, const struct sched_target *target, bool helper, struct sched_count *count)
{
    size_t changed = count->changed;
    if (!helper)
        count->threads++;
    if (!target->no_rank) {
        struct order_rank rank = helper ? target->ranks.helper : target->ranks.task;
        bool rt = policy_is_rt((uint32_t)rank.policy);
        if (!helper && rt)
            rank.policy = target->crowded ? SCHED_RR : SCHED_FIFO;
        count_result(count, set_rank(tid, rank, helper && order_is_raised(rank), target->exact));
    }
    if (target->cpus)
        count_result(count, confine(tid, target->cpus));
    return count->changed > changed;
}

/* Helpers have one thread, so its number is theirs. */
static bool is_helper(pid_t pid, const struct sched_target *target)
{
    for (size_t i = 0; i < target->helper_count; i++) {
        if (target->helpers[i] == pid)
            return true;
    }
    return false;
}

/* Threads that were in the group before they were changed; those that are not in it afterwards are amended. */
static int amend_gone(const struct cgroup *group, const pid_t *changed, size_t count, struct sched_count *counted)
{
    struct group_pids now = {0};
    int result = group_threads(group->job_fd, &now);
    group_pids_sort(&now);
    for (size_t i = 0; i < count; i++) {
        if (!group_pids_have(&now, changed[i])) {
            amend(changed[i]);
            counted->vanished++;
        }
    }
    group_pids_fini(&now);
    return result;
}

void sched_process(const struct cgroup *group, pid_t pid, struct sched_target *target, struct sched_count *count)
{
    struct group_pids tids = {0};
    group_threads(group->job_fd, &tids);
    group_pids_sort(&tids);
    if (!group_pids_have(&tids, pid))
        count->vanished++;
    else if (fix_thread(pid, target, is_helper(pid, target), count))
        amend_gone(group, &pid, 1, count);
    group_pids_fini(&tids);
}

/* Not through /proc: see sessions.c. */
int sched_pass(const struct cgroup *group, struct sched_target *target, struct sched_count *count)
{
    struct group_pids tids = {0};
    size_t changed = 0;
    int result = group_threads(group->job_fd, &tids);
    *count = (struct sched_count){0};
    for (size_t i = 0; result == 0 && i < tids.count; i++) {
        if (fix_thread(tids.items[i], target, is_helper(tids.items[i], target), count))
            tids.items[changed++] = tids.items[i];
    }
    if (changed > 0)
        result = amend_gone(group, tids.items, changed, count);
    group_pids_fini(&tids);
    if (result == 0 && !target->crowded && count->threads > target->ncpus) {
        target->crowded = true;
        count->changed +=
            policy_is_rt((uint32_t)target->ranks.task.policy); /* not clean: they become RR in the next walk */
    }
    return result;
}

static void walk_once(struct sched_walk *walk, int64_t passed_ms)
{
    const struct sched_count *count = &walk->count;
    bool clean, frozen = walk->freezing && group_frozen(walk->group);
    int result = sched_pass(walk->group, &walk->target, &walk->count);
    walk->passes++;
    clean = count->changed == 0 && count->vanished == 0 && frozen == walk->freezing;
    if (result < 0 || clean) {
        walk->result = result;
        walk->done = true;
    } else if (!walk->freezing && (walk->passes >= FREEZE_AFTER_PASSES || passed_ms >= FREEZE_AFTER_MS)) {
        walk->freezing = group_freeze(walk->group, true) == 0;
    }
    if (walk->done && walk->freezing)
        group_freeze(walk->group, false);
}

/* One round over those that are not done. Returns whether another is needed. */
static bool walk_all(struct sched_walk *walks, size_t count, int64_t passed_ms)
{
    bool again = false;
    for (size_t i = 0; i < count; i++) {
        if (!walks[i].done)
            walk_once(&walks[i], passed_ms);
        again |= !walks[i].done;
    }
    return again;
}

void sched_apply(struct sched_walk *walks, size_t count, int64_t limit_ms)
{
    int64_t start = mono_ms(mono_now()), passed = 0;
    for (size_t i = 0; i < count; i++)
        walks[i].result = -ETIME;
    while (passed < limit_ms && walk_all(walks, count, passed)) {
        poll(NULL, 0, SETTLE_MS);
        passed = mono_ms(mono_now()) - start;
    }
    for (size_t i = 0; i < count; i++) {
        if (!walks[i].done && walks[i].freezing)
            group_freeze(walks[i].group, false);
    }
}

void sched_let_die(const struct cgroup *group, bool rt)
{
    struct order_rank rank = rt ? (struct order_rank){SCHED_FIFO, ORDER_DYING} : (struct order_rank){SCHED_OTHER, 0};
    struct sched_target target = {.ranks = {.task = rank, .helper = rank}};
    struct sched_count count;
    sched_pass(group, &target, &count);
}
