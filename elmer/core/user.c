/* user.c - what each user has in the queue and in clusters, for the limit on running jobs.
 *
 * One is kept as long as the core knows a job of his. A host says which users it has: one that lies has as many as it
 * likes, a new one for each job.
 */
#include "elmer/core/internal.h"

#include <assert.h>
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

struct owner *user_find(const struct core *core, uint32_t uid)
{
    size_t at = user_at(core, uid);

    return at < core->nusers && core->users[at]->uid == uid ? core->users[at] : NULL;
}

static struct owner *user_get(struct core *core, uint32_t uid)
{
    struct owner *user = user_find(core, uid);
    size_t at;

    if (user)
        return user;
    core->users = mem_grow(core->users, &core->users_capacity, core->nusers + 1, sizeof(struct owner *));
    user = mem_zalloc(sizeof(*user));
    user->uid = uid;
    at = user_at(core, uid);
    memmove(&core->users[at + 1], &core->users[at], (core->nusers - at) * sizeof(struct owner *));
    core->users[at] = user;
    core->nusers++;
    return user;
}

void user_enter(struct core *core, struct job *job)
{
    job->user = user_get(core, job->info.uid);
    job->user->njobs++;
}

void user_leave(struct core *core, struct job *job)
{
    struct owner *user = job->user;
    size_t at = user_at(core, user->uid);

    job->user = NULL;
    if (--user->njobs > 0)
        return;
    assert(core->users[at] == user && user->has.queued == 0 && user->has.running == 0);
    memmove(&core->users[at], &core->users[at + 1], (core->nusers - at - 1) * sizeof(struct owner *));
    core->nusers--;
    free(user);
}

void users_free(struct core *core)
{
    for (size_t i = 0; i < core->nusers; i++)
        free(core->users[i]);
    free(core->users);
}

bool user_at_limit(const struct core *core, const struct owner *user)
{
    return core->options.user_running > 0 && user->has.running >= core->options.user_running;
}

void user_takes(struct owner *user)
{
    user->has.running++;
}

/* His jobs anywhere in the queue may be eligible now. */
void user_gives(struct core *core, struct owner *user)
{
    bool was_at_limit = user_at_limit(core, user);

    user->has.running--;
    if (was_at_limit && !user_at_limit(core, user) && user->has.queued > 0)
        queue_changed_supply(core);
}

struct core_user core_user(const struct core *core, uint32_t uid)
{
    const struct owner *user = user_find(core, uid);

    return user ? user->has : (struct core_user){0};
}
