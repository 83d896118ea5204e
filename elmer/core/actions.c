/* actions.c - the list that a step fills. Orders live in chunks beside it and go with actions_clear(). */
#include "elmer/core/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 4096 - 64 };

struct chunk {
    struct chunk *next;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

void actions_init(struct actions *actions)
{
    memset(actions, 0, sizeof(*actions));
}

static void free_chunks(struct chunk *chunk)
{
    while (chunk != NULL) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

/* Keeps one chunk, so that a quiet core does not allocate at all. */
void actions_clear(struct actions *actions)
{
    struct chunk *chunk = actions->memory;

    actions->count = 0;
    if (chunk == NULL)
        return;
    free_chunks(chunk->next);
    chunk->next = NULL;
    chunk->used = 0;
}

void actions_fini(struct actions *actions)
{
    free_chunks(actions->memory);
    free(actions->items);
    actions_init(actions);
}

int actions_reserve(struct actions *actions, size_t more)
{
    size_t capacity = actions->capacity < 16 ? 16 : actions->capacity;
    struct action *items;

    if (actions->capacity - actions->count >= more)
        return 0;
    while (capacity - actions->count < more)
        capacity *= 2;
    items = realloc(actions->items, capacity * sizeof(*items));
    if (items == NULL)
        return -ENOMEM;
    actions->items = items;
    actions->capacity = capacity;
    return 0;
}

struct action *actions_push(struct actions *actions, enum action_type type)
{
    struct action *action;

    assert(actions->count < actions->capacity);
    action = &actions->items[actions->count++];
    memset(action, 0, sizeof(*action));
    action->type = type;
    action->host = -1;
    return action;
}

void *actions_alloc(struct actions *actions, size_t size)
{
    struct chunk *chunk = actions->memory;
    void *bytes;

    size = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    if (chunk == NULL || chunk->size - chunk->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = malloc(sizeof(*chunk) + room);
        if (chunk == NULL)
            return NULL;
        chunk->next = actions->memory;
        chunk->used = 0;
        chunk->size = room;
        actions->memory = chunk;
    }
    bytes = chunk->bytes + chunk->used;
    chunk->used += size;
    return bytes;
}
