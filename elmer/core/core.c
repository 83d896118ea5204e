/* core.c - the core as an object: options, birth and death. */
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <stdlib.h>

void core_options_default(struct core_options *options)
{
    *options = (struct core_options){
        .levels = 3,
        .allocator = ALLOCATOR_V2,
        .policy = POLICY_FCFS,
        .threshold = 0.75,
        .fresh_ms = 6000,
        .settle_ms = 2000,
        .start_timeout_ms = 30000,
        .resend_ms = 2000,
        .lease_ms = 120000,
        .gather_ms = 10000,
        .seed = 1,
    };
}

struct core *core_create(const struct core_options *options)
{
    struct core *core;

    if (!options_valid(options))
        return NULL;
    core = mem_zalloc(sizeof(*core));
    core->options = core->defaults = *options;
    for (int i = 0; i < SETTING_COUNT; i++)
        core->set[i] = SETTING_UNSET;
    core->random = options->seed;
    core->levels_used = options->levels;
    core->next_job = 1;
    core->next_allocation = 1;
    core->timer_ms = INT64_MAX;
    core->nview = -1;
    queue_init(core);
    list_init(&core->active);
    list_init(&core->starting);
    list_init(&core->persist);
    list_init(&core->launch);
    list_init(&core->work);
    list_init(&core->waiting);
    list_init(&core->doomed);
    list_init(&core->leases);
    list_init(&core->rows);
    list_init(&core->retiring);
    list_init(&core->noticing);
    core->lease_check_ms = INT64_MAX;
    return core;
}

void core_destroy(struct core *core)
{
    if (!core)
        return;
    for (size_t i = 0; i < core->nindex; i++)
        job_destroy(core->index[i].job);
    for (int i = 0; i < core->nhosts; i++)
        host_destroy(core->hosts[i]);
    free(core->hosts);
    free(core->view);
    free(core->notes);
    free(core->choice);
    free(core->index);
    free(core->lost_tasks);
    users_free(core);
    topology_destroy(core->topology);
    free(core->heap);
    free(core);
}

void core_set_next(struct core *core, uint64_t next_job, uint64_t next_allocation)
{
    if (next_job > core->next_job)
        core->next_job = next_job;
    if (next_allocation > core->next_allocation)
        core->next_allocation = next_allocation;
}

uint64_t core_next_id(const struct core *core)
{
    return core->next_job;
}
