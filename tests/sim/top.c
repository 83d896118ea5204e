#include "tests/sim/top.h"

#include <string.h>

enum { TOP_IDS = 4096 };

/* What waits of one user: in all, and before each job of others. A task counts, in its array or not. */
struct top_waits {
    uint32_t all, before[TOP_IDS];
};

static bool waits(const struct core_job *job)
{
    return job->state == JOB_QUEUED || job->state == JOB_HELD;
}

static void top_count(struct core *core, uint32_t uid, struct top_waits *count)
{
    const struct core_job *own, *other;
    uint64_t cursor = 0, next;

    memset(count, 0, sizeof(*count));
    while ((own = core_next_job(core, &cursor))) {
        uint32_t units = own->ntasks > 0 ? core_tasks_waiting(own) : 1;
        if (own->uid != uid || !waits(own))
            continue;
        count->all += units;
        next = 0;
        while ((other = core_next_job(core, &next)))
            if (other->uid != uid && other->id < TOP_IDS && waits(other) && own->ahead < other->ahead)
                count->before[other->id] += units;
    }
}

/* What the step has started was one of those before. */
static const char *top_judge(struct core *core, const struct event *event, const struct top_waits *before,
                             uint64_t *job)
{
    const struct core_job *top = core_job(core, event->job), *at, *first = NULL;
    static struct top_waits after;
    uint64_t cursor = 0;
    bool any = false, whole = false; /* an array that waits for others goes back as one */

    top_count(core, top->uid, &after);
    while ((at = core_next_job(core, &cursor)))
        whole |= at->uid == top->uid && at->ntasks > 0 && at->nafter > 0;
    cursor = 0;
    while ((at = core_next_job(core, &cursor))) {
        uint32_t was = at->id < TOP_IDS ? before->before[at->id] : 0, is = at->id < TOP_IDS ? after.before[at->id] : 0;
        *job = at->id;
        if (waits(at) && at->uid != top->uid && (is > was || (!whole && was - is > before->all - after.all)))
            return "more or less of another user is before it than was";
        if (!waits(at) || at->uid != top->uid)
            continue;
        any |= at->id == top->id || at->array == top->id;
        if (!first || at->ahead < first->ahead)
            first = at;
    }
    *job = first ? first->id : 0;
    return any && !event->u.by.tasks && first->id != top->id && first->array != top->id
               ? "another one is before what was moved"
               : NULL;
}

int top_step(struct core *core, const struct event *event, struct actions *actions, struct top_fault *fault)
{
    static struct top_waits before;
    const struct core_job *job = event->type == EVENT_TOP ? core_job(core, event->job) : NULL;
    int result;

    if (job)
        top_count(core, job->uid, &before);
    result = core_step(core, event, actions);
    for (size_t i = 0; job && i < actions->count; i++)
        if (actions->items[i].type == ACTION_ANSWER && actions->items[i].answer == ANSWER_OK)
            fault->text = top_judge(core, event, &before, &fault->job);
    return result;
}
