/* mem.h - the one policy for memory that runs out, of the queue daemon and its core: nobody checks for it. elmer stops
 * with a line, systemd starts it again, and it goes on from its store. What a peer can make large is bounded before it
 * gets here. (libelmer and what it is made of return an error instead: lib/base, lib/wire. A link has its own end for
 * it, lib/net/link.h: it closes, and what it was to carry is said again on the next one.) */
#ifndef LIB_MEMORY_MEM_H
#define LIB_MEMORY_MEM_H

#include <stddef.h>
#include <stdio.h>

/* Another program than elmer says first how it ends: the function must not return, nor ask for memory. */
void mem_set_end(void (*end)(void));
void *mem_checked(void *memory); /* that another one has made: NULL is the end */
void *mem_zalloc(size_t size);
void *mem_array(size_t count, size_t size); /* zeroed; never NULL */
void *mem_grow(void *old, size_t *capacity, size_t needed,
               size_t size); /* old or a larger copy with room for needed items */
void *mem_exactly(void *old, size_t count, size_t larger,
                  size_t size); /* count items become larger, the new ones zeroed */
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t max);
void *mem_copy(const void *from, size_t count, size_t size); /* never NULL */
char *mem_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

int mem_result(int result);                  /* of a function that returns an error: -ENOMEM is the end, else result */
FILE *mem_stream(char **text, size_t *size); /* as open_memstream(); never NULL */
void mem_stream_end(FILE *stream); /* closes it: all that was written to it is in *text, which the caller frees */

/* Many small pieces with one end. Zero-initialised is empty. */
struct arena {
    struct arena_chunk *chunks;
};
void *arena_alloc(struct arena *arena, size_t size); /* zeroed */
void *arena_array(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_clear(struct arena *arena); /* all pieces go; one chunk stays, for those to come */
void arena_fini(struct arena *arena);

#endif
