/* map.h - a table from 64-bit numbers to pointers. Zero-initialised is empty. */
#ifndef LIB_MEMORY_MAP_H
#define LIB_MEMORY_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map {
    struct map_slot *slots;
    size_t capacity, count; /* capacity: a power of two, or 0 */
};

void *map_get(const struct map *map, uint64_t key);       /* NULL: not there */
void map_put(struct map *map, uint64_t key, void *value); /* replaces; value is not NULL */
void *map_remove(struct map *map, uint64_t key);          /* what was there, or NULL */
void *map_next(const struct map *map,
               size_t *cursor); /* all values in no order, cursor from 0; the map must not change meanwhile */
void map_fini(struct map *map); /* the values are the caller's */

#endif
