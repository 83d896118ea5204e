/* test_tasks.c - which tasks an array has: what is understood, what is refused, and indices there and back. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "lib/job/tasks.h"

static struct tasks tasks;
static char why[TASKS_WHY];

static void takes(const char *text, uint32_t count, uint32_t limit, uint32_t first, uint32_t last)
{
    if (tasks_parse(text, true, &tasks, why) < 0)
        fail_msg("%s: %s", text, why);
    assert_int_equal(tasks.count, count);
    assert_int_equal(tasks.limit, limit);
    assert_int_equal(tasks_index(&tasks, 0), first);
    assert_int_equal(tasks_index(&tasks, count - 1), last);
}

static void what_is_understood(void **state)
{
    (void)state;
    takes("1-1000", 1000, 0, 1, 1000);
    takes("1-1000%8", 1000, 8, 1, 1000);
    takes("0-99:3", 34, 0, 0, 99);
    takes("0-100:3", 34, 0, 0, 99);
    takes("7", 1, 0, 7, 7);
    takes("1,4,7-9%2", 5, 2, 1, 9);
    takes("5-5:9,6", 2, 0, 5, 6);
    takes("1-100000", 100000, 0, 1, 100000);
    takes("2000000000", 1, 0, 2000000000, 2000000000);
}

static void refuses(const char *text, bool limited, const char *because)
{
    assert_int_equal(tasks_parse(text, limited, &tasks, why), -1);
    if (!strstr(why, because))
        fail_msg("%s: %s", text, why);
}

static void what_is_refused(void **state)
{
    static const char *const bad[] = {"",       "x",     "1-",   "-3",   "1-2-3",      "3-1",
                                      "1:2",    "1-4:0", "1,",   ",1",   "01",         "+1",
                                      " 1",     "1 ",    "1%",   "1%0",  "1%x",        "%8",
                                      "1;2",    "1-9:",  "1--3", "1,,2", "2000000001", "99999999999999999999",
                                      "1-5%8%9"};
    char many[TASKS_RANGES_MAX * 5 + 10] = "", longer[TASKS_TEXT_MAX + 2];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refuses(bad[i], true, "'");
    refuses("", true, "'' is not of the form");
    refuses("1-x", true, "is not of the form 1-1000");
    refuses("10-1", true, "'10-1' has a range that ends before it begins");
    refuses("1-10:0", true, "has a step of 0");
    refuses("01-05", true, "has a number with zeros in front");
    refuses("1-3%08", true, "has a number with zeros in front");
    refuses("1-3000000000", true, "has a number above 2000000000");
    refuses("1-3,", true, "has nothing behind its last comma");
    refuses("1-3%", true, "has no number behind %");
    refuses("1-3%0", true, "lets no task run");
    refuses("1-3,3", true, "does not grow");
    refuses("5,1", true, "does not grow");
    refuses("1-100001", true, "more than 100000");
    refuses("1-60000,70000-120000", true, "more than 100000");
    refuses("1-5%2", false, "behind its tasks");
    for (int i = 0; i <= TASKS_RANGES_MAX; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), "%s%d", i ? "," : "", 2 * i);
    refuses(many, true, strlen(many) > TASKS_TEXT_MAX ? "longer" : "more than 256");
    memset(longer, '1', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    refuses(longer, true, "longer than");
}

static void indices_there_and_back(void **state)
{
    int64_t last = -1;
    (void)state;
    takes("0-20:5,33,40-42", 9, 0, 0, 42);
    for (uint32_t i = 0; i < tasks.count; i++) {
        uint32_t index = tasks_index(&tasks, i);
        assert_true(index > last);
        assert_int_equal(tasks_ordinal(&tasks, index), i);
        for (int64_t between = last + 1; between < index; between++)
            assert_int_equal(tasks_ordinal(&tasks, (uint32_t)between), -1);
        last = index;
    }
    assert_int_equal(tasks_ordinal(&tasks, 43), -1);
}

static void a_part_as_text(void **state)
{
    char text[TASKS_TEXT_MAX + 1] = "", small[12] = "";
    size_t used;
    (void)state;
    takes("0-20:5,33,40-42", 9, 0, 0, 42);
    used = tasks_text(&tasks, 1, 4, text, 0, sizeof(text));
    assert_string_equal(text, "5-15:5");
    used = tasks_text(&tasks, 5, 8, text, used, sizeof(text));
    assert_string_equal(text, "5-15:5,33,40-41");
    assert_int_equal(used, strlen(text));
    assert_int_equal(tasks_text(&tasks, 9, 9, text, used, sizeof(text)), used);
    used = tasks_text(&tasks, 1, 8, small, 0, sizeof(small));
    assert_string_equal(small, "5-20:5,33..");
    assert_int_equal(tasks_text(&tasks, 8, 9, small, used, sizeof(small)), used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_understood), cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(indices_there_and_back), cmocka_unit_test(a_part_as_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
