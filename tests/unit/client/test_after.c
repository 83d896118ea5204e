/* test_after.c - what --after takes: jobs, and tasks of arrays, with and without a kind. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "client/after.h"
#include "client/common.h"

static void taken(const char *list, const char *item, bool tasks)
{
    struct after_option option = {NULL, 0, false};
    assert_true(after_add(&option, list));
    assert_int_equal(option.count, 1);
    assert_string_equal(option.items[0], item);
    assert_int_equal(option.tasks, tasks);
    after_fini(&option);
}

static void refused(const char *list)
{
    struct after_option option = {NULL, 0, false};
    assert_false(after_add(&option, list));
    after_fini(&option);
}

static void test_items(void **state)
{
    (void)state;
    taken("57", "ok:57", false);
    taken("any:57", "any:57", false);
    taken("57[3-9]", "57[3-9]", true);
    taken("fail:57[3-9,12]", "fail:57[3-9,12]", true);
    taken("57[0-99:3]", "57[0-99:3]", true); /* the colon is of the indices */
    taken("fail:57[0-99:3]", "fail:57[0-99:3]", true);
    taken("any:57[*]", "any:57", false);
    refused("57[0-99:3");
    refused("57[0-99:]");
    refused("not:57[0-99:3]");
    refused("ok:any:57[3]");
}

int main(void)
{
    static const struct command command = {.name = "esubmit"};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_items)};
    command_begin(&command);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
