/* test_root.c - what the root half decides without a kernel: ranks, where cgroup2 is, names, moves. */
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
#include "rsd/root/tmpdir.h"
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

/* ---- where cgroup2 is ---- */

static char root[] = "/tmp/elmer-root-XXXXXX";

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/elmer-root-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY), result = tmpdir_remove(tmp, root + strlen("/tmp/"), 1U << 30);
    (void)state;
    close(tmp);
    return result;
}

static void put(const char *name, const char *text)
{
    assert_true(scratch_put(root, name, text));
}

static void make(const char *name)
{
    assert_true(scratch_mkdir(root, name));
}

static void locate(const char *mountinfo, const char *cgroup, const char *group, const char *expected)
{
    struct err err = ERR_INIT;
    char path[4096];
    int result;
    put("self/mountinfo", mountinfo);
    put("self/cgroup", cgroup);
    result = group_locate(root, group, path, sizeof(path), &err);
    if (expected) {
        assert_int_equal(result, 0);
        assert_string_equal(path, expected);
    } else {
        assert_true(result < 0);
        assert_true(err.text[0] != 0);
    }
}

static void test_locate(void **state)
{
    const char *pure = "22 1 0:20 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 "
                       "cgroup2 rw,nsdelegate\n";
    const char *hybrid = "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n41 31 0:38 / "
                         "/sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    (void)state;
    make("self");
    locate(pure, "0::/system.slice/rsd.service\n", NULL, "/sys/fs/cgroup/system.slice/rsd.service");
    locate(pure, "0::/\n", NULL, "/sys/fs/cgroup");
    locate(hybrid, "4:memory:/x\n1:name=systemd:/y\n0::/z\n", NULL, "/sys/fs/cgroup/unified/z");
    locate(hybrid, "0::/\n", "/elmer.slice/elmer-jobs.scope", "/sys/fs/cgroup/unified/elmer.slice/elmer-jobs.scope");
    locate("30 23 0:26 /outer /sys/fs/cgroup rw - cgroup2 c rw\n", "0::/outer/in\n", NULL, "/sys/fs/cgroup/in");
    locate("30 23 0:26 /outer /a\\040b rw - cgroup2 c rw\n", "0::/outer\n", NULL, "/a b");
    locate("30 23 0:26 /outer /sys/fs/cgroup rw - cgroup2 c rw\n", "0::/outer2\n", NULL,
           NULL); /* not below what is shown */
    locate("30 23 0:26 / /sys/fs/cgroup rw - cgroup c rw,cpu\n", "0::/\n", NULL, NULL);
    locate(pure, "4:memory:/x\n", NULL, NULL);
    locate("", "", NULL, NULL);
    locate("30 - cgroup2 \n30 23 - cgroup2 x\n", "0::/\n", NULL, NULL);
}

static void test_group_files(void **state)
{
    struct cgroup group = CGROUP_INIT;
    struct group_pids pids = {0};
    struct err err = ERR_INIT;
    double seconds;
    int64_t peak;
    int dir = open(root, O_RDONLY | O_DIRECTORY);
    (void)state;
    assert_true(group_open(dir, "5.1", false, &group, &err) < 0);
    make("5.1");
    make("5.1/sup");
    make("5.1/job");
    put("5.1/job/cgroup.events", "populated 1\nfrozen 0\n");
    put("5.1/job/cgroup.procs", "12\n4194303\n0\n7\n");
    assert_int_equal(group_open(dir, "5.1", false, &group, &err), 0);
    assert_true(group_populated(&group));
    assert_false(group_frozen(&group));
    assert_int_equal(group_pids(group.job_fd, &pids), 0);
    assert_int_equal(pids.count, 3); /* 0 is a process of another PID namespace */
    assert_int_equal(pids.items[0], 12);
    assert_int_equal(pids.items[1], 4194303);
    assert_int_equal(pids.items[2], 7);
    put("5.1/job/cgroup.procs", "22222222222222222222\n3\n"); /* no kernel says that; no overflow if one does */
    assert_int_equal(group_pids(group.job_fd, &pids), 0);
    assert_int_equal(pids.items[1], 3);
    put("5.1/job/cgroup.procs", "12\n4194303\n0\n7\n");
    group_usage(&group, &seconds, &peak);
    assert_true(seconds < 0 && peak == -1);
    put("5.1/job/cpu.stat", "usage_usec 2500000\nuser_usec 1\n");
    put("5.1/job/memory.peak", "4096\n");
    group_usage(&group, &seconds, &peak);
    assert_true(seconds > 2.49 && seconds < 2.51);
    assert_int_equal(peak, 4096);
    put("5.1/job/cgroup.events", "populated 0\nfrozen 1\n");
    assert_false(group_populated(&group));
    assert_true(group_frozen(&group));
    group_pids_fini(&pids);
    group_close(&group);
    close(dir);
}

