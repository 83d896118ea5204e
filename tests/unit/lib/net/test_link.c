/* test_link.c - links on unix sockets, and a few on TCP: how they begin, and what may be said on them. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/net/link.h"
#include "lib/wire/channel.h"
#include "tests/unit/lib/net/link_fixture.h"

static void talks_over_unix(void **state)
{
    struct world *world = *state;
    struct stat st;
    uid_t uid;
    gid_t gid;
    pid_t pid;

    listen_on(world, world->path, 4);
    assert_int_equal(stat(world->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    both_ready(world);
    assert_int_equal(link_peer_cred(world->server.link, &uid, &gid, &pid), 0);
    assert_int_equal(uid, getuid());
    assert_int_equal(gid, getgid());
    assert_int_equal(pid, getpid());
    assert_string_equal(link_peer_address(world->server.link), "");
    link_close(world->client.link, NULL);
    RUN_UNTIL(world, world->client.closed && world->server.closed);
    assert_string_equal(world->client.text, "");
    exchange(world);
}

static void talks_over_tcp(void **state)
{
    struct world *world = *state;
    uid_t uid;
    gid_t gid;
    pid_t pid;

    listen_on(world, "127.0.0.1:0", 4);
    both_ready(world);
    assert_string_equal(link_peer_address(world->server.link), "127.0.0.1");
    assert_string_equal(link_local_address(world->client.link), "127.0.0.1");
    assert_int_equal(link_peer_cred(world->server.link, &uid, &gid, &pid), -ENOTSUP);
    link_close(world->server.link, NULL);
    RUN_UNTIL(world, world->client.closed && world->server.closed);
    exchange(world);
}

static void resolves_names(void **state)
{
    struct world *world = *state;

    listen_on(world, "localhost:0", 4);
    (void)snprintf(world->address, sizeof(world->address), "localhost:%u", listener_port(world->listener));
    exchange(world);
}

static void without_tls_there_is_no_tcp(void **state)
{
    static const char *const addresses[] = {"*:0", "0.0.0.0:0", "[::]:0", "127.0.0.1:0", "localhost:0"};
    struct world *world = *state;
    struct err err = ERR_INIT;

    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        err_clear(&err);
        assert_int_equal(listener_create(&world->loop, addresses[i], 0, 4, &world->server_options, &callbacks,
                                         accept_link, world, &world->listener, &err),
                         -EPERM);
        assert_non_null(strstr(err.text, "without TLS there are unix sockets only"));
        assert_null(world->listener);
    }
    err_clear(&err);
    assert_int_equal(link_connect(&world->loop, "127.0.0.1:7110", 5000, &world->client_options, &callbacks,
                                  &world->client, &world->client.link, &err),
                     -EPERM);
    assert_non_null(strstr(err.text, "127.0.0.1:7110: without TLS there are unix sockets only"));
}

static void another_major_version_is_refused(void **state)
{
    struct world *world = *state;
    int fd;

    listen_on(world, world->path, 4);
    fd = raw_connect(world);
    raw_send(fd, "{\"type\":\"hello\",\"id\":0,\"program\":\"future\",\"major\":2,\"minor\":0,\"capabilities\":[]}");
    raw_expect_error(world, fd, WIRE_CODE_VERSION);
    RUN_UNTIL(world, world->server.closed);
    assert_non_null(strstr(world->server.text, "future speaks version 2"));
    assert_int_equal(world->server.ready, 0);
}

static void a_later_minor_speaks_ours(void **state)
{
    struct world *world = *state;
    int fd;

    listen_on(world, world->path, 4);
    fd = raw_connect(world);
    raw_send(fd,
             "{\"type\":\"hello\",\"id\":0,\"program\":\"later\",\"major\":1,\"minor\":9,\"capabilities\":[\"x\"]}");
    raw_send(fd, "{\"type\":\"ping\",\"id\":5}");
    RUN_UNTIL(world, world->server.messages == 1);
    (void)close(fd);
    RUN_UNTIL(world, world->server.closed);
}

static void silence_ends_after_the_hello_timeout(void **state)
{
    struct world *world = *state;
    int64_t begin = mono_ms(mono_now());
    int fd;

    world->server_options.hello_timeout_ms = 100;
    listen_on(world, world->path, 4);
    fd = raw_connect(world);
    raw_expect_error(world, fd, WIRE_CODE_BAD_MESSAGE);
    RUN_UNTIL(world, world->server.closed);
    assert_true(mono_ms(mono_now()) - begin >= 100);
    assert_string_equal(world->server.text, "no hello came within 100 ms");
}

/* The peer of a refusing server sends much more than is read; the reason must reach it all the same. */
static void garbage(struct world *world, const char *first, size_t size)
{
    char *bytes = malloc(300000);
    int fd = raw_connect(world), flags = fcntl(fd, F_GETFL);
    size_t sent = 0;

    assert_non_null(bytes);
    memset(bytes, 'G', 300000);
    memcpy(bytes, first, size);
    assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    world->server.closed = 0;
    while (sent < 300000) {
        ssize_t n = send(fd, bytes + sent, 300000 - sent, MSG_NOSIGNAL);

        if (n > 0)
            sent += (size_t)n;
        else if (errno != EAGAIN)
            break;
        turn(world);
    }
    free(bytes);
    raw_expect_error(world, fd, WIRE_CODE_BAD_MESSAGE);
    RUN_UNTIL(world, world->server.closed == 1);
}

static void garbage_is_refused(void **state)
{
    struct world *world = *state;

    listen_on(world, world->path, 4);
    garbage(world, "GET / HTTP/1.1\r\n", 16);
    assert_non_null(strstr(world->server.text, "not Elmer's protocol"));
    garbage(world, "\0\0\0\0", 4);
    garbage(world, "\0\x10\0\1", 4);
    garbage(world, "\0\0\0\x02{}", 6);
    assert_non_null(strstr(world->server.text, "type"));
    /* and the daemon goes on */
    exchange(world);
}

