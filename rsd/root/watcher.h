/* watcher.h - where elmer-escapes is to look. */
#ifndef RSD_WATCHER_H
#define RSD_WATCHER_H

#include <stdbool.h>
#include <stddef.h>

/* Where users' own groups are, beside the jobs' scope or below the mount of cgroup2. false: nowhere. */
bool watcher_find_users(const char *groups, char *users, size_t size);

#endif
