/* test_ini_closed.c - files of a configuration that the present user may not read: who that is, and what to do. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/config/ini.h"
#include "tests/unit/scratch.h"

static int set_levels(void *config, const char *subsection, const char *value, struct err *err)
{
    (void)subsection;
    return ini_parse_int(value, 1, 16, config, err);
}

static const struct ini_key keys[] = {{"elmer", "levels", set_levels, "3", 0, NULL}, INI_END};
static char dir[] = "/tmp/elmer-ini-XXXXXX", path[60], fragments[60];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof(path), "%s/a.conf", scratch_dir(dir));
    (void)snprintf(fragments, sizeof(fragments), "%s/a.conf.d", dir);
    return scratch_put(dir, "a.conf", "[elmer]\nlevels = 3\n") && scratch_mkdir(dir, "a.conf.d") &&
                   chmod(dir, 0755) == 0 && chmod(path, 0644) == 0 && chmod(fragments, 0755) == 0
               ? 0
               : -1;
}

/* As a user who is not root, for whom no file is closed. */
static int read_as_user(struct err *err)
{
    uid_t own = geteuid();
    long levels = 0;
    int result;

    assert_int_equal(seteuid(own ? own : 65534), 0);
    result = ini_read_all(path, true, keys, NULL, &levels, NULL, err);
    assert_int_equal(seteuid(own), 0);
    return result;
}

static void closed_files_say_who_cannot_read_them(void **state)
{
    const struct passwd *user = getpwuid(geteuid() ? geteuid() : 65534);
    const char *name = user ? user->pw_name : "of this program";
    struct err err = ERR_INIT;
    char said[300];

    (void)state;
    assert_int_equal(read_as_user(&err), 0);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(read_as_user(&err), -EACCES);
    (void)snprintf(said, sizeof(said),
                   "%s: the user %s cannot read it: Permission denied; chmod 644 %s, and 755 the directories above it",
                   path, name, path);
    assert_string_equal(err.text, said);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(chmod(fragments, 0), 0);
    assert_int_equal(read_as_user(&err), -EACCES);
    (void)snprintf(said, sizeof(said), "%s: the user %s cannot read it: Permission denied; chmod 755 %s", fragments,
                   name, fragments);
    assert_non_null(strstr(err.text, said));
    assert_int_equal(chmod(fragments, 0755), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(closed_files_say_who_cannot_read_them)};

    return cmocka_run_group_tests(tests, setup, NULL);
}
