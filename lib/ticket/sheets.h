/* sheets.h - which tasks of long arrays have been used on this host: a part of window.c.
 *
 * Each number of a long array is a sheet of TICKET_SHEET_TASKS tasks (ticket_numbers_of()), with the highest attempt in
 * which each was used. A sheet is made when the first of its tasks is used here, and what was made stays while there is
 * room, however many tickets are signed meanwhile. Where there is none, the sheet that was used the longest time ago
 * gives way, one of the same user if he has his share. The window knows that it was there, so no task of it is good
 * again. */
#ifndef LIB_TICKET_SHEETS_H
#define LIB_TICKET_SHEETS_H

#include "lib/ticket/window.h"

struct sheet {
    uint64_t number, moment; /* moment: when it was last used; they count what is used of the key */
    uint32_t uid;
    uint8_t attempts[TICKET_SHEET_TASKS];
};

struct sheets {
    uint64_t moment;
    uint32_t count; /* of places; a place is that of the file */
    uint64_t numbers[TICKET_SHEETS];
    struct sheet *items[TICKET_SHEETS]; /* NULL: none */
};

struct sheets *sheets_create(void);         /* NULL: no memory */
void sheets_destroy(struct sheets *sheets); /* NULL: nothing */
/* The place of a number; -1: it has no sheet. sheets: NULL has none. */
int64_t sheets_find(const struct sheets *sheets, uint64_t number);
/* The place for a new sheet of this user: a free one, or one whose sheet gives way. */
uint32_t sheets_place(const struct sheets *sheets, uint32_t uid);
/* The sheet belongs to `sheets` from now on; what was there is freed. */
void sheets_put(struct sheets *sheets, uint32_t place, struct sheet *sheet);

void sheet_write(const struct sheet *sheet, uint8_t out[TICKET_BLOCK_BYTES]);
/* NULL: the bytes are no good sheet, or (*no_memory) there is none. */
struct sheet *sheet_read(const uint8_t from[TICKET_BLOCK_BYTES], bool *no_memory);

#endif
