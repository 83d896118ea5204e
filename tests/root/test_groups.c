/* test_groups.c - groups of the kernel of this machine: processes moved out of them, kinds that nothing can be born in,
 * controllers where it has some to hand down. Skipped where cgroup2 cannot be written. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsd/root/controllers.h"
#include "rsd/root/group.h"
#include "rsd/root/probe.h"
#include "rsd/root/scope.h"

static char path[4200];
static int top = -1; /* our group */
static pid_t inside;

static int set_up(void **state)
{
    struct err err = ERR_INIT;
    char own[4000];
    (void)state;
    if (group_locate("/proc", NULL, own, sizeof(own), &err) < 0)
        return 0;
    snprintf(path, sizeof(path), "%s/elmer-groups-%d", own, (int)getpid());
    top = geteuid() == 0 ? group_open_root(path, &err) : -1;
    return 0;
}

static void empty_leaf(const char *name)
{
    struct cgroup group = CGROUP_INIT;
    group.job_fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group.job_fd < 0)
        return;
    controllers_take_back(group.job_fd, CONTROLLERS_ALL);
    close(group.job_fd);
    unlinkat(top, name, AT_REMOVEDIR);
}

static int tear_down(void **state)
{
    (void)state;
    if (inside > 0) {
        kill(inside, SIGKILL);
        waitpid(inside, NULL, 0);
        inside = 0;
    }
    if (top < 0)
        return 0;
    empty_leaf("keeper");
    empty_leaf("probe");
    empty_leaf("5.1");
    close(top);
    top = -1;
    return rmdir(path);
}

/* A process in the group itself, which waits. */
static void put_in(void)
{
    int pidfd = -1;
    inside = group_fork(top, &pidfd);
    assert_true(inside >= 0);
    if (inside == 0) {
        for (;;)
            pause();
    }
    close(pidfd);
}

static bool is_in(const char *name, pid_t pid)
{
    struct group_pids pids = {0};
    int leaf = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool in = false;
    assert_true(leaf >= 0);
    assert_int_equal(group_pids(leaf, &pids), 0);
    for (size_t i = 0; i < pids.count; i++)
        in |= pids.items[i] == pid;
    group_pids_fini(&pids);
    close(leaf);
    return in;
}

static bool kind_is(const char *expected)
{
    char kind[64];
    assert_int_equal(group_read(top, "cgroup.type", kind, sizeof(kind)), 0);
    return strcmp(kind, expected) == 0;
}

static void need_top(void)
{
    if (top < 0) {
        print_message("skipped: %s\n", geteuid() == 0 ? "cannot make groups here" : "only root can make groups");
        skip();
    }
}

static void test_processes_go_to_the_leaf(void **state)
{
    (void)state;
    need_top();
    put_in();
    assert_int_equal(controllers_settle(top), 0);
    assert_false(is_in(".", inside));
    assert_true(is_in("keeper", inside));
    assert_true(scope_holds(top));
    assert_int_equal(controllers_settle(top), 0); /* and again */
    assert_true(is_in("keeper", inside));
    assert_true(probe_rt(top) >= 0);
    assert_int_equal(mkdirat(top, "probe", 0755), 0); /* one that died has left it */
    assert_true(probe_rt(top) >= 0);
    assert_int_equal(faccessat(top, "probe", F_OK, 0), -1);
}

static void test_keeper_that_dies_is_missed(void **state)
{
    (void)state;
    need_top();
    put_in();
    assert_int_equal(controllers_settle(top), 0);
    kill(inside, SIGKILL);
    waitpid(inside, NULL, 0);
    inside = 0;
    assert_false(scope_holds(top));
}

static void test_nothing_is_born_in_a_threaded_group(void **state)
{
    (void)state;
    need_top();
    assert_int_equal(mkdirat(top, "5.1", 0755), 0);
    assert_int_equal(group_write(top, "5.1/cgroup.type", "threaded"), 0); /* which makes ours `domain threaded` */
    assert_true(kind_is("domain threaded\n"));
    assert_int_equal(controllers_settle(top), -EOPNOTSUPP); /* not ours to undo */
    assert_int_equal(probe_rt(top), -EOPNOTSUPP);
    assert_int_equal(unlinkat(top, "5.1", AT_REMOVEDIR), 0);
    assert_int_equal(controllers_settle(top), 0);
    assert_true(probe_rt(top) >= 0);
}

static unsigned on_offer(void)
{
    char text[1024];
    unsigned set = 0;
    assert_int_equal(group_read(top, "cgroup.controllers", text, sizeof(text)), 0);
    set |= strstr(text, "memory") ? CONTROLLER_MEMORY : 0;
    set |= strstr(text, "cpuset") ? CONTROLLER_CPUSET : 0;
    return set;
}

static void test_controllers_of_this_machine(void **state)
{
    (void)state;
    need_top();
    assert_int_equal(controllers_hand_down(top, CONTROLLER_MEMORY | CONTROLLER_CPUSET), on_offer());
    assert_true(kind_is("domain\n"));
    assert_true(probe_rt(top) >= 0);
    controllers_take_back(top, CONTROLLERS_ALL);
    put_in();
    assert_int_equal(controllers_hand_down(top, CONTROLLERS_ALL), 0); /* not while it is in there */
    assert_true(kind_is("domain\n"));
    assert_int_equal(controllers_settle(top), 0);
    assert_int_equal(controllers_hand_down(top, CONTROLLER_MEMORY | CONTROLLER_CPUSET), on_offer());
    controllers_take_back(top, CONTROLLERS_ALL);
}

static void test_a_group_of_the_old_kind_is_healed(void **state)
{
    (void)state;
    need_top();
    if (!(on_offer() & CONTROLLER_CPUSET)) {
        print_message("skipped: no controller cpuset here\n");
        skip();
    }
    assert_int_equal(mkdirat(top, "keeper", 0755), 0);
    put_in();
    assert_int_equal(group_write(top, "cgroup.subtree_control", "+cpuset"), 0);
    assert_true(kind_is("domain threaded\n"));
    assert_int_equal(probe_rt(top), -EOPNOTSUPP);
    assert_int_equal(controllers_settle(top), 0);
    assert_true(kind_is("domain\n"));
    assert_true(is_in("keeper", inside));
    assert_int_equal(controllers_hand_down(top, CONTROLLER_MEMORY | CONTROLLER_CPUSET), on_offer());
    assert_true(probe_rt(top) >= 0);
    controllers_take_back(top, CONTROLLERS_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_processes_go_to_the_leaf, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keeper_that_dies_is_missed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_is_born_in_a_threaded_group, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_controllers_of_this_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_group_of_the_old_kind_is_healed, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
