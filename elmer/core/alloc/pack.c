/* pack.c - the fewest hosts, with these the best level, and what is left open at random.
 *
 * Any processor with a level left is good enough; load is nothing to it. k is the number of hosts that have enough
 * processors if those with most are taken. Then the best level at which k hosts are enough still. Which k: hosts are
 * drawn, and one is taken if the k can be completed with it. That is so if those with most processors, of which it
 * replaces the smallest, have that much to spare.
 */
#include "elmer/core/alloc/alloc.h"

#include <assert.h>

enum { NEVER = INT32_MAX, MARK = 1 << 30 };

/* How many hosts have so many processors. */
struct histogram {
    uint32_t hosts[CORE_MAX_CPUS + 1];
};

static int level_at(const struct alloc_host *host, int i)
{
    return host->processors[host->cpus[i]].next_level;
}

static void count_host(const struct alloc_host *host, int room, int levels, struct histogram by_level[])
{
    int count = 0;

    for (int level = 0; level < levels; level++) {
        count += host->at_level[level];
        by_level[level].hosts[count < room ? count : room]++;
    }
}

/* Those up to this level, as many as the request may have. */
static int count_to(const struct alloc_request *request, const struct alloc_host *host, int level)
{
    int count = alloc_below(host, level + 1), room = alloc_room(request, host);

    return count < room ? count : room;
}

/* Of how many hosts at least nprocs processors are, NEVER if all together have fewer; *total: what they have, at most
 * as far as it was counted. */
static int fewest_hosts(const struct histogram *histogram, uint32_t nprocs, uint64_t *total)
{
    uint64_t hosts = 0;

    *total = 0;
    for (uint32_t count = CORE_MAX_CPUS; count > 0; count--) {
        uint64_t all = (uint64_t)histogram->hosts[count] * count;
        if (*total + all >= nprocs) {
            hosts += (nprocs - *total + count - 1) / count;
            return (int)hosts;
        }
        *total += all;
        hosts += histogram->hosts[count];
    }
    return NEVER;
}

/* Leaves the k with most processors; returns what they have together. */
static uint64_t keep_largest(struct histogram *histogram, uint32_t k)
{
    uint64_t total = 0;

    for (uint32_t count = CORE_MAX_CPUS; count > 0; count--) {
        if (histogram->hosts[count] > k)
            histogram->hosts[count] = k;
        k -= histogram->hosts[count];
        total += (uint64_t)histogram->hosts[count] * count;
    }
    return total;
}

/* Draws k hosts that have nprocs processors together, into notes[0..k), as places in the view. `largest` are the k with
 * most: the best completion of what is taken, as it goes down. */
static void draw_hosts(const struct alloc_view *view, const struct alloc_request *request, struct histogram *largest,
                       int k, int level, uint64_t *random)
{
    uint64_t spare = keep_largest(largest, (uint32_t)k) - request->nprocs;
    int taken = 0, smallest = 1;

    for (int i = 0; i < view->nhosts; i++)
        view->notes[i] = i;
    for (int i = 0; taken < k; i++) {
        int other, place, count;

        assert(i < view->nhosts);
        other = i + (int)alloc_random_below(random, (uint64_t)(view->nhosts - i));
        place = view->notes[other];
        view->notes[other] = view->notes[i];
        while (largest->hosts[smallest] == 0)
            smallest++;
        count = count_to(request, view->hosts[place], level);
        if (count == 0 || (count < smallest && (uint64_t)(smallest - count) > spare))
            continue;
        if (count < smallest)
            spare -= (uint64_t)(smallest - count);
        largest->hosts[count > smallest ? count : smallest]--;
        view->notes[taken++] = place;
    }
}

/* The first k, in order: no two are equal, so each place is marked, and then they are gathered. */
static void sort_places(int *notes, int nhosts, int k)
{
    int sorted = 0;

    assert(k <= nhosts && nhosts < MARK);
    for (int i = 0; i < k; i++)
        notes[notes[i] & ~MARK] |= MARK;
    for (int place = 0; sorted < k; place++)
        if (notes[place] & MARK)
            notes[sorted++] = place;
}

/* So many of the processors of the k hosts at random, in order. */
static void take(const struct alloc_view *view, const struct alloc_request *request, int k, int level, uint64_t *random,
                 struct core_processor *processors)
{
    uint64_t count = 0;
    uint32_t chosen = 0, nprocs = request->nprocs;

    sort_places(view->notes, view->nhosts, k);
    for (int i = 0; i < k; i++)
        count += (uint64_t)count_to(request, view->hosts[view->notes[i]], level);
    for (int i = 0; i < k; i++) {
        const struct alloc_host *host = view->hosts[view->notes[i]];
        int wanted = count_to(request, host, level), there = alloc_below(host, level + 1);
        bool limited = there > wanted;
        for (int n = 0; n < host->ncpus && chosen < nprocs; n++)
            if (level_at(host, n) <= level && (!limited || alloc_draw(random, &there, &wanted)) &&
                alloc_random_below(random, count--) < nprocs - chosen)
                processors[chosen++] = (struct core_processor){.host = host->index, .cpu = host->cpus[n]};
    }
}

static uint32_t choose(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                       struct core_processor *processors)
{
    struct histogram by_level[CORE_MAX_LEVELS] = {{{0}}};
    int levels = view->options->levels, level = 0, k;
    uint64_t total, ignored;

    for (int i = 0; i < view->nhosts; i++)
        count_host(view->hosts[i], alloc_room(request, view->hosts[i]), levels, by_level);
    k = fewest_hosts(&by_level[levels - 1], request->nprocs, &total);
    if (k == NEVER)
        return (uint32_t)(request->nprocs - total);
    while (fewest_hosts(&by_level[level], request->nprocs, &ignored) != k)
        level++;
    draw_hosts(view, request, &by_level[level], k, level, random);
    take(view, request, k, level, random, processors);
    return 0;
}

const struct allocator alloc_pack = {.choose = choose, .judge = alloc_judge_level};
