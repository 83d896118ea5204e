#include "config.h"

#include "rsd/courier/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void talk_fini(struct talk *talk)
{
    if (talk->fd >= 0)
        close(talk->fd);
    free(talk->bytes);
    *talk = (struct talk){.fd = -1};
}

static bool writes(const struct talk *talk)
{
    return talk->done < talk->size;
}

struct pollfd talk_poll(const struct talk *talk)
{
    short events = writes(talk) ? POLLOUT : talk->asked ? 0 : POLLIN;
    return (struct pollfd){.fd = events ? talk->fd : -1, .events = events};
}

static void write_answer(struct talk *talk)
{
    ssize_t sent = send(talk->fd, talk->bytes + talk->done, talk->size - talk->done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (sent < 0)
        talk_fini(talk);
    else
        talk->done += (size_t)sent;
}

static void read_piece(struct talk *talk, struct run_link *link, uint32_t rank)
{
    uint8_t piece[RUN_PMI_PIECE];
    ssize_t got = recv(talk->fd, piece, sizeof(piece), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        talk_fini(talk);
        return;
    }
    talk->asked = true;
    run_link_send(link, RUN_PMI, rank, piece, (size_t)got);
}

void talk_step(struct talk *talk, struct run_link *link, uint32_t rank, short revents)
{
    if (talk->fd < 0 || !revents)
        return;
    if (writes(talk))
        write_answer(talk);
    else if (!talk->asked)
        read_piece(talk, link, rank);
}

bool talk_hear(struct talk *talk, const void *bytes, size_t size)
{
    uint8_t *copy;
    if (!talk->asked || size > RUN_PMI_ANSWER)
        return false;
    talk->asked = false;
    talk->done = talk->size = 0;
    if (size == 0)
        return true;
    copy = realloc(talk->bytes, size);
    if (!copy)
        return false;
    memcpy(copy, bytes, size);
    talk->bytes = copy;
    talk->size = size;
    write_answer(talk);
    return true;
}
