/* test_link.c - links over unix sockets and TCP on the loopback, with peers that behave and peers that do not. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/net/link.h"
#include "lib/wire/channel.h"
#include "tests/unit/scratch.h"

enum { DEADLINE_MS = 10000, SEEN_MAX = 64 };

/* One end of a link and what its callbacks saw. */
struct end {
    struct link *link;
    unsigned ready, messages, closed;
    uint64_t ids[SEEN_MAX];
    char text[512];
    bool close_on_message, close_on_ready;
    int sent; /* what link_send in a callback returned */
};

struct world {
    uv_loop_t loop;
    struct listener *listener;
    struct end server, client;
    struct link_options server_options, client_options;
    bool refuse, close_in_accept;
    unsigned accepted;
    char dir[64], path[96], address[96];
};

static void on_ready(struct link *link, void *data)
{
    struct end *end = data;

    end->ready++;
    assert_true(link_ready(link));
    assert_int_equal(end->closed, 0);
    if (end->close_on_ready)
        link_close(link, "closed in on_ready");
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct end *end = data;

    assert_int_equal(end->closed, 0);
    assert_int_equal(end->ready, 1);
    if (end->messages < SEEN_MAX)
        end->ids[end->messages] = message->id;
    end->messages++;
    if (end->close_on_message) {
        link_close(link, "closed in on_message");
        end->sent = link_send(link, message);
    }
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct end *end = data;

    assert_ptr_equal(link, end->link);
    end->closed++;
    assert_int_equal(end->closed, 1);
    (void)snprintf(end->text, sizeof end->text, "%s", text);
    end->link = NULL;
}

static const struct link_callbacks callbacks = {.on_ready = on_ready, .on_message = on_message, .on_close = on_close};

static void *accept_link(struct link *link, void *data)
{
    struct world *world = data;

    world->accepted++;
    if (world->refuse)
        return NULL;
    if (world->server.link != NULL)
        return NULL;
    world->server = (struct end){.link = link,
                                 .close_on_message = world->server.close_on_message,
                                 .close_on_ready = world->server.close_on_ready};
    if (world->close_in_accept)
        link_close(link, "closed in accept");
    return &world->server;
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    (void)snprintf(world->dir, sizeof world->dir, "/tmp/elmer-link-XXXXXX");
    assert_non_null(scratch_dir(world->dir));
    (void)snprintf(world->path, sizeof world->path, "%s/sock", world->dir);
    world->server_options = (struct link_options){
        .program = "server", .peer = WIRE_FROM_CLIENT, .out_max = 1 << 16, .hello_timeout_ms = 5000};
    world->client_options = (struct link_options){
        .program = "client", .peer = WIRE_FROM_ELMER, .out_max = 1 << 16, .hello_timeout_ms = 5000};
    *state = world;
    return 0;
}

static void tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Turn the loop until the value differs from 0; fails at the deadline. */
#define RUN_UNTIL(world, condition)                                                                                    \
    do {                                                                                                               \
        int64_t end_ = mono_ms(mono_now()) + DEADLINE_MS;                                                              \
        while (!(condition)) {                                                                                         \
            assert_true(mono_ms(mono_now()) < end_);                                                                   \
            turn(world);                                                                                               \
        }                                                                                                              \
    } while (0)

