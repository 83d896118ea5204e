/* ring.h - what a terminal has printed, the last of it, with what somebody has seen of it. Places are counted from the
 * first byte that it has ever printed. */
#ifndef RSD_COURIER_RING_H
#define RSD_COURIER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/run/look.h"

struct ring {
    uint8_t *bytes;
    size_t capacity;
    uint64_t begin, end; /* what is kept */
    uint64_t seen;       /* somebody has written all before to where it can be read; <= end */
    uint64_t saved;      /* all before that nobody had seen is in the file of ring_save() */
};

bool ring_init(struct ring *ring, size_t capacity);
void ring_fini(struct ring *ring);
/* The oldest bytes make room, also those that nobody has seen. */
void ring_put(struct ring *ring, const void *bytes, size_t size);
/* begin <= place <= end. Bytes from there on: *size of them, 0 at the end, perhaps not all that there are. */
const uint8_t *ring_at(const struct ring *ring, uint64_t place, size_t *size);
/* Nobody has seen them, and nobody can any more. */
uint64_t ring_lost(const struct ring *ring);
/* Where what nobody has seen, and is kept, begins. */
uint64_t ring_unseen(const struct ring *ring);
/* Where the output begins for who looks: what a lost connection of his session has swallowed comes again. *lost: bytes
 * before that which he would see if they were kept. */
uint64_t ring_from(const struct ring *ring, const struct run_look *look, uint64_t *lost);
/* What nobody has seen goes there, once however often this is called. Not for ever: a file that cannot be written, or a
 * FIFO that nobody reads, ends it; so does one that takes nothing for patience_ms, -1: however long. */
void ring_save(struct ring *ring, int fd, int patience_ms);

#endif
