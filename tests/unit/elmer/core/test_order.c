/* test_order.c - the order of those who wait, beside an array that is searched from its beginning. */
#include "elmer/core/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/container.h"

enum { ITEMS = 400, STEPS = 20000, MANY = 100000 };

struct item {
    int key;
    struct place place;
};

static bool before(const struct place *a, const struct place *b, const void *data)
{
    (void)data;
    return CONTAINER_OF(a, const struct item, place)->key < CONTAINER_OF(b, const struct item, place)->key;
}

static unsigned draw(uint64_t *random, unsigned n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*random >> 33) % n;
}

static const struct item *item_at(const struct place *place)
{
    return place ? CONTAINER_OF(place, const struct item, place) : NULL;
}

/* The items are in the order of their keys. */
static void compare(const struct order *order, const struct item *items)
{
    const struct place *all = order_first(order), *awake = order_first_awake(order);
    const struct item *last = NULL;
    uint32_t rank = 0;

    for (int i = 0; i < ITEMS; i++) {
        if (!items[i].place.in)
            continue;
        assert_ptr_equal(item_at(all), &items[i]);
        assert_int_equal(order_rank(all), rank++);
        assert_ptr_equal(item_at(order_previous(all)), last);
        if (last && items[i].place.awake && !last->place.awake)
            assert_ptr_equal(item_at(order_next_awake(&last->place)), &items[i]);
        if (items[i].place.awake) {
            assert_ptr_equal(item_at(awake), &items[i]);
            awake = order_next_awake(awake);
        }
        last = &items[i];
        all = order_next(all);
    }
    assert_null(all);
    assert_null(awake);
    assert_int_equal(order->root ? order->root->size : 0, rank);
}

static void test_beside_an_array(void **state)
{
    static struct item items[ITEMS];
    struct order order = {.before = before};
    uint64_t random = 1;

    (void)state;
    for (int i = 0; i < ITEMS; i++)
        items[i].key = i;
    for (int step = 0; step < STEPS; step++) {
        struct item *item = &items[draw(&random, ITEMS)];
        if (!item->place.in)
            order_insert(&order, &item->place, (uint64_t)item->key, draw(&random, 3) > 0);
        else if (draw(&random, 2) == 0)
            order_remove(&order, &item->place);
        else
            order_wake(&item->place, draw(&random, 3) == 0);
        if (step % 20 == 0)
            compare(&order, items);
    }
}

static int height_of(const struct place *place)
{
    int height = 0;

    for (; place; place = place->up)
        height++;
    return height;
}

/* As jobs come: each behind all. A list would be 100,000 high. */
static void test_balanced(void **state)
{
    struct item *items = calloc(MANY, sizeof(*items));
    struct order order = {.before = before};
    int highest = 0;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        items[i].key = i;
        order_insert(&order, &items[i].place, (uint64_t)i, i + 1 == MANY);
    }
    for (int i = 0; i < MANY; i++)
        if (height_of(&items[i].place) > highest)
            highest = height_of(&items[i].place);
    assert_in_range(highest, 17, 70);
    assert_ptr_equal(item_at(order_first_awake(&order)), &items[MANY - 1]);
    assert_ptr_equal(item_at(order_next_awake(&items[0].place)), &items[MANY - 1]);
    assert_int_equal(order_rank(&items[MANY - 1].place), MANY - 1);
    for (int i = 0; i < MANY; i++)
        order_remove(&order, &items[i].place);
    assert_null(order.root);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside_an_array), cmocka_unit_test(test_balanced)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