static void turn(struct world *world)
{
    uv_timer_t timer;

    (void)uv_timer_init(&world->loop, &timer);
    (void)uv_timer_start(&timer, tick, 2, 0);
    (void)uv_run(&world->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(&world->loop, UV_RUN_NOWAIT);
}

/* Everything closes by itself, and the loop then holds nothing. */
static int teardown(void **state)
{
    struct world *world = *state;

    if (world->client.link != NULL)
        link_close(world->client.link, "end of test");
    if (world->server.link != NULL)
        link_close(world->server.link, "end of test");
    listener_close(world->listener);
    RUN_UNTIL(world, !uv_loop_alive(&world->loop));
    assert_int_equal(uv_loop_close(&world->loop), 0);
    assert_int_equal(access(world->path, F_OK), -1);
    assert_int_equal(rmdir(world->dir), 0);
    free(world);
    return 0;
}

static void listen_on(struct world *world, const char *address, unsigned max_links)
{
    struct err err = ERR_INIT;

    assert_int_equal(listener_create(&world->loop, address, 0600, max_links, &world->server_options, &callbacks,
                                     accept_link, world, &world->listener, &err),
                     0);
    if (address[0] == '/')
        (void)snprintf(world->address, sizeof world->address, "%s", address);
    else
        (void)snprintf(world->address, sizeof world->address, "127.0.0.1:%u", listener_port(world->listener));
}

static void connect_link(struct world *world, unsigned timeout_ms)
{
    struct err err = ERR_INIT;

    world->client = (struct end){.close_on_ready = world->client.close_on_ready};
    assert_int_equal(link_connect(&world->loop, world->address, timeout_ms, &world->client_options, &callbacks,
                                  &world->client, &world->client.link, &err),
                     0);
}

static void both_ready(struct world *world)
{
    connect_link(world, 5000);
    RUN_UNTIL(world, world->client.ready && world->server.ready);
}

static int send_wait(struct link *link, uint64_t id)
{
    struct wire_message message = {.type = WIRE_wait, .id = id, .u.wait = {.job = 7}};

    return link_send(link, &message);
}

/* A peer without any of our code's help: a connected blocking socket. */
static int raw_connect(struct world *world)
{
    int fd;

    if (world->address[0] == '/') {
        struct sockaddr_un un = {.sun_family = AF_UNIX};

        (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", world->address);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof un), 0);
    } else {
        struct sockaddr_in in = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons((uint16_t)listener_port(world->listener))};

        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    }
    return fd;
}

static void raw_send(int fd, const char *json)
{
    uint8_t header[WIRE_FRAME_HEADER];

    wire_frame_header(header, strlen(json));
    assert_int_equal(send(fd, header, sizeof header, MSG_NOSIGNAL), sizeof header);
    assert_int_equal(send(fd, json, strlen(json), MSG_NOSIGNAL), (ssize_t)strlen(json));
}

#define RAW_HELLO "{\"type\":\"hello\",\"id\":0,\"program\":\"raw\",\"major\":1,\"minor\":0,\"capabilities\":[]}"

/* All that comes until the end of the stream, while the loop turns. The last frame must be an error with that code. */
static void raw_expect_error(struct world *world, int fd, const char *code)
{
    int64_t deadline = mono_ms(mono_now()) + DEADLINE_MS;
    struct frame_reader reader;
    struct wire_message last = {.type = WIRE_TYPE_COUNT};
    const char *json;
    size_t size;

    frame_reader_init(&reader, WIRE_MAX_FRAME);
    for (;;) {
        uint8_t bytes[4096];
        ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);

        assert_true(mono_ms(mono_now()) < deadline);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            break;
        if (n > 0)
            assert_int_equal(frame_reader_push(&reader, bytes, (size_t)n), 0);
        turn(world);
    }
    while (frame_reader_next(&reader, &json, &size) == 1) {
        wire_message_fini(&last);
        assert_int_equal(wire_decode(json, size, 0, &last, NULL), 0);
    }
    assert_int_equal(last.type, WIRE_error);
    assert_string_equal(last.u.error.code, code);
    wire_message_fini(&last);
    frame_reader_fini(&reader);
    (void)close(fd);
}

static void exchange(struct world *world)
{
    struct wire_message pong = {.type = WIRE_pong, .id = 3};

    both_ready(world);
    for (uint64_t id = 1; id <= 20; id++)
        assert_int_equal(send_wait(world->client.link, id), 0);
    assert_int_equal(link_send(world->server.link, &pong), 0);
    RUN_UNTIL(world, world->server.messages == 20 && world->client.messages == 1);
    for (uint64_t id = 1; id <= 20; id++)
        assert_int_equal(world->server.ids[id - 1], id);
    link_close(world->client.link, "all said");
    RUN_UNTIL(world, world->client.closed && world->server.closed);
    assert_string_equal(world->client.text, "all said");
    assert_string_equal(world->server.text, "the other side closed the connection");
}

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
    (void)snprintf(world->address, sizeof world->address, "localhost:%u", listener_port(world->listener));
    exchange(world);
}

