/* test_supervisor.c - what a supervisor still may, what its user can do to it, and an end that it does not help with.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsd/root/limits.h"
#include "rsd/sup/sup.h"
#include "tests/root/bed.h"

enum { QUIT_MS = 1000, LIFE_SECONDS = 60 };

static const struct level alone = {1, 0, true};

/* ---- the programs that the jobs run: this binary, as DIR/helper ---- */

static int failures;

static void refused(const char *what, long result)
{
    if (result < 0 && (errno == EPERM || errno == EACCES))
        return;
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "done");
    failures++;
}

static void refused_file(const char *dir, const char *file, int flags)
{
    char path[4400];
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    refused(path, open(path, flags | O_CLOEXEC));
}

/* What a user's process tries upon the supervisor, which is its parent, and upon its groups. */
static int attack(const char *group)
{
    static const int signals[] = {SIGSTOP, SIGCONT, SIGCHLD, SIGTERM, SIGKILL};
    static const char *const files[] = {"cgroup.procs",     "cgroup.kill",     "job/cgroup.procs", "job/cgroup.kill",
                                        "sup/cgroup.procs", "sup/cgroup.kill", "job/cgroup.freeze"};
    const struct sched_param higher = {.sched_priority = 70}, lowest = {0};
    const struct rlimit none = {0, 0};
    pid_t supervisor = getppid();
    int pidfd = (int)syscall(SYS_pidfd_open, supervisor, 0);
    char proc[32];
    cpu_set_t all;
    sched_getaffinity(0, sizeof(all), &all);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        refused("kill", kill(supervisor, signals[i]));
        refused("pidfd_send_signal", syscall(SYS_pidfd_send_signal, pidfd, signals[i], NULL, 0));
    }
    refused("ptrace", ptrace(PTRACE_SEIZE, supervisor, NULL, NULL));
    for (int fd = 0; fd < 10; fd++)
        refused("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, fd, 0));
    refused("prlimit", prlimit(supervisor, RLIMIT_NOFILE, &none, NULL));
    refused("sched_setscheduler, higher", sched_setscheduler(supervisor, SCHED_FIFO, &higher));
    refused("sched_setscheduler, lower", sched_setscheduler(supervisor, SCHED_IDLE, &lowest));
    refused("sched_setaffinity", sched_setaffinity(supervisor, sizeof(all), &all));
    refused("setpriority", setpriority(PRIO_PROCESS, (id_t)supervisor, 19));
    snprintf(proc, sizeof(proc), "/proc/%d", (int)supervisor);
    refused_file(proc, "mem", O_RDWR);
    refused_file(proc, "fd", O_RDONLY | O_DIRECTORY);
    refused_file(proc, "environ", O_RDONLY);
    refused_file(proc, "oom_score_adj", O_WRONLY);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        refused_file(group, files[i], O_WRONLY);
    return failures;
}

/* In a user namespace of one's own one has all capabilities, and the kernel does not ask of which namespace they are.
 */
enum { NO_NAMESPACE = 77, REFUSED = 78 };

static int demote(void)
{
    const struct sched_param lowest = {0};
    const pid_t supervisor = getppid();
    cpu_set_t one;
    sched_getaffinity(0, sizeof(one), &one); /* the job's */
    if (unshare(CLONE_NEWUSER) < 0)
        return NO_NAMESPACE;
    if (sched_setaffinity(supervisor, sizeof(one), &one) == 0 &&
        sched_setscheduler(supervisor, SCHED_IDLE, &lowest) == 0)
        return 0;
    return errno == EPERM ? REFUSED : 1;
}

static int helper(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "attack") == 0)
        return attack(argv[2]);
    if (argc == 2 && strcmp(argv[1], "demote") == 0)
        return demote();
    sleep(LIFE_SECONDS);
    return 0;
}

/* ---- tests ---- */

static pid_t supervisor_of(uint64_t job)
{
    pid_t pids[4];
    assert_int_equal(rig_pids(&rig, job, "sup", pids, 4), 1);
    return pids[0];
}

static void status_of(pid_t pid, const char *field, char *value, size_t size)
{
    char path[64], line[4096];
    FILE *file;
    *value = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, field, strlen(field)) == 0)
            snprintf(value, size, "%.*s", (int)strcspn(line + strlen(field) + 2, "\n"), line + strlen(field) + 2);
    }
    fclose(file);
}

static void expect_status(pid_t pid, const char *field, const char *expected)
{
    char value[4096];
    status_of(pid, field, value, sizeof(value));
    assert_string_equal(value, expected);
}

