/* fcfs.c - first come, first served. Ids grow in the order in which jobs are accepted, and a job's place is its id, or
 * that of another one of the same user with which it has changed; a job that goes back into the queue keeps it. Those
 * that share a place are of one user: an array and jobs that he has moved behind it; or, where an elmer of before has
 * moved an array, tasks of it, which are before it. */
#include "elmer/core/policy/policy.h"

static bool at_own_place(const struct core_job *job)
{
    return job->ntasks > 0 && job->place == job->id + job->ntasks;
}

static bool before(const struct core_job *a, const struct core_job *b)
{
    uint64_t of_a = a->array != 0 ? a->array : a->id, of_b = b->array != 0 ? b->array : b->id;

    if (a->place != b->place)
        return a->place < b->place;
    if (at_own_place(a) != at_own_place(b))
        return at_own_place(a);
    if (of_a != of_b)
        return of_a < of_b;
    if ((a->array != 0) != (b->array != 0))
        return a->array != 0;
    return a->id < b->id;
}

const struct policy policy_fcfs = {.before = before};
