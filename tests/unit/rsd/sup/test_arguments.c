/* test_arguments.c - the command line of a task: its index in the place of {}. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "rsd/sup/arguments.h"

static void all_braces_are_the_index(void **state)
{
    const char *given[] = {"./run{}", "{}", "in.{}-{}.dat", "{", "}{", "{}}", "", "{ }"};
    const char *const expected[] = {"./run12", "12", "in.12-12.dat", "{", "}{", "12}", "", "{ }"};
    const struct wire_strs list = {given, 8};
    char **made = arguments_make(&list, "12");
    (void)state;
    for (size_t i = 0; i < list.count; i++)
        assert_string_equal(made[i], expected[i]);
    assert_null(made[list.count]);
    free(made);
}

static void without_an_index_all_stays(void **state)
{
    const char *given[] = {"find", ".", "-exec", "cat", "{}", ";"};
    const struct wire_strs list = {given, 6}, none = {given, 0};
    char **made = arguments_make(&list, NULL);
    (void)state;
    for (size_t i = 0; i < list.count; i++)
        assert_string_equal(made[i], given[i]);
    assert_null(made[list.count]);
    free(made);
    made = arguments_make(&none, "1");
    assert_null(made[0]);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_braces_are_the_index),
                                       cmocka_unit_test(without_an_index_all_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
