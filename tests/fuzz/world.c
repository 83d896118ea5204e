#include "config.h"

#include "tests/fuzz/world.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/wire/channel.h"
#include "rsd/root/reaper.h"

enum { FIRST_PID = 1000 };

static struct descriptor {
    enum world_kind kind;
    bool end, clogged, broken;
    uint8_t *in;
    size_t size, at;
    struct frame_reader out;
} descriptors[WORLD_FDS];

static struct world {
    struct input *input;
    unsigned role;
    size_t top; /* descriptors that were ever open */
    int64_t now_ms;
    int next_pid;
    int peeked_pid, peeked_status;
    uint32_t peer; /* 0: nobody was named */
} world;

static struct descriptor *find(int fd)
{
    if (fd < WORLD_FD)
        return NULL;
    FUZZ_CHECK(fd - WORLD_FD < WORLD_FDS && descriptors[fd - WORLD_FD].kind != WORLD_CLOSED, "%d is not open", fd);
    return &descriptors[fd - WORLD_FD];
}

static void clear(struct descriptor *descriptor)
{
    free(descriptor->in);
    frame_reader_fini(&descriptor->out);
    *descriptor = (struct descriptor){0};
}

void world_begin(struct input *input, unsigned role)
{
    world = (struct world){.input = input, .role = role, .now_ms = 1000000, .next_pid = FIRST_PID};
}

void world_end(void)
{
    for (size_t i = 0; i < world.top; i++) {
        FUZZ_CHECK(descriptors[i].kind == WORLD_CLOSED, "descriptor %zu of kind %d was left open", i,
                   (int)descriptors[i].kind);
    }
    world.top = 0;
}

int world_open(enum world_kind kind)
{
    for (int i = 0; i < WORLD_FDS; i++) {
        if (descriptors[i].kind != WORLD_CLOSED)
            continue;
        descriptors[i] = (struct descriptor){.kind = kind};
        frame_reader_init(&descriptors[i].out, WIRE_MAX_FRAME);
        if ((size_t)i >= world.top)
            world.top = (size_t)i + 1;
        return WORLD_FD + i;
    }
    errno = EMFILE;
    return -1;
}

bool world_has(int fd)
{
    return find(fd) != NULL;
}

enum world_kind world_kind(int fd)
{
    return fd >= WORLD_FD && fd < WORLD_FD + WORLD_FDS ? descriptors[fd - WORLD_FD].kind : WORLD_CLOSED;
}

int world_pick(enum world_kind kind, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < world.top; i++)
        count += descriptors[i].kind == kind;
    if (count == 0)
        return -1;
    n %= count;
    for (size_t i = 0; i < world.top; i++)
        if (descriptors[i].kind == kind && n-- == 0)
            return WORLD_FD + (int)i;
    return -1;
}

void world_feed(int fd, const void *bytes, size_t size)
{
    struct descriptor *descriptor;
    uint8_t *grown;

    if (world_kind(fd) == WORLD_CLOSED || size == 0)
        return;
    descriptor = find(fd);
    grown = realloc(descriptor->in, descriptor->size + size);
    if (!grown)
        abort();
    memcpy(grown + descriptor->size, bytes, size);
    descriptor->in = grown;
    descriptor->size += size;
}

void world_feed_message(int fd, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    uint8_t *frame;
    size_t size;

    if (wire_encode_frame(message, WIRE_MINOR, &frame, &size, &err) != 0)
        return; /* too large */
    world_feed(fd, frame, size);
    free(frame);
}

void world_feed_end(int fd)
{
    if (world_kind(fd) != WORLD_CLOSED)
        find(fd)->end = true;
}

bool world_readable(int fd)
{
    struct descriptor *descriptor = world_kind(fd) != WORLD_CLOSED ? find(fd) : NULL;

    return descriptor && (descriptor->end || descriptor->at < descriptor->size);
}

void world_clog(int fd, bool broken)
{
    if (world_kind(fd) == WORLD_CLOSED)
        return;
    find(fd)->clogged = true;
    find(fd)->broken = broken;
}

bool world_writable(int fd)
{
    return world_kind(fd) != WORLD_CLOSED && (!find(fd)->clogged || find(fd)->broken);
}

int64_t world_now_ms(void)
{
    return world.now_ms;
}

void world_pass_ms(int64_t ms)
{
    world.now_ms += ms;
}

void world_child_ends(int pid, int status, bool told)
{
    struct reaped reaped = {.pid = pid, .status = status};

    world.peeked_pid = pid;
    world.peeked_status = status;
    if (told && !WIFSTOPPED(status))
        world_feed(world_pick(WORLD_CHILDREN, 0), &reaped, sizeof(reaped));
}

int world_new_pid(void)
{
    return world.next_pid++;
}

void world_come_as(uint32_t uid)
{
    world.peer = uid;
}

bool world_fails(void)
{
    return world.input->left > 0 && input_byte(world.input) >= 0xF8;
}

struct input *world_input(void)
{
    return world.input;
}

/* ---- what the program sends ---- */

static void take_frames(int fd, struct descriptor *descriptor)
{
    struct wire_message message;
    struct err err = ERR_INIT;
    const char *json;
    size_t size;

    while (frame_reader_next(&descriptor->out, &json, &size) == 1) {
        FUZZ_CHECK(wire_decode(json, size, WIRE_MINOR, &message, &err) == 0, "sends %.*s: %s", (int)size, json,
                   err.text);
        FUZZ_CHECK(wire_may_send(message.type, world.role), "sends %s, which it may not", wire_type_name(message.type));
        world_heard(fd, &message);
        wire_message_fini(&message);
    }
}

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    struct descriptor *descriptor = find(fd);

    if (!descriptor)
        return __real_send(fd, bytes, size, flags);
    if (descriptor->clogged) {
        errno = descriptor->broken ? EPIPE : EAGAIN;
        return -1;
    }
    if (descriptor->kind != WORLD_SOCKET)
        return (ssize_t)size;
    FUZZ_CHECK(frame_reader_push(&descriptor->out, bytes, size) == 0, "sends what is no frame");
    take_frames(fd, descriptor);
    return (ssize_t)size;
}

