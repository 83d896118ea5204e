/* scope.h - the place for the groups of jobs. The only user of D-Bus, and only when rsd starts or the scope has gone.
 */
#ifndef RSD_SCOPE_H
#define RSD_SCOPE_H

#include <stddef.h>

#include "rsd/config.h"

/* Find or make the directory below which each job gets its group:
 * cgroup_root of the configuration, if it is set;
 * with systemd: the delegated transient scope elmer-jobs.scope in elmer.slice, kept alive by a process of its own that
 * outlives rsd; else: the group elmer-jobs below the own one. Returns a descriptor and its path. */
int scope_open(const struct rsd_config *config, char *path, size_t size, struct err *err);

#endif
