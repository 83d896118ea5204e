/* test_restarts.c - the root half, or a supervisor, dies in the middle: what the next one finds, and that jobs go on.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/root/bed.h"

/* It died while it opened the job, and what it left cannot be removed at once: the job is opened again when it can. */
static void test_leftover_is_in_the_way(void **state)
{
    static const char *const made[] = {"", "/sup", "/job", "/stays"};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    char path[4300];
    (void)state;
    resync(&message); /* it is up */
    wire_message_fini(&message);
    rig_root_kill(&rig, SIGKILL);
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        snprintf(path, sizeof(path), "%s/1.1%s", rig.groups, made[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    rig_root_start(&rig);
    resync(&message);
    assert_int_equal(message.u.root_state.holdings.count, 0);
    wire_message_fini(&message);
    rig_order(&rig, 1, &alone, 1);
    rig_ask_open(&rig, 1, 1, 0);
    rig_expect_none(&rig, WIRE_open_failed, 300);
    assert_int_equal(rmdir(path), 0);
    rig_until(!rig_exists(&rig, 1));
    rig_open(&rig, 1, 1); /* elmer asks again for what is not confirmed */
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 3000);
}

/* The root half may die while it holds a group frozen: the next one lets it go. */
static void test_frozen_job_is_thawed(void **state)
{
    const char *const argv[] = {"sh", "-c", "read x <gate; exit 4", NULL};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    char path[4300];
    int fd;
    (void)state;
    rig_gate(&rig);
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    rig_root_kill(&rig, SIGKILL);
    snprintf(path, sizeof(path), "%s/1.1/job/cgroup.freeze", rig.groups);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "1", 1), 1);
    close(fd);
    rig_gate_open(&rig);
    rig_root_start(&rig);
    resync(&message);
    wire_message_fini(&message);
    expect_exit(0, 4, 0);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 3000);
}

static void test_adoption(void **state)
{
    const char *const first[] = {"sh", "-c", "read x <gate; exit 5", NULL}, *const second[] = {"sleep", "120", NULL};
    const struct level alone = {1, 0, true};
    struct wire_message message;
    pid_t pid, gone, left[2];
    (void)state;
    rig_gate(&rig);
    rig_order(&rig, 4, &alone, 1);
    rig_open(&rig, 1, 4);
    rig_start(&rig, 1, 0, "command", first);
    gone = rig_started(&rig);
    rig_start(&rig, 1, 1, "command", second);
    pid = rig_started(&rig);
    assert_int_not_equal(gone, pid);
    rig_root_kill(&rig, SIGKILL);
    rig_gate_open(&rig); /* the first ends while nobody looks */
    rig_until(rig_pids(&rig, 1, "job", left, 2) == 1 && left[0] == pid);
    rig_root_start(&rig);
    resync(&message);
    assert_int_equal(message.u.root_state.holdings.count, 1);
    assert_int_equal(message.u.root_state.holdings.items[0].job, 1);
    assert_string_equal(message.u.root_state.mode, "rt");
    wire_message_fini(&message);
    expect_exit(0, 5, 0);
    acknowledge(1, 0);
    rig_start(&rig, 1, 1, "command", second);
    assert_int_equal(rig_started(&rig), pid);
    rig_order(&rig, 5, &alone, 1);
    rig_open(&rig, 1, 5);
    rig_end(&rig, 1, 1000);
    expect_exit(1, -1, SIGTERM);
    rig_empty(&rig, 1, 3000);
}

