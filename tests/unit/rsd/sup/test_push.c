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
    assert_true(reset_on_fork); /* what it forks is not above all jobs */
    rank = now;
    calls++;
    return 1;
}

static struct sup sup;
static struct process process;

/* On the first of the CPUs. */
static void be_born(struct process *born, int ncpus, int64_t now)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (int i = 0; i < ncpus; i++)
        CPU_SET((size_t)i, &cpus);
    *born = (struct process){.pid = PID, .state = PROCESS_BORN, .role = ROLE_COMMAND};
    rank = process_birth(&sup, born, &cpus, now);
    assert_int_equal(born->push_ms, now + SUP_PUSH_MS);
}

static int up(void **state)
{
    (void)state;
    sup = (struct sup){.rt = true, .ranks = {.task = {SCHED_RR, 40}, .helper = {SCHED_OTHER, -5}}};
    be_born(&process, 1, 0);
    used_ns = 0;
    calls = 0;
    return 0;
}

static bool is_up(void)
{
    return rank.policy == SCHED_RR && rank.priority == ORDER_BIRTH;
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

/* It walks through a PATH of thousands of directories, and has the CPU only while it is above the jobs. */
static void test_using(void **state)
{
    int64_t at_ten = 0, up_ms = 0;
    (void)state;
    assert_true(is_up());
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
        be_born(&others[i], 8, 0);
        ranks[i] = rank;
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

/* One after the other, each of which fails in its time, as when the job's directory leads through many slow links: for
 * how long any of them is above all jobs. */
static int64_t one_by_one(int ncpus, int each_ms, int64_t from, int64_t until, int *count)
{
    int64_t up_ms = 0, now = from;
    for (*count = 0; now < until; (*count)++) {
        be_born(&process, ncpus, now);
        for (used_ns = 0; used_ns < each_ms * INT64_C(1000000) && now < until; now++) {
            used_ns += is_up() ? 1000000 : 0;
            up_ms += is_up();
            process_push(&sup, &process, now);
        }
        process_born(&sup, &process, now);
    }
    return up_ms;
}

static void test_one_by_one(void **state)
{
    int count;
    (void)state;
    assert_in_range(one_by_one(1, 9, 1000, 2000, &count), 50, 60 + 10 + 1 + 2 * SUP_PUSH_MS);
    assert_in_range(one_by_one(1, 9, 2000, 12000, &count), 80, 100 + 2 * SUP_PUSH_MS);
    assert_in_range(count, 8, 13); /* they go on */
}

/* Most are over before they are looked at. */
static void test_short_ones(void **state)
{
    int count;
    (void)state;
    assert_in_range(one_by_one(1, 1, 1000, 2000, &count), 50, 60 + 10 + 1 + 2 * SUP_PUSH_MS);
    assert_in_range(one_by_one(1, 1, 2000, 12000, &count), 80, 100 + 2 * SUP_PUSH_MS);
    assert_in_range(count, 80, 120);
}

/* A rank on each of many processors, which all begin at the same time. */
static void test_many_cpus(void **state)
{
    int64_t up_ms = 0;
    (void)state;
    for (int i = 0; i < 64; i++) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET((size_t)i, &cpus);
        process = (struct process){.pid = PID, .state = PROCESS_BORN, .role = ROLE_COMMAND};
        used_ns = 0;
        rank = process_birth(&sup, &process, &cpus, 1000);
        for (; used_ns < 10000000 && is_up(); up_ms++)
            used_ns += 1000000;
        process_born(&sup, &process, 1000);
    }
    assert_int_equal(up_ms, 640);
    assert_in_range(one_by_one(64, 9, 1000, 2000, &(int){0}), 50, 60 + 10 + 1 + 2 * SUP_PUSH_MS); /* they have had it */
}

/* Its user has lowered the supervisor, which looks at it only when rsd has put that right: what it had meanwhile is
 * paid by those that he has begun then. */
static void test_late(void **state)
{
    int64_t now = 1000;
    (void)state;
    used_ns = INT64_C(1000000000);
    process_push(&sup, &process, now);
    assert_false(is_up());
    for (; now < 85000; now += 1000) {
        be_born(&process, 1, now);
        assert_false(is_up());
    }
    be_born(&process, 1, 95000);
    assert_true(is_up());
}

/* Its number may be another process's by now. */
static void test_reaped(void **state)
{
    int64_t left = sup.births_own_ns;
    (void)state;
    used_ns = 7000000;
    process.reaped = true;
    process_born(&sup, &process, LATE);
    assert_int_equal(sup.births_own_ns, left);
    process.reaped = false;
    process_born(&sup, &process, LATE);
    assert_int_equal(sup.births_own_ns, left - 7000000);
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
        TEST(test_waiting),   TEST(test_using), TEST(test_several), TEST(test_one_by_one), TEST(test_short_ones),
        TEST(test_many_cpus), TEST(test_late),  TEST(test_reaped),  TEST(test_helper),     TEST(test_no_real_time),
    };
    return cmocka_run_group_tests_name("push", tests, NULL, NULL);
}
