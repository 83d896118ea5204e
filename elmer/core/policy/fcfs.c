/* fcfs.c - first come, first served. Ids grow in the order in which jobs are accepted, and a job that goes back into
 * the queue keeps its id, so its place. */
#include "elmer/core/policy/policy.h"

static bool before(const struct core_job *a, const struct core_job *b)
{
    return a->id < b->id;
}

const struct policy policy_fcfs = {.name = "fcfs", .before = before};
