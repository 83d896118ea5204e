/* test_commands_config.c - eadmin config as it is typed: which words it takes, which files it means. What it finds is
 * in tests/unit/client. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/scratch.h"

static void said(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

/* A fragment stands for all that counts with it; options stand where one likes. */
static void test_files(void **data)
{
    struct world *w = *data;
    char dir[] = "/tmp/elmer-files-XXXXXX", conf[100], fragment[120], user[64];

    snprintf(user, sizeof(user), "%s", getpwuid(geteuid())->pw_name);
    assert_non_null(scratch_dir(dir));
    snprintf(conf, sizeof(conf), "%s/elmer.conf", dir);
    snprintf(fragment, sizeof(fragment), "%s.d/5.conf", conf);
    assert_true(scratch_mkdir(dir, "elmer.conf.d"));
    assert_true(scratch_put(dir, "elmer.conf.d/5.conf", "[elmer]\nstore = /tmp/elmer.db\nlevels = 4\n"));
    RUN(w, "eadmin", "config", "check", "--user", user, fragment);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "OK: 1 host, no listen: for this host alone\n");
    RUN(w, "eadmin", "config", "check", conf); /* which is not there */
    assert_int_equal(finish(w), 1);
    said(w->stderr_text, "elmer.conf: No such file or directory");
    RUN(w, "eadmin", "config", "show", fragment);
    assert_int_equal(finish(w), 0);
    said(w->stdout_text, "elmer.conf.d/5.conf:3\n");
    RUN(w, "eadmin", "config", "show", fragment, "--default");
    assert_int_equal(finish(w), 0);
    said(w->stdout_text, "\nlevels = 3 ");
    snprintf(conf, sizeof(conf), "%s/x.conf", dir);
    assert_true(scratch_put(dir, "x.conf", "[rsd]\nmode = rt\n")); /* the section says what it is */
    RUN(w, "eadmin", "config", "show", conf);
    assert_int_equal(finish(w), 0);
    said(w->stdout_text, "\nmode = rt ");
}

static void test_usage(void **data)
{
    static const char *const wrong[][5] = {
        {"eadmin", "config", NULL},
        {"eadmin", "config", "look", NULL},
        {"eadmin", "config", "check", "a", "b"},
        {"eadmin", "config", "check", "--default", NULL},
        {"eadmin", "config", "show", "--user", "a"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        const char *words[6] = {wrong[i][0], wrong[i][1], wrong[i][2], wrong[i][3], wrong[i][4], NULL};

        run(*data, words);
        assert_int_equal(finish(*data), 2);
        said(((struct world *)*data)->stderr_text, "see 'eadmin --help'");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_usage, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
