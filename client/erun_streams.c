/* erun_streams.c - standard output and error. A descriptor that is ready takes PIPE_BUF bytes without waiting, whatever
 * it is, and it is not ours alone, so it stays blocking: no more is written at once. What has been written is told to
 * the courier it came from, which may send as much again. So no more than a window waits for each courier here. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
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
} streams[2];

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

bool streams_wait(int stream)
{
    return streams[stream - 1].first != NULL;
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
    if (size > PIPE_BUF && !is_file(stream))
        size = PIPE_BUF;
    written = write(stream, piece->data + piece->done, size);
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
