/* service.c - see service.h. */
#include "config.h"

#include "lib/base/service.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/locate.h"
#include "lib/base/str.h"

#ifndef SO_PEERPIDFD /* from Linux 6.5 on */
#define SO_PEERPIDFD 77
#endif

enum { FIRST_FD = 3, MAX_SOCKETS = 16, GROUP_BYTES = 4096 };

/* ---- systemd ---- */

static bool number(const char *variable, uint64_t *value)
{
    const char *text = getenv(variable);
    return text && str_to_u64(text, value);
}

int service_listener(const char *name)
{
    const char *names = getenv("LISTEN_FDNAMES");
    uint64_t pid, count;
    size_t length;
    if (!names || !number("LISTEN_PID", &pid) || pid != (uint64_t)getpid() || !number("LISTEN_FDS", &count))
        return -1;
    for (int i = 0; i < MAX_SOCKETS && (uint64_t)i < count; i++) {
        length = strcspn(names, ":");
        if (length == strlen(name) && strncmp(names, name, length) == 0)
            return fcntl(FIRST_FD + i, F_SETFD, FD_CLOEXEC) < 0 ? -1 : FIRST_FD + i;
        names += length + (names[length] == ':');
    }
    return -1;
}

void service_notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    int fd;
    if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = 0;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(fd);
}

int service_watchdog_ms(void)
{
    uint64_t us, pid;
    if (!number("WATCHDOG_USEC", &us) || us < 3000 || us / 3000 > 3600000 ||
        (number("WATCHDOG_PID", &pid) && pid != (uint64_t)getpid()))
        return 0;
    return (int)(us / 3000);
}

int service_alive(void)
{
    static int64_t due_ms;
    const int64_t now = mono_ms(mono_now());
    const int every_ms = service_watchdog_ms();
    if (every_ms == 0)
        return -1;
    if (now >= due_ms) {
        service_notify("WATCHDOG=1");
        due_ms = now + every_ms;
    }
    return (int)(due_ms - now);
}

/* ---- what root has written ---- */

int service_plan_write(const char *dir, const char *name, const void *plan, size_t size)
{
    char path[200], beside[210];
    int fd, result = 0;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    snprintf(beside, sizeof(beside), "%s.new", path);
    fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    if (write(fd, plan, size) != (ssize_t)size || fchmod(fd, 0644) < 0)
        result = -EIO;
    close(fd);
    if (result == 0 && rename(beside, path) < 0)
        result = -errno;
    return result;
}

int service_plan_read(const char *path, uid_t owner, void *plan, size_t size)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), result = 0;
    struct stat st;
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != owner)
        result = -EPERM;
    else if (st.st_size != (off_t)size || read(fd, plan, size) != (ssize_t)size)
        result = -EPROTO;
    close(fd);
    return result;
}

/* ---- control groups ---- */

int service_sibling(const char *unit, char *group, size_t size)
{
    int result = group_of("/proc", 0, group, size);
    char *last = result < 0 ? NULL : strrchr(group, '/');
    if (!last)
        return result < 0 ? result : -ENOENT;
    return snprintf(last + 1, size - (size_t)(last + 1 - group), "%s", unit) < (int)(size - (size_t)(last + 1 - group))
               ? 0
               : -ENAMETOOLONG;
}

int service_is_in(pid_t pid, const char *group)
{
    char path[GROUP_BYTES], procs[GROUP_BYTES + 16], line[24];
    struct err err = ERR_INIT;
    uint64_t member;
    int result = group_locate("/proc", group, path, sizeof(path), &err);
    FILE *file;
    if (result < 0)
        return result;
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    file = fopen(procs, "re");
    if (!file)
        return errno == ENOENT ? -EPERM : -errno; /* the unit does not run */
    result = -EPERM;
    while (result < 0 && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = 0;
        if (str_to_u64(line, &member) && member == (uint64_t)pid)
            result = 0;
    }
    fclose(file);
    return result;
}

/* ---- peers ---- */

int service_hold(int fd, pid_t pid)
{
    int held = -1;
    socklen_t length = sizeof(held);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &held, &length) == 0)
        return held;
    if (errno != ENOPROTOOPT) /* it has ended */
        return -1;
    return (int)syscall(SYS_pidfd_open, pid, 0U);
}

static int check(int fd, uid_t uid, const char *unit, struct err *err)
{
    struct ucred peer = {.pid = 0};
    socklen_t length = sizeof(peer);
    char group[GROUP_BYTES];
    struct pollfd held;
    int result;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
        return err_set(err, -errno, "cannot see who has connected: %s", strerror(errno));
    if (peer.uid != 0 && peer.uid != uid)
        return err_set(err, -EPERM, "process %d of uid %u has connected, which is not of %s", (int)peer.pid,
                       (unsigned)peer.uid, unit);
    result = service_sibling(unit, group, sizeof(group));
    if (result < 0)
        return err_set(err, result, "cannot find the group of %s: %s", unit, strerror(-result));
    held = (struct pollfd){.fd = service_hold(fd, peer.pid), .events = POLLIN};
    if (held.fd < 0)
        return err_set(err, -ESRCH, "who has connected is gone");
    result = service_is_in(peer.pid, group);
    if (poll(&held, 1, 0) != 0)
        result = -ESRCH;
    close(held.fd);
    if (result == -ESRCH)
        return err_set(err, result, "who has connected is gone");
    return result < 0 ? err_set(err, result, "process %d has connected, which is not of %s: %s", (int)peer.pid, unit,
                                strerror(-result))
                      : 0;
}

int service_accept(int listener, uid_t uid, const char *unit, struct err *err)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), result;
    if (fd < 0)
        return err_set(err, -errno, "cannot take a connection: %s", strerror(errno));
    result = check(fd, uid, unit, err);
    if (result == 0)
        return fd;
    close(fd);
    return result;
}
