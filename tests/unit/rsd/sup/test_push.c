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

static bool is_up(void)
{
    return rank.policy == SCHED_RR && rank.priority == ORDER_BIRTH;
}

/* It walks through a PATH of thousands of directories, and has the CPU only while it is above the jobs. */
static void test_using(void **state)
{
    int64_t at_ten = 0, up_ms = 0;
    (void)state;
    rank = (struct order_rank){SCHED_RR, ORDER_BIRTH};
    for (int64_t now = LATE; now < LATE + 60000; now++) {
        used_ns += is_up() ? 1000000 : 0;
        up_ms += is_up();
        process_push(&sup, &process, now);
        if (!is_up())
            assert_int_equal(rank.priority, 40);
        if (now == LATE + 20)
            at_ten = up_ms;
    }
    assert_in_range(at_ten, 10, 10 + 2 * SUP_PUSH_MS);
    assert_in_range(up_ms, 400,
                    10 + 600 + 200 + SUP_PUSH_MS); /* it comes on, by 1 %; late it is looked at each 200 ms */
}

/* All births of a job share that. */
static void test_several(void **state)
{
    struct process others[8];
    int64_t up_ms = 0, used[8] = {0};
    struct order_rank ranks[8];
    (void)state;
    for (int i = 0; i < 8; i++) {
        others[i] = process;
        ranks[i] = (struct order_rank){SCHED_RR, ORDER_BIRTH};
    }
    for (int64_t now = LATE; now < LATE + 60000; now++) {
        for (int i = 0; i < 8; i++) {
            rank = ranks[i];
            if (is_up() && now % 8 == i) { /* there is one CPU */
                used[i] += 1000000;
                up_ms++;
            }
            used_ns = used[i];
            process_push(&sup, &others[i], now);
            ranks[i] = rank;
        }
    }
    assert_true(up_ms <= 8 * 10 + 600 + 200 + 8 * SUP_PUSH_MS);
}

static void test_helper(void **state)
{
    (void)state;
    process.role = ROLE_DAEMON;
    process_push(&sup, &process, LATE);
    used_ns = 50000000;
    process_push(&sup, &process, process.push_ms);
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
        TEST(test_waiting), TEST(test_using), TEST(test_several), TEST(test_helper), TEST(test_no_real_time),
    };
    return cmocka_run_group_tests_name("push", tests, NULL, NULL);
}
