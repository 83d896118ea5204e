/* user.c - what each user has in the queue and in clusters, for the limit on running jobs.
 *
 * Users are few and come back, so one that has had a job is kept until the core ends.
 */
#include "elmer/core/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first user whose uid is at least this. */
static size_t user_at(const struct core *core, uint32_t uid)
{
    size_t low = 0, high = core->nusers;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (core->users[middle]->uid < uid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct user *find(const struct core *core, uint32_t uid)
{
    size_t at = user_at(core, uid);

    return at < core->nusers && core->users[at]->uid == uid ? core->users[at] : NULL;
}

static int reserve(struct core *core)
{
    size_t capacity = core->users_capacity == 0 ? 16 : 2 * core->users_capacity;
    struct user **users;

    if (core->nusers < core->users_capacity)
        return 0;
    users = realloc(core->users, capacity * sizeof(*users));
    if (users == NULL)
        return -ENOMEM;
    core->users = users;
    core->users_capacity = capacity;
    return 0;
}

struct user *user_get(struct core *core, uint32_t uid)
{
    struct user *user = find(core, uid);
    size_t at;

    if (user != NULL)
        return user;
    if (reserve(core) != 0 || (user = calloc(1, sizeof(*user))) == NULL)
        return NULL;
    user->uid = uid;
    at = user_at(core, uid);
    memmove(&core->users[at + 1], &core->users[at], (core->nusers - at) * sizeof(struct user *));
    core->users[at] = user;
    core->nusers++;
    return user;
}

void users_free(struct core *core)
{
    for (size_t i = 0; i < core->nusers; i++)
        free(core->users[i]);
    free(core->users);
}

bool user_at_limit(const struct core *core, const struct user *user)
{
    return core->options.user_running > 0 && user->has.running >= core->options.user_running;
}

void user_takes(struct user *user)
{
    user->has.running++;
}

/* His jobs anywhere in the queue may be eligible now. */
void user_gives(struct core *core, struct user *user)
{
    bool was_at_limit = user_at_limit(core, user);

    user->has.running--;
    if (was_at_limit && !user_at_limit(core, user) && user->has.queued > 0)
        queue_changed_supply(core);
}

struct core_user core_user(const struct core *core, uint32_t uid)
{
    const struct user *user = find(core, uid);

    return user != NULL ? user->has : (struct core_user){0};
}