static void without_tls_there_is_only_the_loopback(void **state)
{
    static const char *const addresses[] = {"*:0", "0.0.0.0:0", "[::]:0"};
    struct world *world = *state;

    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct err err = ERR_INIT;

        assert_int_equal(listener_create(&world->loop, addresses[i], 0, 4, &world->server_options, &callbacks,
                                         accept_link, world, &world->listener, &err),
                         -EPERM);
        assert_non_null(strstr(err.text, "without TLS only loopback"));
        assert_null(world->listener);
    }
    (void)snprintf(world->address, sizeof world->address, "192.0.2.1:7110");
    connect_link(world, 5000);
    RUN_UNTIL(world, world->client.closed);
    assert_non_null(strstr(world->client.text, "without TLS only loopback"));
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
    listen_on(world, "127.0.0.1:0", 4);
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

    listen_on(world, "127.0.0.1:0", 4);
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
    for (size_t i = 0; i < sizeof header; i++) {
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

static void a_peer_that_does_not_read_is_cut_off(void **state)
{
    struct world *world = *state;
    struct wire_message message = {.type = WIRE_done, .id = 1};
    char text[1025];
    int fd, code = 0;

    memset(text, 'x', 1024);
    text[1024] = '\0';
    message.u.done.text = text;
    listen_on(world, world->path, 4);
    fd = raw_connect(world);
    raw_send(fd, RAW_HELLO);
    RUN_UNTIL(world, world->server.ready);
    for (int i = 0; i < 100000 && code == 0; i++)
        code = link_send(world->server.link, &message);
    assert_int_equal(code, -ENOBUFS);
    assert_int_equal(world->server.closed, 0); /* not from within the call */
    assert_int_equal(link_send(world->server.link, &message), -ENOTCONN);
    RUN_UNTIL(world, world->server.closed);
    assert_non_null(strstr(world->server.text, "does not read"));
    (void)close(fd);
}

static void closing_gives_up_after_a_second(void **state)
{
    struct world *world = *state;
    int64_t begin;
    int fd;

    listen_on(world, world->path, 4);
    fd = raw_connect(world);
    raw_send(fd, RAW_HELLO);
    RUN_UNTIL(world, world->server.ready);
    begin = mono_ms(mono_now());
    link_close(world->server.link, "enough");
    link_close(world->server.link, "not this one");
    RUN_UNTIL(world, world->server.closed);
    assert_in_range(mono_ms(mono_now()) - begin, 900, 3000);
    assert_string_equal(world->server.text, "enough");
    (void)close(fd);
}

static void no_message_comes_after_close(void **state)
{
    struct world *world = *state;

    world->server.close_on_message = true;
    listen_on(world, world->path, 4);
    both_ready(world);
    for (uint64_t id = 1; id <= 10; id++)
        assert_int_equal(send_wait(world->client.link, id), 0);
    RUN_UNTIL(world, world->client.closed && world->server.closed);
    assert_int_equal(world->server.messages, 1);
    assert_int_equal(world->server.sent, -ENOTCONN);
    assert_string_equal(world->server.text, "closed in on_message");
}

static void close_in_on_ready_and_in_accept(void **state)
{
    struct world *world = *state;

    world->client.close_on_ready = true;
    listen_on(world, world->path, 4);
    connect_link(world, 5000);
    RUN_UNTIL(world, world->client.closed && world->server.closed);
    assert_string_equal(world->client.text, "closed in on_ready");
    world->close_in_accept = true;
    world->client.close_on_ready = false;
    connect_link(world, 5000);
    RUN_UNTIL(world, world->client.closed && world->server.closed);
    assert_string_equal(world->server.text, "closed in accept");
    assert_int_equal(world->server.ready, 0);
}

static void too_many_links_are_told_so(void **state)
{
    struct world *world = *state;
    int fd;

    listen_on(world, world->path, 1);
    both_ready(world);
    fd = raw_connect(world);
    raw_expect_error(world, fd, WIRE_CODE_REFUSED);
    assert_int_equal(world->accepted, 1);
    link_close(world->client.link, NULL);
    RUN_UNTIL(world, world->client.closed && world->server.closed);
    exchange(world);
}

static void a_flood_of_refused_links_is_cheap(void **state)
{
    struct world *world = *state;
    int fds[100];

    world->refuse = true;
    listen_on(world, world->path, 200);
    for (size_t i = 0; i < 100; i++)
        fds[i] = raw_connect(world);
    RUN_UNTIL(world, world->accepted == 100);
    for (size_t i = 0; i < 100; i++)
        (void)close(fds[i]);
    world->refuse = false;
    exchange(world);
}

static void an_owner_may_refuse(void **state)
{
    struct world *world = *state;

    world->refuse = true;
    listen_on(world, world->path, 4);
    connect_link(world, 5000);
    RUN_UNTIL(world, world->client.closed);
    assert_string_equal(world->client.text, "this connection is not accepted here: the user is a wrong one, or has too "
                                            "many already; end some (esubmit -w), or try again later");
    assert_int_equal(world->client.ready, 0);
}

static void connecting_fails_with_a_reason(void **state)
{
    struct world *world = *state;
    struct err err = ERR_INIT;
    struct link *link;
    int fd;

    (void)snprintf(world->address, sizeof world->address, "%s/none", world->dir);
    connect_link(world, 5000);
    assert_int_equal(world->client.closed, 0);
    RUN_UNTIL(world, world->client.closed);
    assert_non_null(strstr(world->client.text, "none: no such file"));
    listen_on(world, "127.0.0.1:0", 4); /* to learn a port that nobody listens on */
    listener_close(world->listener);
    world->listener = NULL;
    connect_link(world, 5000);
    RUN_UNTIL(world, world->client.closed);
    assert_non_null(strstr(world->client.text, "connection refused"));
    (void)snprintf(world->address, sizeof world->address, "no-such-host.invalid:1");
    connect_link(world, 5000);
    RUN_UNTIL(world, world->client.closed);
    assert_non_null(strstr(world->client.text, "cannot find the address of no-such-host.invalid"));
    assert_int_equal(link_connect(&world->loop, "ws1", 1000, &world->client_options, &callbacks, NULL, &link, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, "HOST:PORT"));
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(link_open_fd(&world->loop, fd, &world->client_options, &callbacks, NULL, &link, NULL), -ENOTSOCK);
}

/* A listening socket whose queue is full does not answer. */
static void a_connection_that_hangs_ends_at_the_deadline(void **state)
{
    struct world *world = *state;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof in;
    int64_t begin = mono_ms(mono_now());
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fds[4];

    assert_int_equal(bind(server, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(server, 0), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &size), 0);
    for (size_t i = 0; i < 4; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fds[i], (struct sockaddr *)&in, sizeof in);
    }
    (void)snprintf(world->address, sizeof world->address, "127.0.0.1:%d", ntohs(in.sin_port));
    connect_link(world, 300);
    RUN_UNTIL(world, world->client.closed);
    assert_in_range(mono_ms(mono_now()) - begin, 290, 2000);
    assert_non_null(strstr(world->client.text, "no answer in time"));
    for (size_t i = 0; i < 4; i++)
        (void)close(fds[i]);
    (void)close(server);
}

