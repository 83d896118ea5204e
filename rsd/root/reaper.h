/* reaper.h - a thread in SCHED_OTHER that reaps this process's children, for those that must not: see sessions.c. */
#ifndef RSD_REAPER_H
#define RSD_REAPER_H

#include <sys/types.h>

struct reaped {
    pid_t pid;
    int status; /* as of waitpid(2) */
};
/* Start it, once. Returns a descriptor that is readable when somebody has been reaped: whole struct reaped, never
 * blocking; or -errno. */
int reaper_start(void);
/* Before the process ends: a process has ended when all of its threads have, and this one would wait for its turn
 * behind the jobs. It gets our class, unless the kernel may be keeping it just now. */
void reaper_end(void);
/* For a child whose status must not wait for the thread, which tells it again: 1 and *status if it has ended and is not
 * reaped yet, else 0. */
int reaper_peek(pid_t pid, int *status);
/* For a child: the signal that has stopped it, 0: it goes on. */
int reaper_peek_stopped(pid_t pid);

#endif
