/* settings.c - administrators set another allocator or policy, and change the configuration, while the world goes on.
 */
#include "tests/sim/world.h"

#include <string.h>

bool world_set(struct world *world, const char *setting, const char *value)
{
    struct event event = {.type = EVENT_SET, .host = -1};
    int which = core_setting_by_name(setting);

    if (which < 0)
        return false;
    event.u.set.setting = (enum core_setting)which;
    event.u.set.value = core_setting_value_by_name(event.u.set.setting, value);
    if (event.u.set.value < 0 && strcmp(value, "default") != 0)
        return false;
    world_step(world, &event);
    return true;
}

void judge_setting(struct world *world, enum core_setting setting, int value)
{
    if (setting == SETTING_ALLOCATOR)
        world->options.allocator = value == SETTING_UNSET ? world->configured.allocator : (enum core_allocator)value;
    if (setting == SETTING_POLICY)
        world->options.policy = value == SETTING_UNSET ? world->configured.policy : (enum core_policy)value;
}

/* ---- the configuration: it is on disk before the core hears of it ---- */

void world_configure(struct world *world, const struct core_options *options)
{
    struct event event = {.type = EVENT_CONFIGURE, .host = -1};

    event.u.configure = world->configured = *options;
    world_step(world, &event);
}

void world_retire(struct world *world, int host)
{
    struct event event = {.type = EVENT_HOST_RETIRE, .host = host};

    world->hosts[host].listed = false;
    world_step(world, &event);
}

void world_host_add(struct world *world, const char *name, int ncpus, bool joined)
{
    struct event event = {.type = EVENT_HOST_ADD, .host = core_host_by_name(world->core, name)};
    bool is_new = event.host < 0;

    event.u.add.name = name;
    event.u.add.joined = joined;
    if (is_new)
        world_make_host(world, name, ncpus);
    event.host = is_new ? world->nhosts - 1 : event.host;
    world->hosts[event.host].listed = !joined;
    world_step(world, &event);
    if (core_host_by_name(world->core, name) != event.host)
        world_fail(world, "%s is not added", name);
}

/* ---- as the judge hears it ---- */

void judge_configuration(struct world *world, const struct core_options *options)
{
    world->options = *options;
    for (int i = 0; i < SETTING_COUNT; i++)
        judge_setting(world, (enum core_setting)i, core_setting_stored(world->core, (enum core_setting)i));
}

void judge_gone(struct world *world, int host)
{
    const struct core_job *job;
    uint64_t cursor = 0;

    if (!world->seen_hosts[host].retired || world->seen_hosts[host].ndirty > 0)
        world_fail(world, "%s is said to be gone", world->hosts[host].name);
    while ((job = core_next_job(world->core, &cursor)))
        for (uint32_t i = 0; job->state >= JOB_STARTING && job->state <= JOB_ENDING && i < job->nprocs; i++)
            if (job->processors[i].host == host)
                world_fail(world, "%s is said to be gone, and has job %llu", world->hosts[host].name,
                           (unsigned long long)job->id);
}
