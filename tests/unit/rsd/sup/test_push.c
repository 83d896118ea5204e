/* test_push.c - how long a new process is above all jobs, in virtual time. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "rsd/root/sched.h"
#include "rsd/sup/sup.h"

int64_t __wrap_budget_process_ns(pid_t pid);
int __wrap_sched_rank(pid_t tid, struct order_rank rank, bool reset_on_fork);

enum { PID = 4242, LATE = SUP_PUSH_MS };

static int64_t used_ns;
static struct order_rank rank;
static unsigned calls;

int64_t __wrap_budget_process_ns(pid_t pid)
{
    assert_int_equal(pid, PID);
    return used_ns;
}

int __wrap_sched_rank(pid_t tid, struct order_rank now, bool reset_on_fork)
{
    assert_int_equal(tid, PID);
    assert_false(reset_on_fork);
    rank = now;
    calls++;
    return 1;
}

static struct sup sup;
static struct process process;

static int up(void **state)
{
    (void)state;
    sup = (struct sup){.rt = true, .ranks = {.task = {SCHED_RR, 40}, .helper = {SCHED_OTHER, -5}}};
    process = (struct process){.pid = PID, .state = PROCESS_BORN, .role = ROLE_COMMAND, .push_ms = LATE};
    used_ns = 0;
    calls = 0;
    return 0;
}

static void test_waiting(void **state)
{
    int64_t now = 0;
    (void)state;
    process_push(&sup, &process, LATE - 1);
    assert_int_equal(calls, 0);
    for (int i = 0; i < 200; i++) { /* it waits for a disk, say: for however long it lasts */
        now = process.push_ms;
        process_push(&sup, &process, now);
        assert_int_equal(rank.policy, SCHED_RR);
        assert_int_equal(rank.priority, ORDER_BIRTH);
    }
    assert_int_equal(calls, 200);
    assert_true(now > 100 * SUP_PUSH_MS);
}

static void test_using(void **state)
{
    int64_t now = LATE;
    (void)state;
    for (; process.push_ms != INT64_MAX && now < 100; now++) {
        used_ns = now * 1000000; /* it walks through a PATH of thousands of directories */
        process_push(&sup, &process, now);
    }
    assert_in_range(now, LATE, 16);
    assert_int_equal(rank.policy, SCHED_RR);
    assert_int_equal(rank.priority, 40);
    calls = 0;
    process_push(&sup, &process, 1000000);
    assert_int_equal(calls, 0); /* from here on it waits for its turn */
}

static void test_helper(void **state)
{
    (void)state;
    process.role = ROLE_DAEMON;
    used_ns = 50000000;
    process_push(&sup, &process, LATE);
    assert_int_equal(rank.policy, SCHED_OTHER);
    assert_int_equal(rank.priority, -5);
}

static void test_no_real_time(void **state)
{
    (void)state;
    sup.rt = false;
    process_push(&sup, &process, LATE);
    process.state = PROCESS_RUNNING;
    sup.rt = true;
    process_push(&sup, &process, 1000);
    assert_int_equal(calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, up)
        TEST(test_waiting),
        TEST(test_using),
        TEST(test_helper),
        TEST(test_no_real_time),
    };
    return cmocka_run_group_tests_name("push", tests, NULL, NULL);
}
