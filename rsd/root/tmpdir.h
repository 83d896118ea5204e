/* tmpdir.h - the temporary directory of a job: RUNDIR/jobs/JOB.ATTEMPT, 0700, of the user. */
#ifndef RSD_TMPDIR_H
#define RSD_TMPDIR_H

#include <sys/types.h>

#include "lib/base/err.h"

/* Make it for the user below a directory that only root may write. -EEXIST: it is there. */
int tmpdir_make(int parent_fd, const char *name, uid_t uid, gid_t gid, struct err *err);
/* The same for a directory that holds only a few files, at once: 0 if it is gone; -ENOTEMPTY: leave the rest to
 * tmpdir_remove(). Never waits for a file system that a user has mounted. */
int tmpdir_sweep(int parent_fd, const char *name);
/* Remove name in parent_fd with everything below, never following a link nor leaving the file system. May take long:
 * run it in a process of its own, which goes to SCHED_OTHER after `patience` entries. 0 also if it is not there. */
int tmpdir_remove(int parent_fd, const char *name, unsigned patience);

#endif
