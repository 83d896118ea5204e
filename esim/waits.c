#include "config.h"

#include "esim/waits.h"

#include <stdlib.h>

#include "lib/memory/mem.h"

struct array {
    uint64_t id;    /* the core's */
    uint32_t tasks; /* that have not ended */
};

void waits_add(struct waits *waits, const struct sim_job *job)
{
    map_put(&waits->jobs, job->number, (struct sim_job *)job);
}

void waits_add_array(struct waits *waits, const struct sim_job *first, uint64_t id)
{
    struct array *array = mem_zalloc(sizeof(*array));

    *array = (struct array){.id = id, .tasks = first->ntasks};
    map_put(&waits->arrays, first->array, array);
}

uint64_t waits_remove(struct waits *waits, const struct sim_job *job)
{
    struct array *array = job->array != 0 ? map_get(&waits->arrays, job->array) : NULL;
    uint64_t id;

    map_remove(&waits->jobs, job->number);
    if (!array || --array->tasks > 0)
        return 0;
    id = array->id;
    map_remove(&waits->arrays, job->array);
    free(array);
    return id;
}

struct core_after *waits_of(const struct waits *waits, const struct sim_job *job, int *count)
{
    struct core_after *items = job->nafter > 0 ? mem_array((size_t)job->nafter, sizeof(*items)) : NULL;

    *count = 0;
    for (int i = 0; i < job->nafter; i++) {
        const struct after *after = &job->after[i];
        const struct array *array = map_get(&waits->arrays, after->job);
        const struct sim_job *on = map_get(&waits->jobs, after->job);
        if (array || on)
            items[(*count)++] = (struct core_after){.job = array ? array->id : on->id,
                                                    .kind = after->kind == AFTER_START ? AFTER_START : AFTER_ANY};
    }
    return items;
}

void waits_fini(struct waits *waits)
{
    struct array *array;
    size_t cursor = 0;

    while ((array = map_next(&waits->arrays, &cursor)))
        free(array);
    map_fini(&waits->arrays);
    map_fini(&waits->jobs);
}
