#include "config.h"

#include "rsd/courier/typed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run/link.h"

enum { ROOM = 2 * RUN_WINDOW };

bool typed_init(struct typed *typed)
{
    *typed = (struct typed){.bytes = malloc(ROOM)};
    return typed->bytes != NULL;
}

void typed_fini(struct typed *typed)
{
    free(typed->bytes);
    typed->bytes = NULL;
}

void typed_begin(struct typed *typed)
{
    size_t left = typed->end - typed->begin;
    if (left > RUN_WINDOW) {
        typed->begin += left - RUN_WINDOW;
        left = RUN_WINDOW;
    }
    typed->of_before = left;
    typed->came = typed->went = 0;
}

bool typed_put(struct typed *typed, const void *bytes, size_t size)
{
    if (size > RUN_WINDOW - (size_t)(typed->came - typed->went))
        return false;
    if (size > ROOM - typed->end) {
        typed->end -= typed->begin;
        memmove(typed->bytes, typed->bytes + typed->begin, typed->end);
        typed->begin = 0;
    }
    assert(size <= ROOM - typed->end);
    memcpy(typed->bytes + typed->end, bytes, size);
    typed->end += size;
    typed->came += size;
    return true;
}

bool typed_waits(const struct typed *typed)
{
    return typed->end > typed->begin;
}

const uint8_t *typed_at(const struct typed *typed, size_t *size)
{
    *size = typed->end - typed->begin;
    return typed->bytes + typed->begin;
}

size_t typed_take(struct typed *typed, size_t size)
{
    size_t before = size < typed->of_before ? size : typed->of_before;
    assert(size <= typed->end - typed->begin);
    typed->begin += size;
    if (typed->begin == typed->end)
        typed->begin = typed->end = 0;
    typed->of_before -= before;
    typed->went += size - before;
    return size - before;
}
