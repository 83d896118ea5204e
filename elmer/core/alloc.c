/* alloc.c - the allocators: which processors a job gets.
 *
 * v1 (Turner 1995, 6.3): at the first level i where at least n processors would give a new job level i or better, n of
 * them at random. v2: the same, but a processor counts only if its CPU utilisation is at most the threshold. They
 * differ in that one question only, which the table below asks in two parts: is it known, and is it low.
 */
#include "elmer/core/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool always(const struct core *core, const struct host *host, int cpu)
{
    (void)core, (void)host, (void)cpu;
    return true;
}

/* An empty processor is judged by foreign load alone, so an old interval does no harm and the processor is free at once
 * after a job. One with jobs is judged by all of its load, and only when all of them have had time to show theirs. */
static bool v2_measured(const struct core *core, const struct host *host, int cpu)
{
    const struct processor *processor = &host->processors[cpu];

    if (!host->reported || core->now_ms - host->report_end_ms > core->options.fresh_ms)
        return false;
    if (processor->next_level == 0)
        return true;
    if (processor->starting > 0 || host->report_begin_ms < processor->changed_ms + core->options.settle_ms)
        return false;
    return true;
}

static bool v2_idle(const struct core *core, const struct host *host, int cpu)
{
    const struct processor *processor = &host->processors[cpu];

    if (processor->next_level == 0)
        return processor->foreign <= core->options.threshold;
    return processor->busy <= core->options.threshold;
}

static const struct {
    const char *name;
    bool (*measured)(const struct core *core, const struct host *host, int cpu);
    bool (*idle)(const struct core *core, const struct host *host, int cpu); /* asked of one that is measured */
} allocators[ALLOCATOR_COUNT] = {
    [ALLOCATOR_V1] = {"v1", always, always},
    [ALLOCATOR_V2] = {"v2", v2_measured, v2_idle},
};

int core_allocator_by_name(const char *name)
{
    for (int i = 0; i < ALLOCATOR_COUNT; i++)
        if (strcmp(name, allocators[i].name) == 0)
            return i;
    return -1;
}

const char *core_allocator_name(enum core_allocator allocator)
{
    return (unsigned)allocator < ALLOCATOR_COUNT ? allocators[allocator].name : "unknown";
}

/* Rule 5 and the allocator's own question. */
bool alloc_processor_counts(const struct core *core, const struct host *host, int cpu)
{
    return host->processors[cpu].next_level < core->options.levels &&
           allocators[core->options.allocator].measured(core, host, cpu) &&
           allocators[core->options.allocator].idle(core, host, cpu);
}

uint32_t alloc_count_host(const struct core *core, const struct host *host)
{
    uint32_t count = 0;

    if (!host_allocatable(host))
        return 0;
    for (int i = 0; i < host->info.ncpus; i++)
        count += alloc_processor_counts(core, host, host->cpus[i]);
    return count;
}

/* The hosts that a job may use, one by one in order. */
static const struct host *allowed_host(const struct core *core, const struct job *job, int i)
{
    if (job->hosts == NULL)
        return i < core->nhosts ? core->hosts[i] : NULL;
    return i < job->info.nhosts ? core->hosts[job->hosts[i]] : NULL;
}

static void count_levels(const struct core *core, const struct job *job, uint64_t counts[CORE_MAX_LEVELS])
{
    const struct host *host;

    memset(counts, 0, CORE_MAX_LEVELS * sizeof(counts[0]));
    for (int i = 0; (host = allowed_host(core, job, i)) != NULL; i++) {
        if (!host_allocatable(host))
            continue;
        for (int k = 0; k < host->info.ncpus; k++)
            if (alloc_processor_counts(core, host, host->cpus[k]))
                counts[host->processors[host->cpus[k]].next_level]++;
    }
}

