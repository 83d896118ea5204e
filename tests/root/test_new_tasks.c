/* test_new_tasks.c - how long a task that a pvmd has spawned is without its rank. pvmds are born with
 * SCHED_RESET_ON_FORK, so a task begins in SCHED_OTHER and is found by a scan; until then everybody in real time passes
 * it, and it waits with all other work of the host. Neither what the scans cost nor what is done for the jobs below may
 * delay that. The task measures it itself: once it has its rank it runs at once, whatever else the machine does. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/root/bed.h"

enum {
    HELPER_SECONDS = 120,
    RT_SECONDS = 5,
    PVMD = 1000,
    MANY = 500, /* so many that a scan alone costs more than all scans together may */
    FEW = 10,
    TASKS = 4,
    SHORT_MS = 500, /* see walks.c */
    ORDER_MS = 20,
    BAR_MS = 1500
};

/* ---- the programs that the jobs run: this binary, as DIR/helper ---- */

static void sleepers(int count)
{
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            alarm(HELPER_SECONDS);
            for (;;)
                pause();
        }
    }
}

/* Into the file: how many ms it was in SCHED_OTHER. */
static _Noreturn void new_task(const char *file)
{
    const int64_t begin = rig_now_ms();
    char line[32];
    int fd = open(file, O_WRONLY | O_APPEND), length;
    alarm(HELPER_SECONDS);
    while ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER)
        poll(NULL, 0, 1);
    length = snprintf(line, sizeof(line), "%d\n", (int)(rig_now_ms() - begin));
    (void)!write(fd, line, (size_t)length);
    for (;;)
        pause();
}

/* A pvmd with so many tasks; one more at each SIGUSR1. */
static _Noreturn void pvmd(int tasks, const char *file)
{
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    puts("/tmp/socket");
    fflush(stdout);
    sleepers(tasks);
    for (;;) {
        sigwait(&set, &signal);
        if (fork() == 0)
            new_task(file);
    }
}

static int helper(const char *what, const char *file)
{
    struct rlimit rt = {RT_SECONDS * 1000000L, RT_SECONDS * 1000000L};
    setrlimit(RLIMIT_RTTIME, &rt);
    alarm(HELPER_SECONDS);
    if (strcmp(what, "sleep") == 0) {
        sleepers(MANY);
        for (;;)
            pause();
    }
    pvmd(strcmp(what, "many") == 0 ? MANY : FEW, file);
}

/* ---- tests ---- */

static char file_path[100];

static int up(void **state)
{
    int fd;
    bed_up(state);
    snprintf(file_path, sizeof(file_path), "%s/times", rig.dir);
    fd = open(file_path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0 || fchmod(fd, 0666) < 0)
        return -1;
    return close(fd);
}

static int down(void **state)
{
    unlink(file_path);
    return bed_down(state);
}

static size_t processes(uint64_t job)
{
    static pid_t pids[MANY + TASKS + 2];
    return rig_pids(&rig, job, "job", pids, sizeof(pids) / sizeof(*pids));
}

/* Job 1, the first, with its virtual machine; when all tasks have their rank. */
static pid_t begin_first(const char *what, size_t tasks)
{
    const char *const argv[] = {helper_path, what, file_path, NULL};
    static const struct level first = {1, 0, false};
    size_t threads;
    pid_t pid;
    rig_order(&rig, 1, &first, 1);
    rig.pvm = true;
    rig_open(&rig, 1, 1);
    rig_start(&rig, 1, PVMD, "pvmd", argv);
    pid = rig_started(&rig);
    rig_until(processes(1) == tasks + 1);
    rig_until(rig_wrong(&rig, 1, -1, 49, &threads) == 1); /* the daemon, which ranks above */
    assert_int_equal(threads, tasks + 1);
    rig.pvm = false;
    return pid;
}

/* How long the newest of so many tasks was without its rank; -1: it has none yet. */
static int measured(size_t number)
{
    char line[32];
    int ms = -1;
    FILE *file = fopen(file_path, "re");
    assert_non_null(file);
    for (size_t i = 0; i < number; i++) {
        if (!fgets(line, sizeof(line), file)) {
            ms = -1;
            break;
        }
        ms = (int)strtol(line, NULL, 10);
    }
    fclose(file);
    return ms;
}

static void test_looks_leave_time_for_ranks(void **state)
{
    pid_t pid = begin_first("many", MANY);
    (void)state;
    for (size_t i = 1; i <= TASKS; i++) {
        kill(pid, SIGUSR1);
        rig_until(measured(i) >= 0);
        print_message("a new task beside %d: %d ms in SCHED_OTHER\n", MANY, measured(i));
        assert_in_range(measured(i), 0, BAR_MS);
    }
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* Somebody comes below job 2, of that level, and goes again, without end: each time its rank is another one. */
static void new_tasks_beside(unsigned level, const char *what)
{
    const struct level one[] = {{1, 0, false}, {2, level, true}},
                       other[] = {{1, 0, false}, {2, level, false}, {3, level + 1, true}};
    const char *const argv[] = {helper_path, "sleep", file_path, NULL};
    pid_t pid = begin_first("few", FEW);
    const int64_t begun = rig_now_ms();
    uint64_t generation = 2;
    rig_order(&rig, generation++, one, 2);
    rig_open(&rig, 2, 2);
    rig_run(&rig, 2, argv);
    rig_until(processes(2) == MANY + 1);
    rig_until(rig_now_ms() > begun + SHORT_MS);
    for (size_t i = 1; i <= TASKS; i++) {
        const int64_t until = rig_now_ms() + RIG_WAIT_MS;
        for (int k = 0; measured(i) < 0 && rig_now_ms() < until; k++) {
            rig_ask_order(&rig, generation++, k % 2 == 0 ? other : one, k % 2 == 0 ? 3 : 2);
            if (k == 5)
                kill(pid, SIGUSR1);
            poll(NULL, 0, ORDER_MS);
        }
        print_message("a new task %s: %d ms in SCHED_OTHER\n", what, measured(i));
        assert_in_range(measured(i), 0, BAR_MS);
    }
    for (uint64_t job = 2; job >= 1; job--) {
        rig_end(&rig, job, 0);
        rig_empty(&rig, job, 10000);
    }
}

static void test_orders_below_leave_time_for_ranks(void **state)
{
    (void)state;
    new_tasks_beside(1, "above many orders");
}

/* Job 2 is at the top as well, as the only job of another processor is. */
static void test_orders_beside_leave_time_for_ranks(void **state)
{
    (void)state;
    new_tasks_beside(0, "beside many orders");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
        TEST(test_looks_leave_time_for_ranks),
        TEST(test_orders_below_leave_time_for_ranks),
        TEST(test_orders_beside_leave_time_for_ranks),
    };
    int possible;
    if (argc == 3)
        return helper(argv[1], argv[2]);
    alarm(400); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("new tasks", tests, NULL, NULL);
}