/* ---- controllers: files that look like a group; the kernel's part is tried in tests/system ---- */

static bool holds(const char *name, const char *expected)
{
    char path[200], text[200] = "";
    FILE *file;
    snprintf(path, sizeof(path), "%s/%s", root, name);
    file = fopen(path, "r");
    assert_non_null(file);
    if (!fgets(text, sizeof(text), file))
        text[0] = 0;
    fclose(file);
    return strcmp(text, expected) == 0;
}

static void test_memory(void **state)
{
    struct cgroup group = CGROUP_INIT;
    struct err err = ERR_INIT;
    char path[200];
    int dir = open(root, O_RDONLY | O_DIRECTORY);
    (void)state;
    make("6.1");
    make("6.1/sup");
    make("6.1/job");
    put("6.1/job/cgroup.events", "populated 1\nfrozen 0\n");
    assert_int_equal(group_open(dir, "6.1", false, &group, &err), 0);
    put("6.1/job/memory.peak", "4096\n");
    assert_true(group_limit_memory(&group, 4096) < 0); /* there is no controller memory */
    put("6.1/job/memory.max", "");
    put("6.1/job/memory.swap.max", "");
    put("6.1/job/memory.oom.group", "");
    assert_int_equal(group_limit_memory(&group, (uint64_t)3 << 30), 0);
    assert_true(holds("6.1/job/memory.max", "3221225472") && holds("6.1/job/memory.swap.max", "0") &&
                holds("6.1/job/memory.oom.group", "1"));
    assert_int_equal(group_memory_struck(&group), 0);
    put("6.1/job/memory.events", "low 0\nhigh 0\nmax 9\noom 0\noom_kill 2\noom_group_kill 0\n");
    assert_int_equal(group_memory_struck(&group), 0); /* of the host's own trouble */
    put("6.1/job/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\noom_group_kill 0\n");
    assert_int_equal(group_memory_struck(&group), 0); /* it got by */
    put("6.1/job/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\noom_group_kill 1\n");
    assert_int_equal(group_memory_struck(&group), 4096);
    snprintf(path, sizeof(path), "%s/6.1/job/memory.peak", root);
    assert_int_equal(unlink(path), 0);
    assert_true(group_memory_struck(&group) == (uint64_t)3 << 30);
    put("6.1/job/memory.max", "max\n");
    assert_int_equal(group_memory_struck(&group), 0); /* it has no limit: an rsd of before opened it */
    group_close(&group);
    close(dir);
}

static int make_group_files(const char *type, const char *there, const char *procs)
{
    put("cgroup.type", type);
    put("cgroup.controllers", there);
    put("cgroup.procs", procs);
    put("cgroup.subtree_control", "");
    return open(root, O_RDONLY | O_DIRECTORY);
}

static void test_controllers_are_handed_down(void **state)
{
    int dir = make_group_files("domain\n", "cpuset cpu io memory hugetlb pids\n", "");
    (void)state;
    controllers_hand_down(dir, CONTROLLER_MEMORY);
    assert_true(holds("cgroup.subtree_control", "+memory"));
    put("cgroup.subtree_control", "");
    controllers_hand_down(dir, CONTROLLER_CPUSET | CONTROLLER_MEMORY);
    assert_true(holds("cgroup.subtree_control", "+cpuset")); /* the last of them */
    put("cgroup.subtree_control", "cpuset memory cpu\n");
    put("cgroup.controllers", "cpu\n");
    assert_int_equal(controllers_hand_down(dir, CONTROLLER_CPUSET), CONTROLLERS_ALL);
    assert_true(holds("cgroup.subtree_control", "cpuset memory cpu\n")); /* it is not to be had: not asked for */
    put("cgroup.subtree_control", "pids cpuacct\n");
    assert_int_equal(controllers_hand_down(dir, 0), 0); /* no part of a name */
    close(dir);
}

/* With one write, also where somebody seems to be: nobody can be in it yet. */
static void test_controllers_of_a_new_group(void **state)
{
    int dir = make_group_files("domain\n", "cpuset cpu io memory hugetlb pids\n", "17\n");
    (void)state;
    controllers_hand_down_new(dir, CONTROLLER_CPUSET | CONTROLLER_MEMORY);
    assert_true(holds("cgroup.subtree_control", "+memory +cpuset"));
    put("cgroup.subtree_control", "");
    put("cgroup.controllers", "cpu memory\n");
    controllers_hand_down_new(dir, CONTROLLER_CPUSET | CONTROLLER_MEMORY);
    assert_true(holds("cgroup.subtree_control", "+memory"));
    put("cgroup.subtree_control", "");
    put("cgroup.controllers", "");
    controllers_hand_down_new(dir, CONTROLLERS_ALL);
    assert_true(holds("cgroup.subtree_control", ""));
    close(dir);
}

