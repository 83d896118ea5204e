/* test_wait.c - when a thread that asks again and again sleeps: in numbers, without a clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "yield/wait.h"

enum { BOUND = 100000 };

/* Rounds of 500 ns, 100 ns apart, from *now on, until one may sleep: how long, and *now is when it begins. */
static int64_t first_sleep(struct wait *wait, int64_t *now)
{
    int64_t due;
    while ((due = wait_round(wait, *now, 1, BOUND)) == 0) {
        wait->left = *now + 500;
        *now += 600;
    }
    return due;
}

static void test_at_full_speed_first(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000;
    (void)state;
    assert_int_equal(first_sleep(&wait, &now), 20000);
    assert_in_range(now - 1000000, WAIT_SPEED_NS, WAIT_SPEED_NS + 600);
}

static void test_longer_and_longer(void **state)
{
    static const int64_t wanted[] = {40000, 80000, BOUND, BOUND};
    struct wait wait = {.began = 0};
    int64_t now = 1000000, due = first_sleep(&wait, &now);
    (void)state;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        wait.left = now + due + 9000; /* a system call, cold caches: that is no work */
        now = wait.left + 5000;
        due = wait_round(&wait, now, 1, BOUND);
        assert_int_equal(due, wanted[i]);
    }
}

static void test_a_bound_below_the_first(void **state)
{
    struct wait wait = {.began = 1, .left = 90000};
    (void)state;
    assert_int_equal(wait_round(&wait, 90100, 0, 5000), 5000);
}

static void test_work_ends_a_wait(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000;
    (void)state;
    for (int i = 0; i < 1000; i++) { /* who does something else between rounds never sleeps */
        assert_int_equal(wait_round(&wait, now, 1, BOUND), 0);
        wait.left = now + 300;
        now = wait.left + WAIT_GAP_NS + 1;
    }
    now = wait.left + 100;
    (void)first_sleep(&wait, &now);
    wait.left = now + 20000;
    assert_int_equal(wait_round(&wait, wait.left + WAIT_GAP_SLEPT_NS + 1, 1, BOUND), 0);
}

/* The first rounds of a wait need no clock. */
static void test_a_young_wait(void **state)
{
    struct wait wait = {.began = 0};
    (void)state;
    assert_true(wait_is_young(&wait));
    wait.rounds = WAIT_ROUNDS;
    assert_false(wait_is_young(&wait));
    wait_forget(&wait);
    assert_true(wait_is_young(&wait));
}

/* Who is alone does not sleep, and does from the round on in which he is not any more. */
static void test_without_a_sleep(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000, spun = 0;
    (void)state;
    for (int i = 0; i <= 100; i++) {
        assert_int_equal(wait_round(&wait, now, 1, 0), 0);
        spun += wait.spun;
        wait.spun = 0;
        wait.left = now + 500;
        now += 600;
    }
    assert_int_equal(spun, 60000);
    assert_int_equal(wait_round(&wait, now, 1, BOUND), WAIT_SLEEP_NS);
    assert_int_equal(wait.spun, 600); /* and what was slept is not spun */
    wait.left = now + 20000;
    assert_int_equal(wait_round(&wait, now + 20100, 1, BOUND), 2 * WAIT_SLEEP_NS);
    assert_int_equal(wait.spun, 600);
}

/* Nor is work. */
static void test_work_is_not_spun(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000;
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(wait_round(&wait, now, 1, 0), 0);
        wait.left = now + 300;
        now = wait.left + WAIT_GAP_NS + 1;
    }
    assert_int_equal(wait.spun, 0);
}

static void test_progress_ends_a_wait(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000;
    (void)state;
    (void)first_sleep(&wait, &now);
    wait_forget(&wait);
    assert_int_equal(wait_round(&wait, now + 100, 1, BOUND), 0);
}

/* Who asks for one thing after the other never asks for one of the last few. */
static void test_a_few_things(void **state)
{
    struct wait_few few = {.oldest = 0};
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_false(wait_knows(&few, 1 + i % (WAIT_FEW + 1)));
    for (int i = 0; i < 100; i++)
        assert_int_equal(wait_knows(&few, 11 + i % WAIT_FEW), i >= WAIT_FEW);
    assert_false(wait_knows(&few, 1));
    assert_true(wait_knows(&few, 1));
}

/* The next round, of 300 ns, 100 ns behind the last one. */
static int64_t next_round(struct wait *wait, int64_t *now, intptr_t what)
{
    int64_t due = wait_round(wait, *now, what, BOUND);
    wait->left = *now + due + 300;
    *now = wait->left + 100;
    return due;
}

/* Things in turn are one wait, with one sleep in a turn. */
static void test_one_sleep_in_a_turn(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000;
    int slept[3] = {0, 0, 0};
    (void)state;
    for (int i = 0; i < 300; i++)
        slept[i % 3] += next_round(&wait, &now, 1 + i % 3) > 0;
    assert_in_range(slept[0], 70, 100);
    assert_int_equal(slept[1] + slept[2], 0);
}

/* A poll sleeps before a yield does, whichever comes first; who only yields sleeps there. */
static void test_a_yield_leaves_it_to_the_poll(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000;
    int polls = 0, yields = 0;
    (void)state;
    for (int i = 0; i < 300; i++) {
        yields += next_round(&wait, &now, 0) > 0;
        polls += next_round(&wait, &now, 1) > 0;
    }
    assert_in_range(polls, 200, 300);
    assert_int_equal(yields, 0);
    for (int i = 0; i < 300; i++)
        yields += next_round(&wait, &now, 0) > 0;
    assert_int_equal(yields, 300 - WAIT_ELSEWHERE);
    assert_true(next_round(&wait, &now, 1) > 0);
    assert_int_equal(next_round(&wait, &now, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_full_speed_first),
        cmocka_unit_test(test_longer_and_longer),
        cmocka_unit_test(test_a_bound_below_the_first),
        cmocka_unit_test(test_work_ends_a_wait),
        cmocka_unit_test(test_progress_ends_a_wait),
        cmocka_unit_test(test_a_few_things),
        cmocka_unit_test(test_one_sleep_in_a_turn),
        cmocka_unit_test(test_a_yield_leaves_it_to_the_poll),
        cmocka_unit_test(test_a_young_wait),
        cmocka_unit_test(test_without_a_sleep),
        cmocka_unit_test(test_work_is_not_spun),
    };
    return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
