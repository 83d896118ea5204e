/* test_hostile.c - users against the root half, with real processes: what a job is born with, and what its paths, its
 * directory, its pids and its number of processes cannot do. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/root/bed.h"

enum { SPINNERS = 40, SPIN_SECONDS = 60 };

static const struct level alone = {1, 0, true};

/* ---- the programs that the jobs run: this binary, as DIR/helper ---- */

static _Noreturn void spinners(void)
{
    struct rlimit rt = {4000000, 4000000};
    setrlimit(RLIMIT_RTTIME, &rt);
    for (int i = 1; i < SPINNERS; i++) {
        if (fork() == 0) {
            setsid();
            break;
        }
    }
    alarm(SPIN_SECONDS);
    for (;;) {
    }
}

static int helper(const char *what)
{
    if (strcmp(what, "spinners") == 0)
        spinners();
    if (strcmp(what, "fds") == 0) {
        for (int fd = 0; fd < 4096; fd++) {
            if (fcntl(fd, F_GETFD) >= 0)
                printf("%d ", fd);
        }
    }
    if (strcmp(what, "sleep") == 0)
        sleep(SPIN_SECONDS);
    return 0;
}

/* ---- what a job is born with ---- */

static void expect_status(int status)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_exited, 5000, &message);
    assert_int_equal(message.u.exited.exit_status, status);
    wire_message_fini(&message);
}

static void output_of(const char *script, char *text, size_t size)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    expect_status(0);
    read_output(text, size);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

static void test_no_capability(void **state)
{
    char text[1000];
    (void)state;
    output_of("grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | cut -f2 | sort -u; "
              "grep CapBnd /proc/self/status; grep CapBnd /proc/1/status; grep NoNewPrivs /proc/self/status",
              text, sizeof(text));
    assert_memory_equal(text, "0000000000000000\nCapBnd", 23);
    assert_non_null(strstr(text, "NoNewPrivs:\t0\n"));
}

static void test_no_descriptor_is_inherited(void **state)
{
    char text[1000], script[200];
    (void)state;
    snprintf(script, sizeof(script), "readlink /proc/$$/fd/0; exec %s fds", helper_path);
    output_of(script, text, sizeof(text));
    assert_string_equal(text, "/dev/null\n0 1 2 ");
}

static void test_session_signals_limits(void **state)
{
    char text[2000], expect[200];
    struct rlimit files;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    output_of("set -- $(cat /proc/$$/stat); [ $1 = $6 ] && echo leads a session, tty $7; grep -E '^Sig(Blk|Ign)' "
              "/proc/$$/status | cut -f2 | xargs;"
              "cat /proc/$$/oom_score_adj; ulimit -Sn; grep 'realtime timeout' /proc/$$/limits | xargs; id -G; env | "
              "cut -d= -f1 | sort | xargs",
              text, sizeof(text));
    snprintf(expect, sizeof(expect),
             "leads a session, tty 0\n0000000000000000 0000000000000000\n0\n%llu\nMax realtime timeout unlimited "
             "unlimited us\n%d\n",
             (unsigned long long)files.rlim_cur, NOBODY);
    assert_memory_equal(text, expect, strlen(expect));
    assert_string_equal(text + strlen(expect),
                        "ELMER_ADDED ELMER_HOSTFILE ELMER_HOSTS ELMER_TMPDIR GOMAXPROCS HOME HYDRA_BINDING "
                        "HYDRA_HOST_FILE HYDRA_LAUNCHER HYDRA_LAUNCHER_EXEC I_MPI_HYDRA_BOOTSTRAP "
                        "I_MPI_HYDRA_BOOTSTRAP_EXEC I_MPI_HYDRA_HOST_FILE JULIA_NUM_THREADS LD_LIBRARY_PATH "
                        "LOGNAME OMPI_MCA_hwloc_base_binding_policy "
                        "OMPI_MCA_odls_base_sigkill_timeout OMPI_MCA_orte_default_hostfile OMPI_MCA_plm_rsh_agent "
                        "OMP_NUM_THREADS PATH PRTE_MCA_hwloc_default_binding_policy "
                        "PRTE_MCA_odls_base_sigkill_timeout PRTE_MCA_plm_ssh_agent "
                        "PRTE_MCA_prte_default_hostfile PVM_EXPORT PVM_TMP PWD PYTHON_CPU_COUNT "
                        "RAYON_NUM_THREADS SHELL USER\n");
}

/* ---- paths ---- */

