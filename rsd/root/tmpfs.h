/* tmpfs.h - the jobs' directories have a file system of their own, so that a job that fills it stops nobody else. */
#ifndef RSD_TMPFS_H
#define RSD_TMPFS_H

#include <stdint.h>

#include "lib/base/err.h"

/* Mount it on path, an empty directory, with room for so many bytes, and for a file in each 16 KiB of them. 1: it is
 * there now: ours, with that size; or something that an administrator has mounted, which is left as it is. 0: nothing
 * was done, because something is in path. Or -errno. */
int tmpfs_mount(const char *path, uint64_t bytes, struct err *err);
/* The part of this host's memory in bytes. */
uint64_t tmpfs_part_of_memory(unsigned percent);

#endif
