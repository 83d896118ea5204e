/* test_faults.c - the same life of two links again and again, in which each time another call fails: memory and libuv.
 * Whatever fails, each owner hears on_close exactly once, the loop lets go of everything (a sanitizer sees leaks), and
 * the listener serves the next one. */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/lib/wire/wire_fill.h"

/* The linker sends these calls of our objects here (--wrap); those inside libuv and jansson stay. */
static unsigned countdown; /* the call that fails; 0: none */
static bool failed;
static size_t largest; /* so much may be asked for at a time; 0: anything */

static bool fails(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    failed = true;
    return true;
}

#define WRAP(type, name, failure, parameters, arguments)                                                               \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        return fails() ? failure : __real_##name arguments;                                                            \
    }

WRAP(void *, malloc, NULL, (size_t size), (size))
WRAP(void *, calloc, NULL, (size_t n, size_t size), (n, size))
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return fails() || (largest > 0 && size > largest) ? NULL : __real_realloc(old, size);
}
WRAP(int, uv_write, UV_ENOMEM, (uv_write_t * r, uv_stream_t *s, const uv_buf_t *b, unsigned n, uv_write_cb cb),
     (r, s, b, n, cb))
WRAP(int, uv_read_start, UV_EINVAL, (uv_stream_t * s, uv_alloc_cb a, uv_read_cb r), (s, a, r))
WRAP(int, uv_shutdown, UV_ENOTCONN, (uv_shutdown_t * r, uv_stream_t *s, uv_shutdown_cb cb), (r, s, cb))
WRAP(int, uv_tcp_connect, UV_ENETUNREACH, (uv_connect_t * r, uv_tcp_t *t, const struct sockaddr *a, uv_connect_cb cb),
     (r, t, a, cb))
WRAP(int, uv_listen, UV_EADDRINUSE, (uv_stream_t * s, int n, uv_connection_cb cb), (s, n, cb))
WRAP(int, uv_tcp_open, UV_EINVAL, (uv_tcp_t * t, uv_os_sock_t fd), (t, fd))
WRAP(int, uv_pipe_open, UV_EINVAL, (uv_pipe_t * p, uv_file fd), (p, fd))
WRAP(int, uv_getaddrinfo, UV_EAI_MEMORY,
     (uv_loop_t * l, uv_getaddrinfo_t *r, uv_getaddrinfo_cb cb, const char *n, const char *s, const struct addrinfo *h),
     (l, r, cb, n, s, h))

struct end {
    bool given; /* it has an owner who waits for on_close */
    unsigned messages, closed;
    struct link *link;
};

/* A link that its client has given up may be accepted after the next one has been dialled. */
enum { SERVERS = 4 };

struct world {
    uv_loop_t loop;
    struct end servers[SERVERS], client;
    unsigned accepted;
};

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct end *end = data;
    struct wire_message pong = {.type = WIRE_pong, .id = message->id};

    end->messages++;
    if (message->type == WIRE_ping)
        (void)link_send(link, &pong);
}

static void on_ready(struct link *link, void *data)
{
    struct wire_message ping = {.type = WIRE_ping, .id = 1};

    (void)data;
    (void)link_send(link, &ping);
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct end *end = data;

    (void)link;
    assert_non_null(text);
    assert_true(end->given);
    end->closed++;
    end->link = NULL;
}

static void *on_accept(struct link *link, void *data)
{
    struct world *world = data;

    assert_true(world->accepted < SERVERS);
    world->servers[world->accepted] = (struct end){.given = true, .link = link};
    return &world->servers[world->accepted++];
}

static void tick(uv_timer_t *timer)
{
    (void)timer;
}

static void turn(uv_loop_t *loop)
{
    uv_timer_t timer;

    (void)uv_timer_init(loop, &timer);
    (void)uv_timer_start(&timer, tick, 2, 0);
    (void)uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(loop, UV_RUN_NOWAIT);
}

/* A handshake takes more than 300 ms under valgrind. What fails in silence is noticed after as much, for a few of the
 * calls. */
enum { HELLO_MS = 5000, CONNECT_MS = 5000, END_MS = 30000 };

static const struct link_callbacks callbacks = {.on_ready = on_ready, .on_message = on_message, .on_close = on_close};
static struct link_options server_options = {
    .program = "test", .peer = WIRE_FROM_CLIENT, .out_max = 65536, .hello_timeout_ms = HELLO_MS};
static struct link_options client_options = {
    .program = "test", .peer = WIRE_FROM_CLIENT, .out_max = 65536, .hello_timeout_ms = HELLO_MS};

static bool wait_done(const struct world *world)
{
    for (unsigned i = 0; i < world->accepted; i++)
        if (!world->servers[i].closed && world->servers[i].messages < 2)
            return false;
    return world->client.closed || world->client.messages == 2;
}

static bool all_closed(const struct world *world)
{
    for (unsigned i = 0; i < world->accepted; i++)
        if (!world->servers[i].closed)
            return false;
    return !world->client.link;
}

