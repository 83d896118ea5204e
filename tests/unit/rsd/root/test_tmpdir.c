/* test_tmpdir.c - removal of a job's directory: it follows nothing, and frees nothing large at the rank of daemons. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/root/tmpdir.h"
#include "tests/unit/scratch.h"

static char root[] = "/tmp/elmer-tmpdir-XXXXXX";

static void put(const char *name, const char *text)
{
    assert_true(scratch_put(root, name, text));
}

static void make(const char *name)
{
    assert_true(scratch_mkdir(root, name));
}

static void test_removal_follows_nothing(void **state)
{
    char path[4096], outside[200];
    int dir = open(root, O_RDONLY | O_DIRECTORY), deep;
    (void)state;
    make("keep");
    put("keep/me", "precious");
    make("9.1");
    snprintf(outside, sizeof(outside), "%s/keep", root);
    snprintf(path, sizeof(path), "%s/9.1/link", root);
    assert_int_equal(symlink(outside, path), 0);
    put("9.1/file", "");
    deep = openat(dir, "9.1", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 300; i++) { /* deeper than anything walks by recursion */
        int next;
        assert_int_equal(mkdirat(deep, "deeper", 0755), 0);
        assert_int_equal(symlinkat(outside, deep, "out"), 0);
        next = openat(deep, "deeper", O_RDONLY | O_DIRECTORY);
        assert_true(next >= 0);
        close(deep);
        deep = next;
    }
    close(deep);
    assert_int_equal(tmpdir_remove(dir, "9.1", 10), 0);
    assert_int_equal(faccessat(dir, "9.1", F_OK, 0), -1);
    assert_int_equal(faccessat(dir, "keep/me", F_OK, 0), 0);
    assert_int_equal(tmpdir_remove(dir, "9.1", 10), 0);
    assert_int_equal(symlinkat(outside, dir, "9.2"), 0); /* a link in place of the directory */
    tmpdir_remove(dir, "9.2", 10);
    assert_int_equal(faccessat(dir, "keep/me", F_OK, 0), 0);
    close(dir);
}

static int go_down(int dir, const char *name, int levels)
{
    assert_true(dir >= 0);
    for (int i = 0; i < levels; i++) {
        int below;
        assert_true(mkdirat(dir, name, 0755) == 0 || errno == EEXIST);
        below = openat(dir, name, O_RDONLY | O_DIRECTORY);
        assert_true(below >= 0);
        close(dir);
        dir = below;
    }
    return dir;
}

/* A tree that is too deep is moved to the top; somebody has known by which name, and has that come later. */
static void test_removal_where_a_name_is_taken(void **state)
{
    int dir = open(root, O_RDONLY | O_DIRECTORY);
    (void)state;
    for (int i = 0; i < 20; i++) { /* which comes first is the file system's choice */
        char name[16];
        snprintf(name, sizeof(name), "deep-%d", i);
        make("9.1");
        make("9.1/.elmer-0");
        put("9.1/.elmer-0/file", "");
        close(go_down(openat(dir, "9.1", O_RDONLY | O_DIRECTORY), name, 60));
        assert_int_equal(tmpdir_remove(dir, "9.1", 10), 0);
        assert_int_equal(faccessat(dir, "9.1", F_OK, 0), -1);
    }
    close(dir);
}

/* All that one round tries, some of them too deep as well. */
static void test_removal_where_many_names_are_taken(void **state)
{
    enum { TAKEN = 250, CHAIN = 110 };
    int dir = open(root, O_RDONLY | O_DIRECTORY);
    (void)state;
    make("9.1");
    close(go_down(openat(dir, "9.1", O_RDONLY | O_DIRECTORY), "a", 300));
    for (int i = 0; i < TAKEN; i++) {
        char name[32];
        snprintf(name, sizeof(name), "9.1/.elmer-%d", i);
        make(name);
        close(go_down(openat(dir, name, O_RDONLY | O_DIRECTORY), "b", i % 2 ? 1 : CHAIN));
    }
    assert_int_equal(tmpdir_remove(dir, "9.1", 10), 0);
    assert_int_equal(faccessat(dir, "9.1", F_OK, 0), -1);
    close(dir);
}

static void put_large(const char *name)
{
    char path[4096];
    int fd;
    snprintf(path, sizeof(path), "%s/%s", root, name);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(posix_fallocate(fd, 0, 4 << 20), 0);
    close(fd);
}

/* What takes the kernel long is not freed at the rank of daemons. */
static void test_removal_of_large_files(void **state)
{
    struct sched_param param = {.sched_priority = 1};
    int dir = open(root, O_RDONLY | O_DIRECTORY);
    (void)state;
    make("8.1");
    put("8.1/small", "x");
    assert_int_equal(tmpdir_sweep(dir, "8.1"), 0);
    make("8.1");
    put_large("8.1/large");
    assert_int_equal(tmpdir_sweep(dir, "8.1"), -ENOTEMPTY);
    if (sched_setscheduler(0, SCHED_FIFO, &param) == 0) { /* as root */
        assert_int_equal(tmpdir_remove(dir, "8.1", 100), 0);
        assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    }
    assert_int_equal(tmpdir_remove(dir, "8.1", 100), 0);
    close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removal_follows_nothing),
        cmocka_unit_test(test_removal_where_a_name_is_taken),
        cmocka_unit_test(test_removal_where_many_names_are_taken),
        cmocka_unit_test(test_removal_of_large_files),
    };
    if (!scratch_dir(root))
        return 1;
    return cmocka_run_group_tests_name("tmpdir", tests, NULL, NULL);
}
