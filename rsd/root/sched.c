/* sched.c - walk over the threads of a group and set what is not as it should be.
 *
 * Class and mask are inherited, so once every living thread is right, new ones are born right. But one clean walk does
 * not prove that everybody is: a fork that was under way when its parent was set right takes the old class along and
 * shows up later, and a process that vanishes before we look may have left a child. So walks are repeated: see walks.c.
 * A large group takes milliseconds, so a walk is done in slices of a hundred threads, each read from the group just
 * before it is set.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsd/root/cpus.h"
#include "rsd/root/sched.h"

enum { RESET_ON_FORK = 1 };

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
    return syscall(SYS_sched_getattr, tid, attr, (unsigned)sizeof(*attr), 0U) < 0 ? -errno : 0;
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

int sched_of(pid_t tid, struct order_rank *rank, bool *reset_on_fork)
{
    struct attr attr;
    int result = attr_get(tid, &attr);
    if (result < 0)
        return result;
    *rank = (struct order_rank){(int)attr.policy, policy_is_rt(attr.policy) ? (int)attr.priority : attr.nice};
    *reset_on_fork = (attr.flags & RESET_ON_FORK) != 0;
    return 0;
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
    attr = (struct attr){.size = sizeof(attr),
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
    if (sched_getaffinity(tid, sizeof(now), &now) < 0)
        return -errno;
    if (cpus_within(&now, cpus))
        return 0;
    CPU_AND(&both, &now, cpus);
    if (CPU_COUNT(&both) == 0)
        both = *cpus;
    return sched_setaffinity(tid, sizeof(both), &both) < 0 ? -errno : 1;
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

static bool has_rank(const struct attr *attr, struct order_rank rank)
{
    if (policy_is_rt((uint32_t)rank.policy))
        return policy_is_rt(attr->policy) && attr->priority == (uint32_t)rank.priority;
    return attr->policy == (uint32_t)rank.policy && (rank.policy == SCHED_IDLE || attr->nice == rank.priority);
}

/* A thread has ended while we set it, and its number may already be a stranger's, who would now have a job's rank or
 * CPUs: he has just been born, so he gets what everybody is born with. Who has another rank has not got it from us. */
static void amend(pid_t tid, const struct sched_target *target)
{
    const struct order_rank ordinary = {SCHED_OTHER, 0};
    struct attr attr;
    cpu_set_t all, now;
    if (attr_get(tid, &attr) < 0)
        return;
    if (!target->no_rank && (has_rank(&attr, target->ranks.task) || has_rank(&attr, target->ranks.helper)))
        set_rank(tid, ordinary, false, true);
    if (target->cpus && sched_getaffinity(tid, sizeof(now), &now) == 0 && CPU_EQUAL(&now, target->cpus) &&
        sched_getaffinity(0, sizeof(all), &all) == 0)
        sched_setaffinity(tid, sizeof(all), &all);
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

void sched_process(const struct cgroup *group, pid_t pid, struct sched_target *target, struct sched_count *count)
{
    struct group_pids tids = {0};
    group_threads(group->job_fd, &tids);
    group_pids_sort(&tids);
    if (!group_pids_have(&tids, pid)) {
        count->vanished++;
    } else if (fix_thread(pid, target, is_helper(pid, target), count)) {
        group_threads(group->job_fd, &tids);
        group_pids_sort(&tids);
        if (!group_pids_have(&tids, pid)) {
            amend(pid, target);
            count->vanished++;
        }
    }
    group_pids_fini(&tids);
}

/* ---- a walk in slices ---- */

int sched_pass_begin(struct sched_pass *pass, const struct cgroup *group)
{
    sched_pass_end(pass);
    pass->count = (struct sched_count){0};
    pass->verifying = false;
    return group_reader_open(&pass->reader, group->job_fd, true);
}

void sched_pass_end(struct sched_pass *pass)
{
    group_reader_close(&pass->reader);
    group_pids_fini(&pass->members);
    group_pids_fini(&pass->changed);
}

/* Threads that were in the group before they were changed; those that are not in it afterwards are amended. */
static void amend_gone(struct sched_pass *pass, const struct sched_target *target)
{
    group_pids_sort(&pass->members);
    for (size_t i = 0; i < pass->changed.count; i++) {
        if (group_pids_have(&pass->members, pass->changed.items[i]))
            continue;
        amend(pass->changed.items[i], target);
        pass->count.vanished++;
    }
}

static int fix_slice(struct sched_pass *pass, const struct sched_target *target)
{
    struct group_pids *tids = &pass->members;
    int more;
    tids->count = 0;
    more = group_reader_next(&pass->reader, tids);
    for (size_t i = 0; i < tids->count; i++) {
        bool helper = is_helper(tids->items[i], target);
        int result = fix_thread(tids->items[i], target, helper, &pass->count)
                         ? group_pids_add(&pass->changed, tids->items[i])
                         : 0;
        if (result < 0)
            return result;
    }
    return more;
}

int sched_pass_step(struct sched_pass *pass, const struct cgroup *group, struct sched_target *target)
{
    int more = pass->verifying ? group_reader_next(&pass->reader, &pass->members) : fix_slice(pass, target);
    if (more != 0)
        return more;
    if (!pass->verifying && pass->changed.count > 0) {
        pass->verifying = true;
        pass->members.count = 0;
        group_reader_close(&pass->reader);
        more = group_reader_open(&pass->reader, group->job_fd, true);
        return more < 0 ? more : 1;
    }
    if (pass->verifying)
        amend_gone(pass, target);
    if (!target->crowded && pass->count.threads > target->ncpus) {
        target->crowded = true;
        pass->count.changed +=
            policy_is_rt((uint32_t)target->ranks.task.policy); /* not clean: they become RR in the next walk */
    }
    return 0;
}

/* ---- those who must die ---- */

size_t sched_raise_some(const struct cgroup *group, pid_t *tids, size_t max)
{
    const struct order_rank dying = {SCHED_FIFO, ORDER_DYING};
    struct group_reader reader;
    struct group_pids found = {0};
    size_t raised = 0;
    if (group_reader_open(&reader, group->job_fd, true) == 0)
        (void)group_reader_next(&reader, &found);
    for (size_t i = 0; i < found.count && raised < max; i++) {
        if (sched_rank(found.items[i], dying, false) >= 0)
            tids[raised++] = found.items[i];
    }
    group_reader_close(&reader);
    group_pids_fini(&found);
    return raised;
}

void sched_lower(const pid_t *tids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct attr attr;
        if (attr_get(tids[i], &attr) == 0 && attr.policy == SCHED_FIFO && attr.priority == ORDER_DYING)
            sched_rank(tids[i], (struct order_rank){SCHED_OTHER, 0}, false);
    }
}