static void connect_and_talk(struct world *world, const char *address)
{
    int64_t deadline = mono_ms(mono_now()) + END_MS;

    world->client = (struct end){.given = true};
    world->accepted = 0;
    if (link_connect(&world->loop, address, CONNECT_MS, &client_options, &callbacks, &world->client,
                     &world->client.link, NULL) != 0) {
        world->client = (struct end){0};
        return;
    }
    while (!wait_done(world) && mono_ms(mono_now()) < deadline)
        turn(&world->loop);
    assert_true(wait_done(world));
    if (world->client.link)
        link_close(world->client.link, "end");
    while (!all_closed(world) && mono_ms(mono_now()) < deadline)
        turn(&world->loop);
    assert_true(all_closed(world));
    assert_int_equal(world->client.closed, world->client.given);
    for (unsigned i = 0; i < world->accepted; i++)
        assert_int_equal(world->servers[i].closed, 1);
}

/* Returns whether the n-th call was reached. */
static bool life(const char *listen_on, unsigned n)
{
    struct world world = {0};
    struct listener *listener = NULL;
    char address[64];

    assert_int_equal(uv_loop_init(&world.loop), 0);
    failed = false;
    countdown = n;
    if (listener_create(&world.loop, listen_on, 0600, 4, &server_options, &callbacks, on_accept, &world, &listener,
                        NULL) == 0) {
        if (listen_on[0] == '/')
            (void)snprintf(address, sizeof(address), "%s", listen_on);
        else
            (void)snprintf(address, sizeof(address), "127.0.0.1:%u", listener_port(listener));
        connect_and_talk(&world, address);
        countdown = 0;
        connect_and_talk(&world, address); /* whatever has failed, it works again */
        assert_int_equal(world.client.messages, 2);
        listener_close(listener);
    }
    countdown = 0;
    while (uv_loop_alive(&world.loop))
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    assert_int_equal(uv_loop_close(&world.loop), 0);
    return failed;
}

/* TCP has TLS. */
static void make_tls(const char *dir)
{
    struct certs_ca ca;
    char server[64], client[64];

    (void)snprintf(server, sizeof(server), "%s/server", dir);
    (void)snprintf(client, sizeof(client), "%s/client", dir);
    certs_make_ca(&ca, "CA");
    certs_issue(&ca, &(struct certs_wish){.names = "IP:127.0.0.1", .use = "serverAuth"}, server);
    certs_issue(&ca, &(struct certs_wish){.names = "DNS:ws1", .use = "clientAuth", .serial = 2}, client);
    certs_free_ca(&ca);
    assert_int_equal(tls_context_server(server, NULL, NULL, &server_options.tls, NULL), 0);
    assert_int_equal(tls_context_client(client, &client_options.tls, NULL), 0);
    certs_remove(server);
    certs_remove(client);
}

static void forget_tls(void)
{
    tls_context_unref(server_options.tls);
    tls_context_unref(client_options.tls);
    server_options.tls = client_options.tls = NULL;
}

static void every_failing_call_is_survived(void **state)
{
    char path[] = "/tmp/elmer-faults-XXXXXX/sock";
    unsigned n;

    (void)state;
    path[strlen(path) - 5] = '\0';
    assert_non_null(mkdtemp(path));
    make_tls(path);
    path[strlen(path)] = '/';
    for (n = 1; life("127.0.0.1:0", n); n++)
        assert_true(n < 1000);
    assert_in_range(n, 20, 999);
    forget_tls();
    for (n = 1; life(path, n); n++) {
        assert_true(n < 1000);
        (void)unlink(path); /* a listener that could not be made leaves its file; the next one would replace it */
    }
    assert_in_range(n, 15, 999);
    path[strlen(path) - 5] = '\0';
    assert_int_equal(rmdir(path), 0);
}

/* ---- a large request and no memory for it ---- */

struct talk {
    struct link *near, *far;
    unsigned queries, refusals, relayed, closed;
    uint64_t refused, client;
    char text[300];
};

static void hear(struct link *link, struct wire_message *message, void *data)
{
    struct talk *talk = data;
    struct wire_message inner;

    (void)link;
    talk->queries += message->type == WIRE_query || message->type == WIRE_relay;
    if (message->type == WIRE_relayed) {
        talk->relayed++;
        talk->client = message->u.relayed.client;
        assert_int_equal(
            wire_decode(message->u.relayed.frame, strlen(message->u.relayed.frame), WIRE_MINOR, &inner, NULL), 0);
        hear(link, &inner, data);
        wire_message_fini(&inner);
    } else if (message->type == WIRE_error) {
        talk->refusals++;
        talk->refused = message->id;
        assert_string_equal(message->u.error.code, WIRE_CODE_UNAVAILABLE);
        (void)snprintf(talk->text, sizeof(talk->text), "%s", message->u.error.text);
    }
}

static void gone(struct link *link, const char *text, void *data)
{
    struct talk *talk = data;

    (void)text;
    talk->closed++;
    if (link == talk->near)
        talk->near = NULL;
    else
        talk->far = NULL;
}

