/* scope.h - the place for the groups of jobs. The only user of D-Bus: when rsd starts, and in a child when the scope's
 * keeper has gone. */
#ifndef RSD_SCOPE_H
#define RSD_SCOPE_H

#include <stdbool.h>
#include <stddef.h>

#include "rsd/config.h"

/* Find or make the directory below which each job gets its group:
 * cgroup_root of the configuration, if it is set;
 * with systemd: the delegated transient scope elmer-jobs.scope in elmer.slice, kept alive by a process of its own that
 * outlives rsd; else: the group elmer-jobs below the own one. Returns a descriptor and its path; -EBUSY: the scope is
 * being stopped. Controllers are not handed down yet. */
int scope_open(const struct rsd_config *config, char *path, size_t size, struct err *err);
/* Without systemd nobody else gives the first groups of the hierarchy their controllers. Returns those that it has not
 * given before; nothing happens where systemd runs, or the place is not one of the first groups. */
unsigned scope_lend(int root_fd, unsigned wanted);
void scope_lend_no_more(int root_fd, unsigned lent);
/* false: the place has gone, or its keeper has, which is how a scope that is being stopped begins to go. */
bool scope_holds(int root_fd);
/* Is that so because it is being stopped? It may take systemd long, and a service ordered behind it does not start
 * before. A child asks, by the bus that is open to everybody, because that takes as long as the other side likes.
 * Returns a descriptor on which the answer will be, one byte, 1: yes; 0: no, or there is no bus; its end alone: none
 * has come in time. The caller closes it. -ENOENT: there is nobody to ask, so: no; another -errno: it cannot be asked.
 */
int scope_ask(const struct rsd_config *config);

#endif
