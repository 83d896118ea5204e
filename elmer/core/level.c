/* level.c - the level of a job: one below the lowest of the earlier jobs that it shares a processor with (rule 2).
 *
 * When a job leaves, those right below it on its processors may move up, then those right below these, and so on. They
 * are visited in the order of allocation by a heap, so that all above a job have their final level when it is its turn,
 * and each is visited once. A job that stays does not disturb those below it.
 */
#include "elmer/core/internal.h"

#include <assert.h>

static bool earlier(const struct job *a, const struct job *b)
{
    return a->info.allocation < b->info.allocation;
}

static void heap_push(struct core *core, struct job *job)
{
    size_t at;

    if (job->in_heap)
        return;
    core->heap = mem_grow(core->heap, &core->heap_capacity, core->nheap + 1, sizeof(struct job *));
    job->in_heap = true;
    for (at = core->nheap++; at > 0 && earlier(job, core->heap[(at - 1) / 2]); at = (at - 1) / 2)
        core->heap[at] = core->heap[(at - 1) / 2];
    core->heap[at] = job;
}

static struct job *heap_pop(struct core *core)
{
    struct job *first = core->heap[0], *last = core->heap[--core->nheap];
    size_t at = 0, child;

    for (; (child = 2 * at + 1) < core->nheap; at = child) {
        if (child + 1 < core->nheap && earlier(core->heap[child + 1], core->heap[child]))
            child++;
        if (!earlier(core->heap[child], last))
            break;
        core->heap[at] = core->heap[child];
    }
    core->heap[at] = last;
    first->in_heap = false;
    return first;
}

static void push_below(struct core *core, const struct job *job)
{
    for (uint32_t i = 0; i < job->info.nprocs; i++) {
        struct job *below = cluster_below(core, job, &job->processors[i]);
        if (below)
            heap_push(core, below);
    }
}

int level_of(const struct core *core, const struct job *job)
{
    int level = 0;

    for (uint32_t i = 0; i < job->info.nprocs; i++) {
        const struct job *above = cluster_above(core, job, &job->processors[i]);
        if (above && above->info.level >= level)
            level = above->info.level + 1;
    }
    return level;
}

static void move_up(struct core *core, struct job *job, int level)
{
    job_account(job, core->now_ms);
    cluster_change_level(core, job, level);
    cluster_touch(core, job);
    for (int i = 0; i < job->nparts; i++)
        host_owe_order(core, job->parts[i].host);
    emit_owe_persist(core, job);
}

uint32_t level_close_gap(struct core *core, struct job *leaving)
{
    uint32_t changed = leaving->info.notice ? 0 : leaving->info.nprocs;

    push_below(core, leaving);
    cluster_leave(core, leaving);
    while (core->nheap > 0) {
        struct job *job = heap_pop(core);
        int level = level_of(core, job);

        assert(level <= job->info.level);
        if (level == job->info.level)
            continue;
        push_below(core, job);
        move_up(core, job, level);
        changed += job->info.nprocs;
    }
    return changed;
}
