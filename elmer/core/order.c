#include "elmer/core/order.h"

#include <assert.h>

enum { BEFORE, BEHIND };

static uint32_t size_of(const struct place *place)
{
    return place ? place->size : 0;
}

static uint32_t awake_in(const struct place *place)
{
    return place ? place->nawake : 0;
}

static void count(struct place *place)
{
    place->size = 1 + size_of(place->side[BEFORE]) + size_of(place->side[BEHIND]);
    place->nawake = place->awake + awake_in(place->side[BEFORE]) + awake_in(place->side[BEHIND]);
}

static void count_up(struct place *place)
{
    for (; place; place = place->up)
        count(place);
}

static int side_of(const struct place *place)
{
    return place->up->side[BEHIND] == place;
}

static void hang(struct order *order, struct place *up, int side, struct place *place)
{
    if (!up)
        order->root = place;
    else
        up->side[side] = place;
    if (place)
        place->up = up;
}

/* The place goes above the one that is above it now. */
static void rotate(struct order *order, struct place *place)
{
    struct place *above = place->up, *top = above->up;
    int side = side_of(place), of_above = top ? side_of(above) : 0;

    hang(order, above, side, place->side[!side]);
    hang(order, place, !side, above);
    hang(order, top, of_above, place);
    count(above);
    count(place);
}

static uint64_t mix(uint64_t number) /* splitmix64 */
{
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

void order_insert(struct order *order, struct place *place, uint64_t number, bool awake)
{
    struct place *up = NULL, *at = order->root;
    int side = BEFORE;

    assert(!place->in);
    while (at) {
        up = at;
        side = order->before(place, at, order->data) ? BEFORE : BEHIND;
        at = at->side[side];
    }
    *place = (struct place){.weight = mix(number), .in = true, .awake = awake};
    hang(order, up, side, place);
    count_up(place);
    while (place->up && place->up->weight < place->weight)
        rotate(order, place);
}

void order_remove(struct order *order, struct place *place)
{
    assert(place->in);
    for (;;) {
        struct place *before = place->side[BEFORE], *behind = place->side[BEHIND];
        if (!before || !behind)
            break;
        rotate(order, before->weight > behind->weight ? before : behind);
    }
    hang(order, place->up, place->up ? side_of(place) : 0,
         place->side[BEFORE] ? place->side[BEFORE] : place->side[BEHIND]);
    count_up(place->up);
    *place = (struct place){.in = false};
}

void order_wake(struct place *place, bool awake)
{
    assert(place->in);
    if (place->awake == awake)
        return;
    place->awake = awake;
    count_up(place);
}

uint32_t order_rank(const struct place *place)
{
    uint32_t rank = size_of(place->side[BEFORE]);

    for (; place->up; place = place->up)
        if (side_of(place) == BEHIND)
            rank += 1 + size_of(place->up->side[BEFORE]);
    return rank;
}

static struct place *outermost(struct place *place, int side)
{
    while (place && place->side[side])
        place = place->side[side];
    return place;
}

struct place *order_first(const struct order *order)
{
    return outermost(order->root, BEFORE);
}

static struct place *neighbour(const struct place *place, int side)
{
    if (place->side[side])
        return outermost(place->side[side], !side);
    while (place->up && side_of(place) == side)
        place = place->up;
    return place->up;
}

struct place *order_next(const struct place *place)
{
    return neighbour(place, BEHIND);
}

struct place *order_previous(const struct place *place)
{
    return neighbour(place, BEFORE);
}

static struct place *first_awake_in(struct place *place)
{
    if (awake_in(place) == 0)
        return NULL;
    for (;;) {
        if (awake_in(place->side[BEFORE]) > 0)
            place = place->side[BEFORE];
        else if (place->awake)
            return place;
        else
            place = place->side[BEHIND];
    }
}

struct place *order_first_awake(const struct order *order)
{
    return first_awake_in(order->root);
}

struct place *order_next_awake(const struct place *place)
{
    if (awake_in(place->side[BEHIND]) > 0)
        return first_awake_in(place->side[BEHIND]);
    for (; place->up; place = place->up) {
        if (side_of(place) == BEHIND)
            continue;
        if (place->up->awake)
            return place->up;
        if (awake_in(place->up->side[BEHIND]) > 0)
            return first_awake_in(place->up->side[BEHIND]);
    }
    return NULL;
}
