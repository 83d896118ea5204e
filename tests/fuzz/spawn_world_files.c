/* spawn_world_files.c - files, descriptors and the line of the world of spawn_world.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/spawn_world_internal.h"

/* ---- files ---- */

int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
    bool procs = strlen(path) >= 12 && strcmp(path + strlen(path) - 12, "cgroup.procs") == 0;
    if (kind_of(dir) == GROUP || (in_child && dir < 0)) { /* what a child needs of a leaf */
        FUZZ_CHECK(in_child && (strcmp(path, "cgroup.kill") == 0 || strcmp(path, "cgroup.procs") == 0), "%s", path);
        if (dir >= 0 && !spawn_world_fails())
            return open_fd(procs ? PROCS : OTHER, flags & O_CLOEXEC, 0);
        errno = ENOENT;
        return -1;
    }
    FUZZ_CHECK(kind_of(dir) == GROUPS || (in_child && kind_of(dir) != CLOSED), "%s below %d", path, dir);
    spawn_world_group(path, flags);
    if (!spawn_world_fails())
        return open_fd(procs ? PROCS : GROUP, flags & O_CLOEXEC, 0);
    errno = ENOENT;
    return -1;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if (!serving) {
        va_list args;
        int mode;
        va_start(args, flags);
        mode = va_arg(args, int);
        va_end(args);
        return __real_open(path, flags, mode);
    }
    spawn_world_file(path, flags);
    if (!spawn_world_fails())
        return open_fd(NUMBER, flags & O_CLOEXEC, 0);
    errno = EACCES;
    return -1;
}

int __wrap___open_2(const char *path, int flags);
int __wrap___open_2(const char *path, int flags)
{
    return __wrap_open(path, flags);
}

int __wrap_close(int fd);
int __real_close(int);
int __wrap_close(int fd)
{
    if (!serving)
        return __real_close(fd);
    FUZZ_CHECK(fd == -1 || (kind_of(fd) != CLOSED && (in_child || fd > SPAWN_FD_GRANTS)), "closes %d", fd);
    if (fd >= 0)
        fds[fd].kind = CLOSED;
    return 0;
}

int __wrap_dup(int fd);
int __real_dup(int);
int __wrap_dup(int fd)
{
    if (!serving)
        return __real_dup(fd);
    return kind_of(fd) == CLOSED ? -1 : open_fd(fds[fd].kind, false, 0);
}

static int dup_to(int fd, int to, bool cloexec)
{
    FUZZ_CHECK(in_child, "%d becomes %d", fd, to);
    if (kind_of(fd) == CLOSED)
        return -1;
    fds[to] = (struct fd){fds[fd].kind, cloexec};
    return to;
}

int __wrap_dup2(int fd, int to);
int __real_dup2(int, int);
int __wrap_dup2(int fd, int to)
{
    if (!serving)
        return __real_dup2(fd, to);
    return dup_to(fd, to, fd == to && kind_of(fd) != CLOSED && fds[fd].cloexec);
}

int __wrap_dup3(int fd, int to, int flags);
int __real_dup3(int, int, int);
int __wrap_dup3(int fd, int to, int flags)
{
    if (!serving)
        return __real_dup3(fd, to, flags);
    return dup_to(fd, to, flags & O_CLOEXEC);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    int from;
    va_start(args, command);
    from = va_arg(args, int); /* all that is served have one */
    va_end(args);
    if (!serving)
        return __real_fcntl(fd, command, from);
    FUZZ_CHECK(in_child && (command == F_DUPFD || command == F_DUPFD_CLOEXEC), "fcntl %d", command);
    return kind_of(fd) == CLOSED ? -1 : open_fd(fds[fd].kind, command == F_DUPFD_CLOEXEC, from);
}

int __wrap_fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags);
int __wrap_fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
    FUZZ_CHECK(in_child && kind_of(dir) == GROUP && gid == (gid_t)-1 && (flags & AT_SYMLINK_NOFOLLOW) &&
                   (strcmp(path, "cgroup.procs") == 0 || strcmp(path, "../cgroup.procs") == 0),
               "%s is given to %u", path, uid);
    ids.given++;
    return spawn_world_fails() ? -1 : 0;
}

/* The members of a group, others each time; of those that have gone no line may be left. */
FILE *__wrap_fdopen(int fd, const char *mode);
FILE *__real_fdopen(int, const char *);
FILE *__wrap_fdopen(int fd, const char *mode)
{
    if (!serving)
        return __real_fdopen(fd, mode);
    static char text[256];
    size_t count = input_below(bytes, PIDS), used = 0;
    FUZZ_CHECK(kind_of(fd) == PROCS && strcmp(mode, "r") == 0, "%d as a file", fd);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%d\n", FIRST_PID + input_byte(bytes) % 8);
    snprintf(text + used, sizeof(text) - used, "%s", input_below(bytes, 16) ? "" : "x");
    close(fd);
    return fmemopen(text, strlen(text) + 1, "r");
}

static void check_written(int fd)
{
    FUZZ_CHECK((in_child && kind_of(fd) != CLOSED) || kind_of(fd) == NUMBER, "%d is written to", fd);
}

