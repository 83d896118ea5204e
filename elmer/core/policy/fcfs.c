/* fcfs.c - first come, first served. Ids grow in the order in which jobs are accepted, and a job's place is its id, or
 * that of another one of the same user with which it has changed; a job that goes back into the queue keeps it. */
#include "elmer/core/policy/policy.h"

static bool before(const struct core_job *a, const struct core_job *b)
{
    return a->place != b->place ? a->place < b->place : a->id < b->id;
}

const struct policy policy_fcfs = {.name = "fcfs", .before = before};
