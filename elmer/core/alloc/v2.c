/* v2.c - the same as v1, but a processor counts only if a report says that its utilisation is at most the threshold. */
#include "elmer/core/alloc/alloc.h"

/* An empty processor is judged by foreign load alone, so an old interval does no harm and the processor is free at once
 * after a job. One with jobs is judged by all of its load, and only when all of them have had time to show theirs. */
static bool measured(const struct alloc_view *view, const struct alloc_host *host,
                     const struct alloc_processor *processor)
{
    if (!host->reported || view->now_ms - host->report_end_ms > view->options->fresh_ms)
        return false;
    if (processor->next_level == 0)
        return true;
    if (processor->starting > 0 || host->report_begin_ms < processor->changed_ms + view->options->settle_ms)
        return false;
    return true;
}

static bool idle(const struct alloc_view *view, const struct alloc_processor *processor)
{
    if (processor->next_level == 0)
        return processor->foreign <= view->options->threshold;
    return processor->busy <= view->options->threshold;
}

static enum alloc_verdict judge(const struct alloc_view *view, const struct alloc_host *host, int cpu)
{
    const struct alloc_processor *processor = &host->processors[cpu];

    if (processor->next_level >= view->options->levels)
        return ALLOC_FULL;
    if (!measured(view, host, processor))
        return ALLOC_UNMEASURED;
    return idle(view, processor) ? ALLOC_FREE : ALLOC_BUSY;
}

static uint32_t choose(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                       struct core_processor *processors)
{
    return alloc_at_best_level(view, request, random, judge, processors);
}

const struct allocator alloc_v2 = {.choose = choose, .judge = judge, .reports_admit = true};