/* ---- what the program reads ---- */

static ssize_t take(struct descriptor *descriptor, void *bytes, size_t size, bool peeks)
{
    size_t left = descriptor->size - descriptor->at;

    if (left == 0 && !descriptor->end) {
        errno = EAGAIN;
        return -1;
    }
    size = size < left ? size : left;
    if (size > 0)
        memcpy(bytes, descriptor->in + descriptor->at, size);
    descriptor->at += peeks ? 0 : size;
    return (ssize_t)size;
}

ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    struct descriptor *descriptor = find(fd);

    return !descriptor ? __real_recv(fd, bytes, size, flags) : take(descriptor, bytes, size, flags & MSG_PEEK);
}

ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    struct descriptor *descriptor = find(fd);

    return !descriptor ? __real_read(fd, bytes, size) : take(descriptor, bytes, size, false);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = 0;
        (void)find(fds[i].fd);
    }
    return world_poll(fds, count, timeout_ms);
}

/* What a build with _FORTIFY_SOURCE calls instead. */
ssize_t __wrap___recv_chk(int fd, void *bytes, size_t size, size_t room, int flags);
ssize_t __wrap___recv_chk(int fd, void *bytes, size_t size, size_t room, int flags)
{
    FUZZ_CHECK(size <= room, "%zu bytes into %zu", size, room);
    return __wrap_recv(fd, bytes, size, flags);
}

ssize_t __wrap___read_chk(int fd, void *bytes, size_t size, size_t room);
ssize_t __wrap___read_chk(int fd, void *bytes, size_t size, size_t room)
{
    FUZZ_CHECK(size <= room, "%zu bytes into %zu", size, room);
    return __wrap_read(fd, bytes, size);
}

int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);
int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
    FUZZ_CHECK(count * sizeof(*fds) <= room, "%zu descriptors", (size_t)count);
    return __wrap_poll(fds, count, timeout_ms);
}

/* In place of reaper.c. */
int reaper_start(void)
{
    return world_open(WORLD_CHILDREN);
}

void reaper_end(void)
{
}

int reaper_peek(pid_t pid, int *status)
{
    if (world.peeked_pid != pid || WIFSTOPPED(world.peeked_status))
        return 0;
    *status = world.peeked_status;
    return 1;
}

int reaper_peek_stopped(pid_t pid)
{
    return world.peeked_pid == pid && WIFSTOPPED(world.peeked_status) ? WSTOPSIG(world.peeked_status) : 0;
}

/* ---- descriptors ---- */

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    struct descriptor *descriptor = find(fd);

    if (!descriptor)
        return fd < 0 ? -1 : __real_close(fd);
    clear(descriptor);
    return 0;
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    long argument;

    va_start(args, command);
    argument = va_arg(args, long);
    va_end(args);
    return !find(fd) ? __real_fcntl(fd, command, argument) : 0;
}

/* Both ends exist until the program closes one, as it does after a fork. */
static int open_pair(enum world_kind kind, int *pair)
{
    if (world_fails()) {
        errno = EMFILE;
        return -1;
    }
    pair[0] = world_open(kind);
    pair[1] = world_open(WORLD_OTHER);
    if (pair[0] >= 0 && pair[1] >= 0)
        return 0;
    if (pair[0] >= 0)
        (void)__wrap_close(pair[0]);
    errno = EMFILE;
    return -1;
}

int __wrap_socketpair(int domain, int type, int protocol, int *pair);
int __wrap_socketpair(int domain, int type, int protocol, int *pair)
{
    (void)domain;
    (void)type;
    (void)protocol;
    return open_pair(WORLD_SOCKET, pair);
}

int __wrap_pipe2(int *pair, int flags);
int __wrap_pipe2(int *pair, int flags)
{
    (void)flags;
    return open_pair(WORLD_PIPE, pair);
}

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    if (!world_fails())
        return world_open(WORLD_SOCKET);
    errno = EMFILE;
    return -1;
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
    struct descriptor *descriptor = find(fd);

    (void)address;
    (void)size;
    if (descriptor && !world_fails()) {
        descriptor->kind = WORLD_LISTENER;
        return 0;
    }
    errno = EADDRINUSE;
    return -1;
}

int __wrap_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog)
{
    (void)backlog;
    return !find(fd) ? -1 : 0;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    (void)address;
    (void)size;
    if (find(fd) && !world_fails())
        return 0;
    errno = ECONNREFUSED;
    return -1;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    (void)address;
    (void)size;
    (void)flags;
    if (find(fd))
        find(fd)->at = find(fd)->size; /* whoever waited there */
    if (find(fd) && !world_fails())
        return world_open(WORLD_SOCKET);
    errno = ECONNABORTED;
    return -1;
}

/* Only SO_PEERCRED is asked for. */
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    struct ucred *peer = value;

    (void)find(fd);
    FUZZ_CHECK(level == SOL_SOCKET && name == SO_PEERCRED && *size == sizeof(*peer), "option %d", name);
    *peer = (struct ucred){.pid = FIRST_PID, .uid = world.peer ? world.peer : world_fails() ? 2001 : getuid()};
    return 0;
}
