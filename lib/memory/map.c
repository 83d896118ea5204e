#include "config.h"

#include "lib/memory/map.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/memory/mem.h"

struct map_slot {
    uint64_t key;
    void *value; /* NULL: free */
};

static size_t home(const struct map *map, uint64_t key)
{
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return (size_t)(key >> 32) & (map->capacity - 1);
}

static size_t find(const struct map *map, uint64_t key)
{
    size_t at = home(map, key);
    while (map->slots[at].value && map->slots[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

void *map_get(const struct map *map, uint64_t key)
{
    return map->capacity ? map->slots[find(map, key)].value : NULL;
}

static void grow(struct map *map)
{
    struct map old = *map;
    map->capacity = old.capacity ? old.capacity * 2 : 16;
    map->slots = mem_array(map->capacity, sizeof(*map->slots));
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].value)
            map->slots[find(map, old.slots[i].key)] = old.slots[i];
    free(old.slots);
}

void map_put(struct map *map, uint64_t key, void *value)
{
    assert(value); /* NULL is a free slot */
    if ((map->count + 1) * 3 > map->capacity * 2)
        grow(map);
    struct map_slot *slot = &map->slots[find(map, key)];
    if (!slot->value)
        map->count++;
    slot->key = key;
    slot->value = value;
}

void *map_remove(struct map *map, uint64_t key)
{
    if (!map->capacity)
        return NULL;
    size_t hole = find(map, key);
    void *value = map->slots[hole].value;
    if (!value)
        return NULL;
    assert(map->count > 0);
    map->slots[hole].value = NULL;
    map->count--;
    /* Move back those that would no longer be found across the hole. */
    for (size_t at = (hole + 1) & (map->capacity - 1); map->slots[at].value; at = (at + 1) & (map->capacity - 1)) {
        size_t want = home(map, map->slots[at].key);
        if (((at - want) & (map->capacity - 1)) < ((at - hole) & (map->capacity - 1)))
            continue;
        map->slots[hole] = map->slots[at];
        map->slots[at].value = NULL;
        hole = at;
    }
    return value;
}

void *map_next(const struct map *map, size_t *cursor)
{
    while (*cursor < map->capacity) {
        void *value = map->slots[(*cursor)++].value;
        if (value)
            return value;
    }
    return NULL;
}

void map_fini(struct map *map)
{
    free(map->slots);
    *map = (struct map){0};
}
