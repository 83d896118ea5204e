/* array_wait.c - jobs that wait for a task that waits in its array. They are on a list of the array, until the task is
 * a job and takes them over (array.c, make_task()), or has gone without having been one. */
#include "elmer/core/internal.h"

static bool task_waits(const struct job *array, uint64_t id)
{
    uint32_t ordinal = (uint32_t)(id - array->info.id) - 1;

    return ordinal < array->info.ntasks && core_next_task(&array->info, ordinal) == ordinal;
}

static bool has_ended(const struct job *array)
{
    return array->info.state == JOB_DONE || array->info.state == JOB_CANCELLED;
}

struct list *array_waiters(const struct core *core, uint64_t id, struct job **on)
{
    struct job *array;

    *on = index_find(core, id);
    if (*on)
        return has_ended(*on) ? NULL : &(*on)->waiters;
    array = index_array_of(core, id);
    return array && array->info.state != JOB_CANCELLED && task_waits(array, id) ? &array->array->waiters : NULL;
}

bool array_task_never(const struct core *core, uint64_t id)
{
    const struct job *array = index_array_of(core, id);
    uint32_t ordinal = array ? (uint32_t)(id - array->info.id) - 1 : 0;

    if (!array || array->info.state == JOB_CANCELLED)
        return array != NULL;
    return !task_waits(array, id) && (ordinal >= array->info.next_task ||
                                      core_range_next(array->info.gone, array->info.ngone, 0, ordinal) != ordinal);
}

void array_tell_waiters(struct core *core, struct job *array)
{
    LIST_FOR_EACH_SAFE (node, &array->array->waiters)
        if (has_ended(array) || !task_waits(array, LIST_ITEM(node, struct wait, on_job)->what->job))
            after_task_gone(core, LIST_ITEM(node, struct wait, on_job));
}
