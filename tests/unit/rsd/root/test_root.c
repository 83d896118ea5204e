/* test_root.c - what the root half decides without a kernel: ranks, names, CPUs, the table of jobs. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/root/controllers.h"
#include "rsd/root/cpus.h"
#include "rsd/root/group.h"
#include "rsd/root/internal.h"
#include "rsd/root/order.h"
#include "rsd/root/scope.h"
#include "tests/unit/scratch.h"

/* ---- ranks ---- */

static void test_ranks_are_strict(void **state)
{
    int above = ORDER_BOOST;
    (void)state;
    for (unsigned level = 0; level < ORDER_LEVELS; level++) {
        struct order_ranks fifo = order_ranks(ORDER_MODE_RT, level, false, false, false);
        struct order_ranks crowded = order_ranks(ORDER_MODE_RT, level, false, true, false);
        struct order_ranks lowest = order_ranks(ORDER_MODE_RT, level, true, true, false);
        assert_int_equal(fifo.task.policy, SCHED_FIFO);
        assert_int_equal(crowded.task.policy, SCHED_RR);
        assert_int_equal(crowded.task.priority, fifo.task.priority);
        assert_int_equal(lowest.task.policy, SCHED_OTHER);
        assert_int_equal(lowest.helper.policy,
                         SCHED_OTHER); /* real time adds up to the throttle: none of it for the lowest */
        assert_true(lowest.helper.priority < 0 && order_is_raised(lowest.helper));
        assert_false(order_is_raised(lowest.task));
        assert_true(fifo.helper.priority > fifo.task.priority && fifo.helper.priority < above);
        assert_true(fifo.task.priority > 0);
        above = fifo.task.priority;
    }
    assert_int_equal(order_ranks(ORDER_MODE_RT, 3, false, false, true).helper.priority, ORDER_BOOST);
    assert_true(ORDER_BOOST < ORDER_DYING && ORDER_DYING < ORDER_BIRTH && ORDER_BIRTH < ORDER_DAEMON);
}

static void test_ranks_without_rt(void **state)
{
    (void)state;
    for (unsigned level = 0; level < ORDER_LEVELS; level++) {
        struct order_ranks idle = order_ranks(ORDER_MODE_IDLE, level, false, false, false);
        struct order_ranks none = order_ranks(ORDER_MODE_NONE, level, true, true, true);
        assert_int_equal(idle.task.policy, SCHED_OTHER);
        assert_true(idle.task.priority <= 19 && idle.helper.priority <= idle.task.priority);
        assert_true(level == 0 ? idle.task.priority == 0 : idle.task.priority > 0);
        assert_int_equal(none.task.policy, SCHED_OTHER);
        assert_int_equal(none.task.priority, 0);
    }
    assert_int_equal(order_ranks(ORDER_MODE_IDLE, 1, true, false, false).task.policy, SCHED_IDLE);
    assert_int_equal(order_ranks(ORDER_MODE_IDLE, 0, true, false, false).task.policy, SCHED_OTHER);
    assert_int_equal(order_session_nice(order_ranks(ORDER_MODE_IDLE, 0, false, false, false).task), 0);
    assert_int_equal(order_session_nice(order_ranks(ORDER_MODE_IDLE, 1, false, false, false).task), 13);
    assert_int_equal(order_session_nice(order_ranks(ORDER_MODE_IDLE, 1, true, false, false).task), 19);
    assert_int_equal(order_session_nice(order_ranks(ORDER_MODE_RT, 1, false, false, false).task), 0);
}

static void test_weights_by_level(void **state)
{
    (void)state;
    assert_int_equal(order_weight(ORDER_MODE_RT, 0, true), 100); /* alone: as everybody else on the host */
    assert_int_equal(order_weight(ORDER_MODE_RT, 0, false), 100);
    assert_int_equal(order_weight(ORDER_MODE_RT, 1, true), 1);
    assert_int_equal(order_weight(ORDER_MODE_NONE, 3, true), 100);
    for (unsigned level = 1; level < ORDER_LEVELS; level++) {
        assert_true(order_weight(ORDER_MODE_IDLE, level, false) <= order_weight(ORDER_MODE_IDLE, level - 1, false));
        assert_true(20 * order_weight(ORDER_MODE_IDLE, level, true) <= order_weight(ORDER_MODE_IDLE, 0, false));
    }
}