static void test_no_controllers_beside_processes(void **state)
{
    int dir = make_group_files("domain\n", "cpuset cpu memory\n", "12\n");
    (void)state;
    assert_int_equal(controllers_hand_down(dir, CONTROLLERS_ALL), 0);
    assert_true(holds("cgroup.subtree_control", ""));
    assert_int_equal(unlinkat(dir, "cgroup.type", 0), 0); /* the root may have both */
    put("cgroup.controllers", "memory\n");
    controllers_hand_down(dir, CONTROLLERS_ALL);
    assert_true(holds("cgroup.subtree_control", "+memory"));
    close(dir);
}

static void test_weights(void **state)
{
    struct cgroup group = CGROUP_INIT;
    int dir = open(root, O_RDONLY | O_DIRECTORY);
    (void)state;
    assert_int_equal(group_weigh(&group, 1), -ENOENT);
    make("5.1");
    make("5.1/job");
    group.job_fd = openat(dir, "5.1/job", O_RDONLY | O_DIRECTORY);
    assert_int_equal(group_weigh(&group, 1), -ENOENT); /* no controller cpu */
    put("5.1/cpu.weight", "100");
    assert_int_equal(group_weigh(&group, 250), 0);
    assert_true(holds("5.1/cpu.weight", "250"));
    group_close(&group);
    close(dir);
}

static void test_what_is_lacking(void **state)
{
    const char *lacks[CONTROLLER_COUNT];
    (void)state;
    assert_int_equal(controllers_lacking(CONTROLLERS_ALL, lacks), 0);
    assert_int_equal(controllers_lacking(CONTROLLER_CPUSET, lacks), 2);
    assert_string_equal(lacks[0], "no controller memory: no memory figures, and nothing holds a job to its -m");
    assert_non_null(strstr(lacks[1], "cpu:"));
}

static void test_what_turns_the_group_is_taken_back(void **state)
{
    int dir = make_group_files("domain threaded\n", "cpuset\n", "");
    (void)state;
    controllers_hand_down(dir, CONTROLLERS_ALL);
    assert_true(holds("cgroup.subtree_control", "-cpuset"));
    close(dir);
}

static void test_settling_moves_processes(void **state)
{
    int dir = make_group_files("domain\n", "cpuset memory\n", "12\n13\n");
    (void)state;
    make("keeper");
    put("keeper/cgroup.procs", "");
    assert_int_equal(controllers_settle(dir), -EBUSY); /* these files keep what was moved */
    assert_true(holds("keeper/cgroup.procs", "13"));
    put("cgroup.procs", "");
    put("cgroup.subtree_control", "memory\n");
    assert_int_equal(controllers_settle(dir), 0);
    assert_true(holds("cgroup.subtree_control", "memory\n")); /* what is right stays */
    put("cgroup.type", "domain threaded\n");
    put("cgroup.subtree_control", "cpuset\n");
    make("7.1");
    put("7.1/cgroup.subtree_control", "memory\n");
    assert_int_equal(controllers_settle(dir), -EOPNOTSUPP);
    assert_true(holds("cgroup.subtree_control", "-cpuset"));
    assert_true(holds("7.1/cgroup.subtree_control", "-memory"));
    close(dir);
}

static void test_place_holds_with_its_keeper(void **state)
{
    int dir = make_group_files("domain\n", "", "");
    (void)state;
    assert_true(scope_holds(dir)); /* cgroup_root has none */
    make("keeper");
    put("keeper/cgroup.events", "populated 1\nfrozen 0\n");
    assert_true(scope_holds(dir));
    put("keeper/cgroup.events", "populated 0\nfrozen 0\n");
    assert_false(scope_holds(dir));
    assert_int_equal(unlinkat(dir, "keeper/cgroup.events", 0), 0);
    assert_false(scope_holds(dir));
    close(dir);
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
        cmocka_unit_test_setup_teardown(test_locate, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_group_files, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_memory, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_controllers_are_handed_down, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_controllers_of_a_new_group, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_no_controllers_beside_processes, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_weights, make_root, remove_root),
        cmocka_unit_test(test_what_is_lacking),
        cmocka_unit_test_setup_teardown(test_what_turns_the_group_is_taken_back, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_settling_moves_processes, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_place_holds_with_its_keeper, make_root, remove_root),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests_name("root", tests, NULL, NULL);
}
