/* guard.h - a supervisor keeps its rank and its CPUs. */
#ifndef RSD_GUARD_H
#define RSD_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

/* Give the supervisor, while pidfd has not ended, rank and CPUs of elmer-spawn. Whether it had others. */
bool guard_supervisor(pid_t pid, int pidfd, pid_t spawn);

#endif
