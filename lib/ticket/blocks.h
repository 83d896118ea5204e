/* blocks.h - what the blocks on disk have in common (window.c, sheets.c): numbers with their high byte first, and
 * FNV-1a of all else in the last eight bytes. */
#ifndef LIB_TICKET_BLOCKS_H
#define LIB_TICKET_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ticket/window.h"

static inline void block_put(uint8_t *out, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(number >> (56 - 8 * i));
}

static inline uint64_t block_get(const uint8_t *from)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < 8; i++)
        number = number << 8 | from[i];
    return number;
}

static inline uint64_t block_checksum(const uint8_t *block)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < TICKET_BLOCK_BYTES - 8; i++)
        sum = (sum ^ block[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static inline void block_seal(uint8_t *block)
{
    block_put(block + TICKET_BLOCK_BYTES - 8, block_checksum(block));
}

static inline bool block_is_sealed(const uint8_t *block)
{
    return block_get(block + TICKET_BLOCK_BYTES - 8) == block_checksum(block);
}

#endif
