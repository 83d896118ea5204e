/* test_lines.c - lines of tasks. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/job/lines.h"

static const char *const plain[] = {"./run", "{}"};

/* What is wrong, with the number of the line; "": nothing. */
static const char *check(const char *text, uint32_t count, const char *const *command, size_t ncommand)
{
    static char said[LINES_WHY + 20];
    char why[LINES_WHY];
    uint32_t line;
    if (lines_check(text, count, command, ncommand, &line, why) == 0)
        return "";
    snprintf(said, sizeof(said), "%u: %s", (unsigned)line, why);
    return said;
}

static void good_lines(void **state)
{
    const char *const columns[] = {"./run", "{2}", "--x={1}", "{}", "{12}x", "{0}", "{100}", "{1"};
    (void)state;
    assert_int_equal(lines_count(""), 0);
    assert_int_equal(lines_count("a"), 1);
    assert_int_equal(lines_count("a\n"), 1);
    assert_int_equal(lines_count("a\n\nb"), 3);
    assert_string_equal(check("a\nb c\td \n", 2, plain, 2), "");
    assert_string_equal(check("a\nb", 2, plain, 2), "");
    assert_string_equal(check("1 2 3 4 5 6 7 8 9 10 11 12", 1, columns, 8), "");
    assert_int_equal(lines_cost("a\n\t\"\\"), 1 + 3 + 3 + 4 + 4);
}

static void bad_lines(void **state)
{
    const char *const columns[] = {"./run", "{2}"};
    char *text = malloc(LINES_BYTES_MAX + 2), *argument = malloc(LINES_COMMAND_MAX);
    const char *const many[] = {argument};
    (void)state;
    assert_string_equal(check("a\nb\n", 3, plain, 2), "0: there are 2 lines, and 3 tasks: it is one for each");
    assert_string_equal(check("a\n \t\nb\n", 3, plain, 2), "2: is empty: each line is a task, take it out");
    assert_string_equal(check("a\n\nb\n", 3, plain, 2), "2: is empty: each line is a task, take it out");
    assert_non_null(strstr(check("a\r\nb\r\n", 2, plain, 2), "1: has a carriage return"));
    assert_non_null(strstr(check("a\nb\033[2J\n", 2, plain, 2), "2: has a control character"));
    assert_string_equal(check("a b\nc\n", 2, columns, 2), "2: has only 1 column, and the command has {2}");
    assert_string_equal(check("a b\nc", 2, columns, 2), "2: has only 1 column, and the command has {2}");
    memset(text, 'x', LINES_BYTES_MAX + 1);
    text[LINES_BYTES_MAX + 1] = 0;
    assert_non_null(strstr(check(text, 1, plain, 2), "0: the lines are more than 640 KiB"));
    text[LINE_BYTES_MAX + 1] = 0;
    assert_non_null(strstr(check(text, 1, plain, 2), "1: is longer than 4095 bytes"));
    text[LINE_BYTES_MAX] = 0;
    assert_string_equal(check(text, 1, plain, 2), "");
    for (size_t i = 0; i < 200; i += 2)
        memcpy(argument + i, "{}", 3);
    assert_string_equal(check(text, 1, many, 1), "1: makes the command longer than 256 KiB");
    argument[126] = 0;
    assert_string_equal(check(text, 1, many, 1), "");
    free(text);
    free(argument);
}

static void columns_are_between_blanks(void **state)
{
    const char line[] = " a\tbc   d ";
    size_t size = 0;
    (void)state;
    assert_memory_equal(line_column(line, strlen(line), 2, &size), "bc", 2);
    assert_int_equal(size, 2);
    assert_memory_equal(line_column(line, strlen(line), 3, &size), "d", 1);
    assert_int_equal(size, 1);
    assert_null(line_column(line, strlen(line), 4, &size));
    assert_null(line_column("  ", 2, 1, &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_lines), cmocka_unit_test(bad_lines),
                                       cmocka_unit_test(columns_are_between_blanks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
