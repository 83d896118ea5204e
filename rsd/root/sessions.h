/* sessions.h - mode idle where the kernel shares by session; the reason is in sessions.c. */
#ifndef RSD_SESSIONS_H
#define RSD_SESSIONS_H

#include <stdbool.h>
#include <sys/types.h>

/* The kernel shares by session first, then among a session's threads; not below a group with the controller cpu. */
bool sessions_share(int leaf_fd);
/* Give each session of the leaf that nice value: for a process of its own. 0 or -errno. */
int sessions_weigh(int leaf_fd, int nice);

#endif
