/* cluster.c - the D x P table. Each processor has a row of levels; an entry is the job that has this level there.
 *
 * On a processor levels grow with arrival (rule 1), so the last job of a row has the greatest level, and a new job gets
 * the one after it. That is kept in next_level. A notice is not in the table, though it names a processor.
 */
#include "elmer/core/internal.h"

#include <assert.h>

struct job **cluster_row(const struct host *host, int cpu)
{
    return &host->table[(size_t)cpu * CORE_MAX_LEVELS];
}

/* After a change at this level. */
static void find_next_level(struct host *host, int cpu, int changed)
{
    struct job **row = cluster_row(host, cpu);
    struct alloc_processor *processor = &host->processors[cpu];
    int level = processor->next_level > changed ? processor->next_level : changed + 1;

    while (level > 0 && !row[level - 1])
        level--;
    if (level == processor->next_level)
        return;
    if (processor->present) {
        host->seen.at_level[processor->next_level]--;
        host->seen.at_level[level]++;
    }
    processor->next_level = (uint8_t)level;
}

/* Puts job, or nobody, at this level of all the job's processors. */
static void set_entries(struct core *core, const struct job *job, int level, struct job *entry)
{
    if (job->info.notice)
        return;
    for (uint32_t i = 0; i < job->info.nprocs; i++) {
        const struct core_processor *at = &job->processors[i];
        struct host *host = core->hosts[at->host];
        struct job **row = cluster_row(host, at->cpu);

        assert(row[level] == (!entry ? job : NULL));
        row[level] = entry;
        host->processors[at->cpu].jobs = (uint8_t)(host->processors[at->cpu].jobs + (entry ? 1 : -1));
        find_next_level(host, at->cpu, level);
    }
}

void cluster_enter(struct core *core, struct job *job, int level)
{
    job->info.level = level;
    set_entries(core, job, level, job);
}

void cluster_leave(struct core *core, struct job *job)
{
    set_entries(core, job, job->info.level, NULL);
}

void cluster_change_level(struct core *core, struct job *job, int level)
{
    cluster_leave(core, job);
    cluster_enter(core, job, level);
}

void cluster_touch(struct core *core, const struct job *job)
{
    for (uint32_t i = 0; !job->info.notice && i < job->info.nprocs; i++)
        core->hosts[job->processors[i].host]->processors[job->processors[i].cpu].changed_ms = core->now_ms;
}

void cluster_count_starting(struct core *core, const struct job *job, int by)
{
    for (uint32_t i = 0; !job->info.notice && i < job->info.nprocs; i++)
        core->hosts[job->processors[i].host]->processors[job->processors[i].cpu].starting += by;
}

struct job *cluster_above(const struct core *core, const struct job *job, const struct core_processor *at)
{
    struct job **row = cluster_row(core->hosts[at->host], at->cpu);

    for (int level = job->info.level - 1; level >= 0; level--) /* none for a notice, whose level is 0 */
        if (row[level])
            return row[level];
    return NULL;
}

struct job *cluster_below(const struct core *core, const struct job *job, const struct core_processor *at)
{
    const struct host *host = core->hosts[at->host];
    struct job **row = cluster_row(host, at->cpu);

    if (job->info.notice)
        return NULL;
    for (int level = job->info.level + 1; level < host->processors[at->cpu].next_level; level++)
        if (row[level])
            return row[level];
    return NULL;
}
