/* test_budget.c - CPU time above all jobs that is left to spend, in virtual time. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "rsd/root/budget.h"

#define US INT64_C(1000)
enum { FULL_US = 3000, PER_SECOND_US = 5000, DEBT_US = 5000, START_MS = 1000 };

static struct cpu_budget make(void)
{
    struct cpu_budget budget;
    budget_init(&budget, FULL_US, PER_SECOND_US, DEBT_US, START_MS);
    return budget;
}

static void test_begins_full_and_never_overflows(void **state)
{
    struct cpu_budget budget = make();
    (void)state;
    assert_int_equal(budget.left_ns, FULL_US * US);
    budget_charge(&budget, 0, START_MS + 100000);
    assert_int_equal(budget.left_ns, FULL_US * US);
    budget_charge(&budget, 0, INT64_MAX / 2);
    assert_int_equal(budget.left_ns, FULL_US * US);
}

static void test_fills_steadily(void **state)
{
    struct cpu_budget budget = make();
    (void)state;
    budget_charge(&budget, FULL_US * US, START_MS);
    assert_int_equal(budget.left_ns, 0);
    for (int i = 1; i <= 100; i++)
        budget_charge(&budget, 0, START_MS + i);
    assert_int_equal(budget.left_ns, PER_SECOND_US * US / 10);
    assert_int_equal(budget.charged_ns, FULL_US * US);
}

static void test_time_that_goes_back_gives_nothing(void **state)
{
    struct cpu_budget budget = make();
    (void)state;
    budget_charge(&budget, FULL_US * US, START_MS);
    budget_charge(&budget, 0, START_MS - 500);
    assert_int_equal(budget.left_ns, 0);
    assert_int_equal(budget.filled_ms, START_MS);
}

/* The time that budget_when() names is the first at which there is more than that. */
static void test_says_when(void **state)
{
    struct cpu_budget budget = make();
    int64_t when;
    (void)state;
    assert_int_equal(budget_when(&budget, 0), START_MS);
    budget_charge(&budget, FULL_US * US + 1000 * US, START_MS);
    when = budget_when(&budget, 0);
    assert_in_range(when, START_MS + 200, START_MS + 202);
    budget_charge(&budget, 0, when);
    assert_true(budget.left_ns > 0);
}

/* However much one step has spent, the debt is paid within its bound: a second here. */
static void test_owes_no_more_than_its_debt(void **state)
{
    struct cpu_budget budget = make();
    (void)state;
    budget_charge(&budget, 1000000 * US, START_MS);
    assert_int_equal(budget.left_ns, -DEBT_US * US);
    assert_int_equal(budget.charged_ns, 1000000 * US);
    assert_in_range(budget_when(&budget, 0), START_MS + 1000, START_MS + 1002);
}

static void test_resized(void **state)
{
    struct cpu_budget budget = make();
    (void)state;
    budget_resize(&budget, FULL_US / 2, PER_SECOND_US / 2, DEBT_US / 2);
    assert_int_equal(budget.left_ns, FULL_US * US / 2);
    budget_charge(&budget, 1000000 * US, START_MS);
    assert_int_equal(budget.left_ns, -DEBT_US * US / 2);
    budget_charge(&budget, 0, START_MS + 1000);
    assert_int_equal(budget.left_ns, (PER_SECOND_US - DEBT_US) * US / 2);
    budget_resize(&budget, FULL_US, PER_SECOND_US, DEBT_US);
    budget_charge(&budget, 1000000 * US, START_MS + 1000);
    budget_resize(&budget, FULL_US, PER_SECOND_US, 0);
    assert_int_equal(budget.left_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begins_full_and_never_overflows),   cmocka_unit_test(test_fills_steadily),
        cmocka_unit_test(test_time_that_goes_back_gives_nothing), cmocka_unit_test(test_says_when),
        cmocka_unit_test(test_owes_no_more_than_its_debt),        cmocka_unit_test(test_resized),
    };
    return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
