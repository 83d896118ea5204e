/* test_plain.c - the jobs half on a host without systemd and without cgroup_root: jobs are in a group below its own. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/base/locate.h"
#include "rsd/config.h"
#include "tests/root/bed.h"

int __wrap_sd_booted(void);

static char groups[4096];

int __wrap_sd_booted(void)
{
    return 0;
}

static void say_nowhere(struct rsd_config *config)
{
    config->cgroup_root[0] = 0;
}

static int up(void **state)
{
    rig_configure = say_nowhere;
    bed_up(state);
    snprintf(rig.groups, sizeof(rig.groups), "%s", groups);
    return 0;
}

static void test_a_job_and_the_next_rsd(void **state)
{
    const struct level alone = {1, 0, true};
    const char *const argv[] = {"sleep", "120", NULL};
    pid_t pid, found = 0;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_start(&rig, 1, 0, "command", argv);
    pid = rig_started(&rig);
    assert_int_equal(rig_pids(&rig, 1, "job", &found, 1), 1);
    assert_int_equal(found, pid);
    rig_root_kill(&rig, SIGKILL);
    rig_root_start(&rig);
    expect_holdings(1); /* it finds the same place */
    assert_int_equal(rig_pids(&rig, 1, "job", &found, 1), 1);
    assert_int_equal(found, pid);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_job_and_the_next_rsd, up, bed_down),
    };
    struct err err = ERR_INIT;
    char own[4000];
    int possible;
    alarm(300); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    if (group_locate("/proc", NULL, own, sizeof(own), &err) < 0)
        return 1;
    snprintf(groups, sizeof(groups), "%s/elmer-jobs", own);
    if (access(groups, F_OK) == 0) { /* all in it would be ended */
        fprintf(stderr, "skipped: there is %s already\n", groups);
        return 77;
    }
    return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
