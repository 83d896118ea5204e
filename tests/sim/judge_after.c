/* judge_after.c - who waits for others, found out from what was seen of those; the order of the jobs of one user. */
#include "tests/sim/judge.h"

#include <string.h>

void judge_fate(struct sim_fate *fate, const struct core_job *job)
{
    fate->ran |= job->state == JOB_RUNNING || job->exits > 0;
    fate->ended = job->state == JOB_DONE || job->state == JOB_CANCELLED;
    fate->well = job->state == JOB_DONE && strcmp(reason_name(job->reason), "exited") == 0 && job->exit_status == 0 &&
                 !job->signal;
}

enum core_verdict judge_verdict(const struct sim_fate *fate, enum after_kind kind)
{
    bool happened[AFTER_KIND_COUNT] = {[AFTER_OK] = fate->ended && fate->well && !fate->forgotten,
                                       [AFTER_FAIL] = fate->ended && !fate->well && !fate->forgotten,
                                       [AFTER_ANY] = fate->ended,
                                       [AFTER_START] = fate->ran && !fate->forgotten};

    return happened[kind] ? CORE_MET : fate->ended ? CORE_NEVER : CORE_OPEN;
}

bool judge_met(const struct sim_fate *fates, const struct seen_job *job)
{
    for (int i = 0; i < job->nafter; i++)
        if (judge_verdict(&fates[job->after[i].job], job->after[i].kind) != CORE_MET)
            return false;
    return true;
}

static bool never(const struct world *world, const struct core_job *job)
{
    for (int i = 0; i < job->nafter; i++)
        if (judge_verdict(&world->fates[job->after[i].job], job->after[i].kind) == CORE_NEVER)
            return true;
    return false;
}

void judge_never(struct world *world, const struct seen_job *seen, const struct core_job *job)
{
    bool waits = job->state == JOB_QUEUED || job->state == JOB_HELD, was = seen->state == JOB_CANCELLED;

    if (waits && job->attempt == 0 && never(world, job)) {
        world->coverage->kept += job->keep_never;
        if (!job->keep_never)
            world_fail(world, "job %llu: can never run, and is %s", ID(job), job_state_name(job->state));
    }
    if (job->state != JOB_CANCELLED || was || job->reason != REASON_NEVER)
        return;
    world->coverage->never++;
    if (job->keep_never || job->attempt > 0 || !never(world, job))
        world_fail(world, "job %llu: is cancelled, and could have run", ID(job));
}

struct core_after world_after(const struct world *world, const char *kind, uint64_t job)
{
    static const char *const names[] = {"ok", "fail", "any", "start"};
    struct core_after after = {.job = job};

    while (after.kind + 1 < AFTER_KIND_COUNT && strcmp(kind, names[after.kind]) != 0)
        after.kind++;
    (void)world_end_of(world, job, &after.end);
    return after;
}

bool world_end_of(const struct world *world, uint64_t job, enum core_end *end)
{
    const struct sim_fate *fate = &world->stored_fates[job];

    *end = fate->forgotten ? CORE_END_FORGOTTEN
           : fate->well    ? CORE_END_WELL
           : fate->ran     ? CORE_END_BADLY
                           : CORE_END_UNSTARTED;
    return fate->ended;
}

const struct core_job *world_with_ends(const struct world *world, struct core_job *job)
{
    struct core_after *after = (struct core_after *)(uintptr_t)job->after;

    for (int i = 0; i < job->nafter; i++)
        (void)world_end_of(world, after[i].job, &after[i].end);
    return job;
}

/* ---- the order of one's own jobs ---- */

static bool waits(const struct seen_job *job)
{
    return job->state == JOB_QUEUED || job->state == JOB_HELD;
}

/* Bubbles up: it changes places with the last one of the same user before it, until there is none. */
void judge_top(struct world *world, uint64_t job)
{
    struct seen_job *top = judge_seen(world, job), *next;

    do {
        next = NULL;
        for (int i = 0; i < world->nseen; i++) {
            struct seen_job *other = &world->seen[i];
            if (waits(other) && other->uid == top->uid && other->place < top->place &&
                (!next || other->place > next->place))
                next = other;
        }
        if (next) {
            uint64_t place = next->place;
            next->place = top->place;
            top->place = place;
            world->coverage->topped++;
        }
    } while (next);
}

/* ---- the end of a walk ---- */

void judge_all_ended(struct world *world)
{
    for (int id = 0; id < SIM_IDS; id++)
        if (world->rows[id])
            world_fail(world, "job %d was accepted and has not ended", id);
    if (world->coverage->accepted != world->coverage->ended && !world_failed(world))
        world_fail(world, "%llu jobs accepted, %llu ended", (unsigned long long)world->coverage->accepted,
                   (unsigned long long)world->coverage->ended);
}
