/* settings.c - administrators set another allocator or policy while the world goes on. */
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
