/* escapes.c - a job's process can have itself moved out of the job's group: `systemd-run --user --scope` and `su` ask
 * systemd for that, and a real-time class goes along. Nothing forbids it, so who is found outside loses class and CPUs.
 *
 * Who has left was often born a moment before, and his children are born outside, so a list of those that were ranked
 * once would miss them. Looked at is the place to which a user can have a process moved: the groups below user.slice.
 * A thread there has its rank from a job if it is in real time at no more than a job's ranks and cannot have got there
 * by itself: it has neither the capability nor a limit (RLIMIT_RTPRIO) for it, and it has no capability in its bounding
 * set that rsd-spawn.service takes from jobs (what is taken never comes back, unless in a user namespace of his own,
 * where it is worth nothing): so what an administrator has put into real time by hand in a login session stays there,
 * and what rtkit has given to the desktop's sound server. Who has the capability was born in a job all the same if his
 * bounding set is exactly a job's: su(1), which is root as long as its command runs. Where no capability is taken from
 * jobs (rsd without its unit), he is left alone, and so is what looks as rtkit's if rtkit runs.
 *
 * A user may close groups of his to us (chmod(2)), who are no root. If any is closed, whoever is in real time on this
 * host is looked at by /proc, which says in which group he is.
 *
 * This walks /proc and as many groups as users like to make, so it is a program of its own in SCHED_OTHER: who is
 * ranked above jobs must do neither (sessions.c). It uses one part in SHARE of a CPU, whatever is there: a user who
 * makes ten thousand groups can delay it by some seconds. Without jobs it sleeps, but for the round after the last. A
 * job may come and go between two scans: then their groups have used CPU time meanwhile.
 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/escapes/escapes.h"
#include "rsd/escapes/everybody.h"
#include "rsd/escapes/tree.h"
#include "rsd/root/budget.h"
#include "rsd/root/group.h"
#include "rsd/root/sched.h"

enum {
    ROUND_MS = 1000,
    SLICE_US = 300,
    SHARE = 100,
    AGAIN_MAX = 20, /* of one group: somebody in it forks faster than we set ranks */
    SAY_MS = 10000,
    SAY_MISSED_MS = 3600000,
    RTKIT_PRIORITY = 20, /* what rtkit gives at most, with SCHED_RESET_ON_FORK ... */
    RTKIT_US = 200000,   /* ... and to none but who limits himself to this */
    NICE_BIT = 23        /* CAP_SYS_NICE */
};

/* ---- one thread ---- */

/* Everybody may put rtkit's marks on himself before he leaves: it takes a lower class, and a limit. So they count where
 * rtkit runs, and where what cannot be put on says nothing. Who is in a user namespace of his own cannot be told from
 * a process of a job, and loses what rtkit may have given him. */
static bool may_be_of_rtkit(const struct escapes_thread *thread, const struct escapes_host *host)
{
    if (!host->rtkit || !thread->reset_on_fork || thread->rank.priority > RTKIT_PRIORITY)
        return false;
    return !thread->known || (thread->own_namespace && !host->jobs_are_marked && thread->rt_time_max_us <= RTKIT_US);
}

bool escapes_from_job(const struct escapes_thread *thread, const struct escapes_host *host)
{
    if (thread->rank.policy != SCHED_FIFO && thread->rank.policy != SCHED_RR)
        return false;
    if (thread->rank.priority > ORDER_BIRTH) /* no user was ever given that */
        return false;
    if (may_be_of_rtkit(thread, host))
        return false;
    if (!thread->known)
        return true;
    if ((uint64_t)thread->rank.priority <= thread->rt_priority_max)
        return false;
    if (!thread->own_namespace)
        return true;
    if (thread->permitted >> NICE_BIT & 1) /* programs in a container of root's have less than a job */
        return host->jobs_are_marked && thread->bounding == host->bounding;
    return (thread->bounding & ~host->bounding) == 0;
}

static uint64_t hex_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 16) : 0;
}

/* NAME SOFT HARD UNIT of /proc/PID/limits; 0 if it is not there. */
static uint64_t hard_limit(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    char hard[24];
    if (!at || sscanf(at + strlen(name), " %*s %23s", hard) != 1)
        return 0;
    return isdigit((unsigned char)hard[0]) ? strtoull(hard, NULL, 10) : UINT64_MAX;
}

