/* v1.c - at the best level that enough processors give, at random (Turner 1995, 6.3). Load is nothing to it. */
#include "elmer/core/alloc/alloc.h"

static uint32_t choose(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                       struct core_processor *processors)
{
    return alloc_at_best_level(view, request, random, alloc_judge_level, processors);
}

const struct allocator alloc_v1 = {.choose = choose, .judge = alloc_judge_level};
