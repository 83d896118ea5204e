#include "config.h"

#include "rsd/courier/ring.h"

#include <assert.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ring_init(struct ring *ring, size_t capacity)
{
    *ring = (struct ring){.bytes = malloc(capacity), .capacity = capacity};
    return ring->bytes != NULL;
}

void ring_fini(struct ring *ring)
{
    free(ring->bytes);
    ring->bytes = NULL;
}

/* Not over the end of the memory. */
static size_t up_to_edge(const struct ring *ring, uint64_t place, size_t size)
{
    size_t left = ring->capacity - (size_t)(place % ring->capacity);
    return size < left ? size : left;
}

void ring_put(struct ring *ring, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    if (size > ring->capacity) { /* the rest would be written over at once */
        from += size - ring->capacity;
        ring->end += size - ring->capacity;
        size = ring->capacity;
    }
    while (size > 0) {
        size_t piece = up_to_edge(ring, ring->end, size);
        memcpy(ring->bytes + ring->end % ring->capacity, from, piece);
        ring->end += piece;
        from += piece;
        size -= piece;
    }
    if (ring->end - ring->begin > ring->capacity)
        ring->begin = ring->end - ring->capacity;
}

const uint8_t *ring_at(const struct ring *ring, uint64_t place, size_t *size)
{
    assert(place >= ring->begin && place <= ring->end);
    *size = up_to_edge(ring, place, (size_t)(ring->end - place));
    return ring->bytes + place % ring->capacity;
}

uint64_t ring_lost(const struct ring *ring)
{
    return ring->begin > ring->seen ? ring->begin - ring->seen : 0;
}

uint64_t ring_unseen(const struct ring *ring)
{
    return ring->seen + ring_lost(ring);
}

uint64_t ring_from(const struct ring *ring, const struct run_look *look, uint64_t *lost)
{
    uint64_t from = look->seen;
    *lost = ring_lost(ring);
    if (look->seen == RUN_LOOK_ALL)
        return ring->begin;
    if (look->seen == RUN_LOOK_UNSEEN || look->seen > ring->end)
        return ring_unseen(ring);
    if (look->session == 0 && from < ring->seen)
        from = ring->seen;
    *lost = from < ring->begin ? ring->begin - from : 0;
    return from + *lost;
}

/* In pieces that a FIFO with room for any takes without a wait. */
void ring_save(struct ring *ring, int fd, int patience_ms)
{
    struct pollfd file = {.fd = fd, .events = POLLOUT};
    uint64_t unseen = ring_unseen(ring);
    ring->saved = ring->saved < unseen ? unseen : ring->saved;
    while (ring->saved < ring->end && poll(&file, 1, patience_ms) > 0) {
        size_t size;
        const uint8_t *bytes = ring_at(ring, ring->saved, &size);
        ssize_t written = write(fd, bytes, size < PIPE_BUF ? size : PIPE_BUF);
        if (written <= 0)
            return;
        ring->saved += (uint64_t)written;
    }
}
