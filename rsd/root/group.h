/* group.h - cgroup2 groups: GROUPROOT/JOB.ATTEMPT with the leaves `sup` (the supervisor) and `job` (everything else).
 */
#ifndef RSD_GROUP_H
#define RSD_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/base/locate.h"

struct cgroup {
    int job_fd; /* directory of the leaf job; -1: no group */
    int sup_fd;
    int events_fd; /* job/cgroup.events: POLLPRI when it becomes empty */
};
#define CGROUP_INIT                                                                                                    \
    {                                                                                                                  \
        -1, -1, -1                                                                                                     \
    }

/* A small file of the group. */
int group_write(int dir, const char *name, const char *text);
int group_read(int dir, const char *name, char *text, size_t size); /* the start of it, as a string */

/* Open GROUPROOT, made if missing. Returns a descriptor. */
int group_open_root(const char *path, struct err *err);
/* Make (or, if make is false, open) the group `name` and its leaves. On failure nothing is left behind. */
int group_open(int root_fd, const char *name, bool make, struct cgroup *group, struct err *err);
void group_close(struct cgroup *group);
/* Remove leaves and group. -EBUSY: a process is in it. A missing group is no error. */
int group_remove(int root_fd, const char *name);

/* fork(2) into the group. Returns 0 in the child, the pid in the parent with *pidfd (close-on-exec), or -errno. */
pid_t group_fork(int leaf_fd, int *pidfd);
struct group_pids {
    pid_t *items;
    size_t count, capacity;
};
/* The processes in the leaf now. */
int group_pids(int leaf_fd, struct group_pids *pids);
int group_threads(int leaf_fd, struct group_pids *tids);
/* The same in pieces of a hundred or so, because a large group takes milliseconds. Members that come meanwhile are
 * seen, too. */
struct group_reader {
    int fd;     /* -1: nothing is open */
    pid_t part; /* of a number */
};
int group_reader_open(struct group_reader *reader, int leaf_fd, bool threads);
/* Appends to ids. 1: there may be more; 0: that was all; -errno. */
int group_reader_next(struct group_reader *reader, struct group_pids *ids);
void group_reader_close(struct group_reader *reader);
bool group_has_more_than(int leaf_fd, size_t few); /* processes, without reading all of them */
int group_pids_add(struct group_pids *pids, pid_t pid);
void group_pids_sort(struct group_pids *pids);
bool group_pids_have(const struct group_pids *pids, pid_t pid); /* sorted */
void group_pids_fini(struct group_pids *pids);
/* Both read events_fd, and what it had to tell by POLLPRI is told then. Both false when the group is gone, or cannot be
 * read. */
bool group_populated(const struct cgroup *group);
bool group_is_empty(const struct cgroup *group);
/* cgroup.kill; kernels before 5.14: SIGKILL to each process in it now, so repeat until it is empty. */
int group_kill(const struct cgroup *group);
int group_freeze(const struct cgroup *group, bool frozen);
bool group_frozen(const struct cgroup *group); /* every thread has stopped */
/* Send signal to each process that is still in the leaf when it is sent. */
int group_signal(const struct cgroup *group, int signal);
/* What all processes of the job together may use from now on, none of it in swap space; when they need more the kernel
 * ends all of them. -errno: it cannot be, as without the controller. */
int group_limit_memory(const struct cgroup *group, uint64_t bytes);
/* The kernel has done so: what they used then. 0: it has not. */
uint64_t group_memory_struck(const struct cgroup *group);
/* Seconds of CPU and the peak of memory; -1 where not known. */
void group_usage(const struct cgroup *group, double *cpu_seconds, int64_t *memory_peak_bytes);
/* What the job as a whole (its supervisor too) weighs against other jobs, 1 to 10000, 100 being everybody's. -ENOENT:
 * there is no controller cpu. */
int group_weigh(const struct cgroup *group, unsigned weight);
int group_weigh_dir(int dir, unsigned weight);
/* Keep the leaf's processes to these CPUs, where the controller cpuset is there (else nothing happens). */
void group_confine(const struct cgroup *group, const uint64_t *cpus, size_t count);

#endif
