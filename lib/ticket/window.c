/* window.c - see window.h. A counter c is in block c / TICKET_BLOCK_COUNT. That of a sheet has ATTEMPTS_MAX there from
 * its first task on, and the sheet knows more: so the window can move past a sheet that is in use, and what a sheet
 * that gave way knew counts as used. */
#include "config.h"

#include "lib/ticket/window.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ticket/blocks.h"
#include "lib/ticket/sheets.h"

enum { AHEAD = 4 };

struct block {
    uint64_t number;
    uint8_t attempts[TICKET_BLOCK_COUNT]; /* the highest that was used; 0: none */
};

struct signing {
    uint8_t key[TICKET_KEY_BYTES];
    uint64_t top; /* highest number of a block */
    struct block *slots[TICKET_SLOTS];
    struct sheets *sheets; /* NULL: it has no long arrays */
};

struct ticket_window {
    struct signing **hosts;
    size_t count;
};

struct ticket_window *ticket_window_create(void)
{
    return calloc(1, sizeof(struct ticket_window));
}

void ticket_window_destroy(struct ticket_window *window)
{
    for (size_t i = 0; window && i < window->count; i++) {
        for (size_t slot = 0; slot < TICKET_SLOTS; slot++)
            free(window->hosts[i]->slots[slot]);
        sheets_destroy(window->hosts[i]->sheets);
        free(window->hosts[i]);
    }
    if (window)
        free(window->hosts);
    free(window);
}

static struct signing *find(const struct ticket_window *window, const uint8_t *key)
{
    for (size_t i = 0; i < window->count; i++)
        if (memcmp(window->hosts[i]->key, key, TICKET_KEY_BYTES) == 0)
            return window->hosts[i];
    return NULL;
}

static struct signing *find_or_add(struct ticket_window *window, const uint8_t *key)
{
    struct signing *signing = find(window, key), **more;
    if (signing || window->count >= TICKET_WINDOW_KEYS)
        return signing;
    more = reallocarray(window->hosts, window->count + 1, sizeof(struct signing *));
    if (!more)
        return NULL;
    window->hosts = more;
    signing = calloc(1, sizeof(*signing));
    if (signing) {
        memcpy(signing->key, key, TICKET_KEY_BYTES);
        more[window->count++] = signing;
    }
    return signing;
}

static uint64_t lowest(uint64_t top)
{
    return top < TICKET_SLOTS ? 0 : top - TICKET_SLOTS + 1;
}

static bool has_sheet(const struct ticket *ticket)
{
    return ticket->ntasks > TICKET_SHEET_TASKS && ticket->task > 0;
}

static uint32_t row_of(const struct ticket *ticket)
{
    return (ticket->task - 1) % TICKET_SHEET_TASKS;
}

static enum ticket_refusal check_attempt(const struct ticket *ticket, uint8_t used, uint32_t attempt)
{
    return used == 0 || (ticket->requeue && attempt > used) ? TICKET_GOOD : TICKET_USED;
}

enum ticket_refusal ticket_window_check(const struct ticket_window *window, const struct ticket *ticket,
                                        uint32_t attempt)
{
    const struct signing *signing = find(window, ticket->key);
    uint64_t counter = ticket_counter_of(ticket), number = counter / TICKET_BLOCK_COUNT;
    int64_t sheet = signing && has_sheet(ticket) ? sheets_find(signing->sheets, counter) : -1;
    const struct block *block;
    uint8_t used;
    if (attempt == 0 || attempt > TICKET_ATTEMPTS_MAX)
        return TICKET_TOO_OFTEN;
    if (!signing)
        return TICKET_GOOD;
    if (sheet >= 0)
        return check_attempt(ticket, signing->sheets->items[sheet]->attempts[row_of(ticket)], attempt);
    if (number < lowest(signing->top))
        return TICKET_TOO_OLD;
    block = signing->slots[number % TICKET_SLOTS];
    if (!block || block->number < number)
        return TICKET_GOOD;
    if (block->number > number)
        return TICKET_TOO_OLD;
    used = block->attempts[counter % TICKET_BLOCK_COUNT];
    if (has_sheet(ticket))
        return used == 0 ? TICKET_GOOD : TICKET_TOO_OLD; /* its sheet gave way */
    return check_attempt(ticket, used, attempt);
}

static struct block *take_slot(struct signing *signing, uint64_t number)
{
    struct block **at = &signing->slots[number % TICKET_SLOTS];
    if (!*at)
        *at = calloc(1, sizeof(**at));
    if (*at && (*at)->number != number)
        **at = (struct block){.number = number};
    if (*at && number > signing->top)
        signing->top = number;
    return *at;
}

/* ---- blocks on disk: number + 1, attempts, FNV-1a of both ---- */

static void write_block(const struct block *block, uint8_t *out)
{
    block_put(out, block->number + 1);
    memcpy(out + 8, block->attempts, sizeof(block->attempts));
    block_seal(out);
}

uint64_t ticket_block_number(const uint8_t block[TICKET_BLOCK_BYTES], uint32_t slot)
{
    uint64_t number = block_get(block);
    return number > 0 && block_is_sealed(block) && (number - 1) % TICKET_SLOTS == slot ? number - 1 : UINT64_MAX;
}

static bool is_empty(const uint8_t *block)
{
    for (size_t i = 0; i < TICKET_BLOCK_BYTES; i++)
        if (block[i])
            return false;
    return true;
}

static void write_mark(const struct block *block, struct ticket_marks *marks)
{
    marks->slots[marks->count] = (uint32_t)(block->number % TICKET_SLOTS);
    write_block(block, marks->blocks[marks->count++]);
}

