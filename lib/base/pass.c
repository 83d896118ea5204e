#include "config.h"

#include "lib/base/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    char bytes[CMSG_SPACE(PASS_MAX * sizeof(int))];
    struct cmsghdr align;
};

int pass_send(int socket, const void *bytes, size_t size, const int *fds, size_t count)
{
    union control control = {{0}};
    struct iovec part = {(void *)bytes, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > PASS_MAX)
        return -EINVAL;
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, count * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -errno;
}

int pass_receive(int socket, void *bytes, size_t size, int fds[PASS_MAX])
{
    union control control;
    struct iovec part = {bytes, size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    int result = got < 0 ? -errno : got == 0 ? -EPIPE : got != (ssize_t)size ? -EPROTO : 0;
    for (size_t i = 0; i < PASS_MAX; i++)
        fds[i] = -1;
    for (struct cmsghdr *at = got > 0 ? CMSG_FIRSTHDR(&message) : NULL; at; at = CMSG_NXTHDR(&message, at)) {
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS &&
            at->cmsg_len <= CMSG_LEN(PASS_MAX * sizeof(int)))
            memcpy(fds, CMSG_DATA(at), at->cmsg_len - CMSG_LEN(0));
    }
    for (size_t i = 0; i < PASS_MAX && result < 0; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
    return result;
}

int pass_file(const char *name, const void *bytes, size_t size)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (write(fd, bytes, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
        return fd;
    close(fd);
    return -EIO;
}
