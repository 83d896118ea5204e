/* test_wait.c - when a thread that asks again and again sleeps: in numbers, without a clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "yield/wait.h"

enum { BOUND = 100000, CALL = 100 };
static const struct wait_limits LIMITS = {.bound = BOUND, .most = BOUND, .call = CALL}, ALONE = {.call = CALL};

/* Rounds of 500 ns, 100 ns apart, from *now on, until one may sleep: how long, and *now is when it begins. */
static int64_t first_sleep(struct wait *wait, int64_t *now)
{
    int64_t due;
    while ((due = wait_round(wait, *now, 1, LIMITS)) == 0) {
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
    assert_in_range(now - 1000000, WAIT_SPEED_NS + 600, WAIT_SPEED_NS + 1200);
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
        due = wait_round(&wait, now, 1, LIMITS);
        assert_int_equal(due, wanted[i]);
    }
}

static void test_a_bound_below_the_first(void **state)
{
    struct wait wait = {.began = 1, .left = 90000, .made = true};
    (void)state;
    assert_int_equal(wait_round(&wait, 90100, 0, (struct wait_limits){.bound = 5000, .most = 5000, .call = CALL}),
                     5000);
}

static void test_work_ends_a_wait(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000;
    (void)state;
    for (int i = 0; i < 1000; i++) { /* who does something else between rounds never sleeps */
        assert_int_equal(wait_round(&wait, now, 1, LIMITS), 0);
        wait.left = now + 300;
        now = wait.left + WAIT_GAP_NS + CALL + 1;
    }
    now = wait.left + 100;
    (void)first_sleep(&wait, &now);
    wait.left = now + 20000;
    assert_int_equal(wait_round(&wait, wait.left + WAIT_GAP_SLEPT_NS + CALL + 1, 1, LIMITS), 0);
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
        assert_int_equal(wait_round(&wait, now, 1, ALONE), 0);
        spun += wait.spun;
        wait.spun = 0;
        wait.left = now + 500;
        now += 600;
    }
    assert_int_equal(spun, 60000);
    assert_int_equal(wait_round(&wait, now, 1, LIMITS), 0);
    assert_true(wait.way);
    wait.left = now + 500;
    now += 600;
    assert_int_equal(wait_round(&wait, now, 1, LIMITS), WAIT_SLEEP_NS);
    assert_int_equal(wait.spun, 1200); /* and what was slept is not spun */
    wait.left = now + 20000;
    assert_int_equal(wait_round(&wait, now + 20100, 1, LIMITS), 2 * WAIT_SLEEP_NS);
    assert_int_equal(wait.spun, 1200);
}

