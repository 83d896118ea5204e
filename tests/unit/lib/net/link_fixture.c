/* link_fixture.c - see link_fixture.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/net/link.h"
#include "lib/wire/channel.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/lib/net/link_fixture.h"
#include "tests/unit/scratch.h"

void on_ready(struct link *link, void *data)
{
    struct end *end = data;

    end->ready++;
    assert_true(link_ready(link));
    assert_int_equal(end->closed, 0);
    if (end->close_on_ready)
        link_close(link, "closed in on_ready");
}

void on_message(struct link *link, struct wire_message *message, void *data)
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

void on_close(struct link *link, const char *text, void *data)
{
    struct end *end = data;

    assert_ptr_equal(link, end->link);
    end->closed++;
    assert_int_equal(end->closed, 1);
    (void)snprintf(end->text, sizeof(end->text), "%s", text);
    end->link = NULL;
}

void *accept_link(struct link *link, void *data)
{
    struct world *world = data;

    world->accepted++;
    if (world->refuse)
        return NULL;
    if (world->server.link)
        return NULL;
    world->server = (struct end){.link = link,
                                 .close_on_message = world->server.close_on_message,
                                 .close_on_ready = world->server.close_on_ready};
    if (world->close_in_accept)
        link_close(link, "closed in accept");
    return &world->server;
}

int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    (void)snprintf(world->dir, sizeof(world->dir), "/tmp/elmer-link-XXXXXX");
    assert_non_null(scratch_dir(world->dir));
    (void)snprintf(world->path, sizeof(world->path), "%s/sock", world->dir);
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

void turn(struct world *world)
{
    uv_timer_t timer;

    (void)uv_timer_init(&world->loop, &timer);
    (void)uv_timer_start(&timer, tick, 2, 0);
    (void)uv_run(&world->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(&world->loop, UV_RUN_NOWAIT);
}

int teardown(void **state)
{
    struct world *world = *state;

    if (world->client.link)
        link_close(world->client.link, "end of test");
    if (world->server.link)
        link_close(world->server.link, "end of test");
    listener_close(world->listener);
    RUN_UNTIL(world, !uv_loop_alive(&world->loop));
    assert_int_equal(uv_loop_close(&world->loop), 0);
    tls_context_unref(world->server_options.tls);
    tls_context_unref(world->client_options.tls);
    assert_int_equal(access(world->path, F_OK), -1);
    assert_int_equal(rmdir(world->dir), 0);
    free(world);
    return 0;
}

void use_tls(struct world *world)
{
    struct err err = ERR_INIT;
    struct certs_ca ca;
    char dirs[2][sizeof(world->dir) + 8];

    if (world->client_options.tls)
        return;
    (void)snprintf(dirs[0], sizeof(dirs[0]), "%s/server", world->dir);
    (void)snprintf(dirs[1], sizeof(dirs[1]), "%s/client", world->dir);
    certs_make_ca(&ca, "CA");
    certs_issue(&ca, &(struct certs_wish){.names = "DNS:localhost,IP:127.0.0.1", .use = "serverAuth"}, dirs[0]);
    certs_issue(&ca, &(struct certs_wish){.names = "DNS:ws1", .use = "clientAuth", .serial = 2}, dirs[1]);
    certs_free_ca(&ca);
    assert_int_equal(tls_context_server(dirs[0], NULL, NULL, &world->server_options.tls, &err), 0);
    assert_int_equal(tls_context_client(dirs[1], &world->client_options.tls, &err), 0);
    certs_remove(dirs[0]);
    certs_remove(dirs[1]);
}

void listen_on(struct world *world, const char *address, unsigned max_links)
{
    struct err err = ERR_INIT;

    if (address[0] != '/')
        use_tls(world);
    assert_int_equal(listener_create(&world->loop, address, 0600, max_links, &world->server_options, &callbacks,
                                     accept_link, world, &world->listener, &err),
                     0);
    if (address[0] == '/')
        (void)snprintf(world->address, sizeof(world->address), "%s", address);
    else
        (void)snprintf(world->address, sizeof(world->address), "127.0.0.1:%u", listener_port(world->listener));
}

void connect_link(struct world *world, unsigned timeout_ms)
{
    struct err err = ERR_INIT;

    world->client = (struct end){.close_on_ready = world->client.close_on_ready};
    assert_int_equal(link_connect(&world->loop, world->address, timeout_ms, &world->client_options, &callbacks,
                                  &world->client, &world->client.link, &err),
                     0);
}

void both_ready(struct world *world)
{
    connect_link(world, 5000);
    RUN_UNTIL(world, world->client.ready && world->server.ready);
}

int send_wait(struct link *link, uint64_t id)
{
    struct wire_message message = {.type = WIRE_wait, .id = id, .u.wait = {.job = 7}};

    return link_send(link, &message);
}

int raw_connect(struct world *world)
{
    int fd;

    if (world->address[0] == '/') {
        struct sockaddr_un un = {.sun_family = AF_UNIX};

        (void)snprintf(un.sun_path, sizeof(un.sun_path), "%s", world->address);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    } else {
        struct sockaddr_in in = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons((uint16_t)listener_port(world->listener))};

        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    }
    return fd;
}

void raw_send(int fd, const char *json)
{
    uint8_t header[WIRE_FRAME_HEADER];

    wire_frame_header(header, strlen(json));
    assert_int_equal(send(fd, header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
    assert_int_equal(send(fd, json, strlen(json), MSG_NOSIGNAL), (ssize_t)strlen(json));
}

void raw_expect_error(struct world *world, int fd, const char *code)
{
    int64_t deadline = mono_ms(mono_now()) + DEADLINE_MS;
    struct frame_reader reader;
    struct wire_message last = {.type = WIRE_TYPE_COUNT};
    const char *json;
    size_t size;

    frame_reader_init(&reader, WIRE_MAX_FRAME);
    for (;;) {
        uint8_t bytes[4096];
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

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

void exchange(struct world *world)
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
