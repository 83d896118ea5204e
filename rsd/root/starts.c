/* starts.c - what it costs above all jobs that jobs begin and end: elmer-spawn, the supervisor, which looks the user
 * up, elmer-account, the birth of processes, and what the jobs half does with all that. Some 5 ms of CPU time for each
 * job, and a user can have thousands of them, one after the other, that end as soon as they begin.
 *
 * So jobs that begin below one that has run for SHORT_MS on any of their CPUs pay it from a budget, and when that is
 * used up their OPEN is not answered: elmer sends it again after two seconds, and gives it up after thirty. The budget
 * is one of each CPU, because what is paid from it runs where the least is above it; so it also lets in before that all
 * who can wait at the same time, one for each level of each CPU. Where nobody is above nothing waits, and nothing is
 * charged: the tasks of an array that has its CPUs to itself, or shares them with others that are short.
 */
#include "config.h"

#include <limits.h>

#include "lib/base/clock.h"
#include "rsd/root/internal.h"

enum { FULL_US = 100000, PER_SECOND_US = 10000, DEBT_US = 50000, BIRTH_MAX_MS = 20 };

void starts_init(struct root *root)
{
    const int cpus = CPU_COUNT(&root->cpus) > 0 ? CPU_COUNT(&root->cpus) : 1;
    budget_init(&root->starts, (int64_t)FULL_US * cpus, (int64_t)PER_SECOND_US * cpus, (int64_t)DEBT_US * cpus,
                mono_ms(mono_now()));
}

static bool is_above(const struct root_job *job, unsigned level, const cpu_set_t *cpus, int64_t now)
{
    cpu_set_t both;
    if ((job->state != JOB_OPEN && job->state != JOB_TERMINATING) || !job->ranked || job->level >= level ||
        now - job->since_ms < SHORT_MS)
        return false;
    CPU_AND(&both, &job->cpus, cpus);
    return job->ncpus == 0 || CPU_COUNT(&both) > 0;
}

bool starts_below(const struct root *root, const struct wire_open *open, const cpu_set_t *cpus)
{
    const struct order_item *item = order_find(&root->order, open->job, (uint32_t)open->attempt);
    const int64_t now = mono_ms(mono_now());
    bool below = false;
    for (size_t i = 0; i < root->job_count && root->mode == ORDER_MODE_RT; i++)
        below |= is_above(root->jobs[i], item ? item->level : UINT_MAX, cpus, now);
    return below;
}

bool starts_paid(struct root *root)
{
    budget_charge(&root->starts, 0, mono_ms(mono_now()));
    return root->starts.left_ns > 0;
}

int64_t starts_clock(const struct root *root, const struct root_job *job)
{
    return job->below ? budget_own_ns() + budget_process_ns(root->spawn_pid) : 0;
}

static void charge(struct root *root, int64_t spent_ns)
{
    if (spent_ns > 0)
        budget_charge(&root->starts, spent_ns, mono_ms(mono_now()));
}

void starts_charge(struct root *root, const struct root_job *job, int64_t since_ns)
{
    if (job->below)
        charge(root, starts_clock(root, job) - since_ns);
}

void starts_charge_supervisor(struct root *root, struct root_job *job)
{
    const struct cgroup leaf = {.job_fd = job->group.sup_fd, .sup_fd = -1, .events_fd = -1};
    double seconds;
    int64_t peak, used_ns;
    if (!job->below)
        return;
    group_usage(&leaf, &seconds, &peak);
    used_ns = seconds < 0 ? budget_process_ns(job->supervisor_pid) : (int64_t)(seconds * 1e9);
    charge(root, used_ns - job->supervisor_ns);
    job->supervisor_ns = used_ns > job->supervisor_ns ? used_ns : job->supervisor_ns;
}

/* It has just come to exec. */
void starts_charge_birth(struct root *root, struct root_job *job, pid_t pid)
{
    const int64_t most_ns = BIRTH_MAX_MS * INT64_C(1000000);
    int64_t used_ns = job->below ? budget_process_ns(pid) : 0;
    job->born = true;
    charge(root, used_ns < most_ns ? used_ns : most_ns);
}

/* If no process has reached exec, all CPU time of the job was spent on starting. Charge at most BIRTH_MAX_MS for each
 * process, because only that ran above other jobs (sup/push.c). */
void starts_charge_failed(struct root *root, const struct root_job *job)
{
    const double most_ns = BIRTH_MAX_MS * 1e6 * (double)(job->process_count ? job->process_count : 1);
    const double used_ns = job->cpu_seconds * 1e9;
    if (job->below && !job->born)
        charge(root, (int64_t)(used_ns < most_ns ? used_ns : most_ns));
}
