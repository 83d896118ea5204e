/* after_check.c - check.c, of jobs that wait for others: each verdict is found again from the other job. */
#include "elmer/core/internal.h"

/* What the words of after.h say of it; OPEN: that is not decided yet. */
static enum core_verdict plain_verdict(const struct job *on, enum after_kind kind)
{
    bool ended = on->info.state == JOB_DONE || on->info.state == JOB_CANCELLED;
    bool well = on->info.state == JOB_DONE && on->info.reason == REASON_EXITED && on->info.exit_status == 0 &&
                on->info.signal == 0;

    if (kind == AFTER_START && on->info.ran)
        return CORE_MET;
    if (!ended)
        return CORE_OPEN;
    return kind == AFTER_ANY || (kind == AFTER_OK && well) || (kind == AFTER_FAIL && !well) ? CORE_MET : CORE_NEVER;
}

bool check_after_met(const struct job *job)
{
    for (int i = 0; job->info.attempt == 0 && i < job->info.nafter; i++)
        if (job->after[i].verdict != CORE_MET)
            return false;
    return true;
}

const char *check_after(const struct core *core, const struct job *job)
{
    bool waits = job->info.state == JOB_QUEUED || job->info.state == JOB_HELD;
    int open = 0, never = 0;

    for (int i = 0; i < job->info.nafter; i++) {
        const struct core_after *after = &job->after[i];
        struct job *on;
        const struct list *waiters = array_waiters(core, after->job, &on);
        open += after->verdict == CORE_OPEN;
        never += after->verdict == CORE_NEVER;
        if (after->job >= job->info.id)
            return "waits for a later one";
        if (node_linked(&job->waits[i].on_job) != (after->verdict == CORE_OPEN && waits))
            return "is told of another one, or is not";
        if (waits && job->info.attempt == 0 && on && plain_verdict(on, after->kind) != after->verdict)
            return "has another verdict than the job that it waits for";
        if (waits && !waiters && after->verdict == CORE_OPEN)
            return "waits for one that is forgotten";
    }
    if (open != job->nopen || never != job->nnever)
        return "counts what it waits for wrongly";
    if (job->info.attempt > 0 && (open > 0 || never > 0))
        return "has been started, and waits for others";
    if (node_linked(&job->in_doomed) != (waits && job->info.attempt == 0 && never > 0 && !job->info.keep_never) &&
        !(job->info.notice && waits && !notice_host(core, job)))
        return "can never run and will stay, or the other way round";
    if (node_linked(&job->in_doomed) && core->timer_ms > core->now_ms)
        return "can never run, and nobody will come to cancel it";
    return NULL;
}
