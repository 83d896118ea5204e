/* test_group.c - files that look like control groups: where they are, limits, controllers, moves. The kernel's part is
 * tried in tests/system. */
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

#include "lib/base/log.h"
#include "rsd/root/controllers.h"
#include "rsd/root/cpus.h"
#include "rsd/root/group.h"
#include "rsd/root/internal.h"
#include "rsd/root/order.h"
#include "rsd/root/scope.h"
#include "rsd/root/tmpdir.h"
#include "rsd/root/v1.h"
#include "tests/unit/scratch.h"

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
    assert_false(group_is_empty(&group));
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
    assert_true(group_is_empty(&group));
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

static void is_left(const char *cgroup, const char *memory, const char *devices, const char *tasks)
{
    put("self/cgroup", cgroup);
    put("mem/cgroup.procs", "");
    put("dev/cgroup.procs", "");
    put("pids/cgroup.procs", "");
    v1_leave(root);
    assert_true(holds("mem/cgroup.procs", memory) && holds("dev/cgroup.procs", devices) &&
                holds("pids/cgroup.procs", tasks));
}

static void test_groups_of_v1_are_left(void **state)
{
    char mounts[1000];
    (void)state;
    log_open("test", LOG_LEVEL_ERROR);
    make("self");
    make("mem");
    make("dev");
    make("pids");
    snprintf(mounts, sizeof(mounts),
             "40 31 0:37 / %s/mem rw - cgroup cgroup rw,memory\n41 31 0:38 / %s/dev rw shared:9 - cgroup cgroup "
             "rw,net_cls,devices\n42 31 0:39 /outer %s/pids rw - cgroup cgroup rw,pids\n43 31 0:40 / %s/pids rw - "
             "cgroup2 cgroup2 rw,pids\n",
             root, root, root, root);
    put("self/mountinfo", mounts);
    is_left("0::/system.slice/a.service\n", "", "", "");
    is_left("5:memory:/\n4:net_cls,devices:/\n1:name=systemd:/memory\n0::/a\n", "", "", "");
    is_left("5:memory:/a\n4:net_cls,devices:/a\n0::/a\n", "0", "0", "");
    is_left("6:memory_x,xmemory,mem:/a\n4:devices,net_cls:/a\n", "", "0", "");
    is_left("3:pids:/outer/a\nmemory\n:\n", "", "", ""); /* its top is not to be seen */
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

static void test_more_than(void **state)
{
    char many[1200] = "";
    int leaf = open(root, O_RDONLY | O_DIRECTORY);
    (void)state;
    assert_false(group_has_more_than(leaf, 0)); /* there is no such group */
    put("cgroup.procs", "");
    assert_false(group_has_more_than(leaf, 0));
    put("cgroup.procs", "11\n12\n13\n");
    assert_true(group_has_more_than(leaf, 2));
    assert_false(group_has_more_than(leaf, 3));
    for (int i = 0; i < 200; i++) /* more than one read(2) */
        snprintf(many + strlen(many), sizeof(many) - strlen(many), "%d\n", 1000 + i);
    put("cgroup.procs", many);
    assert_true(group_has_more_than(leaf, 199));
    assert_false(group_has_more_than(leaf, 200));
    close(leaf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test_setup_teardown(test_groups_of_v1_are_left, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_place_holds_with_its_keeper, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_more_than, make_root, remove_root),
    };
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
