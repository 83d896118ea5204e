#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* */
#include <cmocka.h>

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/clock.h"
#include "tests/unit/peer.h"

int64_t peer_soon(void)
{
    return mono_ms(mono_now()) + PEER_DEADLINE_MS;
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    assert_true(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    return address;
}

int peer_listen(const char *path)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 64), 0);
    return fd;
}

int peer_connect(const char *path)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

int peer_accept_fd(int listen_fd)
{
    struct pollfd pollfd = {.fd = listen_fd, .events = POLLIN};
    int fd;

    assert_int_equal(poll(&pollfd, 1, PEER_DEADLINE_MS), 1);
    fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

void peer_accept(int listen_fd, struct channel *channel, unsigned from)
{
    struct err err = ERR_INIT;
    int fd = peer_accept_fd(listen_fd);

    assert_int_equal(channel_init(channel, fd, from, 1 << 24), 0);
    if (channel_hello(channel, "peer", peer_soon(), &err) != 0)
        fail_msg("%s", err.text);
}

void peer_send(struct channel *channel, const struct wire_message *message)
{
    struct err err = ERR_INIT;

    if (channel_send_all(channel, message, peer_soon(), &err) != 0)
        fail_msg("%s: %s", wire_type_name(message->type), err.text);
}

struct wire_message peer_expect(struct channel *channel, enum wire_type type)
{
    for (;;) {
        struct wire_message message;
        struct err err = ERR_INIT;
        int result = channel_receive(channel, &message, peer_soon(), &err);

        if (result != 1)
            fail_msg("%s did not come: %s", wire_type_name(type), result == 0 ? "deadline" : err.text);
        if (message.type == type)
            return message;
        if (message.type == WIRE_ping) {
            struct wire_message pong = {.type = WIRE_pong, .id = message.id};

            peer_send(channel, &pong);
        } else if (message.type != WIRE_report && message.type != WIRE_contact && message.type != WIRE_uplink) {
            fail_msg("%s came instead of %s", wire_type_name(message.type), wire_type_name(type));
        }
        wire_message_fini(&message);
    }
}

void peer_expect_gone(struct channel *channel, enum wire_type type)
{
    struct wire_message message = peer_expect(channel, type);

    wire_message_fini(&message);
}

void peer_expect_end(struct channel *channel)
{
    for (;;) {
        struct wire_message message;
        struct err err = ERR_INIT;
        int result = channel_receive(channel, &message, peer_soon(), &err);

        if (result == 0)
            fail_msg("the link was not closed");
        if (result < 0)
            return;
        wire_message_fini(&message);
    }
}
