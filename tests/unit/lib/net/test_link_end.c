/* test_link_end.c - links that end, or do not come about: closing, peers that do not read, limits, listening and
 * dialling. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/net/link.h"
#include "lib/wire/channel.h"
#include "lib/net/address.h"
#include "tests/unit/lib/net/link_fixture.h"

static void a_peer_that_does_not_read_is_cut_off(void **state)
{
    struct world *world = *state;
    struct wire_message message = {.type = WIRE_done, .id = 1};
    char text[1025];
    int fd, result = 0;

    memset(text, 'x', 1024);
    text[1024] = '\0';
    message.u.done.text = text;
    listen_on(world, world->path, 4);
    fd = raw_connect(world);
    raw_send(fd, RAW_HELLO);
    RUN_UNTIL(world, world->server.ready);
    for (int i = 0; i < 100000 && result == 0; i++)
        result = link_send(world->server.link, &message);
    assert_int_equal(result, -ENOBUFS);
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
    assert_in_range(mono_ms(mono_now()) - begin, 900, 20000);
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
    assert_string_equal(world->client.text, "this user may not connect here, or has too many connections already; end "
                                            "some (esubmit -w), or try again later");
    assert_int_equal(world->client.ready, 0);
}

static int connect_error; /* 0: as it is */
int __real_uv_tcp_connect(uv_connect_t *request, uv_tcp_t *tcp, const struct sockaddr *address, uv_connect_cb on_end);
int __wrap_uv_tcp_connect(uv_connect_t *request, uv_tcp_t *tcp, const struct sockaddr *address, uv_connect_cb on_end);
int __wrap_uv_tcp_connect(uv_connect_t *request, uv_tcp_t *tcp, const struct sockaddr *address, uv_connect_cb on_end)
{
    return connect_error ? connect_error : __real_uv_tcp_connect(request, tcp, address, on_end);
}

static void connecting_fails_with_a_reason(void **state)
{
    /* what firewalls and routes answer, there, on the way and here */
    static const struct {
        int error;
        const char *says;
    } firewalls[] = {{UV_ECONNREFUSED, "or a firewall refuses it; is it the right port, and does elmer run?"},
                     {UV_EHOSTUNREACH, ": is that host on, and in this network, or does a firewall refuse it?"},
                     {UV_ENETUNREACH, ": is that host on, and in this network, or does a firewall refuse it?"},
                     {UV_EACCES, ": a firewall or a route of this host forbids it (nft list ruleset, ip route)"},
                     {UV_EPERM, ": a firewall or a route of this host forbids it (nft list ruleset, ip route)"}};
    struct world *world = *state;
    struct err err = ERR_INIT;
    struct link *link;
    int fd;

    (void)snprintf(world->address, sizeof(world->address), "%s/none", world->dir);
    connect_link(world, 5000);
    assert_int_equal(world->client.closed, 0);
    RUN_UNTIL(world, world->client.closed);
    assert_non_null(strstr(world->client.text, "none: no such file"));
    listen_on(world, "127.0.0.1:0", 4); /* to learn a port that nobody listens on */
    listener_close(world->listener);
    world->listener = NULL;
    connect_link(world, 5000);
    RUN_UNTIL(world, world->client.closed);
    assert_non_null(
        strstr(world->client.text, "connection refused: nothing listens there, or a firewall refuses it; "));
    for (size_t i = 0; i < sizeof(firewalls) / sizeof(*firewalls); i++) {
        connect_error = firewalls[i].error;
        connect_link(world, 5000);
        RUN_UNTIL(world, world->client.closed);
        assert_non_null(strstr(world->client.text, firewalls[i].says));
    }
    connect_error = 0;
    (void)snprintf(world->address, sizeof(world->address), "no-such-host.invalid:1");
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
    socklen_t size = sizeof(in);
    int64_t begin = mono_ms(mono_now());
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fds[4];

    assert_int_equal(bind(server, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(server, 0), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &size), 0);
    for (size_t i = 0; i < 4; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fds[i], (struct sockaddr *)&in, sizeof(in));
    }
    (void)snprintf(world->address, sizeof(world->address), "127.0.0.1:%d", ntohs(in.sin_port));
    use_tls(world);
    connect_link(world, 300);
    RUN_UNTIL(world, world->client.closed);
    assert_in_range(mono_ms(mono_now()) - begin, 290, 20000);
    assert_non_null(strstr(world->client.text, "no answer in time"));
    for (size_t i = 0; i < 4; i++)
        (void)close(fds[i]);
    (void)close(server);
}

