/* test_escapes.c - a job's process that has left the job's group: it is an ordinary one as soon as it is seen, and
 * nobody else's rank is touched. The groups that stand for user.slice are the test's. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsd/escapes/escapes.h"
#include "rsd/root/sched.h"
#include "rsd/root/watcher.h"
#include "tests/root/escapes_bed.h"

enum { MANY_GROUPS = 3000, BOUND_PART = 50 };

/* ---- the program ---- */

static pid_t child_of(pid_t parent, const char *name)
{
    char path[64], text[4096];
    pid_t pid = 0;
    FILE *file;
    char *next;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    file = fopen(path, "re");
    if (!file || !fgets(text, sizeof(text), file))
        text[0] = 0;
    if (file)
        fclose(file);
    for (char *at = text; pid == 0; at = next) {
        pid_t child = (pid_t)strtol(at, &next, 10);
        if (next == at)
            break;
        pid = rig_is_called(child, name) ? child : 0;
    }
    return pid;
}

static pid_t watcher(void)
{
    pid_t spawn = child_of(rig.root_half, "elmer-spawn");
    return spawn > 0 ? child_of(spawn, "elmer-escapes") : 0;
}

/* ---- tests ---- */

static void test_who_has_left_is_ordinary(void **state)
{
    pid_t pids[2];
    (void)state;
    escapes_begin("two", pids, 2);
    rig_until(escapes_is_ranked(pids[0], SCHED_RR, 49)); /* two on one processor */
    escapes_put("/user-65534.slice/run-1.scope", pids[1]);
    rig_until(escapes_is_ranked(pids[1], SCHED_OTHER, 0));
    rig_until(escapes_anywhere(pids[1]));
    assert_true(escapes_is_ranked(pids[0], SCHED_RR, 49)); /* who has stayed has his rank */
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    assert_int_equal(kill(pids[1], 0), 0); /* it is not the job's any more, and lives */
}

/* A user may have put anything into the place of a pvmd: it is born with SCHED_RESET_ON_FORK, one above its tasks. */
static void test_a_helper_that_has_left(void **state)
{
    const char *argv[] = {"helper", "sleep", NULL};
    pid_t pid;
    (void)state;
    rig.pvm = true;
    rig_order(&rig, 1, escapes_both, 2);
    rig_open(&rig, 1, 1);
    rig_start(&rig, 1, 1, "pvmd", argv);
    pid = rig_started(&rig);
    rig_until(escapes_is_ranked(pid, SCHED_FIFO, 50));
    escapes_put("/user-65534.slice/run-1.scope", pid);
    rig_until(escapes_is_ranked(pid, SCHED_OTHER, 0));
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    rig.pvm = false;
}

/* All that are in it die when one says so: who forks without an end cannot be killed by its pid. */
static void test_one_that_forks_all_the_time(void **state)
{
    char path[4300], text[64];
    pid_t pid;
    FILE *file;
    (void)state;
    escapes_begin("forks", &pid, 1);
    snprintf(path, sizeof(path), "%s/user-65534.slice/run-1.scope/cgroup.procs", rig.users);
    for (bool moved = false; !moved;) {
        if (rig_pids(&rig, 1, "job", &pid, 1) == 1 && (file = fopen(path, "we"))) {
            fprintf(file, "%d", (int)pid);
            moved = fclose(file) == 0;
        }
    }
    for (int64_t since = rig_now_ms(), end = since + RIG_WAIT_MS; rig_now_ms() - since < 500;) {
        file = fopen(path, "re");
        if (!file || !fgets(text, sizeof(text), file))
            text[0] = 0;
        if (file)
            fclose(file);
        if (text[0] && !escapes_is_ranked(atoi(text), SCHED_OTHER, 0) && !escapes_is_ranked(atoi(text), -1, -1))
            since = rig_now_ms(); /* for half a second nobody may be seen in real time */
        assert_true(rig_now_ms() < end);
    }
    snprintf(path, sizeof(path), "%s/user-65534.slice/run-1.scope/cgroup.kill", rig.users);
    file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "1");
    fclose(file);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

static long pauses_of(pid_t pid)
{
    static const char key[] = "voluntary_ctxt_switches:";
    char path[64], text[200];
    long pauses = 0;
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(text, sizeof(text), file)) {
        if (strncmp(text, key, strlen(key)) == 0)
            pauses = strtol(text + strlen(key), NULL, 10);
    }
    if (file)
        fclose(file);
    return pauses;
}

