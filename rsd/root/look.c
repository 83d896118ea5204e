/* look.c - the kernel may keep whoever walks /proc/PID, or reaps a process, in a loop until another task has done the
 * same with that directory. If the other one waits for the CPU, in real time below us, it never gets it, and neither
 * does anybody else: seen with a supervisor at the rank of daemons and a `grep` in /proc below it. So what is ranked
 * above jobs does neither: threads are found in cgroup.threads, children are reaped by reaper.c, and what only /proc
 * knows is found out by a child, above the jobs for LOWER_MS at most, then in SCHED_OTHER.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsd/root/caps.h"
#include "rsd/root/look.h"
#include "rsd/root/members.h"
#include "rsd/root/sched.h"

enum { LOWER_MS = 300, AGAIN_MS = 10, LOOK_SECONDS = 10, FD_LEAF = 3, FD_ANSWER = 4, FD_ASIDE = 10 };

struct found {
    long count, enough; /* no more need be counted */
    int nice;
};

/* The start of a file in /proc, as a string; "" if it cannot be read. */
static void read_text(int dir, const char *name, char *text, size_t size)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
}

static bool wants_to_run(int task_fd, const char *tid)
{
    char path[64], text[512];
    const char *state;
    snprintf(path, sizeof path, "%s/stat", tid);
    read_text(task_fd, path, text, sizeof text);
    state = strrchr(text, ')');
    return state && strncmp(state, ") R", 3) == 0;
}

static void weigh(int proc_fd, int nice)
{
    char text[64];
    const char *now;
    int fd;
    read_text(proc_fd, "autogroup", text, sizeof text);
    now = strstr(text, "nice ");
    if (!now || atoi(now + strlen("nice ")) == nice)
        return;
    fd = openat(proc_fd, "autogroup", O_WRONLY | O_CLOEXEC);
    snprintf(text, sizeof text, "%d", nice);
    if (fd >= 0) {
        (void)!write(fd, text, strlen(text));
        close(fd);
    }
}

static void count_running(int proc_fd, pid_t pid, void *data)
{
    struct found *found = data;
    struct dirent *entry;
    int fd = found->count >= found->enough ? -1 : openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    (void)pid;
    while (dir && (entry = readdir(dir)))
        found->count += entry->d_name[0] != '.' && wants_to_run(fd, entry->d_name);
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    weigh(proc_fd, found->nice);
}

/* One that blocks TERM may wait for it in sigwait(3). */
static void count_heeding(int proc_fd, pid_t pid, void *data)
{
    struct found *found = data;
    char text[4096];
    const char *at;
    (void)pid;
    if (found->count >= found->enough)
        return;
    read_text(proc_fd, "status", text, sizeof text);
    at = strstr(text, "\nSigIgn:");
    if (!at || !(strtoull(at + strlen("\nSigIgn:"), NULL, 16) >> (SIGTERM - 1) & 1))
        found->count++;
}

/* Nobody must take us for the root half: nothing of its is open. */
static _Noreturn void child(enum look_at at, int leaf_fd, int answer_fd, long enough, int nice)
{
    struct found found = {.enough = enough, .nice = nice};
    size_t gone = 0;
    int leaf = fcntl(leaf_fd, F_DUPFD, FD_ASIDE), answer = fcntl(answer_fd, F_DUPFD, FD_ASIDE);
    alarm(LOOK_SECONDS);
    if (dup2(leaf, FD_LEAF) < 0 || dup2(answer, FD_ANSWER) < 0)
        _exit(1);
    (void)syscall(SYS_close_range, FD_ANSWER + 1U, ~0U, 0U);
    if (at == LOOK_RUNNING)
        caps_take(CAPS_AUTOGROUP);
    if (members_each(FD_LEAF, at == LOOK_RUNNING ? count_running : count_heeding, &found, &gone) < 0)
        found.count = -1;
    _exit(write(FD_ANSWER, &found.count, sizeof found.count) < 0);
}

void look_begin(struct look *look, enum look_at at, int leaf_fd, long enough, int nice, int64_t now)
{
    int pair[2];
    if (look->fd >= 0 || pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    look->pid = fork();
    if (look->pid == 0) {
        sched_rank(0, (struct order_rank){SCHED_FIFO, ORDER_BOOST}, false);
        child(at, leaf_fd, pair[1], enough, nice);
    }
    close(pair[1]);
    look->fd = pair[0];
    look->lower_ms = now + LOWER_MS;
    look->again_ms = now + AGAIN_MS;
}

bool look_end(struct look *look, long *count, int64_t now)
{
    ssize_t got = look->fd < 0 ? -1 : read(look->fd, count, sizeof *count);
    if (look->fd < 0)
        return false;
    if (got < 0 && errno == EAGAIN) {
        look->again_ms = now + AGAIN_MS;
        if (now >= look->lower_ms)
            sched_rank(look->pid, (struct order_rank){SCHED_OTHER, 0}, false);
        return false;
    }
    if (got != (ssize_t)sizeof *count)
        *count = -1;
    look_fini(look);
    return true;
}

void look_fini(struct look *look)
{
    if (look->fd >= 0)
        close(look->fd);
    look->fd = -1;
}
