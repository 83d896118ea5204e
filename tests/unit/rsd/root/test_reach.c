/* test_reach.c - root connects to the supervisors of an rsd that was root, in a directory that is another user's: to no
 * socket but a file of root's with this very name and no other. It must be root's; else it is skipped. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rsd/root/root.h"
#include "tests/unit/scratch.h"

enum { OWNER = 65111 };

static struct rsd_config config = {.jobs_uid = OWNER, .jobs_gid = OWNER};
static char dir[64], reached[256];

static void note(void *data, const char *name, int fd)
{
    size_t used = strlen(reached);
    (void)data;
    assert_true(fd >= 0);
    snprintf(reached + used, sizeof(reached) - used, "%s ", name);
}

static const char *path_of(const char *name)
{
    static char path[120];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

/* Listening as this user; the file is root's. */
static int listener(const char *name, uid_t as)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path_of(name));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    if (as)
        assert_int_equal(seteuid(as), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(seteuid(0), 0);
    return fd;
}

static void test_reach(void **state)
{
    struct stat st;
    int all[4];
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/elmer-reach-XXXXXX");
    assert_non_null(scratch_dir(dir));
    snprintf(config.rundir, sizeof(config.rundir), "%s", dir);
    assert_true(scratch_mkdir(dir, "sup"));
    all[0] = listener("sup/7.1", 0);
    all[1] = listener("elsewhere", 0);
    all[2] = listener("sup/9.1", OWNER);
    all[3] = listener("other", 0);
    assert_int_equal(symlink("../elsewhere", path_of("sup/8.1")), 0);
    assert_int_equal(symlink("../elsewhere", path_of("sup/00000000000000000000007.")), 0);
    assert_int_equal(symlink("7.1", path_of("sup/00000000000000000000007.1")), 0);
    char from[120];
    snprintf(from, sizeof(from), "%s", path_of("other"));
    assert_int_equal(link(from, path_of("sup/10.1")), 0);
    reached[0] = 0;
    rsd_reach(&config, note, NULL);
    assert_string_equal(reached, "7.1 ");
    /* One that elmer-jobs listens at is his. */
    assert_int_equal(stat(path_of("sup/9.1"), &st), 0);
    assert_int_equal(st.st_uid, OWNER);
    assert_int_equal(stat(path_of("elsewhere"), &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(stat(path_of("other"), &st), 0);
    assert_int_equal(st.st_uid, 0);
    for (size_t i = 0; i < 4; i++)
        close(all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reach)};
    if (geteuid() != 0) {
        printf("1..0 # SKIP only root can have others' sockets\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