static bool in_our_namespace(int proc_fd)
{
    char own[512], map[512];
    return group_read(AT_FDCWD, "/proc/self/uid_map", own, sizeof(own)) == 0 &&
           group_read(proc_fd, "uid_map", map, sizeof(map)) == 0 && strcmp(own, map) == 0;
}

static void read_thread(pid_t tid, struct escapes_thread *thread, uid_t *uid)
{
    char path[32], status[4096], limits[4096];
    struct stat st = {0};
    int fd;
    snprintf(path, sizeof(path), "/proc/%d", (int)tid);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && group_read(fd, "status", status, sizeof(status)) == 0 &&
        group_read(fd, "limits", limits, sizeof(limits)) == 0) {
        thread->known = true;
        thread->own_namespace = in_our_namespace(fd);
        thread->permitted = hex_after(status, "\nCapPrm:");
        thread->bounding = hex_after(status, "\nCapBnd:");
        thread->rt_priority_max = hard_limit(limits, "\nMax realtime priority");
        thread->rt_time_max_us = hard_limit(limits, "\nMax realtime timeout");
        *uid = st.st_uid;
    }
    close(fd);
}

/* 1: lowered; 0: left alone; -ESRCH: it has just ended, perhaps after a fork. */
static int judge(struct escapes_round *round, pid_t tid)
{
    struct escapes_thread thread = {0};
    uid_t uid = 0;
    int result = sched_of(tid, &thread.rank, &thread.reset_on_fork);
    if (result < 0 || (thread.rank.policy != SCHED_FIFO && thread.rank.policy != SCHED_RR))
        return result;
    read_thread(tid, &thread, &uid);
    if (!escapes_from_job(&thread, &round->host))
        return 0;
    result = sched_rank(tid, (struct order_rank){SCHED_OTHER, 0}, false);
    if (result <= 0)
        return result;
    (void)sched_setaffinity(tid, sizeof(*round->cpus), round->cpus);
    if (round->lowered++ == 0) {
        round->first = tid;
        round->first_uid = uid;
    }
    return 1;
}

/* ---- all groups ---- */

/* Who has used so much sleeps so long that it was one part in SHARE. */
static void rest(void *data)
{
    struct escapes_round *round = data;
    int64_t used_ns = budget_own_ns() - round->since_ns, pause_ns = used_ns * (SHARE - 1);
    struct timespec pause = {.tv_sec = pause_ns / 1000000000, .tv_nsec = pause_ns % 1000000000};
    if (used_ns < (int64_t)SLICE_US * 1000)
        return;
    round->used_ns += used_ns;
    nanosleep(&pause, NULL);
    round->since_ns = budget_own_ns();
}

/* Whether all that were there have been seen. */
static bool scan_once(struct escapes_round *round, int dir)
{
    struct group_reader reader;
    struct group_pids tids = {0};
    bool whole = true;
    int more = group_reader_open(&reader, dir, true);
    while (more >= 0 && (more = group_reader_next(&reader, &tids)) >= 0) {
        for (size_t i = 0; i < tids.count; i++)
            whole = judge(round, tids.items[i]) == 0 && whole;
        round->threads += tids.count;
        tids.count = 0;
        if (more == 0)
            break;
        rest(round);
    }
    round->missed += more < 0 && more != -ENOENT && more != -ENODEV; /* else it has been removed */
    group_reader_close(&reader);
    group_pids_fini(&tids);
    return whole;
}

static void scan_group(void *data, int dir)
{
    struct escapes_round *round = data;
    round->scanned++;
    for (int i = 0; i < AGAIN_MAX && !scan_once(round, dir); i++) {
    }
}

static void scan_thread(void *data, pid_t tid)
{
    (void)judge(data, tid);
}

void escapes_scan(struct escapes_round *round)
{
    struct tree tree = {.visit = scan_group, .rest = rest, .data = round};
    const struct everybody everybody = {round->users, round->groups, sched_is_rt, scan_thread, rest, round};
    struct stat jobs = {0};
    round->scanned = round->threads = round->lowered = round->missed = 0;
    round->unreachable = false;
    round->used_ns = 0;
    round->since_ns = budget_own_ns();
    (void)stat(round->groups, &jobs);
    tree.skip = jobs.st_ino;
    tree_walk(&tree, round->users);
    round->missed += tree.missed;
    if (round->missed > 0)
        round->unreachable = !everybody_walk(&everybody);
    round->used_ns += budget_own_ns() - round->since_ns;
}

