/* tmpdir.h - the temporary directory of a job: RUNDIR/jobs/JOB.ATTEMPT, 0700, of the user. */
#ifndef RSD_TMPDIR_H
#define RSD_TMPDIR_H

#include <sys/types.h>

#include "libelmer/base/err.h"

/* Make it for the user below a directory that only root may write. -EEXIST: it is there. */
int tmpdir_make(const char *path, uid_t uid, gid_t gid, struct err *err);
/* Remove name in parent_fd with everything below, never following a link nor leaving the file system. May take long:
 * run it in a process of its own. 0 also if it is not there. */
int tmpdir_remove(int parent_fd, const char *name);

#endif