/* The job has come and gone between two scans. */
static void test_who_has_left_a_job_of_a_moment(void **state)
{
    pid_t seeker = 0, pid;
    long pauses;
    (void)state;
    rig_until((seeker = watcher()) > 0);
    for (int i = 0; i < 3; i++) { /* none is left to be looked for */
        pauses = pauses_of(seeker);
        rig_until(pauses_of(seeker) > pauses);
    }
    escapes_begin("sleep", &pid, 1);
    escapes_put("/user-65534.slice/run-1.scope", pid);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    rig_until(escapes_is_ranked(pid, SCHED_OTHER, 0));
}

/* Somebody who has his rank from elsewhere: no process of a job, but with what an escaped one would have. */
struct stranger {
    int policy, priority;
    rlim_t rt_time_us;
    bool syslog; /* has a capability in his bounding set that jobs do not have */
    bool root;   /* stays it */
};

static pid_t stranger(struct stranger as)
{
    int ready[2];
    char byte;
    pid_t pid;
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        struct rlimit time = {as.rt_time_us, as.rt_time_us};
        struct sched_param param = {.sched_priority = as.priority};
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if ((!as.syslog && prctl(PR_CAPBSET_DROP, CAP_SYSLOG, 0, 0, 0) < 0) || setrlimit(RLIMIT_RTTIME, &time) < 0 ||
            sched_setscheduler(0, as.policy, &param) < 0 ||
            (!as.root && (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)))
            _exit(1);
        alarm(ESCAPES_SECONDS);
        (void)!write(ready[1], "", 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void test_others_keep_theirs(void **state)
{
    const struct stranger strangers[] = {
        {SCHED_FIFO, 49, RLIM_INFINITY, true, false},               /* chrt(1) of an administrator */
        {SCHED_RR | SCHED_RESET_ON_FORK, 20, 200000, true, false},  /* rtkit */
        {SCHED_FIFO, 49, RLIM_INFINITY, true, true},                /* su(1) in a session that he has ranked */
        {SCHED_RR, 20, 200000, false, false},                       /* not rtkit, so from a job */
        {SCHED_RR | SCHED_RESET_ON_FORK, 20, 200000, false, false}, /* from a job, and dressed up as rtkit's */
        {SCHED_FIFO, 49, RLIM_INFINITY, false, true},               /* su(1) in a job */
    };
    pid_t pids[6], job;
    (void)state;
    escapes_begin("sleep", &job, 1);
    for (size_t i = 0; i < 6; i++) {
        pids[i] = stranger(strangers[i]);
        escapes_put("/user-65534.slice", pids[i]);
    }
    for (size_t i = 3; i < 6; i++)
        rig_until(escapes_is_ranked(pids[i], SCHED_OTHER, 0));
    escapes_put("/user-65534.slice",
                job); /* whoever was there before it has been looked at once more when it is seen */
    rig_until(escapes_is_ranked(job, SCHED_OTHER, 0));
    assert_true(escapes_is_ranked(pids[0], SCHED_FIFO, 49));
    assert_true(escapes_is_ranked(pids[1], SCHED_RR, 20));
    assert_true(escapes_is_ranked(pids[2], SCHED_FIFO, 49));
    for (size_t i = 0; i < 6; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

static void test_the_rule(void **state)
{
    const uint64_t nice = UINT64_C(1) << CAP_SYS_NICE, boot = UINT64_C(1) << CAP_SYS_BOOT, jobs = ~boot;
    const struct escapes_thread escaped = {{SCHED_FIFO, 49}, false, true, true, 0, jobs, 0, UINT64_MAX};
    struct escapes_thread thread = escaped;
    const struct escapes_host host = {.bounding = jobs};
    (void)state;
    assert_true(escapes_from_job(&thread, &host));
    thread.rank.priority = 1; /* a user may go down */
    assert_true(escapes_from_job(&thread, &host));
    thread.rank.priority = 60; /* a daemon that somebody runs by hand */
    assert_false(escapes_from_job(&thread, &host));
    thread = escaped;
    thread.rank = (struct order_rank){SCHED_OTHER, 0};
    assert_false(escapes_from_job(&thread, &host));
    thread = escaped;
    thread.rt_priority_max = 49; /* the limits of his user */
    assert_false(escapes_from_job(&thread, &host));
    thread.rt_priority_max = 48;
    assert_true(escapes_from_job(&thread, &host));
    thread = escaped;
    thread.permitted = nice;
    assert_false(escapes_from_job(&thread, &host));
    thread.own_namespace = false; /* it is worth nothing out here */
    assert_true(escapes_from_job(&thread, &host));
    thread = escaped;
    thread.bounding |= boot;
    assert_false(escapes_from_job(&thread, &host));
    thread.own_namespace = false;
    assert_true(escapes_from_job(&thread, &host));
    thread = escaped;
    thread.known = false; /* it is hidden from us (hidepid=) */
    assert_true(escapes_from_job(&thread, &host));
}

/* su(1) in a job is root, and in a session of its user's. */
static void test_what_is_root(void **state)
{
    const uint64_t nice = UINT64_C(1) << CAP_SYS_NICE, boot = UINT64_C(1) << CAP_SYS_BOOT, jobs = ~boot;
    const struct escapes_thread su = {{SCHED_RR, 49}, false, true, true, jobs, jobs, 0, UINT64_MAX};
    struct escapes_thread thread = su;
    struct escapes_host host = {.bounding = jobs, .jobs_are_marked = true};
    (void)state;
    assert_true(escapes_from_job(&thread, &host));
    thread.bounding = ~UINT64_C(0); /* in a login session */
    assert_false(escapes_from_job(&thread, &host));
    thread.bounding = nice; /* in a container that root has started there */
    assert_false(escapes_from_job(&thread, &host));
    thread = su;
    host.jobs_are_marked = false; /* who can say */
    assert_false(escapes_from_job(&thread, &host));
}

/* Marks of rtkit, which everybody can put on. */
static void test_what_rtkit_gives(void **state)
{
    const uint64_t boot = UINT64_C(1) << CAP_SYS_BOOT, jobs = ~boot;
    const struct escapes_thread given = {{SCHED_RR, 20}, true, true, true, 0, jobs, 0, 200000};
    struct escapes_thread thread = given;
    struct escapes_host host = {.bounding = jobs, .jobs_are_marked = true, .rtkit = true};
    (void)state;
    assert_true(escapes_from_job(&thread, &host)); /* it was born in a job */
    thread.bounding = ~UINT64_C(0);
    assert_false(escapes_from_job(&thread, &host)); /* it was not */
    thread.own_namespace = false;
    assert_true(escapes_from_job(&thread, &host));
    thread = given;
    host.jobs_are_marked = false; /* who can say */
    assert_false(escapes_from_job(&thread, &host));
    thread.own_namespace = false;
    assert_true(escapes_from_job(&thread, &host));
    thread = given;
    thread.rank.priority = 21;
    assert_true(escapes_from_job(&thread, &host));
    thread = given;
    thread.reset_on_fork = false;
    assert_true(escapes_from_job(&thread, &host));
    thread = given;
    thread.rt_time_max_us = 200001;
    assert_true(escapes_from_job(&thread, &host));
    thread.known = false; /* it is hidden from us (hidepid=) */
    assert_false(escapes_from_job(&thread, &host));
    host.rtkit = false;
    assert_true(escapes_from_job(&thread, &host));
    assert_true(escapes_from_job(&given, &host));
}

static void test_whether_rtkit_runs(void **state)
{
    pid_t pid;
    (void)state;
    char unit[4300], slice[4300], users[4300], text[4400];
    FILE *file;
    snprintf(slice, sizeof(slice), "%s/system.slice", rig.users);
    snprintf(users, sizeof(users), "%s/user.slice", rig.users);
    snprintf(unit, sizeof(unit), "%s/system.slice/rtkit-daemon.service", rig.users);
    assert_false(escapes_rtkit_runs(users));
    assert_int_equal(mkdir(slice, 0755) + mkdir(unit, 0755), 0);
    assert_false(escapes_rtkit_runs(users));
    pid = fork();
    if (pid == 0) {
        alarm(ESCAPES_SECONDS);
        for (;;)
            pause();
    }
    snprintf(text, sizeof(text), "%s/cgroup.procs", unit);
    file = fopen(text, "we");
    assert_non_null(file);
    fprintf(file, "%d", (int)pid);
    assert_int_equal(fclose(file), 0);
    assert_true(escapes_rtkit_runs(users));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_where_users_are(void **state)
{
    char users[100];
    (void)state;
    assert_true(watcher_find_users("/sys/fs/cgroup/x/elmer.slice/elmer-jobs.scope", users, sizeof(users)));
    assert_string_equal(users, "/sys/fs/cgroup/x/user.slice");
    assert_false(watcher_find_users("/sys/fs/cgroup/x/elmer.slice/elmer-jobs.scope", users, 20));
}

static bool has_line(pid_t pid, const char *line)
{
    char path[64], text[200];
    bool found = false;
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && !found && fgets(text, sizeof(text), file))
        found = strcmp(text, line) == 0;
    if (file)
        fclose(file);
    return found;
}

/* It reads what users name and make. */
static void test_it_is_not_root(void **state)
{
    struct stat st;
    char path[64];
    pid_t pid = 0;
    (void)state;
    rig_until((pid = watcher()) > 0 &&
              has_line(pid, "CapInh:\t0000000000000000\n"));   /* what it gives up last, by itself */
    assert_true(has_line(pid, "CapEff:\t0000000000800000\n")); /* CAP_SYS_NICE */
    assert_true(has_line(pid, "Uid:\t65533\t65533\t65533\t65533\n"));
    assert_true(has_line(pid, "CapPrm:\t0000000000800000\n"));
    assert_true(has_line(pid, "CapAmb:\t0000000000000000\n"));
    assert_true(has_line(pid, "NoNewPrivs:\t1\n"));
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, 0); /* who has its uid cannot trace it */
    rig_root_kill(&rig, SIGKILL);
    rig_until(kill(pid, 0) < 0); /* it ends with rsd */
    rig_root_start(&rig);
}

/* rsd ends while it is being executed, when the kernel tells it of no death. */
static void test_it_begins_without_rsd(void **state)
{
    int gone[2], alive[2];
    const char *dir = getenv("BUILDDIR") ? getenv("BUILDDIR") : ".";
    char rsd[24], program[4096], byte;
    struct pollfd end;
    pid_t pid;
    (void)state;
    snprintf(program, sizeof(program), "%s/elmer-escapes", dir);
    assert_int_equal(pipe(gone), 0);
    assert_int_equal(pipe(alive), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        snprintf(rsd, sizeof(rsd), "%d", (int)getpid());
        if (fork() != 0)
            _exit(0);
        close(gone[1]);
        close(alive[0]);
        (void)!read(gone[0], &byte, 1);
        if (setresuid(RIG_SUPERVISOR_UID, RIG_SUPERVISOR_UID, RIG_SUPERVISOR_UID) < 0)
            _exit(127);
        execl(program, "elmer-escapes", rig.users, rig.groups, rsd, NULL);
        _exit(127);
    }
    close(alive[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(gone[1]);
    end = (struct pollfd){alive[0], 0, 0};
    assert_int_equal(poll(&end, 1, 60000), 1); /* it has ended */
    close(alive[0]);
    close(gone[0]);
}

/* A user makes thousands of groups: it takes longer, and no more of the CPU. Nobody needs to be found meanwhile. */
static void test_what_it_costs(void **state)
{
    char name[64];
    double used;
    int64_t begun;
    pid_t job, pid = 0;
    (void)state;
    for (int i = 0; i < MANY_GROUPS; i++) {
        snprintf(name, sizeof(name), "/user-65534.slice/%d", i);
        escapes_group(name);
    }
    escapes_begin("sleep", &job, 1);
    rig_until((pid = watcher()) > 0);
    used = rig_thread_ms(pid) - rig_stolen_ms();
    begun = rig_now_ms();
    escapes_put("/user-65534.slice/2999", job);
    rig_until(escapes_is_ranked(job, SCHED_OTHER, 0));
    print_message("found among %d groups in %d ms\n", MANY_GROUPS, (int)(rig_now_ms() - begun));
    while (rig_now_ms() - begun < 3000)
        poll(NULL, 0, 20);
    used = rig_thread_ms(pid) - rig_stolen_ms() - used;
    print_message("looking took %.1f ms in %d ms\n", used, (int)(rig_now_ms() - begun));
    assert_true(used * BOUND_PART <= (double)(rig_now_ms() - begun));
    kill(pid, SIGKILL); /* another one follows */
    rig_until(watcher() > 0 && watcher() != pid);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, escapes_up, escapes_down)

        cmocka_unit_test(test_the_rule),
        cmocka_unit_test(test_what_is_root),
        cmocka_unit_test(test_what_rtkit_gives),
        TEST(test_whether_rtkit_runs),
        cmocka_unit_test(test_where_users_are),
        TEST(test_who_has_left_is_ordinary),
        TEST(test_a_helper_that_has_left),
        TEST(test_one_that_forks_all_the_time),
        TEST(test_who_has_left_a_job_of_a_moment),
        TEST(test_others_keep_theirs),
        TEST(test_it_is_not_root),
        TEST(test_it_begins_without_rsd),
        TEST(test_what_it_costs),
    };
    int possible;
    if (argc == 2)
        return escapes_helper(argv[1]);
    alarm(300); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("who leaves a job", tests, NULL, NULL);
}
