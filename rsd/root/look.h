/* look.h - look at a group's processes in /proc, in a process of its own; the reason is in look.c. */
#ifndef RSD_LOOK_H
#define RSD_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* LOOK_RUNNING: how many threads want to run; also gives each session `nice` where it has another (kernels that share
 * by session). LOOK_HEEDS_TERM: how many processes do not ignore SIGTERM. */
enum look_at { LOOK_RUNNING, LOOK_HEEDS_TERM };
struct look {
    int fd; /* -1: none is under way */
    pid_t pid;
    int64_t lower_ms, again_ms; /* again_ms: when to ask for the end */
};
#define LOOK_INIT                                                                                                      \
    {                                                                                                                  \
        .fd = -1                                                                                                       \
    }

/* Counts up to `enough`. Does nothing while one is under way, or if it cannot be started. */
void look_begin(struct look *look, enum look_at at, int leaf_fd, long enough, int nice, int64_t now);
/* true: it has ended, with *count (-1: it could not see). To be called from time to time. */
bool look_end(struct look *look, long *count, int64_t now);
void look_fini(struct look *look);

#endif
