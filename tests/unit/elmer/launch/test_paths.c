/* test_paths.c - names of output files by pattern. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "elmer/launch/paths.h"

static void test_paths(void **state)
{
    struct arena memory = {0};
    struct err err = ERR_INIT;
    char large[5000];
    const struct path_facts facts = {.job = 42, .array = 40, .index = 12, .user = "bob", .name = "sim", .rank = 7},
                            shorter = {.job = 4, .user = "", .name = ""};
    (void)state;
    assert_string_equal(path_expand(&memory, "/o/%j-%u-%x.%r%%-%A.%a", &facts), "/o/42-bob-sim.7%-40.12");
    assert_string_equal(path_expand(&memory, "", &facts), "");
    assert_int_equal(path_check("%j%u%x%r%%", "output", &err), 0);
    assert_int_equal(path_check("a%", "output", &err), -1);
    err = (struct err)ERR_INIT;
    assert_int_equal(path_check("a%\xc3\xa9", "output", &err), -1);
    assert_non_null(strstr(err.text, "%j"));
    assert_int_equal(path_check("a\nb", "output", &err), -1);
    memset(large, 'a', sizeof(large));
    large[4094] = '%';
    large[4095] = 'j';
    large[4096] = 0;
    assert_null(path_expand(&memory, large, &facts));
    assert_non_null(path_expand(&memory, large, &shorter));
    arena_fini(&memory);
}

/* What is shown of a job has one name for all its ranks, which is filled in by whoever knows the rank. */
static void test_all_ranks(void **state)
{
    struct arena memory = {0};
    char large[4200];
    const struct path_facts shown = {.job = 42, .user = "bob", .name = "50%r", .ranks = true},
                            short_ones = {.job = 1, .user = "", .name = "", .ranks = true};
    (void)state;
    assert_string_equal(path_expand(&memory, "/o/%j-%u-%x.%r%%", &shown), "/o/42-bob-50%%r.%r%%");
    memset(large, 'a', sizeof(large));
    large[4093] = 0;
    assert_non_null(path_expand(&memory, large, &short_ones));
    memcpy(large + 4093, "%%", 3);
    assert_non_null(path_expand(&memory, large, &short_ones));
    memcpy(large + 4094, "%%", 3);
    assert_null(path_expand(&memory, large, &short_ones));
    arena_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_paths), cmocka_unit_test(test_all_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
