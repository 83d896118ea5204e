/* why.c - for each host the first rule that keeps a job from it, as the search of queue.c and the allocator apply them.
 */
#include "elmer/core/why.h"

#include "elmer/core/alloc/alloc.h"
#include "elmer/core/internal.h"

#include <assert.h>
#include <stdlib.h>

const char *core_bar_name(enum core_bar bar)
{
    static const char *const names[CORE_BAR_COUNT] = {
        [CORE_BAR_NONE] = "ok",         [CORE_BAR_NOT_ALLOWED] = "not-allowed",
        [CORE_BAR_DOWN] = "down",       [CORE_BAR_AWAITED] = "awaited",
        [CORE_BAR_SILENT] = "silent",   [CORE_BAR_CLOSED] = "unusable",
        [CORE_BAR_DRAINED] = "drained", [CORE_BAR_LEFTOVERS] = "leftovers",
        [CORE_BAR_FULL] = "full",       [CORE_BAR_UNMEASURED] = "unmeasured",
        [CORE_BAR_BUSY] = "busy",       [CORE_BAR_MEMORY] = "memory",
    };

    assert(bar >= 0 && bar < CORE_BAR_COUNT);
    return names[bar];
}

static bool allowed(const struct job *job, const struct host *host)
{
    return !job->hosts ||
           bsearch(&host->index, job->hosts, (size_t)job->info.nhosts, sizeof(*job->hosts), compare_ints);
}

static enum core_bar bar_of_host(const struct job *job, const struct host *host, const struct core_host_why *why)
{
    if (!allowed(job, host))
        return CORE_BAR_NOT_ALLOWED;
    if (host->info.state == CORE_HOST_DOWN)
        return CORE_BAR_DOWN;
    if (host->info.state == CORE_HOST_AWAITED)
        return CORE_BAR_AWAITED;
    if (host->info.state == CORE_HOST_SILENT)
        return CORE_BAR_SILENT;
    if (host->info.closed)
        return CORE_BAR_CLOSED;
    if (host->info.drained)
        return CORE_BAR_DRAINED;
    if (host->info.leftovers > 0)
        return CORE_BAR_LEFTOVERS;
    return why->left_bytes < why->asked_bytes ? CORE_BAR_MEMORY : CORE_BAR_NONE;
}

static void note_busy(const struct alloc_processor *processor, struct core_host_why *why)
{
    bool empty = processor->next_level == 0;
    double share = empty ? processor->foreign : processor->busy;
    double *most = empty ? &why->foreign_share : &why->busy_share;

    why->busy++;
    why->foreign += empty;
    if (share > *most)
        *most = share;
}

/* Where no processor is left, the rule that most of them fail. */
static enum core_bar bar_of_processors(const struct core_host_why *why)
{
    if (why->usable > 0)
        return CORE_BAR_NONE;
    if (why->full >= why->unmeasured && why->full >= why->busy)
        return CORE_BAR_FULL;
    return why->unmeasured >= why->busy ? CORE_BAR_UNMEASURED : CORE_BAR_BUSY;
}

static void judge(const struct core *core, const struct job *job, const struct host *host, struct core_host_why *why)
{
    const struct alloc_request request = alloc_request_of(job);
    uint32_t room = (uint32_t)alloc_room(&request, &host->seen);
    const struct allocator *allocator = alloc_by_number(core->options.allocator);
    const struct alloc_view view = {.options = &core->options, .now_ms = core->now_ms};

    for (int i = 0; i < host->info.ncpus; i++) {
        enum alloc_verdict verdict = allocator->judge(&view, &host->seen, host->cpus[i]);

        why->usable += verdict == ALLOC_FREE;
        why->full += verdict == ALLOC_FULL;
        why->unmeasured += verdict == ALLOC_UNMEASURED;
        if (verdict == ALLOC_BUSY)
            note_busy(&host->processors[host->cpus[i]], why);
    }
    why->bar = bar_of_processors(why);
    why->beyond = why->usable > room ? why->usable - room : 0;
    why->usable -= why->beyond;
}

static void note_memory(const struct job *job, const struct host *host, struct core_host_why *why)
{
    uint64_t has = host->seen.memory_bytes, promised = host->seen.promised_bytes;

    why->memory_bytes = has;
    why->left_bytes = has > promised ? has - promised : 0;
    why->asked_bytes = job->info.memory_bytes;
    why->per_host = job->info.per_host;
}

bool core_why(const struct core *core, uint64_t id, int index, struct core_host_why *why)
{
    const struct job *job = index_find(core, id);
    const struct host *host;

    *why = (struct core_host_why){.threshold = core->options.threshold, .levels = core->options.levels};
    if (!job || (job->info.state != JOB_QUEUED && job->info.state != JOB_HELD) || index < 0 || index >= core->nhosts)
        return false;
    host = core->hosts[index];
    why->cpus = (uint32_t)host->info.ncpus;
    note_memory(job, host, why);
    why->bar = bar_of_host(job, host, why);
    if (why->bar == CORE_BAR_NONE)
        judge(core, job, host, why);
    assert(why->usable + why->beyond + why->full + why->busy + why->unmeasured <= why->cpus);
    return true;
}
