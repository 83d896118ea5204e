/* table.c - the allocators by number and by name. */
#include "elmer/core/alloc/alloc.h"

#include <assert.h>
#include <string.h>

static const struct allocator *const allocators[ALLOCATOR_COUNT] = {
#define ALLOCATOR(constant, name, word) [ALLOCATOR_##constant] = &alloc_##name,
#include "elmer/core/alloc/alloc.def"
#undef ALLOCATOR
};

static const char *const words[ALLOCATOR_COUNT] = {
#define ALLOCATOR(constant, name, word) [ALLOCATOR_##constant] = word,
#include "elmer/core/alloc/alloc.def"
#undef ALLOCATOR
};

const struct allocator *alloc_by_number(enum core_allocator number)
{
    assert((unsigned)number < ALLOCATOR_COUNT);
    return allocators[number];
}

int core_allocator_by_name(const char *name)
{
    for (int i = 0; i < ALLOCATOR_COUNT; i++)
        if (strcmp(name, words[i]) == 0)
            return i;
    return -1;
}

const char *core_allocator_name(enum core_allocator allocator)
{
    return (unsigned)allocator < ALLOCATOR_COUNT ? words[allocator] : "unknown";
}

bool core_allocator_in_cube(enum core_allocator allocator)
{
    return alloc_by_number(allocator)->by_rank;
}

const char *core_allocator_names(void)
{
    static const char names[] = ""
#define ALLOCATOR(constant, name, word) " " word
#include "elmer/core/alloc/alloc.def"
#undef ALLOCATOR
        ;

    return names + 1;
}
