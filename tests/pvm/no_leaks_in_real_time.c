/* no_leaks_in_real_time.c - for the agent and the examples, built with sanitizers: LeakSanitizer stops a program by a
 * thread of its own, for which the program spins, at its end. In real time above it that thread gets nothing of a busy
 * CPU: the agent of a first job took 2 s to end. So leaks are looked for where nobody ranks them, in the unit tests. */
#include "config.h"

#include <sched.h>

int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

    return policy == SCHED_FIFO || policy == SCHED_RR;
}
