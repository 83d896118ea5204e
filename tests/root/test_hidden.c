/* test_hidden.c - a job's process that has left for a group which is hard to look into: it is found all the same. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/escapes/tree.h"
#include "tests/root/escapes_bed.h"

enum { DEEP_GROUPS = 1100, SOFT_FILES = 1024 };

static void expect_found(const char *group)
{
    pid_t pid;
    escapes_begin("sleep", &pid, 1);
    escapes_put(group, pid);
    rig_until(escapes_is_ranked(pid, SCHED_OTHER, 0));
    rig_until(escapes_anywhere(pid));
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* Names, depth and modes of groups are their user's choice, who has left by a scope of his own. */
static void test_in_a_group_with_a_dot(void **state)
{
    (void)state;
    escapes_group("/user-65534.slice/.run");
    expect_found("/user-65534.slice/.run");
}

static void close_to_others(const char *name, mode_t mode)
{
    char path[4300];
    snprintf(path, sizeof(path), "%s%s", rig.users, name);
    assert_int_equal(chmod(path, mode), 0);
}

static void in_closed(const char *file, mode_t mode, const char *group)
{
    char name[100];
    snprintf(name, sizeof(name), "/user-65534.slice/run-1.scope%s", file);
    escapes_group("/user-65534.slice/run-1.scope/below");
    close_to_others(name, mode);
    expect_found(group);
}

static void test_in_a_closed_group(void **state)
{
    (void)state;
    in_closed("", 0700, "/user-65534.slice/run-1.scope");
}

static void test_below_one_that_may_not_be_entered(void **state)
{
    (void)state;
    in_closed("", 0744, "/user-65534.slice/run-1.scope/below");
}

static void test_below_one_that_may_not_be_read(void **state)
{
    (void)state;
    in_closed("", 0711, "/user-65534.slice/run-1.scope/below");
}

static void test_where_threads_may_not_be_read(void **state)
{
    (void)state;
    in_closed("/cgroup.threads", 0600, "/user-65534.slice/run-1.scope");
}

/* Deeper than a process has descriptors, with a path that is longer than PATH_MAX. */
static void test_deep_below(void **state)
{
    const char *name = "a-group-in-a-group-in-a-group-in-a-group-in-a-group";
    char path[4300], text[24];
    pid_t pids[2];
    int dir, procs;
    (void)state;
    snprintf(path, sizeof(path), "%s/user-65534.slice/run-1.scope", rig.users);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEEP_GROUPS; i++) {
        int below;
        assert_int_equal(mkdirat(dir, name, 0755), 0);
        below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(below >= 0);
        close(dir);
        dir = below;
    }
    escapes_begin("two", pids, 2);
    procs = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    snprintf(text, sizeof(text), "%d", (int)pids[0]);
    assert_int_equal(write(procs, text, strlen(text)), strlen(text));
    close(procs);
    close(dir);
    rig_until(escapes_is_ranked(pids[0], SCHED_OTHER, 0));
    escapes_group("/user-65534.slice/1"); /* beside it: the walk finds its way back up */
    escapes_put("/user-65534.slice/1", pids[1]);
    rig_until(escapes_is_ranked(pids[1], SCHED_OTHER, 0));
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

struct walked {
    int count;
    bool deepest;
};

static void visit(void *data, int dir)
{
    struct walked *walked = data;
    walked->count++;
    walked->deepest |= faccessat(dir, "the-end", F_OK, 0) == 0;
}

static void no_rest(void *data)
{
    (void)data;
}

static void test_walks_with_few_descriptors(void **state)
{
    struct walked walked = {0};
    struct tree tree = {.visit = visit, .rest = no_rest, .data = &walked};
    struct rlimit few = {TREE_ANCHORS + 40, 0}, all;
    char template[] = "/tmp/elmer-tree-XXXXXX", command[100];
    int dir;
    (void)state;
    assert_non_null(mkdtemp(template));
    dir = open(template, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEEP_GROUPS; i++) {
        int below;
        assert_int_equal(mkdirat(dir, ".a", 0755), 0);
        assert_int_equal(mkdirat(dir, "b", 0755), 0);
        assert_int_equal(mkdirat(dir, "0", 0755), 0);
        below = openat(dir, "b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(dir);
        dir = below;
    }
    assert_int_equal(mkdirat(dir, "the-end", 0755), 0);
    close(dir);
    getrlimit(RLIMIT_NOFILE, &all);
    few.rlim_max = all.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    tree_walk(&tree, template);
    setrlimit(RLIMIT_NOFILE, &all);
    assert_int_equal(tree.missed, 0);
    assert_int_equal(walked.count, 3 * DEEP_GROUPS + 2);
    assert_true(walked.deepest);
    snprintf(command, sizeof(command), "rm -rf %s", template);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, escapes_up, escapes_down)
        cmocka_unit_test(test_walks_with_few_descriptors),
        TEST(test_in_a_group_with_a_dot),
        TEST(test_in_a_closed_group),
        TEST(test_below_one_that_may_not_be_entered),
        TEST(test_below_one_that_may_not_be_read),
        TEST(test_where_threads_may_not_be_read),
        TEST(test_deep_below),
    };
    struct rlimit files;
    int possible;
    if (argc == 2)
        return escapes_helper(argv[1]);
    getrlimit(RLIMIT_NOFILE, &files); /* as systemd gives it to rsd-spawn.service */
    files.rlim_cur = files.rlim_max < SOFT_FILES ? files.rlim_max : SOFT_FILES;
    setrlimit(RLIMIT_NOFILE, &files);
    alarm(300); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("where who leaves a job hides", tests, NULL, NULL);
}