static uint64_t random_next(struct core *core) /* splitmix64 (Steele, Lea, Flood 2014) */
{
    uint64_t z = core->random += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t random_below(struct core *core, uint64_t n)
{
    uint64_t reject = (UINT64_MAX - n + 1) % n, x;

    do
        x = random_next(core);
    while (x < reject);
    return x % n;
}

/* Selection sampling (Knuth, The Art of Computer Programming 2, 3.4.2 S): each set of nprocs is equally likely, and
 * they come in order. */
static void choose(struct core *core, const struct job *job, int level, uint64_t count,
                   struct core_processor *processors)
{
    uint32_t chosen = 0;
    const struct host *host;

    for (int i = 0; chosen < job->info.nprocs && (host = allowed_host(core, job, i)) != NULL; i++) {
        if (!host_allocatable(host))
            continue;
        for (int k = 0; k < host->info.ncpus && chosen < job->info.nprocs; k++) {
            int cpu = host->cpus[k];
            if (host->processors[cpu].next_level > level || !alloc_processor_counts(core, host, cpu))
                continue;
            if (random_below(core, count--) < job->info.nprocs - chosen)
                processors[chosen++] = (struct core_processor){.host = host->index, .cpu = cpu};
        }
    }
}

/* Cuts processors into one part per host. Returns their number or -ENOMEM. */
int alloc_make_parts(struct core *core, const struct core_processor *processors, uint32_t n, struct part **parts)
{
    int count = 0;

    assert(n > 0);
    for (uint32_t i = 0; i < n; i++)
        count += i == 0 || processors[i].host != processors[i - 1].host;
    *parts = calloc((size_t)count, sizeof(**parts));
    if (*parts == NULL)
        return -ENOMEM;
    count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || processors[i].host != processors[i - 1].host)
            (*parts)[count++] = (struct part){.host = core->hosts[processors[i].host], .first = (int)i};
        (*parts)[count - 1].ncpus++;
    }
    return count;
}

static int take(struct core *core, struct job *job, int level, uint64_t count)
{
    struct core_processor *processors = calloc(job->info.nprocs, sizeof(*processors));
    uint8_t *exited = calloc((job_ranks(job) + 7) / 8, 1);
    struct part *parts = NULL;
    uint64_t random = core->random;
    int nparts = -ENOMEM;

    if (processors != NULL && exited != NULL && level_reserve(core) == 0) {
        choose(core, job, level, count, processors);
        nparts = alloc_make_parts(core, processors, job->info.nprocs, &parts);
        if (nparts > 0 && lease_reserve(job, nparts) != 0) {
            free(parts);
            nparts = -ENOMEM;
        }
    }
    if (nparts < 0) {
        core->random = random;
        free(processors);
        free(exited);
        return nparts;
    }
    life_start(core, job, processors, parts, nparts, exited);
    return 0;
}

int64_t alloc_try(struct core *core, struct job *job)
{
    uint64_t counts[CORE_MAX_LEVELS], count = 0;

    count_levels(core, job, counts);
    for (int level = 0; level < CORE_MAX_LEVELS; level++) {
        count += counts[level];
        if (count >= job->info.nprocs)
            return take(core, job, level, count);
    }
    return (int64_t)(job->info.nprocs - count);
}

static void survey_processor(const struct core *core, const struct host *host, int cpu, struct core_survey *survey)
{
    survey->up++;
    if (host->processors[cpu].next_level >= core->options.levels)
        survey->full++;
    else if (!allocators[core->options.allocator].measured(core, host, cpu))
        survey->unmeasured++;
    else if (!allocators[core->options.allocator].idle(core, host, cpu))
        survey->busy++;
}

bool core_survey(const struct core *core, uint64_t id, struct core_survey *survey)
{
    const struct job *job = index_find(core, id);
    const struct host *host;

    *survey = (struct core_survey){0};
    if (job == NULL || job != core->queue.cursor || !core->queue.refused)
        return false;
    for (int i = 0; (host = allowed_host(core, job, i)) != NULL; i++) {
        for (int k = 0; host_allocatable(host) && k < host->info.ncpus; k++)
            survey_processor(core, host, host->cpus[k], survey);
        if (!host_usable(host))
            survey->unheard += (uint32_t)host_supply(host);
    }
    survey->up += survey->unheard;
    return true;
}