/* Before a process of the user is there, and before a word of his was heard. */
static void test_puts_root_down(void **state)
{
    pid_t supervisor;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    supervisor = supervisor_of(1);
    expect_status(supervisor, "Uid", "65533\t65534\t65533\t65533");
    expect_status(supervisor, "Gid", "65534\t65534\t65534\t65534");
    expect_status(supervisor, "CapPrm", "0000000000800000"); /* CAP_SYS_NICE */
    expect_status(supervisor, "CapEff", "0000000000800000");
    expect_status(supervisor, "CapInh", "0000000000000000");
    expect_status(supervisor, "CapAmb", "0000000000000000");
    expect_status(supervisor, "Threads", "2");
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* Nor its thread, which has ids of its own. */
static void test_no_thread_is_root(void **state)
{
    char path[64];
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    pid_t supervisor = supervisor_of(1);
    for (pid_t tid = supervisor + 1, found = 0; !found; tid++) {
        assert_true(tid < supervisor + 10000);
        snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)supervisor, (int)tid);
        if (access(path, F_OK) == 0) {
            found = tid;
            expect_status(tid, "Uid", "65533\t65534\t65533\t65533");
            expect_status(tid, "CapPrm", "0000000000800000");
        }
    }
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* He would have his supervisor in his hands. */
static void test_no_job_of_its_own_user(void **state)
{
    static const uint32_t uids[] = {RIG_SUPERVISOR_UID, RIG_JOBS_UID, 0};
    struct wire_message answer;
    (void)state;
    for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]); i++) {
        struct wire_message message = {.type = WIRE_open};
        message.u.open.job = 70 + i;
        message.u.open.attempt = 1;
        message.u.open.uid = uids[i];
        message.u.open.user = "nobody";
        message.u.open.cpus = (struct wire_uints){&rig.cpu, 1};
        rig_send(&rig, &message);
        rig_expect(&rig, WIRE_open_failed, 5000, &answer);
        assert_int_equal(answer.u.open_failed.job, 70 + i);
        wire_message_fini(&answer);
    }
}

enum { FEW = 4 };
static struct rlimit before;

static int up_with_few_processes(void **state)
{
    struct rlimit few; /* the hard one stays: not everywhere root may raise it again */
    if (getrlimit(RLIMIT_NPROC, &before) < 0)
        return -1;
    few = (struct rlimit){FEW, before.rlim_max};
    if (setrlimit(RLIMIT_NPROC, &few) < 0)
        return -1;
    return bed_up(state);
}

static int down_with_all(void **state)
{
    setrlimit(RLIMIT_NPROC, &before);
    return bed_down(state);
}

/* Supervisors, of two threads each, have one uid. A limit that rsd's unit sets is meant for users. */
static void test_limit_of_processes(void **state)
{
    struct limits given;
    struct rlimit now;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    for (uint64_t job = 1; job <= 4; job++)
        rig_open(&rig, job, 1);
    limits_of_daemon(&given);
    limits_give_back(&given);
    assert_int_equal(getrlimit(RLIMIT_NPROC, &now), 0);
    assert_int_equal(now.rlim_cur, FEW);
    for (uint64_t job = 1; job <= 4; job++) {
        rig_end(&rig, job, 0);
        rig_empty(&rig, job, 5000);
    }
}

static void test_is_out_of_its_users_reach(void **state)
{
    struct wire_message message;
    char group[4200], text[4096] = "", path[100];
    const char *argv[] = {helper_path, "attack", group, NULL};
    FILE *out;
    (void)state;
    snprintf(group, sizeof(group), "%s/1.1", rig.groups);
    snprintf(path, sizeof(path), "%s/work/out", rig.dir);
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    rig_expect(&rig, WIRE_exited, 5000, &message);
    out = fopen(path, "re");
    if (out) {
        text[fread(text, 1, sizeof(text) - 1, out)] = 0;
        fclose(out);
    }
    assert_string_equal(text, "");
    assert_int_equal(message.u.exited.exit_status, 0);
    wire_message_fini(&message);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* What cannot be refused is put back. */
static void test_keeps_its_rank_and_cpus(void **state)
{
    struct wire_message message;
    const char *argv[] = {helper_path, "demote", NULL};
    int64_t status;
    cpu_set_t all, now;
    pid_t supervisor;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    supervisor = supervisor_of(1);
    assert_int_equal(sched_getaffinity(supervisor, sizeof(all), &all), 0);
    assert_int_equal(sched_getscheduler(supervisor), SCHED_FIFO);
    rig_run(&rig, 1, argv);
    rig_expect(&rig, WIRE_exited, 5000, &message);
    status = message.u.exited.exit_status;
    wire_message_fini(&message);
    assert_true(status == 0 || status == NO_NAMESPACE || status == REFUSED);
    rig_until(sched_getscheduler(supervisor) == SCHED_FIFO);
    rig_until(sched_getaffinity(supervisor, sizeof(now), &now) == 0 && CPU_EQUAL(&all, &now));
    print_message("its user could %slower it\n", status == 0 ? "" : "not ");
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* It says nothing any more, whoever has done that: its job is ended all the same. */
static void test_stopped(void **state)
{
    const char *argv[] = {helper_path, "sleep", NULL};
    int64_t begin;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    assert_int_equal(kill(supervisor_of(1), SIGSTOP), 0);
    begin = rig_now_ms();
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    print_message("empty after %d ms\n", (int)(rig_now_ms() - begin));
    assert_true(rig_now_ms() - begin < 10 * QUIT_MS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)
        TEST(test_puts_root_down),
        TEST(test_no_thread_is_root),
        TEST(test_no_job_of_its_own_user),
        cmocka_unit_test_setup_teardown(test_limit_of_processes, up_with_few_processes, down_with_all),
        TEST(test_is_out_of_its_users_reach),
        TEST(test_keeps_its_rank_and_cpus),
        TEST(test_stopped),
    };
    int possible;
    if (argc > 1)
        return helper(argc, argv);
    alarm(300); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("supervisors", tests, NULL, NULL);
}
