/* common.c - what several allocators use. */
#include "elmer/core/alloc/alloc.h"

static uint64_t random_next(uint64_t *random) /* splitmix64 (Steele, Lea, Flood 2014) */
{
    uint64_t z = *random += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t alloc_random_below(uint64_t *random, uint64_t n)
{
    uint64_t reject = (UINT64_MAX - n + 1) % n, x;

    do
        x = random_next(random);
    while (x < reject);
    return x % n;
}

enum alloc_verdict alloc_judge_level(const struct alloc_view *view, const struct alloc_host *host, int cpu)
{
    return host->processors[cpu].next_level < view->options->levels ? ALLOC_FREE : ALLOC_FULL;
}

/* Selection sampling (Knuth, The Art of Computer Programming 2, 3.4.2 S): each set of nprocs of the count processors is
 * equally likely, and they come in order. */
static void sample(const struct alloc_view *view, uint32_t nprocs, uint64_t *random,
                   enum alloc_verdict (*judge)(const struct alloc_view *view, const struct alloc_host *host, int cpu),
                   int level, uint64_t count, struct core_processor *processors)
{
    uint32_t chosen = 0;

    for (int i = 0; i < view->nhosts && chosen < nprocs; i++) {
        const struct alloc_host *host = view->hosts[i];
        for (int k = 0; k < host->ncpus && chosen < nprocs; k++) {
            int cpu = host->cpus[k];
            if (host->processors[cpu].next_level > level || judge(view, host, cpu) != ALLOC_FREE)
                continue;
            if (alloc_random_below(random, count--) < nprocs - chosen)
                processors[chosen++] = (struct core_processor){.host = host->index, .cpu = cpu};
        }
    }
}

uint32_t alloc_at_best_level(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                             enum alloc_verdict (*judge)(const struct alloc_view *view, const struct alloc_host *host,
                                                         int cpu),
                             struct core_processor *processors)
{
    uint64_t counts[CORE_MAX_LEVELS] = {0}, count = 0;

    for (int i = 0; i < view->nhosts; i++)
        for (int k = 0; k < view->hosts[i]->ncpus; k++)
            if (judge(view, view->hosts[i], view->hosts[i]->cpus[k]) == ALLOC_FREE)
                counts[view->hosts[i]->processors[view->hosts[i]->cpus[k]].next_level]++;
    for (int level = 0; level < CORE_MAX_LEVELS; level++) {
        count += counts[level];
        if (count < request->nprocs)
            continue;
        sample(view, request->nprocs, random, judge, level, count, processors);
        return 0;
    }
    return (uint32_t)(request->nprocs - count);
}