static void closing_while_connecting(void **state)
{
    struct world *world = *state;

    listen_on(world, "127.0.0.1:0", 4);
    (void)snprintf(world->address, sizeof world->address, "localhost:%u", listener_port(world->listener));
    connect_link(world, 5000);
    link_close(world->client.link, "changed my mind");
    assert_int_equal(world->client.closed, 0);
    RUN_UNTIL(world, world->client.closed);
    assert_string_equal(world->client.text, "changed my mind");
    assert_int_equal(world->client.ready, 0);
}

static void socket_files_stale_live_and_foreign(void **state)
{
    struct world *world = *state;
    struct listener *second;
    struct err err = ERR_INIT;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", world->path);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
    (void)close(fd);
    listen_on(world, world->path, 4); /* stale: replaced */
    assert_int_equal(listener_create(&world->loop, world->path, 0600, 4, &world->server_options, &callbacks,
                                     accept_link, world, &second, &err),
                     -EADDRINUSE);
    assert_non_null(strstr(err.text, "another process"));
    RUN_UNTIL(world, world->server.closed); /* the question whether somebody is there */
    exchange(world);
    listener_close(world->listener);
    world->listener = NULL;
    fd = open(world->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    (void)close(fd);
    err_clear(&err);
    assert_int_equal(listener_create(&world->loop, world->path, 0600, 4, &world->server_options, &callbacks,
                                     accept_link, world, &second, &err),
                     -EADDRINUSE);
    assert_int_equal(unlink(world->path), 0);
}

/* As on Debian: "NAME:0" if this host's name stands for loopback addresses only. */
static bool own_name_is_loopback(char *out, size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET}, *list, *info;
    char name[200] = "";
    bool all = true;

    (void)gethostname(name, sizeof name - 1);
    (void)snprintf(out, size, "%s:0", name);
    if (strcmp(name, "localhost") == 0 || getaddrinfo(name, NULL, &hints, &list) != 0)
        return false;
    for (info = list; info != NULL; info = info->ai_next)
        all = all && (ntohl(((struct sockaddr_in *)(void *)info->ai_addr)->sin_addr.s_addr) >> 24) == 127;
    freeaddrinfo(list);
    return all;
}

