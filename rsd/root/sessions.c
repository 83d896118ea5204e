/* sessions.c - where sessions share (sched_autogroup_enabled, outside of the controller cpu) a nice value counts within
 * a session only, and so does SCHED_IDLE: mode idle would order nothing. There each session gets the nice value of its
 * tasks too. Only /proc/PID/autogroup can do that, and whoever walks /proc/PID may be kept in a loop by the kernel
 * until another task has done the same with that directory. If the other one waits for the CPU, in real time below us,
 * it never gets it, and neither does anybody else: seen with a supervisor at the rank of daemons and a `grep` in /proc
 * below it. So what is ranked above jobs does not walk there: a child of the job's supervisor does, as the user, in
 * SCHED_OTHER. (Nor does it reap, for the same reason: reaper.c.)
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rsd/root/members.h"
#include "rsd/root/sessions.h"

enum { TRIES = 20, AGAIN_MS = 30 };

/* The start of a file, as a string; "" if it cannot be read. */
static void read_text(int dir, const char *name, char *text, size_t size)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
}

bool sessions_share(int leaf_fd)
{
    char text[16];
    read_text(AT_FDCWD, "/proc/sys/kernel/sched_autogroup_enabled", text, sizeof(text));
    return text[0] == '1' && faccessat(leaf_fd, "cpu.weight", F_OK, 0) < 0;
}

struct weighing {
    int nice;
    bool refused; /* of one session at least, all the time */
};

static void weigh(int proc_fd, pid_t pid, void *data)
{
    struct weighing *weighing = data;
    char text[64];
    const char *now;
    int fd, tries = 0;
    (void)pid;
    read_text(proc_fd, "autogroup", text, sizeof(text));
    now = strstr(text, "nice ");
    if (!now || atoi(now + strlen("nice ")) == weighing->nice)
        return;
    fd = openat(proc_fd, "autogroup", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* it has ended */
    snprintf(text, sizeof(text), "%d", weighing->nice);
    /* Who is not root may do it ten times a second, all of the machine together. */
    while (write(fd, text, strlen(text)) < 0 && errno == EAGAIN && tries++ < TRIES)
        poll(NULL, 0, AGAIN_MS);
    weighing->refused |= tries > TRIES;
    close(fd);
}

int sessions_weigh(int leaf_fd, int nice)
{
    struct weighing weighing = {.nice = nice};
    size_t gone = 0;
    int result = members_each(leaf_fd, weigh, &weighing, &gone);
    return result == 0 && weighing.refused ? -EAGAIN : result;
}