static void open_talk(uv_loop_t *loop, struct talk *talk, unsigned peer)
{
    static const struct link_callbacks heard = {.on_message = hear, .on_close = gone};
    struct link_options near = {.program = "near",
                                .peer = WIRE_FROM_ELMER,
                                .out_max = 4 << 20,
                                .hello_timeout_ms = 3000},
                        far = {.program = "elmer", .peer = peer, .out_max = 4 << 20, .hello_timeout_ms = 3000};
    struct wire_message query = {.type = WIRE_query, .id = 1},
                        relay = {.type = WIRE_relay, .u.relay = {.client = 1, .user = "alice", .frame = "{}"}};
    int fds[2];

    *talk = (struct talk){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(link_open_fd(loop, fds[0], &near, &heard, talk, &talk->near, NULL), 0);
    assert_int_equal(link_open_fd(loop, fds[1], &far, &heard, talk, &talk->far, NULL), 0);
    while (link_send(talk->near, peer == WIRE_FROM_HOST ? &relay : &query) == -ENOTCONN)
        turn(loop);
}

static void close_talk(uv_loop_t *loop, struct talk *talk)
{
    link_close(talk->near, "end");
    while (talk->near || talk->far)
        turn(loop);
}

/* It is answered with its number, what came before and behind it is heard, and the link lives on; largest: what the far
 * side may allocate at a time. */
static void no_memory_for(unsigned peer, size_t most)
{
    static char big[300000];
    const char *words[] = {big};
    struct wire_message submit = {.type = WIRE_submit,
                                  .id = 7,
                                  .u.submit = {.token = "t", .dir = "/", .command = {words, 1}}},
                        query = {.type = WIRE_query, .id = 8},
                        relay = {.type = WIRE_relay, .u.relay = {.client = 12, .user = ""}};
    struct wire_message *large = &submit;
    int64_t deadline = mono_ms(mono_now()) + 3000;
    struct talk talk;
    uv_loop_t loop;
    char *frame = NULL;
    size_t size;

    memset(big, 'x', sizeof(big) - 1);
    assert_int_equal(uv_loop_init(&loop), 0);
    open_talk(&loop, &talk, peer);
    if (peer == WIRE_FROM_HOST) {
        assert_int_equal(wire_encode(&submit, WIRE_MINOR, &frame, &size, NULL), 0);
        relay.u.relay.frame = frame;
        large = &relay;
    }
    assert_int_equal(link_send(talk.near, large), 0);
    if (peer == WIRE_FROM_HOST)
        relay.u.relay.frame = "{}";
    assert_int_equal(link_send(talk.near, peer == WIRE_FROM_HOST ? &relay : &query), 0);
    largest = most;
    while (talk.queries < 2 && mono_ms(mono_now()) < deadline)
        turn(&loop);
    largest = 0;
    while (talk.refusals < 1 && mono_ms(mono_now()) < deadline)
        turn(&loop);
    assert_int_equal(talk.queries, 2);
    assert_int_equal(talk.refusals, 1);
    assert_int_equal(talk.refused, 7);
    assert_int_equal(talk.relayed, peer == WIRE_FROM_HOST);
    assert_int_equal(talk.client, peer == WIRE_FROM_HOST ? 12 : 0);
    assert_string_equal(talk.text, "elmer has no memory for this request (submit) now; try again later");
    assert_int_equal(talk.closed, 0);
    close_talk(&loop, &talk);
    assert_int_equal(uv_loop_close(&loop), 0);
    free(frame);
}

static void a_large_request_without_memory(void **state)
{
    (void)state;
    for (size_t most = 1024; most < 300000; most *= 2) {
        no_memory_for(WIRE_FROM_CLIENT, most);
        no_memory_for(WIRE_FROM_HOST, most);
    }
}

static void decoding_and_encoding_without_memory(void **state)
{
    (void)state;
    for (enum wire_type type = 0; type < WIRE_TYPE_COUNT; type++) {
        struct wire_message in, out;
        struct err err = ERR_INIT;
        char *json;
        size_t size;
        unsigned n;
        int result;

        wire_fill(&in, type, 5u * type);
        for (n = 1; countdown = n, (result = wire_encode(&in, WIRE_MINOR, &json, &size, NULL)) != 0; n++)
            assert_int_equal(result, -ENOMEM);
        assert_true(n > 1);
        for (n = 1; countdown = n, (result = wire_decode(json, size, WIRE_MINOR, &out, &err)) != 0; n++) {
            if (result != -ENOMEM)
                fail_msg("%s: %d: %s", wire_type_name(type), result, err.text);
            err_clear(&err);
            assert_null(out.memory);
        }
        countdown = 0;
        wire_assert_same(&in, &out);
        wire_message_fini(&out);
        wire_fill_free(&in);
        free(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_is_survived),
        cmocka_unit_test(a_large_request_without_memory),
        cmocka_unit_test(decoding_and_encoding_without_memory),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
