#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsd/root/group.h"
#include "rsd/root/probe.h"
#include "rsd/root/sched.h"

enum { PROBE_MS = 3000 };

static int try_rt(int leaf_fd)
{
    int pidfd, status = 0;
    pid_t pid = group_fork(leaf_fd, &pidfd);
    if (pid < 0)
        return pid;
    if (pid == 0) {
        struct sched_param param = {.sched_priority = ORDER_DAEMON}; /* lower would wait behind the jobs that run */
        _exit(sched_setscheduler(0, SCHED_FIFO, &param) < 0 ? errno : 0);
    }
    if (pidfd >= 0) {
        struct pollfd ready = {.fd = pidfd, .events = POLLIN};
        if (poll(&ready, 1, PROBE_MS) <= 0)
            kill(pid, SIGKILL);
        close(pidfd);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : ETIME;
}

/* Not in root_fd itself: a group that hands memory down takes no process (EBUSY). A new leaf each time, because nothing
 * is born alive where cgroup.kill has struck. */
int probe_rt(int root_fd)
{
    int leaf, result;
    unlinkat(root_fd, "probe", AT_REMOVEDIR);
    if (mkdirat(root_fd, "probe", 0755) < 0 && errno != EEXIST)
        return -errno;
    leaf = openat(root_fd, "probe", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (leaf < 0)
        return -errno;
    result = try_rt(leaf);
    close(leaf);
    unlinkat(root_fd, "probe", AT_REMOVEDIR);
    return result;
}

/* The value behind a key of /proc/self/status, as text. */
static bool status_value(const char *key, char *value, size_t size)
{
    char line[512];
    bool found = false;
    FILE *file = fopen("/proc/self/status", "re");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file)) {
        size_t length = strlen(key);
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            line[strcspn(line, "\n")] = 0;
            snprintf(value, size, "%s", line + length + 1 + strspn(line + length + 1, " \t"));
            found = true;
        }
    }
    fclose(file);
    return found;
}

/* The group of a v1 cpu hierarchy: there RT needs a budget of its own. "" outside of one. */
static void v1_cpu_group(char *group, size_t size)
{
    char line[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");
    group[0] = 0;
    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        if ((strcmp(controllers + 1, "cpu") == 0 || strncmp(controllers + 1, "cpu,", 4) == 0) && strcmp(path, "/") != 0)
            snprintf(group, size, "%s", path);
    }
    fclose(file);
}

/* A filter of system calls is no proof: rsd-spawn.service has one in any case, without io_uring. */
static void explain(int error, char *why, size_t size)
{
    enum { CAP_SYS_NICE_BIT = 23 };
    char value[512], group[2048];
    v1_cpu_group(group, sizeof(group));
    if (group[0])
        snprintf(why, size,
                 "real-time scheduling is refused (%s) in the cpu group %s: give it cpu.rt_runtime_us, or start rsd "
                 "outside of it",
                 strerror(error), group);
    else if (status_value("CapEff", value, sizeof(value)) && !(strtoull(value, NULL, 16) >> CAP_SYS_NICE_BIT & 1))
        snprintf(why, size,
                 "real-time scheduling is refused (%s): rsd has no CAP_SYS_NICE; let its unit or container have it",
                 strerror(error));
    else if (status_value("Seccomp", value, sizeof(value)) && strcmp(value, "0") != 0)
        snprintf(why, size,
                 "real-time scheduling is refused (%s): look for RestrictRealtime= or SystemCallFilter= in the unit, "
                 "and for limits of the container or kernel that rsd runs in",
                 strerror(error));
    else
        snprintf(why, size,
                 "real-time scheduling is refused (%s): check the limits of the container or kernel that rsd runs in",
                 strerror(error));
}

int probe_mode(enum rsd_mode wanted, int refusal, enum order_mode *mode, char *why, size_t size, struct err *err)
{
    why[0] = 0;
    *mode = ORDER_MODE_RT;
    switch (wanted) {
    case RSD_MODE_IDLE:
        *mode = ORDER_MODE_IDLE;
        snprintf(why, size, "the configuration says mode = idle");
        return 0;
    case RSD_MODE_NONE:
        *mode = ORDER_MODE_NONE;
        snprintf(why, size, "the configuration says mode = none");
        return 0;
    case RSD_MODE_AUTO:
    case RSD_MODE_RT:
    case RSD_MODE_COUNT:
        break;
    }
    if (refusal == 0)
        return 0;
    explain(refusal, why, size);
    if (wanted == RSD_MODE_RT)
        return err_set(err, -EPERM, "mode = rt, but %s; or set mode = auto", why);
    *mode = ORDER_MODE_IDLE;
    return 0;
}