/* Nor is work. */
static void test_work_is_not_spun(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000;
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(wait_round(&wait, now, 1, ALONE), 0);
        wait.left = now + 300;
        now = wait.left + WAIT_GAP_NS + CALL + 1;
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
    assert_int_equal(wait_round(&wait, now + 100, 1, LIMITS), 0);
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
    int64_t due = wait_round(wait, *now, what, LIMITS);
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

/* ---- ranks that hand on a message through shared memory, which wakes nobody ---- */

enum { RANKS = 8, ROUND = 150, SLACK = 55000 }; /* a round; what a kernel adds to a sleep */

struct rank {
    struct wait wait;
    int64_t since, slept; /* it waits; in all */
    int ways;             /* rounds in which it has made way */
};

/* When it notices a message that comes then, as guard.c goes about it. */
static int64_t notices(struct rank *rank, int64_t comes)
{
    int64_t now = rank->since, due = 0;
    for (int i = 0; i < WAIT_ROUNDS && now < comes; i++)
        now += 30;
    while (now < comes) {
        due = wait_round(&rank->wait, now, 1, LIMITS);
        rank->ways += rank->wait.way;
        rank->slept += due > 0 ? due + SLACK : 0;
        now += ROUND + (due > 0 ? due + SLACK : 0);
        rank->wait.left = now;
    }
    if (wait_has_stayed(&rank->wait))
        wait_stays_awake(&rank->wait, now);
    wait_forget(&rank->wait);
    return now;
}

/* They hand it on in a ring, each holding it for work ns, and for late once. How long the last turns take, of ring. */
static int64_t last_turn(struct rank *ranks, int ring, int64_t work, int64_t late)
{
    enum { TURNS = 200, LATE = 50, LAST = 100 };
    int64_t now = 1000000, began = 0;
    for (int i = 0; i < ring; i++)
        ranks[i] = (struct rank){.since = now};
    for (int turn = 0; turn < TURNS; turn++) {
        if (turn == LAST)
            began = now;
        for (int i = 0; i < ring; i++) {
            now = notices(&ranks[i], now) + work + (turn == LATE && i == 0 ? late : 0);
            ranks[i].since = now;
        }
    }
    return (now - began) / (TURNS - LAST);
}

static void test_nobody_sleeps_for_ever(void **state)
{
    static const int64_t lates[] = {25000, 40000, 60000, 100000, 250000, 1000000, 12345678};
    struct rank ranks[RANKS];
    (void)state;
    for (size_t i = 0; i < sizeof(lates) / sizeof(lates[0]); i++) {
        assert_in_range(last_turn(ranks, 2, 100, lates[i]), 0, 2 * 500);
        assert_in_range(last_turn(ranks, 3, 100, lates[i]), 0, 3 * 500);
        assert_in_range(last_turn(ranks, RANKS, 100, lates[i]), 0, RANKS * 500);
    }
}

/* Each copies what has come, and the other one waits for that: a megabyte. */
static void test_nobody_sleeps_while_it_is_copied(void **state)
{
    enum { COPY = 120000 };
    struct rank ranks[2];
    (void)state;
    assert_in_range(last_turn(ranks, 2, COPY, 0), 0, 2 * (COPY + 500));
    assert_in_range(last_turn(ranks, 2, COPY, 250000), 0, 2 * (COPY + 500));
}

/* Of waits of milliseconds most is left to others; of brief ones some. */
static void test_who_really_waits_sleeps(void **state)
{
    struct rank ranks[2];
    (void)state;
    (void)last_turn(ranks, 2, 1000000, 0);
    assert_in_range(ranks[0].slept, 200 * 900000, 200 * 1200000);
    (void)last_turn(ranks, 2, 300000, 0);
    assert_in_range(ranks[0].slept, 200 * 100000, 200 * 400000);
}

/* Who stays awake makes way in each round, but for the first ones, and once before a sleep: the one that he waits for
 * may have no other processor. */
static void test_awake_it_makes_way(void **state)
{
    struct rank rank = {.since = 1000000};
    int64_t now = notices(&rank, 1100000);
    (void)state;
    assert_int_equal(rank.ways, 1);
    assert_in_range(rank.slept, 1, 200000);
    rank = (struct rank){.since = now, .wait = rank.wait};
    (void)notices(&rank, now + 600);
    assert_int_equal(rank.ways, 0);
    rank.since = now + 1000;
    (void)notices(&rank, rank.since + 90000);
    assert_in_range(rank.ways, 500, 600);
    assert_int_equal(rank.slept, 0);
    rank.since = now + 100000;
    rank.ways = 0;
    (void)notices(&rank, rank.since + 250000);
    assert_in_range(rank.ways, 1200, 1400);
    assert_in_range(rank.slept, 1, 100000);
}

/* The longest sleep of the third of three waits of 10 ms, each of which costs so much. A long one is never more than
 * its part of the wait so far. */
static int64_t longest_of_a_wait(int64_t cost, int64_t most)
{
    const struct wait_limits limits = {.bound = BOUND, .most = most, .call = CALL};
    struct wait wait = {.began = 0};
    int64_t now = 1000000, longest = 0;
    for (int i = 0; i < 3; i++) {
        int64_t begin = now;
        while (now < begin + 10000000) {
            int64_t due = wait_round(&wait, now, 1, limits);
            if (due > BOUND)
                assert_in_range(now - begin, due * WAIT_PART, 10000000);
            longest = i == 2 && due > longest ? due : longest;
            wait.left = now + 300 + (due > 0 ? due + cost : 0);
            now = wait.left + 100;
        }
        wait_forget(&wait);
    }
    return longest;
}

/* Where a sleep is dear those of a long wait become longer, unless the user has said how long they are. */
static void test_dear_sleeps(void **state)
{
    (void)state;
    assert_int_equal(longest_of_a_wait(5000, WAIT_MOST_NS), BOUND);
    assert_in_range(longest_of_a_wait(18000, WAIT_MOST_NS), 170000, 190000);
    assert_int_equal(longest_of_a_wait(50000, WAIT_MOST_NS), WAIT_MOST_NS);
    assert_int_equal(longest_of_a_wait(2 * WAIT_COST_NS, WAIT_MOST_NS), BOUND);
    assert_int_equal(longest_of_a_wait(18000, BOUND), BOUND);
}

/* Who makes one between two rounds has not worked, however long calls take here. */
static void test_a_call_is_no_work(void **state)
{
    struct wait wait = {.began = 0};
    int64_t now = 1000000;
    int slept = 0;
    (void)state;
    for (int i = 0; i < 100; i++) {
        slept += wait_round(&wait, now, 1, (struct wait_limits){.call = 1500}) > 0 || wait_is_long(&wait, now);
        wait.left = now + 300;
        now = wait.left + 1500;
    }
    assert_in_range(slept, 80, 100);
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
        cmocka_unit_test(test_nobody_sleeps_for_ever),
        cmocka_unit_test(test_nobody_sleeps_while_it_is_copied),
        cmocka_unit_test(test_who_really_waits_sleeps),
        cmocka_unit_test(test_awake_it_makes_way),
        cmocka_unit_test(test_dear_sleeps),
        cmocka_unit_test(test_a_call_is_no_work),
    };
    return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