static void refused_after_hello(struct world *world, const char *json, const char *text)
{
    int fd = raw_connect(world);

    world->server.closed = 0;
    raw_send(fd, RAW_HELLO);
    raw_send(fd, json);
    raw_expect_error(world, fd, WIRE_CODE_BAD_MESSAGE);
    RUN_UNTIL(world, world->server.closed);
    assert_non_null(strstr(world->server.text, text));
    assert_int_equal(world->server.messages, 0);
}

static void messages_out_of_place_are_refused(void **state)
{
    struct world *world = *state;
    int fd;

    listen_on(world, world->path, 4);
    refused_after_hello(world,
                        "{\"type\":\"submitted\",\"id\":0,\"job\":1,\"state\":\"\",\"level\":0,\"hosts\":[],\"ahead\":"
                        "0,\"reason\":\"\"}",
                        "submitted");
    refused_after_hello(world, "{\"type\":\"launch\",\"id\":0}", "launch");
    refused_after_hello(world, RAW_HELLO, "hello");
    refused_after_hello(world, "[[[[[[[[[[[[[[", "deeper");
    fd = raw_connect(world);
    raw_send(fd, "{\"type\":\"ping\",\"id\":5}");
    raw_expect_error(world, fd, WIRE_CODE_BAD_MESSAGE);
    RUN_UNTIL(world, world->server.closed);
    assert_string_equal(world->server.text, "the first message must be hello");
}

static void an_error_without_request_closes(void **state)
{
    struct world *world = *state;
    int fd;

    listen_on(world, world->path, 4);
    fd = raw_connect(world);
    raw_send(fd, RAW_HELLO);
    raw_send(fd, "{\"type\":\"error\",\"id\":0,\"code\":\"bad-message\",\"text\":\"I do not like you\\u0007\"}");
    RUN_UNTIL(world, world->server.link != NULL);
    (void)shutdown(fd, SHUT_WR);
    RUN_UNTIL(world, world->server.closed);
    assert_string_equal(world->server.text, "I do not like you\\x07");
    assert_int_equal(world->server.messages, 0);
    (void)close(fd);
}

static void frames_come_in_pieces(void **state)
{
    struct world *world = *state;
    const char *json = RAW_HELLO;
    uint8_t header[WIRE_FRAME_HEADER];
    int fd;

    listen_on(world, world->path, 4);
    fd = raw_connect(world);
    wire_frame_header(header, strlen(json));
    for (size_t i = 0; i < sizeof(header); i++) {
        assert_int_equal(send(fd, header + i, 1, MSG_NOSIGNAL), 1);
        turn(world);
    }
    for (size_t i = 0; i < strlen(json); i++) {
        assert_int_equal(world->server.ready, 0);
        assert_int_equal(send(fd, json + i, 1, MSG_NOSIGNAL), 1);
        turn(world);
    }
    RUN_UNTIL(world, world->server.ready);
    (void)close(fd);
    RUN_UNTIL(world, world->server.closed);
}

static void a_bare_channel_needs_no_hello(void **state)
{
    struct world *world = *state;
    struct channel channel;
    struct wire_message message, pong = {.type = WIRE_pong, .id = 4};
    struct err err = ERR_INIT;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(channel_init(&channel, fds[1], WIRE_FROM_ELMER, 1 << 16), 0);
    channel.minor = WIRE_MINOR;
    assert_int_equal(channel_send(&channel, &pong, &err), 0); /* already there when the link begins */
    world->client_options.no_hello = true;
    assert_int_equal(link_open_fd(&world->loop, fds[0], &world->client_options, &callbacks, &world->client,
                                  &world->client.link, &err),
                     0);
    RUN_UNTIL(world, world->client.messages == 1);
    assert_int_equal(world->client.ready, 1);
    assert_int_equal(link_send(world->client.link, &pong), 0);
    RUN_UNTIL(world, channel_fill(&channel, &err) == 0 && channel_next(&channel, &message, &err) == 1);
    assert_int_equal(message.type, WIRE_pong);
    wire_message_fini(&message);
    channel_fini(&channel);
    RUN_UNTIL(world, world->client.closed);
}

static void raw_frames_pass_and_bad_messages_leave_the_link(void **state)
{
    struct world *world = *state;
    struct wire_message bad = {.type = WIRE_done, .u.done = {.text = "\xFF"}};

    listen_on(world, world->path, 4);
    both_ready(world);
    assert_int_equal(link_send(world->client.link, &bad), -EILSEQ);
    assert_int_equal(link_send_json(world->client.link, "", 0), -EMSGSIZE);
    assert_int_equal(link_send_json(world->client.link, "{\"id\":6,\"type\":\"ping\"}", 22), 0);
    RUN_UNTIL(world, world->server.messages == 1);
    assert_int_equal(world->server.ids[0], 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(talks_over_unix),
        LINK_TEST(talks_over_tcp),
        LINK_TEST(resolves_names),
        LINK_TEST(without_tls_there_is_no_tcp),
        LINK_TEST(another_major_version_is_refused),
        LINK_TEST(a_later_minor_speaks_ours),
        LINK_TEST(silence_ends_after_the_hello_timeout),
        LINK_TEST(garbage_is_refused),
        LINK_TEST(messages_out_of_place_are_refused),
        LINK_TEST(an_error_without_request_closes),
        LINK_TEST(frames_come_in_pieces),
        LINK_TEST(a_bare_channel_needs_no_hello),
        LINK_TEST(raw_frames_pass_and_bad_messages_leave_the_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
