/* push.c - a new process gets to exec although a higher job spins: as long as it has not, it is put back to ORDER_BIRTH
 * every few milliseconds, should an order have lowered it. But some of what it does until then is its user's choice:
 * the directory, the files, the PATH that is searched for the command, which may have tens of thousands of entries. So
 * what it may use above the jobs is counted, and whoever has used that goes on at the rank of his job. */
#include "config.h"

#include <assert.h>

#include "rsd/root/budget.h"
#include "rsd/root/sched.h"
#include "rsd/sup/sup.h"

/* A birth takes 0.3 to 1 ms. */
enum { PUSHES_FAST = 100, PUSH_SLOW_MS = 200, BIRTH_CPU_MS = 10 };

struct order_rank process_rank(const struct sup *sup, const struct process *process)
{
    return process->role == ROLE_COMMAND ? sup->ranks.task : sup->ranks.helper;
}

void process_push(const struct sup *sup, struct process *process, int64_t now)
{
    struct order_rank rank = process_rank(sup, process);
    if (process->state != PROCESS_BORN || now < process->push_ms)
        return;
    assert(process->pid > 0); /* 0 would be this supervisor */
    process->pushes++;
    process->push_ms = now + (process->pushes < PUSHES_FAST ? SUP_PUSH_MS : PUSH_SLOW_MS);
    if (!sup->rt)
        return;
    if (budget_process_ns(process->pid) >= BIRTH_CPU_MS * INT64_C(1000000))
        process->push_ms = INT64_MAX;
    else
        rank = (struct order_rank){rank.policy == SCHED_RR ? SCHED_RR : SCHED_FIFO, ORDER_BIRTH};
    sched_rank(process->pid, rank, false);
}
