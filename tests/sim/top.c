/* top.c - what EVENT_TOP may change: of other users nothing, and of his who asks only where that is which he names. */
#include "tests/sim/top.h"

#include <stdlib.h>
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

/* ---- the order of his own ---- */

/* One that waits: a job, or a task, in its array or not. */
struct top_unit {
    uint64_t id, array, place;
    uint32_t ordinal;
};

struct top_line { /* all of one user, in their order */
    struct top_unit units[TOP_IDS];
    int n;
};

static int by_turn(const void *a, const void *b)
{
    const struct core_job *x = *(const struct core_job *const *)a, *y = *(const struct core_job *const *)b;

    return (x->ahead > y->ahead) - (x->ahead < y->ahead);
}

static void add_unit(struct top_line *line, uint64_t id, uint64_t array, uint64_t place)
{
    if (line->n < TOP_IDS)
        line->units[line->n++] = (struct top_unit){id, array, place, array != 0 ? (uint32_t)(id - array) - 1 : 0};
}

static void look_at_line(struct core *core, uint32_t uid, struct top_line *line)
{
    const struct core_job *jobs[TOP_IDS] = {NULL}, *job;
    uint64_t cursor = 0;
    int n = 0;

    line->n = 0;
    while ((job = core_next_job(core, &cursor)))
        if (job->uid == uid && waits(job) && n < TOP_IDS)
            jobs[n++] = job;
    qsort(jobs, (size_t)n, sizeof(jobs[0]), by_turn);
    for (int i = 0; i < n; i++) {
        if (jobs[i]->ntasks == 0)
            add_unit(line, jobs[i]->id, jobs[i]->array, jobs[i]->place);
        for (uint32_t at = core_next_task(jobs[i], 0); at < jobs[i]->ntasks; at = core_next_task(jobs[i], at + 1))
            add_unit(line, jobs[i]->id + 1 + at, jobs[i]->id, jobs[i]->place);
    }
}

static bool is_named(const struct event *event, const struct top_unit *unit)
{
    if (!event->u.by.tasks)
        return unit->id == event->job || unit->array == event->job;
    return unit->array == event->job && core_range_has(event->u.by.tasks, event->u.by.ntasks, unit->ordinal);
}

/* Who shares a place with an array that waits stands there by the ids; when one at its own place has left, nobody does.
 */
static bool share(struct core *core, const struct top_unit *a, const struct top_unit *b)
{
    const struct core_job *job;
    uint64_t cursor = 0;

    if (a->place != b->place)
        return false;
    while ((job = core_next_job(core, &cursor)))
        if (core_at_own_place(job) && job->place == a->place && !waits(job))
            return false;
    return true;
}

/* What was named is before all the rest, tasks in the order of their indices; the rest is in its order. */
static const char *look_at_order(struct core *core, const struct event *event, const struct top_line *before,
                                 uint32_t uid, uint64_t *job)
{
    static struct top_line after;
    static int turn[TOP_IDS]; /* as it was, by id; -1: it did not wait */

    for (int i = 0; i < TOP_IDS; i++)
        turn[i] = -1;
    for (int i = 0; i < before->n; i++)
        if (before->units[i].id < TOP_IDS)
            turn[before->units[i].id] = i;
    look_at_line(core, uid, &after);
    for (int i = 1; i < after.n; i++)
        for (int k = 0; k < i; k++) {
            const struct top_unit *a = &after.units[k], *b = &after.units[i];
            bool named = is_named(event, b);
            *job = b->id;
            if (a->id >= TOP_IDS || b->id >= TOP_IDS || share(core, a, b))
                continue;
            if (!named && !is_named(event, a) && turn[a->id] > turn[b->id])
                return "one of the same user that was not named is before it and was behind";
            if (named && event->u.by.tasks && (!is_named(event, a) || a->ordinal > b->ordinal))
                return "was named, and another one is before it";
        }
    return NULL;
}

/* ---- what leaves arrays ---- */

static void add_tasks(void *data, uint64_t array, uint64_t tasks)
{
    (void)array;
    *(uint64_t *)data += tasks;
}

/* Tasks that are jobs, of these that wait only, or all. */
static uint64_t count_tasks(struct core *core, bool waiting)
{
    const struct core_job *job;
    uint64_t cursor = 0, n = 0;

    while ((job = core_next_job(core, &cursor)))
        n += job->array != 0 && (!waiting || waits(job));
    return n;
}

/* ---- the judge ---- */

/* What the step has started was one of those before. */
static const char *top_judge(struct core *core, const struct event *event, const struct top_waits *before,
                             const struct top_line *line, uint64_t *job)
{
    const struct core_job *top = core_job(core, event->job), *at, *first = NULL;
    const char *fault;
    static struct top_waits after;
    uint64_t cursor = 0;
    bool any = false, whole = false; /* an array that waits for others, or was moved, goes back as one */

    top_count(core, top->uid, &after);
    while ((at = core_next_job(core, &cursor)))
        whole |= at->uid == top->uid && at->ntasks > 0 && (at->nafter > 0 || !core_at_own_place(at));
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
    if ((fault = look_at_order(core, event, line, top->uid, job)))
        return fault;
    *job = first ? first->id : 0;
    return any && !event->u.by.tasks && first->id != top->id && first->array != top->id
               ? "another one is before what was moved"
               : NULL;
}

int top_step(struct core *core, const struct event *event, struct actions *actions, struct top_fault *fault)
{
    static struct top_waits before;
    static struct top_line line;
    const struct core_job *job = event->type == EVENT_TOP ? core_job(core, event->job) : NULL;
    uint64_t splits = 0, tasks = 0, waiting = 0;
    int result;

    if (job) {
        top_count(core, job->uid, &before);
        look_at_line(core, job->uid, &line);
        core_top_splits(core, event->job, event->u.by.tasks, event->u.by.ntasks, add_tasks, &splits);
        tasks = count_tasks(core, false);
        waiting = count_tasks(core, true);
    }
    result = core_step(core, event, actions);
    for (size_t i = 0; job && i < actions->count; i++)
        if (actions->items[i].type == ACTION_ANSWER && actions->items[i].answer == ANSWER_OK) {
            fault->text = top_judge(core, event, &before, &line, &fault->job);
            if (count_tasks(core, true) > waiting + splits || count_tasks(core, false) < tasks + splits)
                fault->text = "other tasks leave arrays than was said before"; /* some may have started at once */
        }
    return result;
}
