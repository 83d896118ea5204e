/* actions.c - the list that a step fills. Orders live in an arena beside it and go with actions_clear(), which keeps
 * some of it, so that a quiet core does not allocate at all. */
#include "elmer/core/internal.h"

#include <stdlib.h>
#include <string.h>

void actions_init(struct actions *actions)
{
    memset(actions, 0, sizeof(*actions));
}

void actions_clear(struct actions *actions)
{
    actions->count = 0;
    arena_clear(&actions->memory);
}

void actions_fini(struct actions *actions)
{
    arena_fini(&actions->memory);
    free(actions->items);
    actions_init(actions);
}

struct action *actions_push(struct actions *actions, enum action_type type)
{
    struct action *action;

    actions->items = mem_grow(actions->items, &actions->capacity, actions->count + 1, sizeof(*actions->items));
    action = &actions->items[actions->count++];
    memset(action, 0, sizeof(*action));
    action->type = type;
    action->host = -1;
    return action;
}
