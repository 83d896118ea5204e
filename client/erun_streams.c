/* erun_streams.c - standard input, output and error. They are not ours alone, so they stay blocking, and another
 * process may be quicker than we are after poll(2): a pipe is opened once more, for us, and a socket can be read
 * without waiting. Of others a descriptor that is ready takes PIPE_BUF bytes, whatever it is: no more is written at
 * once. What has been written is told to the courier it came from, which may send as much again. So no more than a
 * window waits for each courier here. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/common.h"
#include "client/erun.h"

enum { TELL_BYTES = 32 << 10 };

struct piece {
    struct piece *next;
    struct target *target;
    size_t size, done;
    uint8_t data[];
};

static struct stream {
    struct piece *first, **last;
    int fd; /* 0: not open yet */
} streams[2];

int streams_own(int fd, int flags)
{
    struct stat st;
    char path[40];
    int own;
    int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
    if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode) || (mode != flags && mode != O_RDWR)) /* the end that it is */
        return fd;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    own = open(path, flags | O_NONBLOCK | O_CLOEXEC);
    return own < 0 ? fd : own;
}

ssize_t streams_read(int fd, void *bytes, size_t size)
{
    ssize_t got = recv(fd, bytes, size, MSG_DONTWAIT);
    return got < 0 && errno == ENOTSOCK ? read(fd, bytes, size) : got;
}

void streams_put(int stream, struct target *target, const void *data, size_t size)
{
    struct stream *s = &streams[stream - 1];
    struct piece *piece = must(malloc(sizeof(*piece) + size));
    *piece = (struct piece){.target = target, .size = size};
    memcpy(piece->data, data, size);
    if (!s->first)
        s->last = &s->first;
    *s->last = piece;
    s->last = &piece->next;
}

int streams_wait(int stream)
{
    struct stream *s = &streams[stream - 1];
    if (!s->first)
        return -1;
    if (s->fd == 0)
        s->fd = streams_own(stream, O_WRONLY);
    return s->fd;
}

static void tell(struct target *target, int stream, size_t size, bool last)
{
    size_t *taken = &target->taken[stream - 1];
    *taken += size;
    if (*taken < TELL_BYTES && !last)
        return;
    if (target->ready && target->link.state == RUN_OPEN && target->left > 0)
        run_link_send_number(&target->link, RUN_TAKEN, stream == STDOUT_FILENO ? RUN_OUT : RUN_ERR, (uint32_t)*taken);
    *taken = 0;
}

static bool is_file(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

bool streams_write(int stream)
{
    struct stream *s = &streams[stream - 1];
    struct piece *piece = s->first;
    size_t size = piece->size - piece->done;
    ssize_t written;
    if (size > PIPE_BUF && !is_file(s->fd))
        size = PIPE_BUF;
    written = write(s->fd, piece->data + piece->done, size);
    if (written < 0)
        return errno == EINTR || errno == EAGAIN;
    piece->done += (size_t)written;
    if (piece->done == piece->size)
        s->first = piece->next;
    tell(piece->target, stream, (size_t)written, !s->first);
    if (piece->done == piece->size)
        free(piece);
    return true;
}

void streams_finish(void)
{
    while (streams_wait(1) >= 0 || streams_wait(2) >= 0) {
        struct pollfd fds[2] = {{.fd = streams_wait(1), .events = POLLOUT}, {.fd = streams_wait(2), .events = POLLOUT}};
        if (poll(fds, 2, STREAMS_STILL_MS) <= 0)
            return;
        for (int stream = 1; stream <= 2; stream++)
            if (fds[stream - 1].revents && !streams_write(stream))
                return;
    }
}
