/* setting.c - the allocator and the policy as administrators see them: by name, and changed while Elmer runs.
 *
 * What is in force stands in core->options, where decisions look; what the configuration says in core->defaults. A
 * change is decided like any other event: it counts for the decisions of its own step, and jobs that have a cluster
 * keep it, because rules 1 to 6 do not depend on who has chosen.
 */
#include "elmer/core/internal.h"

#include <errno.h>
#include <string.h>

static int allocator_get(const struct core_options *options)
{
    return (int)options->allocator;
}

static void allocator_put(struct core_options *options, int value)
{
    options->allocator = (enum core_allocator)value;
}

static const char *allocator_name(int value)
{
    return core_allocator_name((enum core_allocator)value);
}

static int policy_get(const struct core_options *options)
{
    return (int)options->policy;
}

static void policy_put(struct core_options *options, int value)
{
    options->policy = (enum core_policy)value;
}

static const char *policy_name(int value)
{
    return core_policy_name((enum core_policy)value);
}

/* The head may have a place now. */
static void allocator_changed(struct core *core)
{
    queue_changed_space(core, UINT32_MAX);
}

static const struct {
    const char *name;
    int count;
    int (*get)(const struct core_options *options);
    void (*put)(struct core_options *options, int value);
    int (*by_name)(const char *name);
    const char *(*value_name)(int value);
    const char *(*names)(void);
    void (*changed)(struct core *core);
} settings[SETTING_COUNT] = {
    [SETTING_ALLOCATOR] = {"allocator", ALLOCATOR_COUNT, allocator_get, allocator_put, core_allocator_by_name,
                           allocator_name, core_allocator_names, allocator_changed},
    [SETTING_POLICY] = {"policy", POLICY_COUNT, policy_get, policy_put, core_policy_by_name, policy_name,
                        core_policy_names, queue_sort},
};

const char *core_setting_name(enum core_setting setting)
{
    return (unsigned)setting < SETTING_COUNT ? settings[setting].name : "unknown";
}

int core_setting_by_name(const char *name)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(name, settings[i].name) == 0)
            return i;
    return -1;
}

const char *core_setting_names(void)
{
    return "allocator policy";
}

const char *core_setting_value_name(enum core_setting setting, int value)
{
    return settings[setting].value_name(value);
}

int core_setting_count(enum core_setting setting)
{
    return settings[setting].count;
}

int core_setting_value_by_name(enum core_setting setting, const char *name)
{
    return settings[setting].by_name(name);
}

const char *core_setting_value_names(enum core_setting setting)
{
    return settings[setting].names();
}

int core_setting_value(const struct core *core, enum core_setting setting)
{
    return settings[setting].get(&core->options);
}

int core_setting_default(const struct core *core, enum core_setting setting)
{
    return settings[setting].get(&core->defaults);
}

int core_setting_stored(const struct core *core, enum core_setting setting)
{
    return core->set[setting];
}

bool core_setting_possible(const struct core *core, enum core_setting setting, int value)
{
    return setting != SETTING_ALLOCATOR || value == SETTING_UNSET || core->options.topology == TOPOLOGY_CUBE ||
           !core_allocator_in_cube((enum core_allocator)value);
}

static bool value_valid(const struct core *core, enum core_setting setting, int value)
{
    return (unsigned)setting < SETTING_COUNT && value >= SETTING_UNSET && value < settings[setting].count &&
           core_setting_possible(core, setting, value);
}

static void apply(struct core *core, enum core_setting setting, int value)
{
    int before = core_setting_value(core, setting);

    core->set[setting] = value;
    settings[setting].put(&core->options, value != SETTING_UNSET ? value : core_setting_default(core, setting));
    if (core_setting_value(core, setting) != before)
        settings[setting].changed(core);
}

void setting_new_defaults(struct core *core, const struct core_options *options)
{
    core->defaults = *options;
    for (int i = 0; i < SETTING_COUNT; i++)
        apply(core, (enum core_setting)i, core->set[i]);
}

int core_restore_setting(struct core *core, enum core_setting setting, int value)
{
    if (!value_valid(core, setting, value))
        return -EINVAL;
    apply(core, setting, value);
    return 0;
}

int setting_set(struct core *core, const struct event *event)
{
    enum core_setting setting = event->u.set.setting;

    if (!value_valid(core, setting, event->u.set.value))
        return -EINVAL;
    /* Default also takes a value out of the store that could not be used. */
    if (core->set[setting] != event->u.set.value || event->u.set.value == SETTING_UNSET) {
        apply(core, setting, event->u.set.value);
        emit_owe_setting(core, setting);
    }
    core->reply.answered = true;
    core->reply.answer = ANSWER_OK;
    return 0;
}