/* The number has, or had, a sheet. NULL: the window is past it, or there is no memory. */
static struct block *close_number(struct signing *signing, uint64_t counter)
{
    uint64_t number = counter / TICKET_BLOCK_COUNT;
    const struct block *there = signing->slots[number % TICKET_SLOTS];
    struct block *block =
        number < lowest(signing->top) || (there && there->number > number) ? NULL : take_slot(signing, number);
    if (block)
        block->attempts[counter % TICKET_BLOCK_COUNT] = TICKET_ATTEMPTS_MAX;
    return block;
}

/* The blocks go first: without its sheet a number counts as used. That of the sheet that gives way is there already,
 * but for a power cut. The place of the new sheet, or -1: no memory, nothing has changed. */
static int64_t new_sheet(struct signing *signing, uint64_t counter, uint32_t uid, struct ticket_marks *marks)
{
    struct sheet *sheet = calloc(1, sizeof(*sheet));
    const struct block *block;
    uint32_t place;
    if (!signing->sheets)
        signing->sheets = sheets_create();
    block = sheet && signing->sheets ? close_number(signing, counter) : NULL;
    if (!block) {
        free(sheet);
        return -1;
    }
    write_mark(block, marks);
    place = sheets_place(signing->sheets, uid);
    block = signing->sheets->items[place] ? close_number(signing, signing->sheets->numbers[place]) : NULL;
    if (block)
        write_mark(block, marks);
    sheet->number = counter;
    sheet->uid = uid;
    sheets_put(signing->sheets, place, sheet);
    return place;
}

static bool mark_on_sheet(struct signing *signing, const struct ticket *ticket, uint32_t attempt,
                          struct ticket_marks *marks)
{
    uint64_t counter = ticket_counter_of(ticket);
    int64_t place = sheets_find(signing->sheets, counter);
    struct sheet *sheet;
    if (place < 0)
        place = new_sheet(signing, counter, ticket->uid, marks);
    if (place < 0)
        return false;
    sheet = signing->sheets->items[place];
    sheet->moment = ++signing->sheets->moment;
    sheet->attempts[row_of(ticket)] = (uint8_t)attempt;
    marks->slots[marks->count] = TICKET_SLOTS + (uint32_t)place;
    sheet_write(sheet, marks->blocks[marks->count++]);
    return true;
}

bool ticket_window_mark(struct ticket_window *window, const struct ticket *ticket, uint32_t attempt,
                        struct ticket_marks *marks)
{
    struct signing *signing = find_or_add(window, ticket->key);
    uint64_t counter = ticket_counter_of(ticket), number = counter / TICKET_BLOCK_COUNT;
    struct block *block;
    assert(attempt > 0 && attempt <= TICKET_ATTEMPTS_MAX);
    marks->count = 0;
    if (signing && has_sheet(ticket))
        return mark_on_sheet(signing, ticket, attempt, marks);
    block = signing ? take_slot(signing, number) : NULL;
    if (!block)
        return false;
    block->attempts[counter % TICKET_BLOCK_COUNT] = (uint8_t)attempt;
    write_mark(block, marks);
    return true;
}

/* The highest block number that a damaged slot can have held: one of the AHEAD numbers above the top, if the slot is
 * that of one; else the last one up to the top. */
static uint64_t number_of_damaged(uint64_t top, uint32_t slot)
{
    uint64_t ahead = (slot + TICKET_SLOTS - top % TICKET_SLOTS) % TICKET_SLOTS, round = top - top % TICKET_SLOTS + slot;
    if (ahead > 0 && ahead <= AHEAD && top <= UINT64_MAX / TICKET_BLOCK_COUNT - AHEAD)
        return top + ahead;
    return round <= top || round < TICKET_SLOTS ? round : round - TICKET_SLOTS;
}

/* A damaged sheet is dropped. Its number was closed in its block before the sheet was written: it counts as used. */
static bool restore_sheet(struct ticket_window *window, const uint8_t *key, uint32_t place, const uint8_t *from)
{
    struct signing *signing = find_or_add(window, key);
    bool no_memory = false;
    struct sheet *sheet = signing ? sheet_read(from, &no_memory) : NULL;
    if (sheet && !signing->sheets)
        signing->sheets = sheets_create();
    if (!sheet || !signing->sheets) {
        no_memory = no_memory || !signing || sheet;
        free(sheet);
        return !no_memory;
    }
    (void)close_number(signing, sheet->number);
    sheets_put(signing->sheets, place, sheet);
    return true;
}

bool ticket_window_restore(struct ticket_window *window, const uint8_t key[TICKET_KEY_BYTES], uint32_t slot,
                           const uint8_t from[TICKET_BLOCK_BYTES], uint64_t top)
{
    uint64_t number = ticket_block_number(from, slot);
    struct signing *signing;
    struct block *block;
    assert(slot < TICKET_SLOTS + TICKET_SHEETS);
    if (is_empty(from))
        return true;
    if (slot >= TICKET_SLOTS)
        return restore_sheet(window, key, slot - TICKET_SLOTS, from);
    signing = find_or_add(window, key);
    block = signing ? take_slot(signing, number != UINT64_MAX ? number : number_of_damaged(top, slot)) : NULL;
    if (!block)
        return false;
    if (number != UINT64_MAX)
        memcpy(block->attempts, from + 8, sizeof(block->attempts));
    else
        memset(block->attempts, TICKET_ATTEMPTS_MAX, sizeof(block->attempts));
    return true;
}
