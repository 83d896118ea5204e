/* array_check.c - an array and its tasks, counted by brute force; for tests. */
#include "elmer/core/internal.h"

const char *check_array(const struct core *core, const struct job *job)
{
    uint32_t live = 0, running = 0, waiting = 0;

    if (!job->array) {
        if (!job->of)
            return NULL;
        if (job->info.array != job->of->info.id || job->info.id != job->of->info.id + job->info.task)
            return "is not the task that it should be";
        return job->info.task - 1 < job->of->info.next_task ||
                       core_range_has(job->of->info.gone, job->of->info.ngone, job->info.task - 1)
                   ? NULL
                   : "is a job, and waits in its array too";
    }
    for (size_t i = 0; i < core->nindex; i++) {
        const struct job *task = core->index[i].job;
        live += task && task->of == job;
        running += task && task->of == job && job_has_cluster(task);
    }
    for (uint32_t i = job->info.next_task; i < job->info.ntasks; i++)
        waiting += !core_range_has(job->info.gone, job->info.ngone, i);
    if (live != job->array->live || running != job->array->running || waiting != core_tasks_waiting(&job->info))
        return "counts its tasks wrongly";
    if (job->info.state == JOB_STARTED && (live == 0 || waiting > 0))
        return "is started, and none of its tasks is, or some wait";
    if ((job->info.state == JOB_QUEUED || job->info.state == JOB_HELD) && waiting == 0)
        return "waits, and none of its tasks does";
    if (job->info.task_limit > 0 && running > job->info.task_limit)
        return "has more tasks with clusters than it may";
    return job->info.tasks_ok + job->info.tasks_failed + live + waiting > job->info.ntasks ? "has too many tasks"
                                                                                           : NULL;
}
