/* sheets.c - see sheets.h. On disk: number + 1, moment, uid, attempts, checksum. */
#include "config.h"

#include "lib/ticket/sheets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ticket/blocks.h"

enum { AT_MOMENT = 8, AT_UID = 16, AT_ATTEMPTS = 20 };

_Static_assert(AT_ATTEMPTS + TICKET_SHEET_TASKS + 8 == TICKET_BLOCK_BYTES, "a sheet is a block");

struct sheets *sheets_create(void)
{
    return calloc(1, sizeof(struct sheets));
}

void sheets_destroy(struct sheets *sheets)
{
    for (uint32_t i = 0; sheets && i < sheets->count; i++)
        free(sheets->items[i]);
    free(sheets);
}

int64_t sheets_find(const struct sheets *sheets, uint64_t number)
{
    for (uint32_t i = 0; sheets && i < sheets->count; i++)
        if (sheets->numbers[i] == number && sheets->items[i])
            return i;
    return -1;
}

uint32_t sheets_place(const struct sheets *sheets, uint32_t uid)
{
    int64_t oldest = -1, own_oldest = -1, hole = sheets->count < TICKET_SHEETS ? (int64_t)sheets->count : -1;
    uint32_t own = 0;
    for (uint32_t i = 0; i < sheets->count; i++) {
        const struct sheet *sheet = sheets->items[i];
        if (!sheet) {
            hole = i;
            continue;
        }
        if (oldest < 0 || sheet->moment < sheets->items[oldest]->moment)
            oldest = i;
        if (sheet->uid == uid && (own++ == 0 || sheet->moment < sheets->items[own_oldest]->moment))
            own_oldest = i;
    }
    return (uint32_t)(own >= TICKET_SHEETS_OF_A_USER ? own_oldest : hole >= 0 ? hole : oldest);
}

void sheets_put(struct sheets *sheets, uint32_t place, struct sheet *sheet)
{
    assert(place < TICKET_SHEETS);
    if (place >= sheets->count)
        sheets->count = place + 1;
    free(sheets->items[place]);
    sheets->items[place] = sheet;
    sheets->numbers[place] = sheet->number;
    sheets->moment = sheet->moment > sheets->moment ? sheet->moment : sheets->moment;
}

void sheet_write(const struct sheet *sheet, uint8_t out[TICKET_BLOCK_BYTES])
{
    block_put(out, sheet->number + 1);
    block_put(out + AT_MOMENT, sheet->moment);
    for (unsigned i = 0; i < 4; i++)
        out[AT_UID + i] = (uint8_t)(sheet->uid >> (24 - 8 * i));
    memcpy(out + AT_ATTEMPTS, sheet->attempts, sizeof(sheet->attempts));
    block_seal(out);
}

struct sheet *sheet_read(const uint8_t from[TICKET_BLOCK_BYTES], bool *no_memory)
{
    struct sheet *sheet;
    *no_memory = false;
    if (block_get(from) == 0 || !block_is_sealed(from))
        return NULL;
    sheet = calloc(1, sizeof(*sheet));
    *no_memory = !sheet;
    if (!sheet)
        return NULL;
    sheet->number = block_get(from) - 1;
    sheet->moment = block_get(from + AT_MOMENT);
    for (unsigned i = 0; i < 4; i++)
        sheet->uid = sheet->uid << 8 | from[AT_UID + i];
    memcpy(sheet->attempts, from + AT_ATTEMPTS, sizeof(sheet->attempts));
    return sheet;
}