static void names_to_listen_on(void **state)
{
    struct world *world = *state;
    struct listener *none;
    char address[256];
    struct err err = ERR_INIT;

    assert_int_equal(listener_create(&world->loop, "no-such-host.invalid:0", 0, 4, &world->server_options, &callbacks,
                                     accept_link, world, &none, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, "cannot find the address of no-such-host.invalid:0"));
    err_clear(&err);
    assert_int_equal(listener_create(&world->loop, "192.0.2.1:0", 0, 4, &world->server_options, &callbacks, accept_link,
                                     world, &none, &err),
                     -EADDRNOTAVAIL);
    assert_non_null(strstr(err.text, "192.0.2.1:0: cannot listen there"));
    err_clear(&err);
    if (own_name_is_loopback(address, sizeof address)) {
        assert_int_equal(listener_create(&world->loop, address, 0, 4, &world->server_options, &callbacks, accept_link,
                                         world, &none, &err),
                         -EADDRNOTAVAIL);
        assert_non_null(strstr(err.text, "which no other host reaches"));
    }
    listen_on(world, "localhost:0", 4);
    (void)snprintf(world->address, sizeof world->address, "localhost:%u", listener_port(world->listener));
    exchange(world);
}

static void links_outlive_their_listener(void **state)
{
    struct world *world = *state;

    listen_on(world, world->path, 4);
    both_ready(world);
    listener_close(world->listener);
    world->listener = NULL;
    assert_int_equal(send_wait(world->client.link, 9), 0);
    RUN_UNTIL(world, world->server.messages == 1);
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

#define LINK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(talks_over_unix),
        LINK_TEST(talks_over_tcp),
        LINK_TEST(resolves_names),
        LINK_TEST(without_tls_there_is_only_the_loopback),
        LINK_TEST(another_major_version_is_refused),
        LINK_TEST(a_later_minor_speaks_ours),
        LINK_TEST(silence_ends_after_the_hello_timeout),
        LINK_TEST(garbage_is_refused),
        LINK_TEST(messages_out_of_place_are_refused),
        LINK_TEST(an_error_without_request_closes),
        LINK_TEST(frames_come_in_pieces),
        LINK_TEST(a_peer_that_does_not_read_is_cut_off),
        LINK_TEST(closing_gives_up_after_a_second),
        LINK_TEST(no_message_comes_after_close),
        LINK_TEST(close_in_on_ready_and_in_accept),
        LINK_TEST(too_many_links_are_told_so),
        LINK_TEST(a_flood_of_refused_links_is_cheap),
        LINK_TEST(an_owner_may_refuse),
        LINK_TEST(connecting_fails_with_a_reason),
        LINK_TEST(a_connection_that_hangs_ends_at_the_deadline),
        LINK_TEST(closing_while_connecting),
        LINK_TEST(socket_files_stale_live_and_foreign),
        LINK_TEST(names_to_listen_on),
        LINK_TEST(links_outlive_their_listener),
        LINK_TEST(a_bare_channel_needs_no_hello),
        LINK_TEST(raw_frames_pass_and_bad_messages_leave_the_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