static void closing_while_connecting(void **state)
{
    struct world *world = *state;

    listen_on(world, "127.0.0.1:0", 4);
    (void)snprintf(world->address, sizeof(world->address), "localhost:%u", listener_port(world->listener));
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

    (void)snprintf(un.sun_path, sizeof(un.sun_path), "%s", world->path);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
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

    (void)gethostname(name, sizeof(name) - 1);
    (void)snprintf(out, size, "%s:0", name);
    if (strcmp(name, "localhost") == 0 || getaddrinfo(name, NULL, &hints, &list) != 0)
        return false;
    for (info = list; info; info = info->ai_next)
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

    use_tls(world);
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
    if (own_name_is_loopback(address, sizeof(address))) {
        assert_int_equal(listener_create(&world->loop, address, 0, 4, &world->server_options, &callbacks, accept_link,
                                         world, &none, &err),
                         -EADDRNOTAVAIL);
        assert_non_null(strstr(err.text, "which no other host reaches"));
    }
    err_clear(&err);
    listen_on(world, "localhost:0", 4);
    (void)snprintf(address, sizeof(address), "localhost:%u", listener_port(world->listener));
    assert_int_equal(listener_create(&world->loop, address, 0, 4, &world->server_options, &callbacks, accept_link,
                                     world, &none, &err),
                     -EADDRINUSE);
    assert_non_null(strstr(err.text, "cannot listen there: Address already in use"));
    (void)snprintf(world->address, sizeof(world->address), "localhost:%u", listener_port(world->listener));
    exchange(world);
}

/* What a name stands for is numbers, and whether they are of this host can be asked. */
static void addresses_that_are_none(void **state)
{
    static const char *const ports[] = {"ws1", ":7110", "ws1:", "ws1:x", "ws1:65536", "http://ws1"},
                             *const colons[] = {"fd00::1", "fd00::1:7110", "http://ws1:7110", "[fd00::1:7110"};
    struct address address;
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
        assert_int_equal(address_parse(ports[i], &address, &err), -EINVAL);
        assert_non_null(strstr(err.text, "\" is not an address: write HOST:PORT (such as ws1:7110), or /path"));
        err_clear(&err);
    }
    for (size_t i = 0; i < sizeof(colons) / sizeof(*colons); i++) {
        assert_int_equal(address_parse(colons[i], &address, &err), -EINVAL);
        assert_non_null(strstr(err.text, "\" is not an address: write HOST:PORT (such as ws1:7110), and an IPv6 "
                                         "address in brackets, such as [fd00::1]:7110"));
        err_clear(&err);
    }
    assert_int_equal(address_parse("[fd00::1]:7110", &address, &err), 0);
    assert_string_equal(address.host, "fd00::1");
}

static void addresses_of_names(void **state)
{
    char text[ADDRESS_TEXT];
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(address_resolve("localhost:7110", "", text, &err), 0);
    assert_true(strcmp(text, "127.0.0.1:7110") == 0 || strcmp(text, "[::1]:7110") == 0);
    assert_int_equal(address_resolve("localhost:7110", "127.0.0.1:7110", text, &err),
                     0); /* where it also stands for ::1 */
    assert_string_equal(text, "127.0.0.1:7110");
    assert_int_equal(address_resolve("localhost:7110", "192.0.2.1:7110", text, &err), 0); /* none of its own */
    assert_string_not_equal(text, "192.0.2.1:7110");
    assert_int_equal(address_resolve("192.0.2.1:7110", "", text, &err), 0);
    assert_string_equal(text, "192.0.2.1:7110");
    assert_int_equal(address_resolve("*:7110", "", text, &err), 0);
    assert_string_equal(text, "*:7110");
    assert_int_equal(address_resolve("no-such-host.invalid:7110", "", text, &err), -EINVAL);
    assert_non_null(strstr(err.text, "cannot find the address of no-such-host.invalid:7110"));
    err_clear(&err);
    assert_int_equal(address_resolve("nothing", "", text, &err), -EINVAL);
    assert_true(address_is_here("127.0.0.1:7110"));
    assert_true(address_is_here("*:7110"));
    assert_false(address_is_here("192.0.2.1:7110"));
    assert_false(address_is_here("[2001:db8::1]:7110"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        LINK_TEST(addresses_of_names),
        LINK_TEST(addresses_that_are_none),
        LINK_TEST(links_outlive_their_listener),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
