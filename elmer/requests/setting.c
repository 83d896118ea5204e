/* setting.c - what administrators change while elmer runs: the allocator and the policy. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/requests/admin.h"

/* What is in force is shown once it has been decided, like drained hosts. */
void setting_query(struct request *request)
{
    const struct core *core = engine_core(request->requests->room.engine);
    struct wire_setting_view views[SETTING_COUNT];
    struct wire_message message = {.type = WIRE_settings, .id = request->id};
    struct arena memory = {0};
    for (int i = 0; i < SETTING_COUNT; i++) {
        enum core_setting setting = (enum core_setting)i;
        int all = core_setting_count(setting), count = 0;
        const char **known = arena_array(&memory, (size_t)all, sizeof(*known));
        for (int value = 0; value < all; value++)
            if (core_setting_possible(core, setting, value))
                known[count++] = core_setting_value_name(setting, value);
        views[i] = (struct wire_setting_view){
            .setting = core_setting_name(setting),
            .value = core_setting_value_name(setting, core_setting_value(core, setting)),
            .configured = core_setting_value_name(setting, core_setting_default(core, setting)),
            .set = core_setting_stored(core, setting) != SETTING_UNSET,
            .known = {known, (size_t)count}};
    }
    message.u.settings.settings.items = views;
    message.u.settings.settings.count = SETTING_COUNT;
    request_send(request, &message);
    arena_fini(&memory);
    request_end(request);
}

void setting_begin(struct request *request)
{
    const struct wire_set *set = &request->message.u.set;
    struct engine *engine = request->requests->room.engine;
    int setting = core_setting_by_name(set->setting);
    int value = setting < 0 ? -1 : core_setting_value_by_name((enum core_setting)setting, set->value);
    struct event event = {.type = EVENT_SET, .request = request->number, .host = -1};
    if (!request->admin) {
        request_not_admin(request, "set the allocator and the policy");
    } else if (setting < 0) {
        request_error(request, WIRE_CODE_REFUSED, "'%s' cannot be set; what can be is: %s", set->setting,
                      core_setting_names());
    } else if (value < 0 && strcmp(set->value, "default") != 0) {
        request_error(request, WIRE_CODE_REFUSED,
                      "there is no %s '%s'; known are: %s, and default for what elmer.conf says", set->setting,
                      set->value, core_setting_value_names((enum core_setting)setting));
    } else if (value >= 0 && !core_setting_possible(engine_core(engine), (enum core_setting)setting, value)) {
        request_error(request, WIRE_CODE_REFUSED,
                      "the %s %s places meshes in a hypercube: it needs topology = cube in elmer.conf",
                      core_setting_name((enum core_setting)setting), set->value);
    } else {
        int before = core_setting_value(engine_core(engine), (enum core_setting)setting);
        event.u.set.setting = (enum core_setting)setting;
        event.u.set.value = value < 0 ? SETTING_UNSET : value;
        struct decision decision;
        decide_begin(request, "set", &decision);
        snprintf(decision.text, sizeof(decision.text), "%s %s, it was %s",
                 core_setting_name((enum core_setting)setting), set->value,
                 core_setting_value_name((enum core_setting)setting, before));
        request->holder = HOLDER_CORE;
        engine_decide(engine, &event, &decision);
    }
}

void setting_answer(struct request *request)
{
    const struct core *core = engine_core(request->requests->room.engine);
    enum core_setting setting = (enum core_setting)core_setting_by_name(request->message.u.set.setting);
    bool set = core_setting_stored(core, setting) != SETTING_UNSET;
    request_done(request, "the %s is %s%s", core_setting_name(setting),
                 core_setting_value_name(setting, core_setting_value(core, setting)),
                 set ? ", until it is set to default" : ", as configured");
}