/* ---- the process ---- */

bool escapes_rtkit_runs(const char *users)
{
    const char *slash = strrchr(users, '/');
    char path[4300], text[256];
    if (!slash || snprintf(path, sizeof(path), "%.*s/system.slice/rtkit-daemon.service/cgroup.events",
                           (int)(slash - users), users) >= (int)sizeof(path))
        return false;
    return group_read(AT_FDCWD, path, text, sizeof(text)) == 0 && strstr(text, "populated 1");
}

static bool find_host(struct escapes_host *host)
{
    char status[4096];
    if (group_read(AT_FDCWD, "/proc/self/status", status, sizeof(status)) < 0)
        return false;
    host->bounding = hex_after(status, "\nCapBnd:");
    host->jobs_are_marked = group_read(AT_FDCWD, "/proc/1/status", status, sizeof(status)) == 0 &&
                            (hex_after(status, "\nCapBnd:") & ~host->bounding) != 0;
    return true;
}

/* Jobs are named by numbers. */
static bool jobs_are_here(const char *groups)
{
    DIR *dir = opendir(groups);
    struct dirent *entry;
    bool any = false;
    while (dir && !any && (entry = readdir(dir)))
        any = entry->d_type == DT_DIR && isdigit((unsigned char)entry->d_name[0]);
    if (dir)
        closedir(dir);
    return any;
}

/* CPU time of all jobs so far, also of those that have ended; 0: unknown. */
static uint64_t used_by_jobs_us(const char *groups)
{
    static const char key[] = "usage_usec ";
    char path[4200], text[4096];
    if (snprintf(path, sizeof(path), "%s/cpu.stat", groups) >= (int)sizeof(path) ||
        group_read(AT_FDCWD, path, text, sizeof(text)) < 0 || strncmp(text, key, strlen(key)) != 0)
        return 0;
    return strtoull(text + strlen(key), NULL, 10);
}

static void say(const struct escapes_round *round, size_t lowered)
{
    log_notice("%zu threads that have left their job for a group of their user's are ordinary processes now, the last "
               "of them pid=%d uid=%u",
               lowered, (int)round->first, (unsigned)round->first_uid);
}

static void say_unreachable(const struct escapes_round *round)
{
    log_warning("%zu groups of users cannot be looked into for threads that have left their job, and /proc hides "
                "processes from elmer-escapes (hidepid=): what is in them may have kept its rank",
                round->missed);
}

_Noreturn void escapes_watch(const char *users, const char *groups, const cpu_set_t *cpus)
{
    struct escapes_round round = {.users = users, .groups = groups, .cpus = cpus};
    bool again = true; /* what left a job that has ended meanwhile, or forked while we scanned */
    size_t unsaid = 0;
    uint64_t used_us = 0;
    int64_t said_ms = INT64_MIN / 2, missed_ms = INT64_MIN / 2;
    if (!find_host(&round.host))
        exit(1);
    for (;;) {
        int64_t begun = mono_ms(mono_now()), pause;
        uint64_t now_us = used_by_jobs_us(groups); /* before the scan: what it misses uses more */
        bool here = jobs_are_here(groups), ran = now_us != used_us || now_us == 0;
        if (here || ran || again) {
            round.host.rtkit = escapes_rtkit_runs(users);
            escapes_scan(&round);
            unsaid += round.lowered;
            if (round.unreachable && mono_ms(mono_now()) - missed_ms >= SAY_MISSED_MS) {
                missed_ms = mono_ms(mono_now());
                say_unreachable(&round);
            }
        }
        again = here || round.lowered > 0;
        used_us = now_us;
        if (unsaid > 0 && mono_ms(mono_now()) - said_ms >= SAY_MS) {
            said_ms = mono_ms(mono_now());
            say(&round, unsaid);
            unsaid = 0;
        }
        pause = begun + ROUND_MS - mono_ms(mono_now());
        if (pause > 0)
            nanosleep(&(struct timespec){.tv_sec = pause / 1000, .tv_nsec = pause % 1000 * 1000000}, NULL);
    }
}
