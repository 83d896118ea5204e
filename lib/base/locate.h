/* locate.h - where cgroup2 is mounted, and which group a process is in. */
#ifndef LIB_BASE_LOCATE_H
#define LIB_BASE_LOCATE_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/base/err.h"

/* Where groups can be made, from PROC/self/mountinfo and PROC/self/cgroup: the mount of cgroup2 joined with group (as
 * in a `0::` line or a unit's ControlGroup; NULL: the own one). */
int group_locate(const char *proc, const char *group, char *path, size_t size, struct err *err);
/* The group of a process, 0: the own one, as in its `0::` line. */
int group_of(const char *proc, pid_t pid, char *group, size_t size);

#endif