/* The last word of a child that has failed is a message as a supervisor sends it. */
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __real_write(int, const void *, size_t);
ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    if (!serving)
        return __real_write(fd, data, size);
    struct err err = ERR_INIT;
    struct wire_message message;
    const unsigned char *frame = data;
    check_written(fd);
    if (kind_of(fd) == PROCS) /* where there is no clone3: it moves itself */
        ids.leaf = size == 1 && *frame == '0';
    if (fd == 3 && size > 4) {
        FUZZ_CHECK((size_t)frame[2] << 8 == ((size - 4) & 0xff00) && frame[3] == ((size - 4) & 0xff), "%zu bytes",
                   size);
        FUZZ_CHECK(wire_decode((const char *)data + 4, size - 4, WIRE_MINOR, &message, &err) == 0 &&
                       message.type == WIRE_error,
                   "%s", err.text);
        wire_message_fini(&message);
    }
    return spawn_world_fails() ? -1 : (ssize_t)size;
}

int __wrap_dprintf(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_dprintf(int fd, const char *format, ...)
{
    (void)format;
    check_written(fd);
    return spawn_world_fails() ? -1 : 1;
}

int __wrap___dprintf_chk(int fd, int flag, const char *format, ...);
int __wrap___dprintf_chk(int fd, int flag, const char *format, ...)
{
    (void)flag;
    (void)format;
    check_written(fd);
    return spawn_world_fails() ? -1 : 1;
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t at);
ssize_t __real_pread(int, void *, size_t, off_t);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t at)
{
    if (!serving)
        return __real_pread(fd, data, size, at);
    FUZZ_CHECK(kind_of(fd) == NUMBER && at == 0 && size > 1, "%d is read", fd);
    if (spawn_world_fails())
        return -1;
    memset(data, '9', size);
    return (ssize_t)size;
}

ssize_t __wrap___pread_chk(int fd, void *data, size_t size, off_t at, size_t room);
ssize_t __wrap___pread_chk(int fd, void *data, size_t size, off_t at, size_t room)
{
    FUZZ_CHECK(size <= room, "too much");
    return __wrap_pread(fd, data, size, at);
}

/* ---- the line ---- */

int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms);
int __real_poll(struct pollfd *, nfds_t, int);
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    if (!serving)
        return __real_poll(polled, count, timeout_ms);
    FUZZ_CHECK(count == 2 && timeout_ms == -1 && polled[0].fd == SPAWN_FD_LINE, "polls something else");
    polled[0].revents = POLLIN;
    polled[1].revents = polled[1].fd < 0 ? 0 : (short)spawn_world_grants();
    return 1;
}

int __wrap___poll_chk(struct pollfd *polled, nfds_t count, int timeout_ms, size_t room);
int __wrap___poll_chk(struct pollfd *polled, nfds_t count, int timeout_ms, size_t room)
{
    (void)room;
    return __wrap_poll(polled, count, timeout_ms);
}

ssize_t __wrap_recv(int fd, void *data, size_t size, int flags);
ssize_t __real_recv(int, void *, size_t, int);
ssize_t __wrap_recv(int fd, void *data, size_t size, int flags)
{
    if (!serving)
        return __real_recv(fd, data, size, flags);
    FUZZ_CHECK(fd == SPAWN_FD_GRANTS && (flags & MSG_DONTWAIT), "%d is heard", fd);
    return spawn_world_grant(data, size) ? (ssize_t)size : 0;
}

ssize_t __wrap___recv_chk(int fd, void *data, size_t size, size_t room, int flags);
ssize_t __wrap___recv_chk(int fd, void *data, size_t size, size_t room, int flags)
{
    FUZZ_CHECK(size <= room, "too much");
    return __wrap_recv(fd, data, size, flags);
}

/* More descriptors than there is room for do not come: the kernel closes them. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __real_recvmsg(int, struct msghdr *, int);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    if (!serving)
        return __real_recvmsg(fd, message, flags);
    int count = 0, given[2];
    size_t got = spawn_world_request(message->msg_iov->iov_base, message->msg_iov->iov_len, &count);
    FUZZ_CHECK(fd == SPAWN_FD_LINE && message->msg_iovlen == 1 && count <= 2, "hears %d", fd);
    for (int i = 0; i < count; i++)
        given[i] = open_fd(GIVEN, flags & MSG_CMSG_CLOEXEC, 0);
    if (count == 0) {
        message->msg_controllen = 0;
        return (ssize_t)got;
    }
    FUZZ_CHECK(message->msg_controllen >= CMSG_SPACE((size_t)count * sizeof(int)), "no room");
    *CMSG_FIRSTHDR(message) = (struct cmsghdr){
        .cmsg_len = CMSG_LEN((size_t)count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(message)), given, (size_t)count * sizeof(int));
    message->msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
    return (ssize_t)got;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_sendmsg(int, const struct msghdr *, int);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!serving)
        return __real_sendmsg(fd, message, flags);
    FUZZ_CHECK(fd == SPAWN_FD_LINE && !in_child && (flags & MSG_NOSIGNAL), "speaks to %d", fd);
    spawn_world_answer(message->msg_iov->iov_base, message->msg_iov->iov_len, message->msg_controllen > 0);
    return (ssize_t)message->msg_iov->iov_len;
}
