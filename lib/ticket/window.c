/* window.c - see window.h. A counter c is in block c / TICKET_BLOCK_COUNT. */
#include "config.h"

#include "lib/ticket/window.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { AHEAD = 4 };

struct block {
    uint64_t number;
    uint8_t attempts[TICKET_BLOCK_COUNT]; /* the highest that was used; 0: none */
};

struct signing {
    uint8_t key[TICKET_KEY_BYTES];
    uint64_t top; /* highest number of a block */
    struct block *slots[TICKET_SLOTS];
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

enum ticket_refusal ticket_window_check(const struct ticket_window *window, const struct ticket *ticket,
                                        uint32_t attempt)
{
    const struct signing *signing = find(window, ticket->key);
    uint64_t number = ticket_counter_of(ticket) / TICKET_BLOCK_COUNT;
    const struct block *block;
    uint8_t used;
    if (attempt == 0 || attempt > TICKET_ATTEMPTS_MAX)
        return TICKET_TOO_OFTEN;
    if (!signing)
        return TICKET_GOOD;
    if (number < lowest(signing->top))
        return TICKET_TOO_OLD;
    block = signing->slots[number % TICKET_SLOTS];
    if (!block || block->number < number)
        return TICKET_GOOD;
    if (block->number > number)
        return TICKET_TOO_OLD;
    used = block->attempts[ticket_counter_of(ticket) % TICKET_BLOCK_COUNT];
    return used == 0 || (ticket->requeue && attempt > used) ? TICKET_GOOD : TICKET_USED;
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

static void put(uint8_t *out, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(number >> (56 - 8 * i));
}

static uint64_t get(const uint8_t *from)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < 8; i++)
        number = number << 8 | from[i];
    return number;
}

static uint64_t checksum(const uint8_t *block)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < TICKET_BLOCK_BYTES - 8; i++)
        sum = (sum ^ block[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void write_block(const struct block *block, uint8_t *out)
{
    put(out, block->number + 1);
    memcpy(out + 8, block->attempts, sizeof(block->attempts));
    put(out + TICKET_BLOCK_BYTES - 8, checksum(out));
}

uint64_t ticket_block_number(const uint8_t block[TICKET_BLOCK_BYTES], uint32_t slot)
{
    uint64_t number = get(block);
    return number > 0 && get(block + TICKET_BLOCK_BYTES - 8) == checksum(block) && (number - 1) % TICKET_SLOTS == slot
               ? number - 1
               : UINT64_MAX;
}

static bool is_empty(const uint8_t *block)
{
    for (size_t i = 0; i < TICKET_BLOCK_BYTES; i++)
        if (block[i])
            return false;
    return true;
}

bool ticket_window_mark(struct ticket_window *window, const struct ticket *ticket, uint32_t attempt, uint32_t *slot,
                        uint8_t out[TICKET_BLOCK_BYTES])
{
    struct signing *signing = find_or_add(window, ticket->key);
    uint64_t number = ticket_counter_of(ticket) / TICKET_BLOCK_COUNT;
    struct block *block = signing ? take_slot(signing, number) : NULL;
    assert(attempt > 0 && attempt <= TICKET_ATTEMPTS_MAX);
    if (!block)
        return false;
    block->attempts[ticket_counter_of(ticket) % TICKET_BLOCK_COUNT] = (uint8_t)attempt;
    *slot = (uint32_t)(number % TICKET_SLOTS);
    write_block(block, out);
    return true;
}

/* The latest that could have been there: the next ones after the top, if it was damaged when it was new, else below. */
static uint64_t number_of_damaged(uint64_t top, uint32_t slot)
{
    uint64_t ahead = (slot + TICKET_SLOTS - top % TICKET_SLOTS) % TICKET_SLOTS, round = top - top % TICKET_SLOTS + slot;
    if (ahead > 0 && ahead <= AHEAD && top <= UINT64_MAX / TICKET_BLOCK_COUNT - AHEAD)
        return top + ahead;
    return round <= top || round < TICKET_SLOTS ? round : round - TICKET_SLOTS;
}

bool ticket_window_restore(struct ticket_window *window, const uint8_t key[TICKET_KEY_BYTES], uint32_t slot,
                           const uint8_t from[TICKET_BLOCK_BYTES], uint64_t top)
{
    uint64_t number = ticket_block_number(from, slot);
    struct signing *signing;
    struct block *block;
    assert(slot < TICKET_SLOTS);
    if (is_empty(from))
        return true;
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
