/* test_tmpfs.c - the file system of the jobs' directories: it is full when it is full, nothing is hidden by it, and
 * what an administrator has put there stays. In a mount namespace of the test's own. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "rsd/root/tmpfs.h"

enum { MEGABYTE = 1 << 20 };

static char dir[64], jobs[80];

static int up(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/elmer-tmpfs-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(jobs, sizeof(jobs), "%s/jobs", dir);
    assert_int_equal(mkdir(jobs, 0711), 0);
    return 0;
}

static int down(void **state)
{
    char command[200];
    (void)state;
    while (umount2(jobs, MNT_DETACH) == 0) {
    }
    snprintf(command, sizeof(command), "rm -rf --one-file-system %s", dir);
    assert_int_equal(system(command), 0);
    return 0;
}

/* Whether another file with so many bytes finds room; else errno says why. */
static bool can_write(const char *name, size_t bytes)
{
    static const char zeros[4096];
    char path[120];
    int fd, error = 0;
    snprintf(path, sizeof(path), "%s/%s", jobs, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    for (size_t written = 0; written < bytes && error == 0; written += sizeof(zeros))
        error = write(fd, zeros, sizeof(zeros)) == (ssize_t)sizeof(zeros) ? 0 : errno;
    close(fd);
    errno = error;
    return error == 0;
}

static void expect(int result, uint64_t bytes)
{
    struct err err = ERR_INIT;
    int got = tmpfs_mount(jobs, bytes, &err);
    if (got != result)
        fail_msg("%d: %s", got, err.text);
}

static void test_it_has_a_bound(void **state)
{
    char name[20];
    unsigned files = 0;
    struct stat st;
    (void)state;
    expect(1, 2 * MEGABYTE);
    assert_int_equal(stat(jobs, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0711);
    assert_int_equal(st.st_uid, 0);
    assert_true(can_write("small", MEGABYTE));
    assert_false(can_write("large", 2 * MEGABYTE));
    assert_int_equal(errno, ENOSPC);
    do
        snprintf(name, sizeof(name), "%u", files);
    while (can_write(name, 0) && ++files < 5000);
    assert_int_equal(errno, ENOSPC);
    assert_in_range(files, 900, 1100);
}

static void test_another_start_sets_its_size(void **state)
{
    struct statvfs before, after;
    (void)state;
    expect(1, 2 * MEGABYTE);
    assert_true(can_write("stays", 4096));
    assert_int_equal(statvfs(jobs, &before), 0);
    expect(1, 4 * MEGABYTE);
    assert_int_equal(statvfs(jobs, &after), 0);
    assert_int_equal(after.f_blocks, 2 * before.f_blocks);
    assert_int_equal(umount(jobs), 0); /* there was one */
    assert_int_equal(statvfs(jobs, &after), 0);
    assert_int_not_equal(after.f_blocks, before.f_blocks);
}

/* The directory of a job that an rsd without all this has started. */
static void test_nothing_is_hidden(void **state)
{
    char old[100];
    (void)state;
    snprintf(old, sizeof(old), "%s/7.1", jobs);
    assert_int_equal(mkdir(old, 0700), 0);
    expect(0, 2 * MEGABYTE);
    assert_int_equal(access(old, F_OK), 0);
    assert_int_equal(rmdir(old), 0);
    expect(1, 2 * MEGABYTE);
    assert_false(can_write("large", 3 * MEGABYTE));
}

static void test_what_somebody_has_mounted_stays(void **state)
{
    (void)state;
    assert_int_equal(mount("own", jobs, "tmpfs", 0, "size=8m"), 0);
    expect(1, 2 * MEGABYTE);
    assert_true(can_write("large", 4 * MEGABYTE));
}

static void test_a_part_of_memory(void **state)
{
    (void)state;
    assert_true(tmpfs_part_of_memory(10) > MEGABYTE);
    assert_in_range(tmpfs_part_of_memory(50), 5 * tmpfs_part_of_memory(10) - 5, 5 * tmpfs_part_of_memory(10) + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
        TEST(test_it_has_a_bound),    TEST(test_another_start_sets_its_size),
        TEST(test_nothing_is_hidden), TEST(test_what_somebody_has_mounted_stays),
        TEST(test_a_part_of_memory),
    };
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        fprintf(stderr, "skipped: only root with CAP_SYS_ADMIN can mount\n");
        return 77;
    }
    return cmocka_run_group_tests_name("the jobs' file system", tests, NULL, NULL);
}
