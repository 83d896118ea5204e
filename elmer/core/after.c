/* after.c - jobs that wait for others.
 *
 * A job names jobs that were there before it (so no two wait for each other), each with what it wants of it. While
 * something is open the job is on a list of the other one; when that starts or ends, all who wait for it are looked at
 * once, and what is decided never changes. When nothing is open any more the job is awake in the queue, at the place
 * that it had all the time. Who waits for something that can not happen any more can never run: it is cancelled, with
 * the reason, or stays as it is if it was submitted so. A cancelled job has ended, so who waits for that one is next:
 * that goes over a list too (core->doomed), some in each step, because a chain may have 100,000 members and nobody may
 * wait for all of them.
 *
 * A job that has had an attempt waits for nothing: all was met before its first. What is decided is not worth a row of
 * its own: the other job's row says whether it has started once (core_job.ran) and how it has ended, so a restart
 * decides it again; a task that was cancelled in its array has none, and then it is. But the history may forget that
 * one, so what is decided is in each row that is written anyway, and what was open in the last one the store keeps (the
 * table `awaited`).
 */
#include "elmer/core/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT(node)   LIST_ITEM(node, struct wait, on_job)
#define DOOMED(node) LIST_ITEM(node, struct job, in_doomed)

enum { DOOMED_IN_A_STEP = 200 };

static bool has_ended(const struct job *job)
{
    return job->info.state == JOB_DONE || job->info.state == JOB_CANCELLED;
}

static enum core_verdict verdict_of(enum after_kind kind, enum core_end end)
{
    switch (kind) {
    case AFTER_OK:
        return end == CORE_END_WELL ? CORE_MET : CORE_NEVER;
    case AFTER_FAIL:
        return end == CORE_END_BADLY || end == CORE_END_UNSTARTED ? CORE_MET : CORE_NEVER;
    case AFTER_START:
        return end == CORE_END_WELL || end == CORE_END_BADLY ? CORE_MET : CORE_NEVER;
    case AFTER_ANY:
    case AFTER_KIND_COUNT:
        break;
    }
    return CORE_MET;
}

/* OPEN, if nobody can know yet. */
static enum core_verdict verdict_now(const struct job *on, struct core_after *after)
{
    const struct core_job *info = &on->info;

    if (!has_ended(on))
        return after->kind == AFTER_START && info->ran ? CORE_MET : CORE_OPEN;
    after->end = core_end_of(info->state, info->reason, info->exit_status, info->signal, info->ran);
    return verdict_of(after->kind, after->end);
}

bool after_met(const struct job *job)
{
    return job->info.attempt > 0 || (job->nopen == 0 && job->nnever == 0);
}

bool after_never(const struct job *job)
{
    return job->info.attempt == 0 && job->nnever > 0;
}

static void decide(struct core *core, struct wait *wait, enum core_verdict verdict)
{
    struct job *job = wait->job;

    assert(verdict != CORE_OPEN && wait->what->verdict == CORE_OPEN && job->nopen > 0);
    wait->what->verdict = verdict;
    job->nopen--;
    list_remove(&wait->on_job);
    job->nnever += verdict == CORE_NEVER;
    if (after_never(job) && !job->info.keep_never && !node_linked(&job->in_doomed))
        list_append(&core->doomed, &job->in_doomed);
}

static void look_at_waiters(struct core *core, struct job *on)
{
    LIST_FOR_EACH_SAFE (node, &on->waiters) {
        struct wait *wait = WAIT(node);
        enum core_verdict verdict = verdict_now(on, wait->what);
        if (verdict == CORE_OPEN)
            continue;
        decide(core, wait, verdict);
        if (wait->job->in_queue.in && after_met(wait->job))
            queue_changed_job(core, wait->job);
    }
}

void after_ran(struct core *core, struct job *job)
{
    if (job->info.ran)
        return;
    job->info.ran = true;
    look_at_waiters(core, job);
    if (job->of && !job->of->info.ran) {
        emit_owe_persist(core, job->of);
        after_ran(core, job->of);
    }
}

