#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/root/sched.h"
#include "tests/root/escapes_bed.h"

const struct level escapes_both[] = {{1, 0, false}, {2, 1, true}};

void escapes_group(const char *name)
{
    char path[4300];
    snprintf(path, sizeof(path), "%s%s", rig.users, name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        fail_msg("%s: %s", path, strerror(errno));
}

void escapes_put(const char *name, pid_t pid)
{
    char path[4300];
    FILE *file;
    snprintf(path, sizeof(path), "%s%s/cgroup.procs", rig.users, name);
    file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "%d", (int)pid);
    assert_int_equal(fclose(file), 0);
}

int escapes_up(void **state)
{
    bed_up(state);
    escapes_group("");
    escapes_group("/user-65534.slice");
    escapes_group("/user-65534.slice/run-1.scope");
    return 0;
}

int escapes_down(void **state)
{
    char command[4400];
    snprintf(command, sizeof(command),
             "p=%s; for i in $(seq 500); do find $p -name cgroup.procs -execdir cat {} + | xargs -r kill -9; "
             "find $p -depth -type d -delete 2>/dev/null; [ -d $p ] || exit 0; sleep 0.02; done; exit 1",
             rig.users);
    assert_int_equal(system(command), 0);
    return bed_down(state);
}

/* ---- the programs that the jobs run: this binary, as DIR/helper ---- */

int escapes_helper(const char *what)
{
    struct rlimit rt = {4000000, 4000000};
    setrlimit(RLIMIT_RTTIME, &rt);
    alarm(ESCAPES_SECONDS);
    if (strcmp(what, "two") == 0)
        (void)!fork();
    if (strcmp(what, "forks") == 0) { /* always another pid, each born with the rank of the one before */
        signal(SIGCHLD, SIG_IGN);
        for (;;) {
            if (fork() > 0)
                _exit(0);
            alarm(ESCAPES_SECONDS);
        }
    }
    for (;;)
        pause();
}

static void rank_of(pid_t pid, struct order_rank *rank)
{
    bool reset;
    *rank = (struct order_rank){-1, -1};
    (void)sched_of(pid, rank, &reset);
}

bool escapes_is_ranked(pid_t pid, int policy, int priority)
{
    struct order_rank rank;
    rank_of(pid, &rank);
    return rank.policy == policy && rank.priority == priority;
}

bool escapes_anywhere(pid_t pid)
{
    cpu_set_t all, now;
    return sched_getaffinity(rig.root_half, sizeof(all), &all) == 0 && sched_getaffinity(pid, sizeof(now), &now) == 0 &&
           CPU_EQUAL(&all, &now);
}

void escapes_begin(const char *what, pid_t *pids, size_t count)
{
    const char *argv[] = {helper_path, what, NULL};
    rig_order(&rig, 1, escapes_both, 2);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, argv);
    rig_until(rig_pids(&rig, 1, "job", pids, count) == count);
    for (size_t i = 0; i < count; i++)
        rig_until(escapes_is_ranked(pids[i], SCHED_FIFO, 49) || escapes_is_ranked(pids[i], SCHED_RR, 49));
}
