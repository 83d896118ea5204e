/* mem.h - memory of the queue daemon. Small allocations of its own do not fail: out of memory elmer stops with a line,
 * systemd starts it again, and it goes on from its store. What a peer can make large is bounded before it gets here. */
#ifndef LIB_MEMORY_MEM_H
#define LIB_MEMORY_MEM_H

#include <stddef.h>

void *mem_zalloc(size_t size);
void *mem_array(size_t count, size_t size); /* zeroed; never NULL */
void *mem_grow(void *old, size_t *capacity, size_t needed,
               size_t size); /* old or a larger copy with room for needed items */
char *mem_strdup(const char *text);
char *mem_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Many small pieces with one end. Zero-initialised is empty. */
struct arena {
    struct arena_chunk *chunks;
};
void *arena_alloc(struct arena *arena, size_t size); /* zeroed */
void *arena_array(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_fini(struct arena *arena);

#endif
