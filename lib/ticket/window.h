/* window.h - which tickets have been used on this host.
 *
 * Each host counts its tickets. Of each key this one remembers, for about the last million of its tickets, the highest
 * attempt in which each was used here; an older one is refused. So nothing has to be forgotten by a clock, and it takes
 * a megabyte at most for a key. (A key and not a host: one that is installed anew counts from the beginning.) What is
 * remembered is blocks of 512 bytes, each of which can be written alone: block number n is in slot n % TICKET_SLOTS of
 * the key's file (rsd/tickets/record.c).
 *
 * A task of an array has a number of its own, if there are few of them; of a long array each number is a sheet of 484
 * tasks. What is remembered of a sheet that is in use has a slot of its own behind those of the blocks, eight megabytes
 * at most for a key, so an array that runs for days does not become too old while others pass (sheets.h). */
#ifndef LIB_TICKET_WINDOW_H
#define LIB_TICKET_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "lib/ticket/ticket.h"

enum {
    TICKET_BLOCK_BYTES = 512, /* a sector: number, attempts, checksum */
    TICKET_BLOCK_COUNT = TICKET_BLOCK_BYTES - 16,
    TICKET_SLOTS = 2048,
    TICKET_SHEETS = 16384, /* in slots of their own, behind these */
    TICKET_SHEETS_OF_A_USER = TICKET_SHEETS / 8,
    TICKET_ATTEMPTS_MAX = 255,
    TICKET_WINDOW_KEYS = 16384 /* more have no certificates */
};

struct ticket_window; /* of all keys */

struct ticket_window *ticket_window_create(void); /* NULL: no memory */
void ticket_window_destroy(struct ticket_window *window);

/* May this attempt of the ticket begin here? Changes nothing. GOOD, USED, TOO_OLD, TOO_OFTEN. */
enum ticket_refusal ticket_window_check(const struct ticket_window *window, const struct ticket *ticket,
                                        uint32_t attempt);
/* What is to be written to the key's file, in this order. */
enum { TICKET_MARKS = 3 };
struct ticket_marks {
    uint32_t count;
    uint32_t slots[TICKET_MARKS];
    uint8_t blocks[TICKET_MARKS][TICKET_BLOCK_BYTES];
};
/* It begins. False: no memory, nothing has changed. After ticket_window_check() only. */
bool ticket_window_mark(struct ticket_window *window, const struct ticket *ticket, uint32_t attempt,
                        struct ticket_marks *marks);
/* What was in the file; sheets (slots from TICKET_SLOTS on) after all others. Zeros are a block that was never written.
 * A damaged block is taken as one whose tickets were all used: its number is what the slot has room for, below `top`,
 * the highest number of a good block. */
bool ticket_window_restore(struct ticket_window *window, const uint8_t key[TICKET_KEY_BYTES], uint32_t slot,
                           const uint8_t block[TICKET_BLOCK_BYTES], uint64_t top);
/* The number of a good block; UINT64_MAX: it is none. */
uint64_t ticket_block_number(const uint8_t block[TICKET_BLOCK_BYTES], uint32_t slot);

#endif
