/* fcfs.c - first come, first served. Ids grow in the order in which jobs are accepted, and a job's place is its id, or
 * that of another one of the same user with which it has changed; a job that goes back into the queue keeps it. Those
 * that share a place are of one user: an array at its own place, and behind it tasks and jobs that he has moved there;
 * or an array that was moved as a whole, and before it its tasks, and jobs for which these have gone ahead. */
#include "elmer/core/policy/policy.h"

static int rank(const struct core_job *job)
{
    return core_at_own_place(job) ? 0 : job->array != 0 ? 1 : job->ntasks == 0 ? 2 : 3;
}

static bool before(const struct core_job *a, const struct core_job *b)
{
    if (a->place != b->place)
        return a->place < b->place;
    if (rank(a) != rank(b))
        return rank(a) < rank(b);
    return a->id < b->id;
}

const struct policy policy_fcfs = {.before = before};
