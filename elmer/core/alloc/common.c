/* common.c - what several allocators use. */
#include "elmer/core/alloc/alloc.h"

#include <string.h>

static uint64_t random_next(uint64_t *random) /* splitmix64 (Steele, Lea, Flood 2014) */
{
    uint64_t z = *random += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t alloc_random_below(uint64_t *random, uint64_t n)
{
    uint64_t x;

    do /* what is left over is less than n, so hardly ever is it worked out */
        x = random_next(random);
    while (x < n && x < (UINT64_MAX - n + 1) % n);
    return x % n;
}

static int room_in_memory(const struct alloc_host *host, uint64_t each_bytes, int room)
{
    uint64_t left = host->memory_bytes > host->promised_bytes ? host->memory_bytes - host->promised_bytes : 0;

    return (uint64_t)room > left / each_bytes ? (int)(left / each_bytes) : room;
}

int alloc_room(const struct alloc_request *request, const struct alloc_host *host)
{
    const struct core_demand *demand = &request->demand;
    int room = host->ncpus;

    if (demand->per_host > 0 && (uint32_t)room > demand->per_host)
        room = (int)demand->per_host;
    return demand->memory_bytes > 0 ? room_in_memory(host, demand->memory_bytes, room) : room;
}

int alloc_below(const struct alloc_host *host, int level)
{
    int count = 0;

    for (int i = 0; i < level; i++)
        count += host->at_level[i];
    return count;
}

bool alloc_draw(uint64_t *random, int *there, int *wanted)
{
    bool drawn = *there <= *wanted || alloc_random_below(random, (uint64_t)*there) < (uint64_t)*wanted;

    --*there;
    *wanted -= drawn;
    return drawn;
}

enum alloc_verdict alloc_judge_level(const struct alloc_view *view, const struct alloc_host *host, int cpu)
{
    return host->processors[cpu].next_level < view->options->levels ? ALLOC_FREE : ALLOC_FULL;
}

typedef enum alloc_verdict judge_function(const struct alloc_view *view, const struct alloc_host *host, int cpu);

/* A full one is none, whoever judges: on a busy machine most are, and are not worth a call. */
static bool is_free(const struct alloc_view *view, const struct alloc_host *host, judge_function *judge, int cpu,
                    int levels)
{
    return host->processors[cpu].next_level < levels && judge(view, host, cpu) == ALLOC_FREE;
}

static int count_to(const struct alloc_view *view, const struct alloc_host *host, judge_function *judge, int level)
{
    int count = 0;

    for (int k = 0; k < host->ncpus; k++)
        count += is_free(view, host, judge, host->cpus[k], level + 1);
    return count;
}

/* Selection sampling (Knuth, The Art of Computer Programming 2, 3.4.2 S): each set of nprocs of the count processors is
 * equally likely, and they come in order. Where a host has more than its room, it is sampled in the same way first.
 * notes: which hosts have any. */
static void sample(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                   judge_function *judge, int level, uint64_t count, struct core_processor *processors)
{
    uint32_t chosen = 0, nprocs = request->nprocs;

    for (int i = 0; i < view->nhosts && chosen < nprocs; i++) {
        const struct alloc_host *host = view->hosts[i];
        int room, there;
        bool limited;
        if (view->notes[i] == 0)
            continue;
        room = alloc_room(request, host);
        there = room < host->ncpus ? count_to(view, host, judge, level) : 0;
        limited = there > room;
        for (int k = 0; k < host->ncpus && chosen < nprocs; k++) {
            int cpu = host->cpus[k];
            if (!is_free(view, host, judge, cpu, level + 1))
                continue;
            if (limited && !alloc_draw(random, &there, &room))
                continue;
            if (alloc_random_below(random, count--) < nprocs - chosen)
                processors[chosen++] = (struct core_processor){.host = host->index, .cpu = cpu};
        }
    }
}

/* Those of the best levels first, as far as there is room. Returns how many are free, with room or without. */
static int count_host(const struct alloc_view *view, const struct alloc_request *request, const struct alloc_host *host,
                      judge_function *judge, uint64_t counts[CORE_MAX_LEVELS])
{
    const int levels = view->options->levels;
    int room = alloc_room(request, host), there[CORE_MAX_LEVELS] = {0}, count = 0;

    for (int k = 0; k < host->ncpus; k++)
        if (is_free(view, host, judge, host->cpus[k], levels)) {
            there[host->processors[host->cpus[k]].next_level]++;
            count++;
        }
    for (int level = 0, left = count; left > 0; level++) {
        int some = there[level] < room ? there[level] : room;
        counts[level] += (uint64_t)some;
        room -= some;
        left -= there[level];
    }
    return count;
}

/* The same, where each that has a level left is free and there is room for all. */
static int count_levels(const struct alloc_host *host, int levels, uint64_t counts[CORE_MAX_LEVELS])
{
    int count = 0;

    for (int level = 0; level < levels; level++) {
        counts[level] += host->at_level[level];
        count += host->at_level[level];
    }
    return count;
}

static void count_hosts(const struct alloc_view *view, const struct alloc_request *request, judge_function *judge,
                        uint64_t counts[CORE_MAX_LEVELS])
{
    const bool by_level = judge == alloc_judge_level && !room_is_asked(&request->demand);
    const int levels = view->options->levels;

    for (int i = 0; i < view->nhosts; i++)
        if (by_level)
            view->notes[i] = count_levels(view->hosts[i], levels, counts);
        else if (alloc_below(view->hosts[i], levels) > 0)
            view->notes[i] = count_host(view, request, view->hosts[i], judge, counts);
        else
            view->notes[i] = 0;
}

uint32_t alloc_at_best_level(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                             judge_function *judge, struct core_processor *processors)
{
    uint64_t counts[CORE_MAX_LEVELS] = {0}, count = 0;

    count_hosts(view, request, judge, counts);
    for (int level = 0; level < view->options->levels; level++) {
        count += counts[level];
        if (count < request->nprocs)
            continue;
        sample(view, request, random, judge, level, count, processors);
        return 0;
    }
    return (uint32_t)(request->nprocs - count);
}
