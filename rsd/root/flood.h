/* flood.h - jobs that flood their processors with threads that want to run; the reasons are in flood.c. */
#ifndef RSD_FLOOD_H
#define RSD_FLOOD_H

#include "rsd/root/internal.h"

/* With each sweep, and when flood_next says; its sessions get that nice value, or a flood's. Returns whether
 * job->flood.on has changed. */
bool flood_look(struct job *job, int session_nice, int64_t now);
int64_t flood_next(const struct job *job); /* INT64_MAX: with the next sweep */
/* After the looks at all jobs. Returns whether job->flood.shadowed has changed. */
bool flood_shadow(const struct root *root, struct job *job);
/* Somebody has come below it: it is in real time from now on, and looked at anew. */
void flood_begin_above(struct job *job, int64_t now);
/* Above it on one of its processors is a job that floods. */
bool flood_above(const struct root *root, const struct job *job);

#endif
