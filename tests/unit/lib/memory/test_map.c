/* test_map.c - the map, against a plain array. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "lib/memory/map.h"

static void test_map(void **state)
{
    static char values[4096];
    bool there[4096] = {false};
    struct map map = {0};
    size_t count = 0;
    uint64_t random = 88172645463325252u;
    (void)state;
    assert_null(map_get(&map, 0));
    assert_null(map_remove(&map, 7));
    for (int i = 0; i < 200000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t key = random % 4096;
        if (random & (1u << 20)) {
            map_put(&map, key, &values[key]);
            count += !there[key];
            there[key] = true;
        } else {
            assert_ptr_equal(map_remove(&map, key), there[key] ? &values[key] : NULL);
            count -= there[key];
            there[key] = false;
        }
        assert_int_equal(map.count, count);
    }
    for (size_t key = 0; key < 4096; key++)
        assert_ptr_equal(map_get(&map, key), there[key] ? &values[key] : NULL);
    size_t cursor = 0, seen = 0;
    while (map_next(&map, &cursor))
        seen++;
    assert_int_equal(seen, count);
    map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_map)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
