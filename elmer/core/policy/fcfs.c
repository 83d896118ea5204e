/* fcfs.c - first come, first served. Ids grow in the order in which jobs are accepted, and a job's place is its id, or
 * that of another one of the same user with which it has changed; a job that goes back into the queue keeps it. Those
 * that share a place are an array and tasks of it, which are before it, or others of one user. */
#include "elmer/core/policy/policy.h"

static bool before(const struct core_job *a, const struct core_job *b)
{
    uint64_t of_a = a->array != 0 ? a->array : a->id, of_b = b->array != 0 ? b->array : b->id;

    if (a->place != b->place)
        return a->place < b->place;
    if (of_a != of_b)
        return of_a < of_b;
    if ((a->array != 0) != (b->array != 0))
        return a->array != 0;
    return a->id < b->id;
}

const struct policy policy_fcfs = {.before = before};