static void start_at(uint32_t process, const char *script, const char *dir, const char *output, const char *errors)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    rig_start_at(&rig, process, argv, dir, output, errors, true);
}

static bool fails(uint32_t process)
{
    struct wire_message message;
    bool failed = false;
    for (;;) {
        struct err err = ERR_INIT;
        if (channel_receive(&rig.channel, &message, rig_now_ms() + RIG_WAIT_MS, &err) <= 0)
            fail_msg("process %u: neither started nor failed", process);
        failed = message.type == WIRE_start_failed;
        if (failed || message.type == WIRE_started)
            break;
        wire_message_fini(&message);
    }
    wire_message_fini(&message);
    return failed;
}

/* /proc/self/fd/N as an output file opens again what descriptor N is. While a process is born its supervisor waits for
 * the end of the report: who could keep that open would stay at the rank of births, above all jobs. */
static void test_a_path_leads_to_no_descriptor(void **state)
{
    char path[64];
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    for (uint32_t fd = 3; fd < 40; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%u", fd);
        start_at(fd, "exit 0", "/", path, "");
        assert_true(fails(fd));
        start_at(fd + 100, "exit 0", path, "", "");
        assert_true(fails(fd + 100));
    }
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

static void test_output_files(void **state)
{
    char work[100], victim[120], path[140], text[16];
    int fd;
    (void)state;
    snprintf(work, sizeof(work), "%s/work", rig.dir);
    snprintf(victim, sizeof(victim), "%s/victim", rig.dir);
    fd = open(victim, O_WRONLY | O_CREAT, 0644);
    assert_int_equal(write(fd, "whole", 5), 5);
    close(fd);
    snprintf(path, sizeof(path), "%s/link", work);
    assert_int_equal(symlink(victim, path), 0);
    snprintf(path, sizeof(path), "%s/hard", work);
    assert_int_equal(link(victim, path), 0);
    snprintf(path, sizeof(path), "%s/fifo", work);
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_int_equal(chmod(path, 0666), 0);
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    start_at(0, "echo x", work, "link", "link");
    assert_true(fails(0));
    start_at(1, "echo x", work, "hard", "");
    assert_true(fails(1));
    start_at(2, "echo x", work, "fifo", "");
    assert_true(fails(2)); /* and does not wait for a reader */
    start_at(3, "echo x", work, "/dev/mem", "");
    assert_true(fails(3));
    start_at(4, "echo x", work, "/dev/null", "/dev/full");
    assert_false(fails(4));
    fd = open(victim, O_RDONLY);
    assert_int_equal(read(fd, text, sizeof(text)), 5);
    close(fd);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* ---- its directory ---- */

static void become_nobody(void)
{
    alarm(SPIN_SECONDS);
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
        _exit(1);
}

/* A process of the user outside of the job, that goes on making files in the directory while it is removed. */
static void make_files(const char *dir)
{
    become_nobody();
    for (unsigned i = 0;; i++) {
        char path[300];
        snprintf(path, sizeof(path), "%s/%u", dir, i % 5000);
        close(open(path, O_WRONLY | O_CREAT, 0600));
        snprintf(path, sizeof(path), "%s/deep/%u", dir, i % 5000);
        mkdir(path, 0700);
    }
}

static void test_directory_is_removed_whatever_is_in_it(void **state)
{
    const char *argv[] = {
        "sh", "-c",
        "cd $ELMER_TMPDIR; mkdir -p deep closed/in sticky; touch sticky/f; chmod 1700 sticky; chmod 0 closed;"
        "ln -s / root; ln -s .. up; mkfifo pipe; for i in $(seq 70); do mkdir -p d/d; mv d x; mkdir d; mv x d/d; done",
        NULL};
    char dir[200], made[220], root_file[120];
    pid_t maker;
    (void)state;
    snprintf(root_file, sizeof(root_file), "%s/victim", rig.dir);
    close(open(root_file, O_WRONLY | O_CREAT, 0600));
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    expect_status(0);
    snprintf(dir, sizeof(dir), "%s/run/jobs/1.1", rig.dir);
    maker = fork();
    if (maker == 0)
        make_files(dir);
    snprintf(made, sizeof(made), "%s/deep/0", dir);
    rig_until(access(made, F_OK) == 0);
    rig_end(&rig, 1, 0);
    rig_until(access(dir, F_OK) != 0);
    kill(maker, SIGKILL);
    waitpid(maker, NULL, 0);
    assert_int_equal(access(root_file, F_OK), 0);
    rig_empty(&rig, 1, 5000);
}

/* ---- a pid that comes again ---- */

static pid_t only_pid(uint64_t job, const char *leaf)
{
    pid_t pids[4];
    rig_until(rig_pids(&rig, job, leaf, pids, 4) == 1);
    return pids[0];
}

/* A stranger's process with that pid, which must be free. It sleeps until it is killed. */
static pid_t take_pid(pid_t pid)
{
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
    long made = syscall(SYS_clone3, &args, sizeof(args));
    if (made == 0) {
        alarm(SPIN_SECONDS);
        for (;;)
            pause();
    }
    return (pid_t)made;
}

/* The root half hears of a process when that has ended and its pid is a stranger's. */
static void test_a_stranger_with_a_known_pid_is_left_alone(void **state)
{
    const char *argv[] = {helper_path, "sleep", NULL};
    const struct level levels[] = {{1, 0, false}, {2, 1, true}};
    struct sched_param param;
    cpu_set_t before, after;
    pid_t supervisor, pid, stranger = -1;
    (void)state;
    rig_order(&rig, 1, levels, 2);
    rig_open(&rig, 1, 1);
    supervisor = only_pid(1, "sup");
    kill(supervisor, SIGSTOP);
    rig_start(&rig, 1, 0, "command", argv);
    rig_order(&rig, 2, levels, 2); /* is answered when the start has been passed on */
    kill(rig.root_half, SIGSTOP);
    kill(supervisor, SIGCONT);
    pid = only_pid(1, "job");
    rig_until(rig_is_called(pid, "helper")); /* its birth is over, and told before its end */
    kill(pid, SIGKILL);
    rig_until((stranger = take_pid(pid)) == pid);
    assert_int_equal(sched_setscheduler(stranger, SCHED_OTHER, &(struct sched_param){0}), 0);
    assert_int_equal(sched_getaffinity(stranger, sizeof(before), &before), 0);
    kill(rig.root_half, SIGCONT);
    assert_int_equal(rig_started(&rig), pid);
    expect_status(-1);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    assert_int_equal(sched_getscheduler(stranger), SCHED_OTHER);
    assert_int_equal(sched_getparam(stranger, &param), 0);
    assert_int_equal(sched_getaffinity(stranger, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    assert_int_equal(kill(stranger, SIGKILL), 0); /* it has survived the end of the job */
    assert_int_equal(waitpid(stranger, NULL, 0), stranger);
}

/* ---- many processes that spin ---- */

/* However many they are: 16 and more for each processor were once taken out of real time. */
static void test_many_that_spin_keep_their_rank(void **state)
{
    const char *spin[] = {helper_path, "spinners", NULL}, *wait[] = {helper_path, "sleep", NULL};
    const struct level both[] = {{1, 0, false}, {2, 1, true}}, after[] = {{2, 0, true}};
    size_t threads, most = 0;
    int64_t end;
    (void)state;
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, spin);
    rig_order(&rig, 2, both, 2);
    rig_open(&rig, 2, 1);
    rig_run(&rig, 2, wait);
    /* in FIFO until a sweep has seen that they are many */
    rig_until(rig_wrong(&rig, 1, SCHED_RR, 49, &threads) == 0 && threads >= 16);
    end = rig_now_ms() + 5000; /* longer than anything here needs to find out what a job does */
    while (rig_now_ms() < end) {
        assert_int_equal(rig_wrong(&rig, 1, SCHED_RR, 49, &threads), 0);
        most = threads > most ? threads : most;
        assert_int_equal(rig_wrong(&rig, 2, SCHED_OTHER, 0, &threads), 0);
        poll(NULL, 0, 20);
    }
    assert_true(most >= 16);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    rig_order(&rig, 3, after, 1);
    assert_int_equal(rig_wrong(&rig, 2, SCHED_OTHER, 0, &threads), 0);
    rig_end(&rig, 2, 0);
    rig_empty(&rig, 2, 5000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)
        TEST(test_no_capability),
        TEST(test_no_descriptor_is_inherited),
        TEST(test_session_signals_limits),
        TEST(test_a_path_leads_to_no_descriptor),
        TEST(test_output_files),
        TEST(test_directory_is_removed_whatever_is_in_it),
        TEST(test_a_stranger_with_a_known_pid_is_left_alone),
        TEST(test_many_that_spin_keep_their_rank),
    };
    int possible;
    if (argc == 2)
        return helper(argv[1]);
    alarm(900); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("hostile users", tests, NULL, NULL);
}
