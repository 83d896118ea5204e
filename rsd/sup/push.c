/* push.c - a new process gets to exec although a higher job spins: as long as it has not, it is put back to ORDER_BIRTH
 * every few milliseconds, should an order have lowered it. But some of what it does until then is its user's choice:
 * the directory, the files, the PATH that is searched for the command, which may have tens of thousands of entries. So
 * what it may use above the jobs is counted: each has BIRTH_CPU_MS, and whoever has used that goes on at the rank of
 * his job, and gets more from what all births of the job share, 1 % of a CPU. Without that it would never begin where
 * somebody above spins and programs are slow to start, as in an emulated machine, and elmer would give the job up. */
#include "config.h"

#include <assert.h>

#include "rsd/root/budget.h"
#include "rsd/root/sched.h"
#include "rsd/sup/sup.h"

/* A birth takes 0.3 to 1 ms. A check that comes late may overdraw the budget by SHARED_DEBT_US; later starts get so
 * much less. */
enum { PUSHES_FAST = 100, PUSH_SLOW_MS = 200, BIRTH_CPU_MS = 10 };
enum { SHARED_FULL_US = 1000, SHARED_PER_SECOND_US = 10000, SHARED_DEBT_US = 500000 };

struct order_rank process_rank(const struct sup *sup, const struct process *process)
{
    return process->role == ROLE_COMMAND ? sup->ranks.task : sup->ranks.helper;
}

/* May it run above the jobs until it is looked at again? */
static bool has_left(struct sup *sup, struct process *process, int64_t now)
{
    const int64_t own_ns = BIRTH_CPU_MS * INT64_C(1000000), used_ns = budget_process_ns(process->pid);
    const int64_t from_ns = process->birth_ns > own_ns ? process->birth_ns : own_ns;
    if (sup->births.per_second_ns == 0)
        budget_init(&sup->births, SHARED_FULL_US, SHARED_PER_SECOND_US, SHARED_DEBT_US, now);
    budget_charge(&sup->births, !process->lowered && used_ns > from_ns ? used_ns - from_ns : 0, now);
    process->birth_ns = used_ns;
    return used_ns < own_ns || sup->births.left_ns > 0;
}

void process_push(struct sup *sup, struct process *process, int64_t now)
{
    struct order_rank rank = process_rank(sup, process);
    if (process->state != PROCESS_BORN || now < process->push_ms)
        return;
    assert(process->pid > 0); /* 0 would be this supervisor */
    process->pushes++;
    process->push_ms = now + (process->pushes < PUSHES_FAST ? SUP_PUSH_MS : PUSH_SLOW_MS);
    if (!sup->rt)
        return;
    process->lowered = !has_left(sup, process, now);
    if (!process->lowered)
        rank = (struct order_rank){rank.policy == SCHED_RR ? SCHED_RR : SCHED_FIFO, ORDER_BIRTH};
    else if (budget_when(&sup->births, 0) > process->push_ms)
        process->push_ms = budget_when(&sup->births, 0);
    sched_rank(process->pid, rank, false);
}