static void test_order_is_sorted_and_only_newer(void **state)
{
    struct order order = {0};
    uint64_t cpus[] = {3, 5};
    struct wire_order_entry entries[] = {{.job = 7, .attempt = 1, .level = 2, .lowest = true, .cpus = {cpus, 2}},
                                         {.job = 8, .attempt = 2, .level = 0},
                                         {.job = 9, .attempt = 1, .level = 2}};
    struct wire_order message = {.generation = 4, .entries = {entries, 3}};
    (void)state;
    assert_int_equal(order_replace(&order, &message), 1);
    assert_int_equal(order.items[0].job, 8);
    assert_int_equal(order.items[1].job, 7);
    assert_int_equal(order.items[2].job, 9);
    cpus[0] = 99; /* it has its own copy */
    assert_int_equal(order_find(&order, 7, 1)->cpus[0], 3);
    assert_null(order_find(&order, 8, 1));
    message.entries.count = 0;
    assert_int_equal(order_replace(&order, &message), 0);
    message.generation = 3;
    assert_int_equal(order_replace(&order, &message), 0);
    assert_int_equal(order.count, 3);
    message.generation = 5;
    assert_int_equal(order_replace(&order, &message), 1);
    assert_int_equal(order.count, 0);
    order_fini(&order);
}

/* ---- names, CPUs ---- */

static void test_names(void **state)
{
    static const char *const wrong[] = {"",
                                        ".",
                                        "..",
                                        "1",
                                        "1.",
                                        ".1",
                                        "1.2.3",
                                        "a.1",
                                        "1.4294967296",
                                        "-1.1",
                                        "1.1 ",
                                        "keeper",
                                        "99999999999999999999.1"};
    uint64_t id;
    uint32_t attempt;
    (void)state;
    assert_true(job_name_parse("18446744073709551615.4294967295", &id, &attempt));
    assert_int_equal(id, UINT64_MAX);
    assert_int_equal(attempt, UINT32_MAX);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(job_name_parse(wrong[i], &id, &attempt));
}

static void test_cpus(void **state)
{
    uint64_t list[] = {0, 5, 1023}, out[CPU_SETSIZE];
    cpu_set_t a, b;
    (void)state;
    assert_true(cpus_from_list(list, 3, &a));
    assert_int_equal(cpus_to_list(&a, out), 3);
    assert_int_equal(out[2], 1023);
    assert_true(cpus_from_list(list, 2, &b));
    assert_true(cpus_within(&b, &a));
    assert_false(cpus_within(&a, &b));
    list[0] = 1024;
    assert_false(cpus_from_list(list, 1, &a));
}

/* ---- the table of jobs ---- */

static void test_table(void **state)
{
    struct root table = {0};
    struct root_job *first, *job;
    (void)state;
    first = job_add(&table, 1, 1);
    for (uint64_t i = 2; i < 100; i++)
        assert_non_null(job_add(&table, i, 1));
    assert_ptr_equal(job_find(&table, 1, 1), first);
    assert_null(job_find(&table, 1, 2));
    job = job_find(&table, 50, 1);
    assert_int_equal(job_count_live(&table), 99);
    job_move(job, JOB_OPEN);
    job_move(job, JOB_TERMINATING);
    job_move(job, JOB_KILLING);
    job_move(job, JOB_CLOSING);
    job_move(job, JOB_EMPTY);
    assert_int_equal(job_count_live(&table), 98);
    for (uint32_t i = 0; i < MAX_PROCESSES; i++)
        assert_non_null(job_process(first, i, true));
    assert_null(job_process(first, MAX_PROCESSES, true));
    assert_non_null(job_process(first, 0, true));
    for (int i = 1; i < MAX_HELPERS + 10; i++)
        job_helper_add(first, i);
    assert_int_equal(first->helper_count, MAX_HELPERS);
    job_helper_remove(first, 1);
    job_helper_remove(first, 1);
    assert_int_equal(first->helper_count, MAX_HELPERS - 1);
    while (table.job_count > 0)
        job_drop(&table, table.jobs[table.job_count - 1]);
    free(table.jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_are_strict),
        cmocka_unit_test(test_ranks_without_rt),
        cmocka_unit_test(test_weights_by_level),
        cmocka_unit_test(test_order_is_sorted_and_only_newer),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests_name("root", tests, NULL, NULL);
}
