/* waits.h - which of the jobs that are there another one waits for: by the numbers of its workload, in which an array
 * is all of its tasks. */
#ifndef ESIM_WAITS_H
#define ESIM_WAITS_H

#include "elmer/core/core.h"
#include "esim/job.h"
#include "lib/memory/map.h"

struct waits { /* zero-initialised is empty */
    struct map jobs, arrays;
};

/* The job has been submitted, and stays where it is until it is removed. Of an array: all of its tasks, id is the
 * core's of the array itself. */
void waits_add(struct waits *waits, const struct sim_job *job);
void waits_add_array(struct waits *waits, const struct sim_job *first, uint64_t id);
/* The core's id of the array, if this was the last of its tasks; else 0. */
uint64_t waits_remove(struct waits *waits, const struct sim_job *job);
/* Those that it waits for and that are still there: the others have ended, or are not part of this. How they end is not
 * simulated, and it was as the job needs it, since it has run. [*count], at most AFTER_MAX; the caller's. */
struct core_after *waits_of(const struct waits *waits, const struct sim_job *job, int *count);
void waits_fini(struct waits *waits);

#endif
