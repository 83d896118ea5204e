/* test_pvm.c - what a user may make of the daemons and the agent of his virtual machine: all of them are processes of
 * his own, so nothing that they do may cost the jobs above more than a bounded time. A real root half and supervisors,
 * as in test_root_half.c; this binary is the pvmd and the agent. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/root/rig.h"

enum { HELPER_SECONDS = 30, RT_SECONDS = 5, PVMD = 1000, AGENT = 1001 };

/* ---- the programs that the jobs run: this binary, as DIR/helper ---- */

static void bound_self(void)
{
    struct rlimit rt = {RT_SECONDS * 1000000, RT_SECONDS * 1000000};
    setrlimit(RLIMIT_RTTIME, &rt);
    alarm(HELPER_SECONDS);
}

static _Noreturn void spin(void)
{
    for (;;) {
    }
}

static int helper(const char *what)
{
    bound_self();
    if (strcmp(what, "spin") == 0)
        spin();
    return 1;
}

/* ---- what it costs ---- */

static double cpu_ms(pid_t pid)
{
    struct timespec used = {0};
    clockid_t clock;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &used), 0);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

/* ---- tests ---- */

static struct rig rig;
static char helper_path[100];
/* The first spins on the only CPU; the second, in real time below it, may get nothing that is not given to it. */
static const struct level levels[] = {{1, 0, false}, {2, 1, false}, {3, 1, false}, {4, 2, true}};

static int up(void **state)
{
    (void)state;
    rig_up(&rig);
    snprintf(helper_path, sizeof helper_path, "%s/helper", rig.dir);
    return 0;
}

static int down(void **state)
{
    (void)state;
    rig_down(&rig);
    return 0;
}

static void begin_below_a_spinner(void)
{
    const char *const argv[] = {helper_path, "spin", NULL};
    rig_order(&rig, 1, levels, 4);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
}

/* Job with a pvmd that does nothing but use its boost. */
static pid_t start_greedy(uint64_t job)
{
    const char *const argv[] = {helper_path, "spin", NULL};
    rig.pvm = true;
    rig_open(&rig, job, 1);
    rig_start(&rig, job, PVMD, "pvmd", argv);
    return rig_started(&rig);
}

static void finish(uint64_t job)
{
    struct wire_message message = {.type = WIRE_pvm_finish, .u.pvm_finish = {.job = job, .attempt = 1}};
    rig_send(&rig, &message);
}

enum { BOOST_MS = 50, HOST_MS_PER_SECOND = 10, OVERDRAWN_MS = 15 };

static void test_boost_of_a_job(void **state)
{
    double used, begin;
    pid_t pid;
    (void)state;
    begin_below_a_spinner();
    pid = start_greedy(2);
    poll(NULL, 0, 1000);
    used = cpu_ms(pid);
    print_message("a pvmd that spins, in its first second: %.0f ms\n", used);
    assert_in_range((unsigned)used, 5, BOOST_MS + OVERDRAWN_MS);
    begin = used;
    finish(2);
    poll(NULL, 0, 1000);
    used = cpu_ms(pid);
    print_message("when its machine ends: %.0f ms more\n", used - begin);
    assert_in_range((unsigned)(used - begin), 0, OVERDRAWN_MS);
    rig_end(&rig, 2, 0);
    rig_empty(&rig, 2, 2000);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 2000);
}

static void test_boosts_of_many_jobs(void **state)
{
    double used = 0;
    int64_t begin = rig_now_ms();
    (void)state;
    begin_below_a_spinner();
    for (uint64_t job = 2; job <= 3; job++) {
        pid_t pid = start_greedy(job);
        poll(NULL, 0, 300);
        used += cpu_ms(pid);
        rig_end(&rig, job, 0);
        rig_empty(&rig, job, 2000);
    }
    print_message("two of them one after the other: %.0f ms in %d ms\n", used, (int)(rig_now_ms() - begin));
    assert_true(used <= BOOST_MS + 2 * OVERDRAWN_MS + (double)(rig_now_ms() - begin) * HOST_MS_PER_SECOND / 1000);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 2000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
        TEST(test_boost_of_a_job),
        TEST(test_boosts_of_many_jobs),
    };
    int possible;
    if (argc == 2)
        return helper(argv[1]);
    alarm(180); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("virtual machines", tests, NULL, NULL);
}
