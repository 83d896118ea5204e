/* test_handshakes.c - how many handshakes may begin: of one address, of many, and of programs of this host; and a
 * listener that is asked for more. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/handshakes.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/scratch.h"

static struct handshakes handshakes;

static int setup(void **state)
{
    (void)state;
    handshakes = (struct handshakes){.salt = 7, .per_second = HANDSHAKES_PER_SECOND};
    return 0;
}

/* Of so many that ask. */
static unsigned begun(const char *address, unsigned count, int64_t now_ms)
{
    unsigned begun = 0;

    for (unsigned i = 0; i < count; i++)
        begun += handshakes_may_begin(&handshakes, address, now_ms);
    return begun;
}

/* As a flood of 12,000 a second does it: what it does not get it does not owe. */
static void one_address(void **state)
{
    (void)state;
    assert_int_equal(begun("10.0.0.1", 12000, 1000), HANDSHAKES_BURST_OF_ADDRESS);
    for (int64_t ms = 1000; ms < 3000; ms += 10)
        assert_in_range(begun("10.0.0.1", 120, ms + 10), 0, 1);
    assert_int_equal(begun("10.0.0.1", 12000, 4000), HANDSHAKES_OF_ADDRESS);
    assert_int_equal(begun("10.0.0.2", 10, 4000), 10);
    assert_int_equal(begun("10.0.0.1", 12000, 100000), HANDSHAKES_BURST_OF_ADDRESS);
}

static void all_addresses(void **state)
{
    char address[32];
    unsigned count = 0;

    (void)state;
    for (unsigned i = 0; i < 12000; i++) {
        (void)snprintf(address, sizeof(address), "10.0.%u.%u", i / 250, i % 250);
        count += begun(address, 1, 1000);
    }
    assert_int_equal(count, HANDSHAKES_BURST);
    assert_int_equal(begun("10.9.9.9", 1, 1000), 0);
    assert_int_equal(begun("10.9.9.9", 10, 1010), 10); /* what it was refused in vain is not counted */
}

/* A thousand hosts that a program of this host plays have one address. */
static void loopback(void **state)
{
    (void)state;
    assert_int_equal(begun("127.0.0.1", 12000, 1000), HANDSHAKES_BURST);
    assert_int_equal(begun("::1", 12000, 1100), HANDSHAKES_PER_SECOND / 10);
    assert_int_equal(begun("::ffff:127.0.0.9", 12000, 1200), HANDSHAKES_PER_SECOND / 10);
}

/* ---- a listener ---- */

enum { DEADLINE_MS = 60000, FLOOD = 30, RATE = 20 };

static void *on_accept(struct link *link, void *data)
{
    (void)link;
    return data;
}

static void on_close(struct link *link, const char *text, void *data)
{
    bool *closed = data;

    (void)link;
    (void)text;
    *closed = true;
}

static void tick(uv_timer_t *timer)
{
    (void)timer;
}

#define RUN_UNTIL(loop, condition)                                                                                     \
    do {                                                                                                               \
        int64_t end_ = mono_ms(mono_now()) + DEADLINE_MS;                                                              \
        while (!(condition)) {                                                                                         \
            assert_true(mono_ms(mono_now()) < end_);                                                                   \
            (void)uv_run(loop, UV_RUN_ONCE);                                                                           \
        }                                                                                                              \
    } while (0)

static int connect_from(uint32_t from, unsigned port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons((uint16_t)port);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    return fd;
}

