/* copy.c - every few steps the simulation goes on with a copy of the core, which must have said the same of this step
 * as the original. So whatever the scenarios and walks expect is expected of copies, too. */
#include "tests/sim/world.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 16 };

static bool same_entries(const struct action *a, const struct action *b)
{
    if (a->nentries != b->nentries || a->ncpus != b->ncpus)
        return false;
    for (int i = 0; i < a->ncpus; i++)
        if (a->cpus[i] != b->cpus[i])
            return false;
    for (int i = 0; i < a->nentries; i++) {
        const struct order_entry *x = &a->entries[i], *y = &b->entries[i];

        if (x->job != y->job || x->attempt != y->attempt || x->level != y->level || x->lowest != y->lowest ||
            x->ncpus != y->ncpus || memcmp(x->cpus, y->cpus, (size_t)x->ncpus * sizeof(*x->cpus)) != 0)
            return false;
    }
    return true;
}

static bool same_action(const struct action *a, const struct action *b)
{
    return a->type == b->type && a->request == b->request && a->answer == b->answer && a->job == b->job &&
           a->attempt == b->attempt && a->host == b->host && a->setting == b->setting && a->rank == b->rank &&
           a->generation == b->generation && a->lease_ms == b->lease_ms && a->at_ms == b->at_ms && same_entries(a, b);
}

int world_decide(struct world *world, const struct event *event)
{
    struct core *copy;
    struct actions actions;
    int result, of_copy;
    bool same;

    if (++world->steps % STEPS != 0)
        return core_step(world->core, event, &world->actions);
    copy = core_copy(world->core);
    actions_init(&actions);
    result = core_step(world->core, event, &world->actions);
    of_copy = core_step(copy, event, &actions);
    same = of_copy == result && actions.count == world->actions.count;
    for (size_t i = 0; same && i < actions.count; i++)
        same = same_action(&actions.items[i], &world->actions.items[i]);
    if (!same)
        world_fail(world, "a copy of the core does something else in this step");
    actions_fini(&actions);
    core_destroy(world->core);
    world->core = copy;
    return result;
}
