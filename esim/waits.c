#include "config.h"

#include "esim/waits.h"

#include <stdlib.h>

#include "lib/memory/mem.h"

struct tasks { /* of an array: their numbers, in the order of their submission */
    uint64_t *numbers;
    size_t count, capacity;
};

void waits_add(struct waits *waits, const struct sim_job *job)
{
    struct tasks *tasks = map_get(&waits->arrays, job->array);

    map_put(&waits->jobs, job->number, (struct sim_job *)job);
    if (job->array == 0)
        return;
    if (!tasks) {
        tasks = mem_zalloc(sizeof(*tasks));
        map_put(&waits->arrays, job->array, tasks);
    }
    tasks->numbers = mem_grow(tasks->numbers, &tasks->capacity, tasks->count + 1, sizeof(*tasks->numbers));
    tasks->numbers[tasks->count++] = job->number;
}

void waits_remove(struct waits *waits, const struct sim_job *job)
{
    map_remove(&waits->jobs, job->number);
}

static void add(struct core_after *items, int *count, const struct sim_job *on, enum after_kind kind)
{
    if (on && *count < AFTER_MAX)
        items[(*count)++] = (struct core_after){.job = on->id, .kind = kind == AFTER_START ? AFTER_START : AFTER_ANY};
}

static bool has_started(const struct waits *waits, const struct tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct sim_job *job = map_get(&waits->jobs, tasks->numbers[i]);
        if (!job || job->start_ms >= 0)
            return true;
    }
    return false;
}

/* The first task that starts, or all of them: of very many the last ones, which mostly end last. */
static void add_array(const struct waits *waits, const struct tasks *tasks, enum after_kind kind,
                      struct core_after *items, int *count)
{
    if (kind == AFTER_START && !has_started(waits, tasks))
        add(items, count, map_get(&waits->jobs, tasks->numbers[0]), kind);
    for (size_t i = tasks->count; kind != AFTER_START && i-- > 0;)
        add(items, count, map_get(&waits->jobs, tasks->numbers[i]), kind);
}

struct core_after *waits_of(const struct waits *waits, const struct sim_job *job, int *count)
{
    struct core_after *items = job->nafter > 0 ? mem_array(AFTER_MAX, sizeof(*items)) : NULL;

    *count = 0;
    for (int i = 0; i < job->nafter; i++) {
        const struct after *after = &job->after[i];
        const struct tasks *tasks = map_get(&waits->arrays, after->job);
        if (tasks)
            add_array(waits, tasks, after->kind, items, count);
        else
            add(items, count, map_get(&waits->jobs, after->job), after->kind);
    }
    return items;
}

void waits_fini(struct waits *waits)
{
    struct tasks *tasks;
    size_t cursor = 0;

    while ((tasks = map_next(&waits->arrays, &cursor))) {
        free(tasks->numbers);
        free(tasks);
    }
    map_fini(&waits->arrays);
    map_fini(&waits->jobs);
}
