/* push.c - a new process gets to exec although a higher job spins: as long as it has not, it is put back to ORDER_BIRTH
 * every few milliseconds, should an order have lowered it. But some of what it does until then is its user's choice:
 * the directory, the files, the PATH that is searched for the command, which may have tens of thousands of entries. So
 * what it may use above the jobs is counted: each has BIRTH_CPU_MS, of what all births of the job have together, for
 * its user may have one made after the other. Whoever has used that goes on at the rank of his job, or begins there,
 * and gets more from what all births of the job share, 1 % of a CPU. Without that it would never begin where somebody
 * above spins and programs are slow to start, as in an emulated machine, and elmer would give the job up. */
#include "config.h"

#include <assert.h>

#include "rsd/root/budget.h"
#include "rsd/root/sched.h"
#include "rsd/sup/sup.h"

/* A birth takes 0.3 to 1 ms. Together they have BIRTH_CPU_MS for BIRTHS_AT_ONCE of them, and for each CPU that the job
 * is started on, once. A check that comes late, such as by a supervisor that its user has lowered for up to a second
 * (guard.c), may overdraw the shared budget by SHARED_DEBT_US; later starts get so much less, and nothing of their own
 * while more than OWED_US is owed. */
enum { PUSHES_FAST = 100, PUSH_SLOW_MS = 200, BIRTH_CPU_MS = 10, BIRTHS_AT_ONCE = 5 };
enum { SHARED_FULL_US = 1000, SHARED_PER_SECOND_US = 10000, SHARED_DEBT_US = 1000000, OWED_US = 100000 };

static const int64_t each_ns = BIRTH_CPU_MS * INT64_C(1000000);

struct order_rank process_rank(const struct sup *sup, const struct process *process)
{
    return process->role == ROLE_COMMAND ? sup->ranks.task : sup->ranks.helper;
}

static int64_t own_left(const struct sup *sup, const struct process *process)
{
    const int64_t left_ns = each_ns - process->own_ns;
    return left_ns < sup->births_own_ns ? left_ns : sup->births_own_ns;
}

static void charge(struct sup *sup, struct process *process, int64_t now)
{
    const int64_t used_ns = process->reaped ? 0 : budget_process_ns(process->pid);
    const int64_t spent_ns = !process->lowered && used_ns > process->birth_ns ? used_ns - process->birth_ns : 0;
    const int64_t left_ns = own_left(sup, process), of_own_ns = spent_ns < left_ns ? spent_ns : left_ns;
    process->own_ns += of_own_ns;
    sup->births_own_ns -= of_own_ns;
    budget_charge(&sup->births, spent_ns - of_own_ns, now);
    process->birth_ns = used_ns;
}

/* Until it is looked at again: above the jobs, if something is left for that. */
static struct order_rank choose(struct sup *sup, struct process *process)
{
    const struct order_rank rank = process_rank(sup, process);
    const bool has_own = own_left(sup, process) > 0 && sup->births.left_ns > -OWED_US * INT64_C(1000);
    process->lowered = !has_own && sup->births.left_ns <= 0;
    if (process->lowered)
        return rank;
    return (struct order_rank){rank.policy == SCHED_RR ? SCHED_RR : SCHED_FIFO, ORDER_BIRTH};
}

struct order_rank process_birth(struct sup *sup, struct process *process, const cpu_set_t *cpus, int64_t now)
{
    cpu_set_t both;
    if (sup->births.per_second_ns == 0) {
        budget_init(&sup->births, SHARED_FULL_US, SHARED_PER_SECOND_US, SHARED_DEBT_US, now);
        sup->births_own_ns = BIRTHS_AT_ONCE * each_ns;
    }
    CPU_AND(&both, &sup->birth_cpus, cpus);
    sup->births_own_ns += (CPU_COUNT(cpus) - CPU_COUNT(&both)) * each_ns;
    CPU_OR(&sup->birth_cpus, &sup->birth_cpus, cpus);
    budget_charge(&sup->births, 0, now);
    process->push_ms = now + SUP_PUSH_MS;
    return choose(sup, process);
}

void process_push(struct sup *sup, struct process *process, int64_t now)
{
    struct order_rank rank;
    if (process->state != PROCESS_BORN || now < process->push_ms)
        return;
    assert(process->pid > 0); /* 0 would be this supervisor */
    process->pushes++;
    process->push_ms = now + (process->pushes < PUSHES_FAST ? SUP_PUSH_MS : PUSH_SLOW_MS);
    if (!sup->rt)
        return;
    charge(sup, process, now);
    rank = choose(sup, process);
    if (process->lowered && budget_when(&sup->births, 0) > process->push_ms)
        process->push_ms = budget_when(&sup->births, 0);
    /* Until it is known that its command has begun: what that forks meanwhile would keep this rank. */
    sched_rank(process->pid, rank, true);
}

void process_born(struct sup *sup, struct process *process, int64_t now)
{
    if (sup->rt)
        charge(sup, process, now);
}