/* Elmer may be away for long: what the jobs do meanwhile has the rank of the last order. */
static void test_ranks_outlive_it(void **state)
{
    const char *const argv[] = {"sh", "-c", "read x <gate; sleep 120 & sleep 120", NULL};
    const struct level levels[] = {{1, 0, false}, {2, 1, true}};
    struct sched_param lower = {0};
    struct wire_message message;
    size_t threads = 0, wrong = 1;
    pid_t pid;
    (void)state;
    rig_gate(&rig);
    rig_order(&rig, 7, levels, 2);
    rig_open(&rig, 1, 7);
    rig_start(&rig, 1, 0, "command", argv);
    pid = rig_started(&rig);
    rig_root_kill(&rig, SIGKILL);
    assert_int_equal(sched_setscheduler(pid, SCHED_OTHER, &lower), 0); /* as the tasks of a pvmd are born */
    rig_root_start(&rig);
    resync(&message);
    assert_int_equal(message.u.root_state.generation, 0); /* every order of elmer is newer */
    wire_message_fini(&message);
    rig_gate_open(&rig);
    rig_until((wrong = rig_wrong(&rig, 1, -1, 49, &threads)) == 0 && threads == 3);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* Job 1 alone, which sleeps. Its supervisor. */
static pid_t run_alone(void)
{
    const char *const argv[] = {"sleep", "120", NULL};
    const struct level alone = {1, 0, true};
    pid_t supervisor;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    assert_int_equal(rig_pids(&rig, 1, "sup", &supervisor, 1), 1);
    return supervisor;
}

static void test_supervisor_killed(void **state)
{
    struct wire_message message;
    (void)state;
    kill(run_alone(), SIGKILL);
    rig_expect(&rig, WIRE_lost, 2000, &message);
    assert_non_null(strstr(message.u.lost.text, "supervisor of job 1 was killed"));
    wire_message_fini(&message);
    rig_expect_none(&rig, WIRE_empty, 300);
    assert_false(rig_exists(&rig, 1));
    rig_end(&rig, 1, 1000);
    rig_empty(&rig, 1, 1000);
}

static void test_supervisor_killed_while_nobody_looks(void **state)
{
    struct wire_message message;
    pid_t supervisor = run_alone();
    (void)state;
    rig_root_kill(&rig, SIGKILL);
    kill(supervisor, SIGKILL);
    rig_until(rig_pids(&rig, 1, "sup", &supervisor, 1) == 0);
    rig_root_start(&rig);
    resync(&message);
    assert_int_equal(message.u.root_state.holdings.count, 1);
    wire_message_fini(&message);
    rig_end(&rig, 1, 1000);
    rig_empty(&rig, 1, 3000);
}

static void owner_of(const char *name, uid_t *uid)
{
    char path[4300];
    struct stat st = {0};
    snprintf(path, sizeof(path), "%s/%s", rig.dir, name);
    assert_int_equal(stat(path, &st), 0);
    *uid = st.st_uid;
}

static void make_file(const char *name)
{
    char path[4300];
    int fd;
    snprintf(path, sizeof(path), "%s/%s", rig.dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* Whoever had the jobs half could put another name of a file of root's into its directory (fs.protected_hardlinks=0):
 * the next one is not given that. */
static void test_files_of_root_stay_so(void **state)
{
    struct wire_message message;
    char from[4300], to[4300];
    uid_t uid;
    (void)state;
    resync(&message); /* it is up */
    wire_message_fini(&message);
    rig_root_kill(&rig, SIGKILL);
    make_file("run/precious");
    make_file("run/sup/plain");
    snprintf(from, sizeof(from), "%s/run/precious", rig.dir);
    snprintf(to, sizeof(to), "%s/run/sup/linked", rig.dir);
    assert_int_equal(link(from, to), 0);
    rig_root_start(&rig);
    resync(&message);
    wire_message_fini(&message);
    owner_of("run/sup/plain", &uid);
    assert_int_equal(uid, RIG_JOBS_UID);
    owner_of("run/precious", &uid);
    assert_int_equal(uid, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)
        TEST(test_leftover_is_in_the_way),
        TEST(test_frozen_job_is_thawed),
        TEST(test_adoption),
        TEST(test_ranks_outlive_it),
        TEST(test_supervisor_killed),
        TEST(test_supervisor_killed_while_nobody_looks),
        TEST(test_files_of_root_stay_so),
    };
    int possible;
    alarm(400); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("restarts", tests, NULL, NULL);
}
