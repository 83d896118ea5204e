/* spread.c - the processors with the fewest jobs, among these the least busy, among these at random.
 *
 * Any processor with a level left is good enough: reports order the choice and refuse nobody. What is unknown counts as
 * busy, so a host whose reports do not come is taken last among equals. Whole percents, so that the noise of idle
 * processors does not decide in the place of chance.
 */
#include "elmer/core/alloc/alloc.h"

#include <stdlib.h>

enum { FULLY_BUSY = 100, RANKS = (CORE_MAX_LEVELS + 1) * (FULLY_BUSY + 1) };

/* On an empty processor the jobs of before do not count. */
static int percent_busy(const struct alloc_view *view, const struct alloc_host *host,
                        const struct alloc_processor *processor)
{
    double busy = processor->jobs == 0 ? processor->foreign : processor->busy;

    if (!host->reported || view->now_ms - host->report_end_ms > view->options->fresh_ms || busy >= 1)
        return FULLY_BUSY;
    return busy > 0 ? (int)(busy * FULLY_BUSY + 0.5) : 0;
}

/* The smaller the better; -1: no level is left. */
static int rank_of(const struct alloc_view *view, const struct alloc_host *host, int cpu)
{
    const struct alloc_processor *processor = &host->processors[cpu];

    if (processor->next_level >= view->options->levels)
        return -1;
    return processor->jobs * (FULLY_BUSY + 1) + percent_busy(view, host, processor);
}

/* What a request may have of a host: its best processors, as many as there is room. cut: of the last of these; there,
 * wanted: processors as good as that one, and how many of them are among these. */
struct part_of {
    int cut, there, wanted;
};

static int compare_ranks(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static struct part_of cut_off(const struct alloc_view *view, const struct alloc_request *request,
                              const struct alloc_host *host)
{
    struct part_of part = {.cut = RANKS};
    int ranks[CORE_MAX_CPUS], count = 0, room = alloc_room(request, host);

    if (room >= host->ncpus)
        return part;
    for (int k = 0; k < host->ncpus; k++) {
        int rank = rank_of(view, host, host->cpus[k]);
        if (rank >= 0)
            ranks[count++] = rank;
    }
    if (room >= count)
        return part;
    qsort(ranks, (size_t)count, sizeof(ranks[0]), compare_ranks);
    part.cut = ranks[room - 1];
    for (int i = 0; i < count; i++) {
        part.there += ranks[i] == part.cut;
        part.wanted += i < room && ranks[i] == part.cut;
    }
    return part;
}

/* notes: the best rank of each host. All that are better than limit, and of the `count` that are as good so many at
 * random as are missing then; in order (Knuth, The Art of Computer Programming 2, 3.4.2 S). */
static void take(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random, int limit,
                 uint32_t count, uint32_t missing, struct core_processor *processors)
{
    for (int i = 0; i < view->nhosts; i++) {
        const struct alloc_host *host = view->hosts[i];
        struct part_of part;
        if (view->notes[i] > limit)
            continue;
        part = cut_off(view, request, host);
        for (int k = 0; k < host->ncpus; k++) {
            int rank = rank_of(view, host, host->cpus[k]);
            if (rank < 0 || rank > limit || rank > part.cut)
                continue;
            if (rank == part.cut && !alloc_draw(random, &part.there, &part.wanted))
                continue;
            if (rank == limit) {
                if (missing == 0 || alloc_random_below(random, count--) >= missing)
                    continue;
                missing--;
            }
            *processors++ = (struct core_processor){.host = host->index, .cpu = host->cpus[k]};
        }
    }
}

static uint32_t choose(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                       struct core_processor *processors)
{
    uint32_t counts[RANKS] = {0}, missing = request->nprocs;

    for (int i = 0; i < view->nhosts; i++) {
        struct part_of part;
        view->notes[i] = RANKS;
        if (alloc_below(view->hosts[i], view->options->levels) == 0)
            continue;
        part = cut_off(view, request, view->hosts[i]);
        for (int k = 0; k < view->hosts[i]->ncpus; k++) {
            int rank = rank_of(view, view->hosts[i], view->hosts[i]->cpus[k]);
            if (rank < 0)
                continue;
            if (rank < view->notes[i])
                view->notes[i] = rank;
            if (rank < part.cut)
                counts[rank]++;
        }
        if (part.cut < RANKS)
            counts[part.cut] += (uint32_t)part.wanted;
    }
    for (int rank = 0; rank < RANKS; rank++) {
        if (counts[rank] >= missing) {
            take(view, request, random, rank, counts[rank], missing, processors);
            return 0;
        }
        missing -= counts[rank];
    }
    return missing;
}

const struct allocator alloc_spread = {.choose = choose, .judge = alloc_judge_level};
