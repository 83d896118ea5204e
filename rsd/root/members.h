/* members.h - do something to each process of a group, and to nobody else. */
#ifndef RSD_MEMBERS_H
#define RSD_MEMBERS_H

#include <stddef.h>
#include <sys/types.h>

/* proc_fd: the directory /proc/PID, which stays that of this process when its pid is taken by another. */
typedef void member_fn(int proc_fd, pid_t pid, void *data);

/* Call visit for each process in the leaf. gone: how many had left while we looked. 0 or -errno. */
int members_each(int leaf_fd, member_fn *visit, void *data, size_t *gone);

#endif
