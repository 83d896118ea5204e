#include "config.h"

#include "lib/memory/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"

static void (*other_end)(void); /* NULL: that of elmer */

void mem_set_end(void (*end)(void))
{
    other_end = end;
}

void *mem_checked(void *memory)
{
    if (!memory && other_end)
        other_end();
    if (!memory) {
        log_error("out of memory: elmer stops; when it is started again it goes on from its store");
        abort();
    }
    return memory;
}

void *mem_zalloc(size_t size)
{
    return mem_checked(calloc(1, size ? size : 1));
}

void *mem_array(size_t count, size_t size)
{
    return mem_checked(calloc(count ? count : 1, size));
}

void *mem_grow(void *old, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity)
        return old;
    size_t larger = *capacity ? *capacity * 2 : 16;
    if (larger < needed)
        larger = needed;
    *capacity = larger;
    return mem_checked(reallocarray(old, larger, size));
}

void *mem_exactly(void *old, size_t count, size_t larger, size_t size)
{
    assert(larger >= count);
    char *items = mem_checked(reallocarray(old, larger ? larger : 1, size));
    if (larger > count)
        memset(items + count * size, 0, (larger - count) * size);
    return items;
}

char *mem_strdup(const char *text)
{
    return mem_checked(strdup(text));
}

char *mem_strndup(const char *text, size_t max)
{
    return mem_checked(strndup(text, max));
}

void *mem_copy(const void *from, size_t count, size_t size)
{
    void *copy = mem_checked(reallocarray(NULL, count ? count : 1, size));
    return count ? memcpy(copy, from, count * size) : copy;
}

static char *format_list(const char *format, va_list list)
{
    char *text = NULL;
    if (vasprintf(&text, format, list) < 0)
        text = NULL;
    return mem_checked(text);
}

char *mem_format(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = format_list(format, list);
    va_end(list);
    return text;
}

int mem_result(int result)
{
    if (result == -ENOMEM)
        mem_checked(NULL);
    return result;
}

FILE *mem_stream(char **text, size_t *size)
{
    return mem_checked(open_memstream(text, size));
}

void mem_stream_end(FILE *stream)
{
    bool cut = ferror(stream); /* an fprintf() that nobody has asked */
    if (fclose(stream) != 0 || cut)
        mem_checked(NULL);
}

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

enum { CHUNK = 1024, CHUNK_MAX = 16 << 10 }; /* each is twice as large as the one before */

void *arena_alloc(struct arena *arena, size_t size)
{
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t room = !chunk ? CHUNK : chunk->size < CHUNK_MAX / 2 ? 2 * chunk->size : CHUNK_MAX;
        if (room < size)
            room = size;
        chunk = mem_zalloc(sizeof(*chunk) + room);
        chunk->size = room;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    void *piece = chunk->bytes + chunk->used;
    chunk->used += size;
    return piece;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / 2 / size)
        mem_checked(NULL);
    return arena_alloc(arena, count * size);
}

char *arena_strdup(struct arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(arena_alloc(arena, size), text, size);
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = format_list(format, list);
    va_end(list);
    char *copy = arena_strdup(arena, text);
    free(text);
    return copy;
}

static void free_chunks(struct arena_chunk *chunk)
{
    while (chunk) {
        struct arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void arena_clear(struct arena *arena)
{
    struct arena_chunk *kept = arena->chunks;
    if (!kept)
        return;
    free_chunks(kept->next);
    kept->next = NULL;
    memset(kept->bytes, 0, kept->used);
    kept->used = 0;
}

void arena_fini(struct arena *arena)
{
    free_chunks(arena->chunks);
    arena->chunks = NULL;
}
