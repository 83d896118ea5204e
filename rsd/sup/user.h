/* user.h - the user of a job on this host. */
#ifndef RSD_SUP_USER_H
#define RSD_SUP_USER_H

#include <sys/types.h>

#include "lib/base/err.h"

/* Looked up once, by elmer-spawn; what it has executed knows him without his groups. */
struct user {
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    int group_count;
    char *name, *home, *shell;
};
int user_lookup(struct user *user, const char *name, uid_t uid, struct err *err);

/* Beside the channel and the listener, a supervisor is started with cgroup.kill of the job's leaf open. And in its
 * environment is who the user is: his uid here, USER, HOME and SHELL. */
enum { SUP_FD_KILL = 5 };
#define SUP_UID_VARIABLE   "ELMER_JOB_UID"
#define SUP_JOBS_VARIABLE  "ELMER_JOBS_UID"    /* rsd's uid */
#define SUP_LIMIT_VARIABLE "ELMER_LIMIT_NPROC" /* RLIMIT_NPROC of its processes, soft and hard */

#endif