/* What a client says first. */
static size_t record_hello(uv_loop_t *loop, const struct link_options *options, uint8_t *bytes, size_t size)
{
    static const struct link_callbacks callbacks = {.on_close = on_close};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(in);
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = -1;
    struct err err = ERR_INIT;
    bool closed = false;
    struct link *link;
    char address[64];
    ssize_t n = -1;

    assert_int_equal(bind(listening, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(listening, 4), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&in, &length), 0);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(in.sin_port));
    assert_int_equal(link_connect(loop, address, DEADLINE_MS, options, &callbacks, &closed, &link, &err), 0);
    assert_int_equal(fcntl(listening, F_SETFL, O_NONBLOCK), 0);
    RUN_UNTIL(loop, fd >= 0 || (fd = accept(listening, NULL, NULL)) >= 0);
    RUN_UNTIL(loop, (n = recv(fd, bytes, size, MSG_DONTWAIT)) > 5);
    (void)close(fd);
    (void)close(listening);
    RUN_UNTIL(loop, closed);
    return (size_t)n;
}

/* A flood of first messages: those beyond the rate are answered, too, when it is their turn. */
static void a_flood_waits_its_turn(void **state)
{
    static const struct link_callbacks callbacks = {.on_close = on_close};
    struct link_options server = {.program = "server", .peer = WIRE_FROM_HOST, .out_max = 1 << 20},
                        client = {.program = "client", .peer = WIRE_FROM_ELMER, .out_max = 1 << 20};
    char dir[64] = "/tmp/elmer-handshakes-XXXXXX", server_dir[96], client_dir[96];
    struct listener *listener;
    struct err err = ERR_INIT;
    struct certs_ca ca;
    uint8_t hello[4096];
    uv_loop_t loop;
    uv_timer_t timer;
    int fds[FLOOD];
    bool closed;

    (void)state;
    assert_non_null(scratch_dir(dir));
    (void)snprintf(server_dir, sizeof(server_dir), "%s/server", dir);
    (void)snprintf(client_dir, sizeof(client_dir), "%s/client", dir);
    certs_make_ca(&ca, "CA");
    certs_issue(&ca, &(struct certs_wish){.names = "DNS:ws1,IP:127.0.0.1", .use = "serverAuth"}, server_dir);
    certs_issue(&ca, &(struct certs_wish){.names = "DNS:ws2", .use = "clientAuth", .serial = 77}, client_dir);
    assert_int_equal(tls_context_server(server_dir, NULL, NULL, &server.tls, &err), 0);
    assert_int_equal(tls_context_client(client_dir, &client.tls, &err), 0);
    server.handshakes = RATE;
    server.hello_timeout_ms = client.hello_timeout_ms = DEADLINE_MS;
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)uv_timer_init(&loop, &timer);
    (void)uv_timer_start(&timer, tick, 2, 2);
    size_t size = record_hello(&loop, &client, hello, sizeof(hello));
    assert_int_equal(
        listener_create(&loop, "127.0.0.1:0", 0, 4, &server, &callbacks, on_accept, &closed, &listener, &err), 0);
    int64_t begin_ms = mono_ms(mono_now());
    for (uint32_t i = 0; i < FLOOD; i++) {
        fds[i] = connect_from(INADDR_LOOPBACK + 1 + i, listener_port(listener));
        assert_int_equal(send(fds[i], hello, size, MSG_NOSIGNAL), (ssize_t)size);
    }
    for (size_t i = 0; i < FLOOD; i++)
        RUN_UNTIL(&loop, recv(fds[i], hello, 1, MSG_DONTWAIT) == 1);
    int64_t took_ms = mono_ms(mono_now()) - begin_ms;
    assert_true(took_ms >= (FLOOD - RATE) * 1000 / RATE - 50);
    for (size_t i = 0; i < FLOOD; i++)
        (void)close(fds[i]);
    listener_close(listener);
    uv_close((uv_handle_t *)&timer, NULL);
    RUN_UNTIL(&loop, !uv_loop_alive(&loop));
    assert_int_equal(uv_loop_close(&loop), 0);
    tls_context_unref(server.tls);
    tls_context_unref(client.tls);
    certs_free_ca(&ca);
    certs_remove(server_dir);
    certs_remove(client_dir);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup(test, setup)
    const struct CMUnitTest tests[] = {T(one_address), T(all_addresses), T(loopback), T(a_flood_waits_its_turn)};
    log_open("test_handshakes", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
