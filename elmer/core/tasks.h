/* tasks.h - arrays: many jobs that are one until they start, see array.c. Tasks are named by their ordinals, from 0. */
#ifndef ELMER_CORE_TASKS_H
#define ELMER_CORE_TASKS_H

#include <stdbool.h>
#include <stdint.h>

/* Of one array; tasks that one event takes out of their array, each a row to write; ranges of an array that have gone.
 */
enum { CORE_MAX_TASKS = 100000, CORE_MAX_SPLIT = 1000, CORE_MAX_GONE = 1000 };

/* from..to-1 */
struct core_range {
    uint32_t from, to;
};

static inline bool core_range_has(const struct core_range *ranges, int count, uint32_t ordinal)
{
    for (int i = 0; i < count; i++)
        if (ordinal >= ranges[i].from && ordinal < ranges[i].to)
            return true;
    return false;
}

/* Of an array whose tasks before `next` wait in it no more, nor those of the ranges: the first that waits from `from`
 * on, or a number that no task has. */
static inline uint32_t core_range_next(const struct core_range *gone, int ngone, uint32_t next, uint32_t from)
{
    if (from < next)
        from = next;
    for (int i = 0; i < ngone && gone[i].from <= from; i++)
        if (from < gone[i].to)
            from = gone[i].to;
    return from;
}

/* How many of the range wait in it. */
static inline uint32_t core_range_waiting(const struct core_range *gone, int ngone, uint32_t next,
                                          struct core_range range)
{
    uint32_t from = range.from > next ? range.from : next, count = range.to > from ? range.to - from : 0;

    for (int i = 0; count > 0 && i < ngone && gone[i].from < range.to; i++)
        if (gone[i].to > from)
            count -= (gone[i].to < range.to ? gone[i].to : range.to) - (gone[i].from > from ? gone[i].from : from);
    return count;
}

struct core_job;
/* Tasks that wait in an array; and one of them, that with the lowest ordinal from `from` on, or ntasks. */
uint32_t core_tasks_waiting(const struct core_job *array);
uint32_t core_next_task(const struct core_job *array, uint32_t from);

/* Tells of each array how many tasks that wait in it EVENT_TOP of this job, or of these tasks of it (NULL: all), would
 * make jobs of their own. */
struct core;
void core_top_splits(const struct core *core, uint64_t id, const struct core_range *ranges, int count,
                     void (*each)(void *data, uint64_t array, uint64_t tasks), void *data);

/* The array whose task, waiting or gone, has or would have this id; NULL: it is no such id, or nothing is known of it.
 */
const struct core_job *core_array_of(const struct core *core, uint64_t id);

#endif
