/* guard.c - a supervisor keeps rank and CPUs, although its user may take them.
 *
 * The kernel lets him lower whoever has his effective uid and no capability that he has not. In a user namespace of his
 * own he has all, and whose namespace they are of is not looked at (cap_safe_nice()). A supervisor cannot do without
 * his uid: what brings him forth needs it as one of the three that setresuid(2) takes, and by the other two he could
 * send signals. So it is looked at with each sweep: some system calls, none of them in /proc, see sessions.c. As it was
 * born means as elmer-spawn is, of which no user has anything.
 */
#include "config.h"

#include "rsd/root/guard.h"

#include <errno.h>
#include <poll.h>

#include "rsd/root/sched.h"

static bool has_ended(int pidfd)
{
    return poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) != 0;
}

/* 1: something was changed. */
static int make_like(pid_t pid, int pidfd, struct order_rank rank, const cpu_set_t *cpus)
{
    cpu_set_t now, then;
    int result;
    if (has_ended(pidfd))
        return -ESRCH;
    result = sched_rank(pid, rank, false);
    if (result >= 0 && sched_getaffinity(pid, sizeof(now), &now) == 0 && !CPU_EQUAL(&now, cpus) &&
        sched_setaffinity(pid, sizeof(*cpus), cpus) == 0 && sched_getaffinity(pid, sizeof(then), &then) == 0 &&
        !CPU_EQUAL(&now, &then)) /* else its cpuset has no more than that */
        result = 1;
    if (result == 1 && has_ended(pidfd)) { /* and its number may be a stranger's, who has just been born */
        sched_rank(pid, (struct order_rank){SCHED_OTHER, 0}, false);
        return -ESRCH;
    }
    return result;
}

bool guard_supervisor(pid_t pid, int pidfd, pid_t spawn)
{
    struct order_rank rank;
    cpu_set_t cpus;
    bool reset;
    if (pid <= 0 || pidfd < 0 || spawn <= 0 || sched_of(spawn, &rank, &reset) < 0 ||
        sched_getaffinity(spawn, sizeof(cpus), &cpus) < 0)
        return false;
    return make_like(pid, pidfd, rank, &cpus) == 1;
}
