/* watcher.h - start the program elmer-escapes. */
#ifndef RSD_WATCHER_H
#define RSD_WATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "rsd/config.h"

/* It looks below users, a directory of groups, for what has left the jobs in groups, until we end. Its pid or -errno;
 * what fails in it is in the log. */
pid_t watcher_start(const struct rsd_config *config, const char *users, const char *groups);
/* Where users' own groups are, beside the jobs' scope or below the mount of cgroup2. false: nowhere. */
bool watcher_find_users(const char *groups, char *users, size_t size);

#endif
