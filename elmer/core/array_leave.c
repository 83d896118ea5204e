/* array_leave.c - places for those that share the one of an array which leaves the queue.
 *
 * Behind an array that waits there is one place for all that its user has moved there (top.c). When it has left, each
 * of them gets a place of its own, so that they can change these. The places of the tasks are nobody else's, and as
 * many tasks have gone ahead as jobs are behind, so there are enough. What has one that is needed, also a task that has
 * started and may go back into the queue, moves down. The order stays as it is, and with it where the search stands.
 */
#include "elmer/core/internal.h"

#include <stdlib.h>

#define QUEUED(place) CONTAINER_OF(place, struct job, in_queue)
#define TASK(node)    LIST_ITEM(node, struct job, in_array)

struct list_of {
    struct job **jobs;
    size_t n, room;
};

static void add(struct list_of *list, struct job *job)
{
    list->jobs = mem_grow(list->jobs, &list->room, list->n + 1, sizeof(struct job *));
    list->jobs[list->n++] = job;
}

static int by_place(const void *a, const void *b)
{
    const struct job *const *x = a, *const *y = b;

    return ((*x)->info.place > (*y)->info.place) - ((*x)->info.place < (*y)->info.place);
}

static struct list_of started_tasks(const struct job *array)
{
    struct list_of tasks = {NULL, 0, 0};

    LIST_FOR_EACH (node, &array->array->tasks)
        if (!TASK(node)->in_queue.in)
            add(&tasks, TASK(node));
    if (tasks.n > 1)
        qsort(tasks.jobs, tasks.n, sizeof(struct job *), by_place);
    return tasks;
}

/* The last one of those in the queue until there and of the started ones, which is taken away. */
static struct job *take_last(struct place **until, struct list_of *started)
{
    struct job *queued = *until ? QUEUED(*until) : NULL;

    if (started->n > 0 && (!queued || started->jobs[started->n - 1]->info.place > queued->info.place))
        return started->jobs[--started->n];
    if (queued)
        *until = order_previous(*until);
    return queued;
}

static void share_out(struct core *core, struct job *array, const struct list_of *sharers)
{
    struct list_of moved = {NULL, 0, 0}, started = started_tasks(array);
    struct place *until = order_previous(&array->in_queue);
    const uint64_t last = array->info.place;
    struct job *job;

    for (size_t i = sharers->n; i > 0; i--)
        add(&moved, sharers->jobs[i - 1]);
    while ((job = take_last(&until, &started)) && job->user == array->user && job->info.place <= last &&
           job->info.place + moved.n > last)
        add(&moved, job);
    /* else, which a policy that looks at more than places could bring about, they stay as they are */
    if ((!job || job->info.place + moved.n <= last) && moved.n <= array->info.ntasks + 1)
        for (size_t i = 0; i < moved.n; i++)
            if (moved.jobs[i]->info.place != last - i) {
                moved.jobs[i]->info.place = last - i;
                emit_owe_persist(core, moved.jobs[i]);
            }
    free(moved.jobs);
    free(started.jobs);
}

void array_leave(struct core *core, struct job *array)
{
    struct list_of sharers = {NULL, 0, 0};

    if (!array->in_queue.in)
        return;
    for (struct place *at = order_next(&array->in_queue); at && core_at_own_place(&array->info); at = order_next(at)) {
        if (QUEUED(at)->info.place != array->info.place)
            break;
        add(&sharers, QUEUED(at));
    }
    if (sharers.n > 1)
        share_out(core, array, &sharers);
    free(sharers.jobs);
    queue_remove(core, array);
}