void after_ended(struct core *core, struct job *job)
{
    assert(has_ended(job));
    after_drop(job);
    look_at_waiters(core, job);
    assert(list_empty(&job->waiters));
}

/* No row says how such a task has ended, so what is decided is written, with the array. */
void after_task_gone(struct core *core, struct wait *wait)
{
    emit_owe_persist(core, wait->job);
    wait->what->end = CORE_END_UNSTARTED;
    decide(core, wait, verdict_of(wait->what->kind, CORE_END_UNSTARTED));
    if (wait->job->in_queue.in && after_met(wait->job))
        queue_changed_job(core, wait->job);
}

bool after_valid(const struct core_after *after, int n, uint64_t before)
{
    for (int i = 0; i < n; i++)
        if (after[i].job == 0 || after[i].job >= before || (unsigned)after[i].kind >= AFTER_KIND_COUNT ||
            (unsigned)after[i].verdict > CORE_NEVER)
            return false;
    return n >= 0 && n <= AFTER_MAX;
}

void after_take(struct core *core, struct job *job, const struct core_after *after, int n)
{
    if (n == 0)
        return;
    job->after = mem_copy(after, (size_t)n, sizeof(*after));
    job->waits = mem_array((size_t)n, sizeof(*job->waits));
    job->info.after = job->after;
    job->info.nafter = job->nopen = n;
    for (int i = 0; i < n; i++) {
        struct job *on;
        struct list *waiters = array_waiters(core, after[i].job, &on);
        struct wait *wait = &job->waits[i];
        if (!on && !waiters && after[i].end == CORE_END_FORGOTTEN && array_task_never(core, after[i].job))
            job->after[i].end = CORE_END_UNSTARTED;
        enum core_verdict verdict = after[i].verdict != CORE_OPEN ? after[i].verdict
                                    : on                          ? verdict_now(on, &job->after[i])
                                    : waiters                     ? CORE_OPEN
                                                                  : verdict_of(after[i].kind, job->after[i].end);
        job->after[i].verdict = CORE_OPEN;
        *wait = (struct wait){.job = job, .what = &job->after[i]};
        if (verdict == CORE_OPEN)
            list_append(waiters, &wait->on_job);
        else
            decide(core, wait, verdict);
    }
}

void after_drop(struct job *job)
{
    for (int i = 0; i < job->info.nafter; i++)
        list_remove(&job->waits[i].on_job);
    list_remove(&job->in_doomed);
}

void after_free(struct job *job)
{
    struct node *node;

    after_drop(job);
    while ((node = list_first(&job->waiters)))
        list_remove(node);
    free(job->after);
    free(job->waits);
}

/* ---- who can never run ---- */

static char *never_text(const struct job *job)
{
    static const char *const otherwise[AFTER_KIND_COUNT] = {[AFTER_OK] = "did not end well",
                                                            [AFTER_FAIL] = "ended well",
                                                            [AFTER_START] = "ended without having been started"};
    char text[200];
    const struct core_after *after = job->after;

    while (after->verdict != CORE_NEVER)
        after++;
    if (after->end == CORE_END_FORGOTTEN)
        snprintf(text, sizeof(text), "it can never run: how job %" PRIu64 " ended is not known any more", after->job);
    else
        snprintf(text, sizeof(text), "it can never run: job %" PRIu64 " %s", after->job, otherwise[after->kind]);
    return job_copy_text(text);
}

void after_cancel_doomed(struct core *core)
{
    struct node *node;

    for (int i = 0; i < DOOMED_IN_A_STEP && (node = list_first(&core->doomed)); i++) {
        struct job *job = DOOMED(node);
        queue_remove(core, job);
        lease_drop_all(job);
        job_set_text(job, after_never(job) ? never_text(job) : notice_homeless_text());
        job->info.reason = REASON_NEVER;
        job_move(core, job, JOB_CANCELLED);
    }
}
