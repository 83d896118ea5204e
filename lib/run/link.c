/* link.c - see link.h. */
#include "config.h"

#include "lib/run/link.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/moves.h"

enum { LENGTH = 4, HEADER = 5, READ_BYTES = 64 << 10, READS = 8, KEEP_IDLE_S = 4, KEEP_INTERVAL_S = 2, KEEP_COUNT = 4 };
static const char head[] = "elmer run 1\n";

static const struct moves_row states[] = {
    [RUN_CONNECTING] = {"connecting", MOVE_TO(RUN_SHOWING) | MOVE_TO(RUN_DEAD)},
    [RUN_SHOWING] = {"showing", MOVE_TO(RUN_CHECKING) | MOVE_TO(RUN_DEAD)},
    [RUN_CHECKING] = {"checking", MOVE_TO(RUN_OPEN) | MOVE_TO(RUN_DEAD)},
    [RUN_OPEN] = {"open", MOVE_TO(RUN_DEAD)},
    [RUN_DEAD] = {"dead", 0},
};

static void move(struct run_link *link, enum run_state state)
{
    MOVES_CHECK("link of a job", states, link->state, state);
    link->state = state;
}

uint32_t run_number(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void put_number(uint8_t *bytes, uint32_t number)
{
    for (int i = 0; i < LENGTH; i++)
        bytes[i] = (uint8_t)(number >> (24 - 8 * i));
}

void run_link_kill(struct run_link *link, const char *format, ...)
{
    va_list list;
    if (link->state == RUN_DEAD)
        return;
    va_start(list, format);
    vsnprintf(link->text, sizeof(link->text), format, list);
    va_end(list);
    move(link, RUN_DEAD);
}

/* Why it ends: 0, the other side wants it. */
static const char *reason(struct run_link *link, int error)
{
    link->silent =
        link->silent || error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN;
    return error ? strerror(error) : "the other side has ended";
}

/* What has come before is handed out first. */
static void end(struct run_link *link, const char *why)
{
    if (link->state != RUN_OPEN) {
        run_link_kill(link, "%s", why);
        return;
    }
    if (!link->ended && !link->broken)
        snprintf(link->text, sizeof(link->text), "%s", why);
    link->ended = true;
    link->out_begin = link->out_size = 0;
}

/* The other side may have said why before it ended, or that all is done. It learns of it, too. */
static void cannot_send(struct run_link *link, const char *why)
{
    if (link->state != RUN_OPEN) {
        run_link_kill(link, "%s", why);
        return;
    }
    snprintf(link->text, sizeof(link->text), "%s", why);
    link->broken = true;
    link->out_begin = link->out_size = 0;
    (void)shutdown(link->fd, SHUT_RDWR); /* what has come can still be read */
}

static bool grow(uint8_t **bytes, size_t *capacity, size_t need)
{
    size_t more = 2 * *capacity > need ? 2 * *capacity : need;
    uint8_t *grown;
    if (need <= *capacity)
        return true;
    grown = realloc(*bytes, more);
    if (!grown)
        return false;
    *bytes = grown;
    *capacity = more;
    return true;
}

/* ---- out ---- */

size_t run_link_waiting(const struct run_link *link)
{
    return link->out_size - link->out_begin;
}

/* Room for so many bytes more; NULL: the link is dead. */
static uint8_t *room(struct run_link *link, size_t size)
{
    if (link->state == RUN_DEAD)
        return NULL;
    if (link->out_begin > 0 && (link->out_begin == link->out_size || link->out_size + size > link->out_capacity)) {
        memmove(link->out, link->out + link->out_begin, run_link_waiting(link));
        link->out_size -= link->out_begin;
        link->out_begin = 0;
    }
    if (link->out_size + size > RUN_OUT_MAX)
        run_link_kill(link, "the other side does not read");
    else if (!grow(&link->out, &link->out_capacity, link->out_size + size))
        run_link_kill(link, "out of memory");
    return link->state == RUN_DEAD ? NULL : link->out + link->out_size;
}

static void flush(struct run_link *link)
{
    while (link->state != RUN_DEAD && !link->ended && run_link_waiting(link) > 0) {
        ssize_t sent = send(link->fd, link->out + link->out_begin, run_link_waiting(link), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (sent < 0)
            cannot_send(link, reason(link, errno));
        else
            link->out_begin += (size_t)sent;
    }
}

static void show(struct run_link *link)
{
    size_t size = sizeof(head) - 1 + strlen(link->pass);
    uint8_t *at = room(link, LENGTH + size);
    if (!at)
        return;
    put_number(at, (uint32_t)size);
    memcpy(at + LENGTH, head, sizeof(head) - 1);
    memcpy(at + LENGTH + sizeof(head) - 1, link->pass, strlen(link->pass));
    link->out_size += LENGTH + size;
    flush(link);
}

void run_link_send(struct run_link *link, enum run_type type, uint32_t rank, const void *data, size_t size)
{
    size_t plain = HEADER + size, sealed = plain + SEAL_TAG_BYTES;
    uint8_t *at;
    if (link->state == RUN_DEAD || link->broken || link->ended)
        return;
    assert(link->state == RUN_OPEN && size <= RUN_FRAME_MAX - HEADER);
    at = room(link, LENGTH + sealed);
    if (!at)
        return;
    if (!grow(&link->plain, &link->plain_capacity, plain)) {
        run_link_kill(link, "out of memory");
        return;
    }
    link->plain[0] = (uint8_t)type;
    put_number(link->plain + 1, rank);
    if (size > 0)
        memcpy(link->plain + HEADER, data, size);
    put_number(at, (uint32_t)sealed);
    seal_put(&link->seal_out, link->plain, plain, at + LENGTH);
    link->out_size += LENGTH + sealed;
    flush(link);
}

void run_link_send_number(struct run_link *link, enum run_type type, uint32_t rank, uint32_t number)
{
    uint8_t data[LENGTH];
    put_number(data, number);
    run_link_send(link, type, rank, data, sizeof(data));
}

void run_link_send_numbers(struct run_link *link, enum run_type type, uint32_t rank, uint32_t one, uint32_t two)
{
    uint8_t data[2 * LENGTH];
    put_number(data, one);
    put_number(data + LENGTH, two);
    run_link_send(link, type, rank, data, sizeof(data));
}

/* ---- in ---- */

static size_t coming(const struct run_link *link)
{
    return link->in_size - link->in_begin;
}

/* The whole frame that is there; false: not yet, or the link is dead. */
static bool whole(struct run_link *link, size_t *size)
{
    size_t most = link->state == RUN_OPEN ? RUN_FRAME_MAX + SEAL_TAG_BYTES : RUN_HELLO_MAX;
    if (coming(link) < LENGTH)
        return false;
    *size = run_number(link->in + link->in_begin);
    if (*size == 0 || *size > most)
        run_link_kill(link, "what has come is not of Elmer's");
    return link->state != RUN_DEAD && coming(link) >= LENGTH + *size;
}

static void drop(struct run_link *link, size_t size)
{
    link->in_begin += size;
    if (link->in_begin == link->in_size)
        link->in_begin = link->in_size = 0;
}

/* Once for all frames that were dropped: each may be a few of half a million bytes that came together. */
static void pack(struct run_link *link)
{
    if (link->in_begin == 0)
        return;
    memmove(link->in, link->in + link->in_begin, coming(link));
    link->in_size -= link->in_begin;
    link->in_begin = 0;
}

static void hear_pass(struct run_link *link)
{
    size_t size, length;
    const uint8_t *at;
    if (link->state != RUN_SHOWING || !whole(link, &size))
        return;
    at = link->in + link->in_begin + LENGTH;
    length = size - (sizeof(head) - 1);
    if (size < sizeof(head) || length > PASS_TEXT_MAX || memcmp(at, head, sizeof(head) - 1) != 0) {
        run_link_kill(link, "what has come is not of Elmer's, or of another version");
        return;
    }
    memcpy(link->other, at + sizeof(head) - 1, length);
    link->other[length] = 0;
    drop(link, LENGTH + size);
    if (!pass_decode(link->other, &link->peer) || strcmp(link->other, link->pass) == 0)
        run_link_kill(link, "what has come instead of a pass is none");
    else
        move(link, RUN_CHECKING);
}

void run_link_accept(struct run_link *link)
{
    if (link->state != RUN_CHECKING)
        return;
    if (seal_agree(&link->key, link->peer.public_key, link->dialler ? link->pass : link->other,
                   link->dialler ? link->other : link->pass, link->dialler, &link->seal_out, &link->seal_in))
        move(link, RUN_OPEN);
    else
        run_link_kill(link, "no key can be agreed upon");
}

int run_link_next(struct run_link *link, struct run_frame *frame)
{
    size_t size;
    uint8_t *at;
    if (link->used > 0)
        drop(link, link->used);
    link->used = 0;
    if (link->state != RUN_OPEN)
        return 0;
    if (!whole(link, &size)) {
        if (link->ended && link->state != RUN_DEAD)
            move(link, RUN_DEAD);
        return 0;
    }
    at = link->in + link->in_begin + LENGTH;
    if (size < HEADER + SEAL_TAG_BYTES || !seal_open(&link->seal_in, at, size, at)) {
        run_link_kill(link, "what has come is not from the other process of the job");
        return 0;
    }
    link->used = LENGTH + size;
    *frame = (struct run_frame){.type = (enum run_type)at[0],
                                .rank = run_number(at + 1),
                                .data = at + HEADER,
                                .size = size - HEADER - SEAL_TAG_BYTES};
    return 1;
}

static void fill(struct run_link *link)
{
    pack(link);
    for (int i = 0; i < READS && link->state != RUN_DEAD && !link->ended; i++) {
        /* Of a stranger no more than a pass takes; what is whole has been taken. */
        const size_t most = link->state == RUN_OPEN ? READ_BYTES : LENGTH + RUN_HELLO_MAX - link->in_size;
        ssize_t got;
        if (!grow(&link->in, &link->in_capacity, link->in_size + most)) {
            run_link_kill(link, "out of memory");
            return;
        }
        got = recv(link->fd, link->in + link->in_size, most, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || (errno == EAGAIN && !link->broken)))
            return;
        if (got <= 0) {
            end(link, reason(link, got < 0 ? errno : 0));
            return;
        }
        link->in_size += (size_t)got;
        if ((size_t)got < most || link->state != RUN_OPEN)
            return;
    }
}

/* ---- both ---- */

/* A host that has gone, or a cable, is noticed by the kernel, whose answers do not wait for a CPU as a process of a job
 * may: it can be behind one of a job above for as long as that likes. */
static void watch(int fd)
{
    const int on = 1, idle = KEEP_IDLE_S, interval = KEEP_INTERVAL_S, count = KEEP_COUNT, silent = RUN_SILENT_MS;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof(silent));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool run_link_over(const struct run_link *link)
{
    return link->state == RUN_DEAD || link->ended;
}

void run_link_patient(struct run_link *link)
{
    const int none = 0;
    link->patient = true;
    (void)setsockopt(link->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof(none));
}

/* TCP_USER_TIMEOUT would also end the connection of one who is there and does not read; and what is underway keeps the
 * kernel from asking with nothing in hand, as SO_KEEPALIVE does. One question about room that is not answered yet is
 * none, for they become rare. */
void run_link_watch(struct run_link *link)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    if (!link->patient || run_link_over(link) || getsockopt(link->fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return;
    if ((info.tcpi_retransmits > 0 || info.tcpi_probes > 1) && info.tcpi_last_ack_recv > RUN_SILENT_MS)
        run_link_kill(link, "%s", reason(link, ETIMEDOUT));
}

bool run_link_underway(const struct run_link *link)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    if (run_link_waiting(link) > 0)
        return true;
    return link->patient && !run_link_over(link) && getsockopt(link->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_unacked > 0;
}

int run_link_connect(const char *address, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd, result;
    if (inet_pton(AF_INET, *address ? address : "127.0.0.1", &to.sin_addr) != 1)
        return -EINVAL;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS)
        return fd;
    result = -errno;
    close(fd);
    return result;
}

void run_link_init(struct run_link *link, int fd, bool dialler, const struct seal_key *key, const char *pass)
{
    *link =
        (struct run_link){.fd = fd, .state = dialler ? RUN_CONNECTING : RUN_SHOWING, .dialler = dialler, .key = *key};
    snprintf(link->pass, sizeof(link->pass), "%s", pass);
    watch(fd);
    if (!dialler)
        show(link);
}

void run_link_fini(struct run_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    seal_fini(&link->seal_out);
    seal_fini(&link->seal_in);
    free(link->out);
    free(link->in);
    free(link->plain);
    explicit_bzero(&link->key, sizeof(link->key));
    *link = (struct run_link){.fd = -1, .state = RUN_DEAD};
}

short run_link_events(const struct run_link *link)
{
    if (link->state == RUN_DEAD || link->ended)
        return 0;
    if (link->state == RUN_CONNECTING)
        return POLLOUT;
    return (short)((link->state == RUN_CHECKING ? 0 : POLLIN) | (run_link_waiting(link) > 0 ? POLLOUT : 0));
}

static void connected(struct run_link *link)
{
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    if (error) {
        run_link_kill(link, "%s", strerror(error));
        return;
    }
    move(link, RUN_SHOWING);
    show(link);
}

void run_link_step(struct run_link *link, short revents)
{
    if (link->state == RUN_DEAD || !revents)
        return;
    if (link->state == RUN_CONNECTING) {
        connected(link);
        return;
    }
    if (revents & POLLOUT)
        flush(link);
    if ((revents & (POLLIN | POLLHUP | POLLERR)) && link->state != RUN_CHECKING)
        fill(link);
    if (link->state == RUN_SHOWING)
        hear_pass(link);
}
