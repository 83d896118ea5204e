/* test_arguments.c - the command line of a task: its index in the place of {}. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "rsd/sup/arguments.h"

static void all_braces_are_the_index(void **state)
{
    const char *given[] = {"./run{}", "{}", "in.{}-{}.dat", "{", "}{", "{}}", "", "{ }"};
    const char *const expected[] = {"./run12", "12", "in.12-12.dat", "{", "}{", "12}", "", "{ }"};
    const struct wire_strs list = {given, 8};
    char **made = arguments_make(&list, false, "12", NULL);
    (void)state;
    for (size_t i = 0; i < list.count; i++)
        assert_string_equal(made[i], expected[i]);
    assert_null(made[list.count]);
    free(made);
}

static void a_line_and_its_columns(void **state)
{
    const char *given[] = {"./run", "{}", "-x{2}", "{1},{3}", "{99}", "{0}", "{100}", "{01}", "{1"};
    const char *const expected[] = {"./run", "a  b\tcd", "-xb", "a,cd", "", "{0}", "{100}", "{01}", "{1"};
    const struct wire_strs list = {given, 9};
    char **made = arguments_make(&list, false, "12", "a  b\tcd");
    (void)state;
    for (size_t i = 0; i < list.count; i++)
        assert_string_equal(made[i], expected[i]);
    free(made);
    made = arguments_make(&list, false, "12", NULL);
    assert_string_equal(made[1], "12");
    assert_string_equal(made[2], "-x{2}"); /* of an array without lines */
    free(made);
}

/* Whatever was not checked on the way here. */
static void no_more_than_the_kernel_takes(void **state)
{
    enum { TIMES = 2000 };
    static char argument[2 * TIMES + 1], line[4096];
    const char *given[] = {argument};
    const struct wire_strs list = {given, 1};
    (void)state;
    for (size_t i = 0; i < TIMES; i++)
        memcpy(argument + 2 * i, "{}", 2);
    memset(line, 'x', sizeof(line) - 1);
    assert_null(arguments_make(&list, false, "1", line));
}

static void without_an_index_all_stays(void **state)
{
    const char *given[] = {"find", ".", "-exec", "cat", "{}", ";"};
    const struct wire_strs list = {given, 6}, none = {given, 0};
    char **made = arguments_make(&list, false, NULL, NULL);
    (void)state;
    for (size_t i = 0; i < list.count; i++)
        assert_string_equal(made[i], given[i]);
    assert_null(made[list.count]);
    free(made);
    made = arguments_make(&none, false, "1", NULL);
    assert_null(made[0]);
    free(made);
}

static void a_terminal_is_held_by_the_courier(void **state)
{
    const char *given[] = {"bash", "-l"};
    const struct wire_strs list = {given, 2};
    char **made = arguments_make(&list, true, NULL, NULL);
    (void)state;
    assert_string_equal(made[0], ELMER_LIBEXECDIR "/elmer-courier");
    assert_string_equal(made[1], "--terminal");
    assert_string_equal(made[2], "bash");
    assert_string_equal(made[3], "-l");
    assert_null(made[4]);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_is_held_by_the_courier), cmocka_unit_test(all_braces_are_the_index),
        cmocka_unit_test(a_line_and_its_columns), cmocka_unit_test(no_more_than_the_kernel_takes),
        cmocka_unit_test(without_an_index_all_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
