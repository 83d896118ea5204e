/* test_table.c - tables of the commands: whole without a terminal, fitted with one. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/table.h"

static const struct table_column columns[] = {{"ID", true, false}, {"NAME", false, true}, {"WHY", false, false}};

static void check(const char *const (*rows)[3], size_t nrows, size_t width, const char *expected)
{
    struct table table;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    table_init(&table, columns, 3);
    for (size_t i = 0; i < nrows; i++)
        table_add(&table, rows[i]);
    table_print(&table, out, width);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, expected);
    free(text);
    table_fini(&table);
}

static const char *const rows[][3] = {
    {"1", "short", ""}, {"1000", "a name of twenty-six bytes", "waits behind two other jobs that came before it"}};

static void test_whole(void **data)
{
    (void)data;
    check(rows, 2, 0,
          "  ID  NAME                        WHY\n"
          "   1  short                       -\n"
          "1000  a name of twenty-six bytes  waits behind two other jobs that came before it\n");
}

static void test_fitted(void **data)
{
    (void)data;
    check(rows, 2, 74,
          "  ID  NAME                        WHY\n"
          "   1  short                       -\n"
          "1000  a name of twenty-six bytes  waits behind two other jobs that came\n"
          "                                  before it\n");
    check(rows, 2, 45,
          "  ID  NAME                        WHY\n"
          "   1  short                       -\n"
          "1000  a name of twenty-six bytes  \n"
          "     waits behind two other jobs that came\n"
          "     before it\n");
    check(rows, 2, 30,
          "  ID  NAME          WHY\n"
          "   1  short         -\n"
          "1000  a name of...  \n"
          "     waits behind two other jobs that came\n"
          "     before it\n");
}

static void test_unicode(void **data)
{
    static const char *const words[][3] = {
        {"1", "gr\303\266\303\237e", "x"}, {"2", "\346\227\245\346\234\254", "y"}, {"3", "a\033b\xff", "z"}};

    (void)data;
    check(words, 3, 0,
          "ID  NAME        WHY\n"
          " 1  gr\303\266\303\237e       x\n"
          " 2  \346\227\245\346\234\254        y\n"
          " 3  a\\x1Bb\\xFF  z\n");
}

/* Of a character of two columns there is room for one. */
static void test_wide_cut(void **data)
{
    static const char *const words[][3] = {
        {"1", "\346\227\245\346\234\254\346\227\245\346\234\254\346\227\245", "some words"},
        {"2", "eight bs", "some words"}};

    (void)data;
    check(words, 2, 24,
          "ID  NAME      WHY\n"
          " 1  \346\227\245\346\234\254...   some words\n"
          " 2  eight bs  some words\n");
}

static void test_narrow(void **data)
{
    (void)data;
    /* Too narrow for everything: cut as far as sensible, and no further. */
    check(rows, 1, 10, "ID  NAME   WHY\n 1  short  -\n");
}

int main(void)
{
    static const struct command command = {.name = "test", .help = ""};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_fitted),
                                       cmocka_unit_test(test_unicode), cmocka_unit_test(test_wide_cut),
                                       cmocka_unit_test(test_narrow)};

    setenv("LC_ALL", "C.UTF-8", 1);
    command_begin(&command);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
