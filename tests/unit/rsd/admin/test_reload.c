/* test_reload.c - what `systemctl reload rsd` asks first: the new files beside what the running rsd was given. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rsd/admin/reload.h"
#include "rsd/config.h"
#include "tests/unit/scratch.h"

static char dir[40], said[20000];

/* The standard rundir is the test's. */
void __real_rsd_config_default(struct rsd_config *config);
void __wrap_rsd_config_default(struct rsd_config *config);

void __wrap_rsd_config_default(struct rsd_config *config)
{
    __real_rsd_config_default(config);
    snprintf(config->rundir, sizeof(config->rundir), "%s", dir);
}

/* The files say next, rsd was given running; NULL: it has written nothing. Returns what the reload does. */
static int reload(const char *next, const char *running)
{
    char text[4000], path[100];
    int saved = dup(STDERR_FILENO), out, result;
    ssize_t size;

    if (strncmp(next, "rundir", 6) == 0)
        snprintf(text, sizeof(text), "[rsd]\n%s", next);
    else
        snprintf(text, sizeof(text), "[rsd]\nrundir = %s\n%s", dir, next);
    assert_true(scratch_put(dir, "new.conf", text));
    snprintf(text, sizeof(text), "[rsd]\nrundir = %s\n%s", dir, running ? running : "");
    assert_true(scratch_put(dir, "rsd.conf", text));
    snprintf(path, sizeof(path), "%s/rsd.conf", dir);
    if (!running)
        unlink(path);
    snprintf(path, sizeof(path), "%s/said", dir);
    out = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(saved >= 0 && out >= 0 && dup2(out, STDERR_FILENO) >= 0);
    snprintf(path, sizeof(path), "%s/new.conf", dir);
    result = rsd_reload_main(path, true);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    size = pread(out, said, sizeof(said) - 1, 0);
    assert_true(size >= 0);
    said[size] = 0;
    close(out);
    close(saved);
    return result;
}

static void expect(const char *words)
{
    if (!strstr(said, words))
        fail_msg("\"%s\" does not say \"%s\"", said, words);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/elmer-reload-XXXXXX");
    return scratch_dir(dir) ? 0 : -1;
}

static void each_change_is_a_line(void **state)
{
    (void)state;
    assert_int_equal(reload("mode = idle\nuser_requests = 7\n", "mode = rt\nminimum_uid = 900\n"), 0);
    expect("reload: mode = idle, was rt\n");
    expect("reload: user_requests = 7, was 2000\n");
    expect("reload: minimum_uid = 1000, was 900\n");
    expect("reload: 3 changed; rsd begins again with them");
    assert_int_equal(reload("mode = rt\n", "mode = rt\n"), 0);
    expect("reload: 0 changed");
    assert_int_equal(reload("mode = auto\n", ""), 0); /* as it was by default */
    expect("reload: 0 changed");
}

static void what_is_wrong_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(reload("mode = fast\nuser_requests = x\nminimum_uid = 900\n", "mode = rt\n"), 1);
    expect("new.conf:3: mode = fast");
    expect("new.conf:4: user_requests = x");
    expect("reload: refused, nothing has changed");
    assert_null(strstr(said, "minimum_uid"));
}

static void what_would_lose_jobs_is_refused_by_name(void **state)
{
    (void)state;
    assert_int_equal(reload("name = ws9\nmode = idle\n", "name = ws2\nmode = rt\n"), 1);
    expect("reload: name = ws9, was ws2: needs a restart, which would lose the jobs that run here: eadmin drain");
    expect("reload: refused, nothing has changed");
    assert_int_equal(reload("cgroup_root = /sys/fs/cgroup/x\n", ""), 1);
    expect("reload: cgroup_root = /sys/fs/cgroup/x, was found: needs a restart");
    assert_int_equal(reload("mode = idle\n", NULL), 1);
    expect("reload: what runs cannot be told: ");
}

/* Nothing is there yet; what runs is where it was. */
static void another_rundir_is_refused_by_name(void **state)
{
    char line[200], expected[300];

    (void)state;
    snprintf(line, sizeof(line), "rundir = %s/other\n", dir);
    snprintf(expected, sizeof(expected),
             "reload: rundir = %s/other, was %s: needs a restart, which would lose the jobs", dir, dir);
    assert_int_equal(reload(line, ""), 1);
    expect(expected);
    expect("reload: refused, nothing has changed");
    assert_true(scratch_mkdir(dir, "other")); /* made for it, and empty */
    assert_int_equal(reload(line, ""), 1);
    expect(expected);
    assert_int_equal(reload(line, NULL), 1);
    expect("reload: what runs cannot be told: ");
    expect("/other/rsd.conf"); /* of the two the one that would be right */
}

/* What rsd has found out itself may be written down. */
static void its_own_name_is_no_change(void **state)
{
    char own[256] = "", line[300];

    (void)state;
    assert_int_equal(gethostname(own, sizeof(own) - 1), 0);
    own[strcspn(own, ".")] = 0;
    snprintf(line, sizeof(line), "name = %s\n", own);
    assert_int_equal(reload(line, ""), 0);
    expect("reload: 0 changed");
    assert_int_equal(reload("", line), 0);
    expect("reload: 0 changed");
    assert_int_equal(reload("name = ws9\n", ""), 1);
    snprintf(line, sizeof(line), "reload: name = ws9, was %s: needs a restart", own);
    expect(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_change_is_a_line, setup),
        cmocka_unit_test_setup(what_is_wrong_changes_nothing, setup),
        cmocka_unit_test_setup(what_would_lose_jobs_is_refused_by_name, setup),
        cmocka_unit_test_setup(another_rundir_is_refused_by_name, setup),
        cmocka_unit_test_setup(its_own_name_is_no_change, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
