/* escapes_bed.h - a root half, a job in real time, and groups that stand for user.slice. */
#ifndef TESTS_ESCAPES_BED_H
#define TESTS_ESCAPES_BED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/root/bed.h"

enum { ESCAPES_SECONDS = 60 };
extern const struct level escapes_both[2];

int escapes_up(void **state);
int escapes_down(void **state);
void escapes_group(const char *name); /* made below what stands for user.slice; "": itself */
void escapes_put(const char *name, pid_t pid);
int escapes_helper(const char *what); /* the programs that the jobs run: this binary, as DIR/helper */
bool escapes_is_ranked(pid_t pid, int policy, int priority);
bool escapes_anywhere(pid_t pid); /* it may run on all CPUs */
/* Job 1 above job 2, which nobody is in. */
void escapes_begin(const char *what, pid_t *pids, size_t count);

#endif
