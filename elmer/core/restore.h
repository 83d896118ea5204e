/* restore.h - a restart: the engine feeds what the store holds before the first event. */
#ifndef ELMER_CORE_RESTORE_H
#define ELMER_CORE_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct core_host_row;
struct core_job;

void core_set_next(struct core *core, uint64_t next_job, uint64_t next_allocation);
/* Put back what the store holds of a host; before its first event and its first job. One that was up is awaited: it
 * counts as supply until EVENT_HOST_UP or EVENT_HOST_DOWN, and until no host is awaited, or gather_ms have passed since
 * now_ms or the last EVENT_GATHER, nothing is allocated: else who comes later and asks for less would pass while hosts
 * come back one by one. Returns 0 or -EINVAL. */
int core_restore_host(struct core *core, int host, const struct core_host_row *saved, int64_t now_ms);
/* The same by its name. One that is known is configured, and a host of the cluster for that reason, whatever its row
 * says (which is written again if it had joined, so that it is none when it is taken out); one that is not and had
 * joined is added, where hosts may join. Returns its index, or -EINVAL, or -ENOENT: it is no host of the cluster, and
 * its row stays as it is for the time when it is one again. */
int core_restore_host_row(struct core *core, const char *name, const struct core_host_row *saved, int64_t now_ms);
void core_restore_retired(struct core *core, int host); /* one just added is none of the cluster, but may have jobs */
/* A saved job has this host in its cluster; after all rows of hosts, before the first job. Returns whether it was added
 * because it is not known: as a retired one, which gets no new jobs and is gone when the last one has ended. drained:
 * as its row says. A cube has no place for one more: there the job comes back without it. */
bool core_restore_past_host(struct core *core, const char *name, bool drained);
/* Put back a queued, held, started, starting, running or ending job, after those that it waits for, as far as they have
 * not ended; everything is copied, text may be NULL. Leases count from now_ms; timers are armed by the first event, so
 * send EVENT_TICK when all are back. Returns 0 or one of those below, or -EEXIST, -EINVAL.
 *
 * hosts: those that it may use, in any order, -1 is one that is not there any more; if none of them is, the job waits
 * for one.
 *
 * Those with a cluster (processors, attempt, allocation, exits as core_job() said) come in the order of allocation;
 * their level follows from it. Their time counts up to level_until_ms, and from then on at the level that they had; if
 * that is later than now_ms, nobody knows since when. Hosts that hold one are awaited: nothing is decided about them
 * before EVENT_HOST_UP or EVENT_HOST_DOWN, no start is late until then, and starting jobs launch (again) when all hosts
 * have opened (again), one that was launched only if they still have it.
 *
 * A host of its cluster that is not in the configuration any more is -1: then the job is CORE_PUT_BACK into the queue
 * if it was submitted so, and if not it is CORE_LOST: over, and the core keeps nothing of it, but the array of which it
 * was a task counts it, also one that comes later. */
/* It may still wait for others; after of any other one is not looked at. */
bool core_saved_waits(const struct core_job *saved);
enum { CORE_PUT_BACK = 1, CORE_LOST = 2 };
int core_restore_job(struct core *core, const struct core_job *saved, int64_t now_ms);
struct core_job core_lost_job(const struct core_job *saved); /* as it is to be written when it is CORE_LOST */

#endif
