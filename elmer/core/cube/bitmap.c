/* bitmap.c - complete recognition: a k-cube with the stars S is free at v if the bitmap, folded by AND along each bit
 * of S, has bit v. */
#include "elmer/core/cube/internal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/memory/mem.h"

enum { WORD_BITS = 6 }; /* 2^6 in a word */

size_t bitmap_words(int dimension)
{
    return dimension > WORD_BITS ? (size_t)1 << (dimension - WORD_BITS) : 1;
}

bool bitmap_has(const uint64_t *bitmap, uint32_t bit)
{
    return (bitmap[bit >> WORD_BITS] >> (bit & 63) & 1) != 0;
}

static uint64_t word_of(struct subcube cube)
{
    uint64_t word = UINT64_C(1) << (cube.value & 63);

    for (uint32_t stars = cube.stars & 63; stars != 0; stars &= stars - 1)
        word |= word << (stars & -stars);
    return word;
}

static void change(uint64_t *bitmap, struct subcube cube, bool set)
{
    uint64_t word = word_of(cube);
    uint32_t stars = cube.stars >> WORD_BITS, at = 0;

    do {
        uint64_t *to = &bitmap[(cube.value >> WORD_BITS) | at];
        *to = set ? *to | word : *to & ~word;
        at = (at - stars) & stars; /* the next subset */
    } while (at != 0);
}

void bitmap_set(uint64_t *bitmap, struct subcube cube)
{
    change(bitmap, cube, true);
}

void bitmap_clear(uint64_t *bitmap, struct subcube cube)
{
    change(bitmap, cube, false);
}

/* to = from folded along the bit; false: nothing is left. */
static bool fold(const uint64_t *from, uint64_t *to, size_t words, int bit)
{
    static const uint64_t low[WORD_BITS] = {0x5555555555555555u, 0x3333333333333333u, 0x0f0f0f0f0f0f0f0fu,
                                            0x00ff00ff00ff00ffu, 0x0000ffff0000ffffu, 0x00000000ffffffffu};
    uint64_t any = 0;

    if (bit < WORD_BITS) {
        for (size_t i = 0; i < words; i++)
            any |= to[i] = from[i] & (from[i] >> (1 << bit)) & low[bit];
        return any != 0;
    }
    for (size_t i = 0, step = (size_t)1 << (bit - WORD_BITS); i < words; i++)
        any |= to[i] = (i & step) != 0 ? 0 : from[i] & from[i + step];
    return any != 0;
}

struct search {
    size_t words;
    int dimension;
    uint64_t *scratch;
    struct subcube *found;
};

static uint32_t first_bit(const uint64_t *bitmap)
{
    size_t i = 0;

    while (bitmap[i] == 0)
        i++;
    return (uint32_t)(i << WORD_BITS) + (uint32_t)__builtin_ctzll(bitmap[i]);
}

/* bitmap is not empty; so many stars are missing yet, all above `bit`. */
static bool search(const struct search *s, const uint64_t *bitmap, int bit, int missing, uint32_t stars)
{
    uint64_t *folded = s->scratch + (size_t)missing * s->words;

    if (missing == 0) {
        *s->found = (struct subcube){.stars = stars, .value = first_bit(bitmap)};
        return true;
    }
    for (; s->dimension - bit >= missing; bit++)
        if (fold(bitmap, folded, s->words, bit) && search(s, folded, bit + 1, missing - 1, stars | 1u << bit))
            return true;
    return false;
}

bool bitmap_recognise(const uint64_t *bitmap, int dimension, int k, uint64_t *scratch, struct subcube *found)
{
    const struct search s = {bitmap_words(dimension), dimension, scratch, found};
    uint64_t any = 0;

    for (size_t i = 0; i < s.words; i++)
        any |= bitmap[i];
    return any != 0 && k <= dimension && search(&s, bitmap, 0, k, 0);
}

bool cube_recognise(const uint64_t *bitmap, int dimension, int k, struct subcube *found)
{
    uint64_t *scratch = mem_array((size_t)(dimension + 1) * bitmap_words(dimension), sizeof(*scratch));
    bool is = bitmap_recognise(bitmap, dimension, k, scratch, found);

    free(scratch);
    return is;
}
