/* test_link_tls.c - links with TLS over the loopback: through a relay that delays, cuts, records and repeats bytes, and
 * beside crowds that say nothing. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "lib/wire/channel.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/scratch.h"

enum { DEADLINE_MS = 60000, DAY_S = 24 * 3600, RECORD_MAX = 1 << 16, CROWD = 1000, STRANGERS = 1024, OF_ADDRESS = 64 };

struct end {
    struct link *link;
    unsigned ready, closed;
    size_t messages, bytes;
    bool refused;
    char text[512];
};

struct world {
    uv_loop_t loop;
    struct listener *listener;
    struct link_options server_options, client_options;
    struct end server, client;
    unsigned accepted;
    char accepted_name[64];
    struct certs_ca ca;
    char dir[64], server_dir[96], client_dir[96];
};

static void on_ready(struct link *link, void *data)
{
    struct end *end = data;

    assert_true(link_ready(link));
    end->ready++;
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct end *end = data;

    (void)link;
    end->messages++;
    if (message->type == WIRE_relay)
        end->bytes += strlen(message->u.relay.frame);
    if (message->type == WIRE_relayed)
        end->bytes += strlen(message->u.relayed.frame);
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct end *end = data;

    end->refused = link_was_refused(link);
    end->closed++;
    (void)snprintf(end->text, sizeof end->text, "%s", text);
    end->link = NULL;
}

static const struct link_callbacks callbacks = {.on_ready = on_ready, .on_message = on_message, .on_close = on_close};

static void *accept_link(struct link *link, void *data)
{
    struct world *w = data;

    w->accepted++;
    (void)snprintf(w->accepted_name, sizeof w->accepted_name, "%s",
                   link_peer_name(link) != NULL ? link_peer_name(link) : "-");
    if (w->server.link != NULL)
        return NULL;
    w->server = (struct end){.link = link};
    return &w->server;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct err err = ERR_INIT;

    assert_non_null(w);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    (void)snprintf(w->dir, sizeof w->dir, "/tmp/elmer-link-XXXXXX");
    assert_non_null(scratch_dir(w->dir));
    (void)snprintf(w->server_dir, sizeof w->server_dir, "%s/server", w->dir);
    (void)snprintf(w->client_dir, sizeof w->client_dir, "%s/client", w->dir);
    certs_make_ca(&w->ca, "CA");
    certs_issue(&w->ca, &(struct certs_wish){.names = "DNS:ws1,IP:127.0.0.1", .use = "serverAuth"}, w->server_dir);
    certs_issue(&w->ca, &(struct certs_wish){.names = "DNS:ws2", .use = "clientAuth", .serial = 77}, w->client_dir);
    w->server_options = (struct link_options){
        .program = "server", .peer = WIRE_FROM_HOST, .out_max = 64 << 20, .hello_timeout_ms = 15000};
    w->client_options = (struct link_options){
        .program = "client", .peer = WIRE_FROM_ELMER, .out_max = 64 << 20, .hello_timeout_ms = 15000};
    assert_int_equal(tls_context_server(w->server_dir, NULL, NULL, &w->server_options.tls, &err), 0);
    assert_int_equal(tls_context_client(w->client_dir, &w->client_options.tls, &err), 0);
    *state = w;
    return 0;
}

static void tick(uv_timer_t *timer)
{
    (void)timer;
}

static void turn(struct world *w)
{
    uv_timer_t timer;

    (void)uv_timer_init(&w->loop, &timer);
    (void)uv_timer_start(&timer, tick, 2, 0);
    (void)uv_run(&w->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
}

#define RUN_UNTIL(w, condition)                                                                                        \
    do {                                                                                                               \
        int64_t end_ = mono_ms(mono_now()) + DEADLINE_MS;                                                              \
        while (!(condition)) {                                                                                         \
            assert_true(mono_ms(mono_now()) < end_);                                                                   \
            turn(w);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int teardown(void **state)
{
    struct world *w = *state;

    if (w->client.link != NULL)
        link_close(w->client.link, "end of test");
    if (w->server.link != NULL)
        link_close(w->server.link, "end of test");
    listener_close(w->listener);
    RUN_UNTIL(w, !uv_loop_alive(&w->loop));
    assert_int_equal(uv_loop_close(&w->loop), 0);
    tls_context_unref(w->server_options.tls);
    tls_context_unref(w->client_options.tls);
    certs_free_ca(&w->ca);
    certs_remove(w->server_dir);
    certs_remove(w->client_dir);
    assert_int_equal(rmdir(w->dir), 0);
    free(w);
    return 0;
}

static void listen_here(struct world *w, unsigned max_links)
{
    struct err err = ERR_INIT;

    if (listener_create(&w->loop, "127.0.0.1:0", 0, max_links, &w->server_options, &callbacks, accept_link, w,
                        &w->listener, &err) != 0)
        fail_msg("%s", err.text);
}

static void dial(struct world *w, unsigned port)
{
    struct err err = ERR_INIT;
    char address[64];

    w->client = (struct end){.link = NULL};
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", port);
    assert_int_equal(
        link_connect(&w->loop, address, 5000, &w->client_options, &callbacks, &w->client, &w->client.link, &err), 0);
}

static void both_ready(struct world *w)
{
    dial(w, listener_port(w->listener));
    RUN_UNTIL(w, w->client.closed || (w->client.ready && w->server.ready));
    assert_string_equal(w->client.text, "");
}

static void assert_says(const char *text, const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("\"%s\" is not in: %s", words, text);
}

/* ---- raw sockets ---- */

static int raw_connect(struct world *w, uint32_t from)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons((uint16_t)listener_port(w->listener));
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* Between client and server. */
struct relay {
    int listening, client, server;
    size_t chunk;                      /* bytes per turn and direction */
    size_t up, up_max, down, down_max; /* to the server, to the client: so far, and at most */
    uint8_t record[RECORD_MAX];        /* of what went up */
    bool over;
};

static void relay_begin(struct relay *r)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *r = (struct relay){.client = -1, .server = -1, .chunk = 65536, .up_max = SIZE_MAX, .down_max = SIZE_MAX};
    r->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(r->listening, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(r->listening, 4), 0);
}

static unsigned relay_port(const struct relay *r)
{
    struct sockaddr_in in;
    socklen_t size = sizeof in;

    assert_int_equal(getsockname(r->listening, (struct sockaddr *)&in, &size), 0);
    return ntohs(in.sin_port);
}

static size_t relay_some(int from, int to, size_t most, uint8_t *bytes, bool *over)
{
    ssize_t n = most > 0 ? recv(from, bytes, most, MSG_DONTWAIT) : -1;

    if (n == 0)
        *over = true;
    if (n <= 0)
        return 0;
    return send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n ? (size_t)n : 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void relay_turn(struct world *w, struct relay *r)
{
    static uint8_t bytes[65536];

    turn(w);
    if (r->client < 0)
        r->client = accept4(r->listening, NULL, NULL, SOCK_CLOEXEC);
    if (r->client < 0 || r->over)
        return;
    if (r->server < 0) {
        r->server = raw_connect(w, INADDR_LOOPBACK);
        assert_int_equal(fcntl(r->server, F_SETFL, 0), 0);
    }
    size_t n = relay_some(r->client, r->server, least(r->chunk, r->up_max - r->up), bytes, &r->over);

    if (r->up + n <= RECORD_MAX)
        memcpy(r->record + r->up, bytes, n);
    r->up += n;
    r->down += relay_some(r->server, r->client, least(r->chunk, r->down_max - r->down), bytes, &r->over);
}

#define RELAY_UNTIL(w, r, condition)                                                                                   \
    do {                                                                                                               \
        int64_t end_ = mono_ms(mono_now()) + DEADLINE_MS;                                                              \
        while (!(condition)) {                                                                                         \
            assert_true(mono_ms(mono_now()) < end_);                                                                   \
            relay_turn(w, r);                                                                                          \
        }                                                                                                              \
    } while (0)

static void relay_end(struct relay *r)
{
    int fds[] = {r->listening, r->client, r->server};

    for (size_t i = 0; i < 3; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

/* ---- who is who ---- */

static void a_host_is_known_by_its_certificate(void **state)
{
    struct world *w = *state;

    listen_here(w, 4);
    both_ready(w);
    assert_string_equal(w->accepted_name, "ws2");
    assert_string_equal(link_peer_name(w->server.link), "ws2");
    assert_string_equal(link_peer_serial(w->server.link), "4D");
    assert_string_equal(link_peer_name(w->client.link), "ws1");
    assert_null(link_ca_pem(w->client.link));
    link_close(w->client.link, "bye");
    RUN_UNTIL(w, w->server.closed && w->client.closed);
    assert_string_equal(w->server.text, "the other side closed the connection");
    assert_string_equal(w->client.text, "bye");
    assert_false(w->server.refused);
}

static void a_refused_certificate_is_told_in_words(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;

    certs_issue(
        &w->ca,
        &(struct certs_wish){.names = "DNS:ws2", .use = "clientAuth", .begins_s = -20L * DAY_S, .ends_s = -10L * DAY_S},
        w->client_dir);
    assert_int_equal(tls_context_reload(w->client_options.tls, &err), 0);
    listen_here(w, 4);
    dial(w, listener_port(w->listener));
    RUN_UNTIL(w, w->client.closed);
    assert_says(w->client.text, "the certificate of ws2 (serial 01) ended at");
    assert_true(w->client.refused);
    assert_int_equal(w->client.ready, 0);
    assert_int_equal(w->accepted, 0);
}

static void a_server_of_another_ca_hears_nothing(void **state)
{
    struct world *w = *state;
    struct certs_ca other;
    struct err err = ERR_INIT;

    certs_make_ca(&other, "CA");
    certs_issue(&other, &(struct certs_wish){.names = "DNS:ws2", .use = "clientAuth"}, w->client_dir);
    assert_int_equal(tls_context_reload(w->client_options.tls, &err), 0);
    listen_here(w, 4);
    dial(w, listener_port(w->listener));
    RUN_UNTIL(w, w->client.closed);
    assert_says(w->client.text, "another cluster");
    assert_false(w->client.refused);
    assert_int_equal(w->accepted, 0);
    certs_free_ca(&other);
}

static void make_joiner(struct world *w)
{
    struct err err = ERR_INIT;
    uint8_t pin[TLS_PIN_BYTES];

    certs_pin(&w->ca, pin);
    tls_context_unref(w->client_options.tls);
    assert_int_equal(tls_context_joiner(pin, &w->client_options.tls, &err), 0);
}

static void a_joiner_may_only_join(void **state)
{
    struct world *w = *state;
    struct wire_message message = {.type = WIRE_relay_closed};
    char *big = malloc(20000);

    make_joiner(w);
    listen_here(w, 4);
    both_ready(w);
    assert_string_equal(w->accepted_name, "-");
    assert_null(link_peer_name(w->server.link));
    assert_null(link_peer_serial(w->server.link));
    assert_says(link_ca_pem(w->client.link), "BEGIN CERTIFICATE");
    assert_int_equal(link_send(w->client.link, &message), 0);
    RUN_UNTIL(w, w->client.closed && w->server.closed);
    assert_says(w->client.text, "relay_closed: not a message that you may send");
    assert_int_equal(w->server.messages, 0);
    /* Nor much of anything. */
    both_ready(w);
    assert_non_null(big);
    memset(big, ' ', 20000);
    assert_int_equal(link_send_json(w->client.link, big, 20000), 0);
    RUN_UNTIL(w, w->client.closed && w->server.closed);
    assert_says(w->client.text, "at most 16 KiB");
    free(big);
}

static void without_tls_there_is_a_word_for_both(void **state)
{
    struct world *w = *state;
    struct tls_context *tls = w->client_options.tls;

    listen_here(w, 4);
    w->client_options.tls = NULL;
    dial(w, listener_port(w->listener));
    RUN_UNTIL(w, w->client.closed);
    assert_says(w->client.text, "speaks without TLS");
    assert_true(w->client.refused);
    assert_int_equal(w->accepted, 0);
    w->client_options.tls = tls;
    listener_close(w->listener);
    tls = w->server_options.tls;
    w->server_options.tls = NULL;
    listen_here(w, 4);
    dial(w, listener_port(w->listener));
    RUN_UNTIL(w, w->client.closed && w->server.closed);
    assert_says(w->client.text, "transport = plain");
    assert_says(w->server.text, "not Elmer's protocol");
    w->server_options.tls = tls;
}

/* ---- the way there ---- */

static void byte_by_byte(void **state)
{
    struct world *w = *state;
    struct wire_message message = {.type = WIRE_ping, .id = 5};
    struct relay r;

    listen_here(w, 4);
    relay_begin(&r);
    r.chunk = 1;
    dial(w, relay_port(&r));
    RELAY_UNTIL(w, &r, w->client.ready && w->server.ready);
    assert_int_equal(link_send(w->client.link, &message), 0);
    RELAY_UNTIL(w, &r, w->server.messages == 1);
    relay_end(&r);
    RUN_UNTIL(w, w->client.closed && w->server.closed);
}

static void much_goes_both_ways(void **state)
{
    struct world *w = *state;
    struct wire_message up = {.type = WIRE_relay}, down = {.type = WIRE_relayed};
    size_t size = 500000, count = 16;
    char *text = malloc(size + 1);

    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';
    up.u.relay.frame = down.u.relayed.frame = text;
    up.u.relay.user = "";
    listen_here(w, 4);
    both_ready(w);
    for (size_t i = 0; i < count; i++) { /* nobody reads meanwhile */
        assert_int_equal(link_send(w->client.link, &up), 0);
        assert_int_equal(link_send(w->server.link, &down), 0);
    }
    assert_true(link_unsent(w->client.link) > 1 << 20);
    RUN_UNTIL(w, w->client.bytes == count * size && w->server.bytes == count * size);
    assert_int_equal(link_unsent(w->client.link), 0);
    free(text);
}

static void a_cut_connection_is_no_goodbye(void **state)
{
    struct world *w = *state;
    struct relay r;

    listen_here(w, 4);
    relay_begin(&r);
    dial(w, relay_port(&r));
    RELAY_UNTIL(w, &r, w->client.ready && w->server.ready);
    relay_end(&r);
    RUN_UNTIL(w, w->client.closed && w->server.closed);
    assert_says(w->server.text, "cut off");
    assert_says(w->client.text, "cut off");
}

static void a_cut_handshake_is_nobodys_link(void **state)
{
    struct world *w = *state;

    listen_here(w, 4);
    for (size_t cut = 1; cut < 600; cut += 97) {
        struct relay r;

        relay_begin(&r);
        r.up_max = cut;
        dial(w, relay_port(&r));
        RELAY_UNTIL(w, &r, r.up == cut);
        relay_end(&r);
        RUN_UNTIL(w, w->client.closed);
        assert_true(w->client.text[0] != '\0');
    }
    assert_int_equal(w->accepted, 0);
}

static void a_slow_handshake_ends(void **state)
{
    struct world *w = *state;
    struct relay r;
    char byte;

    w->server_options.hello_timeout_ms = 100;
    listen_here(w, 4);
    relay_begin(&r);
    r.chunk = 1;
    r.up_max = 100; /* a part of its first message, and then nothing */
    r.down_max = 0; /* as a peer that does not read */
    dial(w, relay_port(&r));
    RELAY_UNTIL(w, &r, r.server >= 0 && recv(r.server, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0);
    assert_int_equal(w->accepted, 0);
    relay_end(&r);
    RUN_UNTIL(w, w->client.closed);
}

static void a_peer_that_stops_reading_in_the_handshake(void **state)
{
    struct world *w = *state;
    struct relay r;

    w->server_options.hello_timeout_ms = 300;
    listen_here(w, 4);
    relay_begin(&r);
    r.down_max = 100; /* a part of the server's flight */
    dial(w, relay_port(&r));
    RELAY_UNTIL(w, &r, r.down == 100);
    r.down_max = SIZE_MAX;
    relay_end(&r);
    RUN_UNTIL(w, w->client.closed);
    assert_int_equal(w->accepted, 0);
    both_ready(w); /* and everybody else is served */
}

static void a_recorded_session_opens_nothing(void **state)
{
    struct world *w = *state;
    struct relay r;
    char bytes[4096];
    ssize_t n;
    int fd;

    listen_here(w, 4);
    relay_begin(&r);
    dial(w, relay_port(&r));
    RELAY_UNTIL(w, &r, w->client.ready && w->server.ready);
    relay_end(&r);
    RUN_UNTIL(w, w->client.closed && w->server.closed);
    assert_int_equal(w->accepted, 1);
    fd = raw_connect(w, INADDR_LOOPBACK);
    assert_int_equal(send(fd, r.record, r.up, MSG_NOSIGNAL), (ssize_t)r.up);
    RUN_UNTIL(w, (n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) == 0 || (n < 0 && errno == ECONNRESET));
    assert_int_equal(w->accepted, 1);
    (void)close(fd);
}

/* ---- crowds ---- */

static size_t count_open(const int *fds, size_t count)
{
    size_t open = 0;
    char byte;

    for (size_t i = 0; i < count; i++)
        open += recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    return open;
}

static void crowd(struct world *w, size_t count, bool one_address, size_t stay)
{
    int *fds = calloc(count, sizeof *fds);

    assert_non_null(fds);
    listen_here(w, 4);
    for (size_t i = 0; i < count; i++) {
        fds[i] = raw_connect(w, INADDR_LOOPBACK + (one_address ? 0 : 1 + (uint32_t)i));
        if (i % 100 == 99)
            turn(w);
    }
    RUN_UNTIL(w, count_open(fds, count) == stay);
    for (int i = 0; i < 3; i++) {
        both_ready(w);
        link_close(w->client.link, "");
        RUN_UNTIL(w, w->client.closed && w->server.closed);
    }
    assert_in_range(count_open(fds, count), stay - 4, stay);
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    free(fds);
}

static void a_thousand_idle_connections_of_one_address(void **state)
{
    crowd(*state, CROWD, true, OF_ADDRESS);
}

static void idle_connections_of_many_addresses(void **state)
{
    crowd(*state, STRANGERS + 500, false, STRANGERS);
}

static void the_handshake_of_a_crowd_is_bounded_in_time(void **state)
{
    struct world *w = *state;
    int fds[OF_ADDRESS];

    w->server_options.hello_timeout_ms = 200;
    listen_here(w, 4);
    for (size_t i = 0; i < OF_ADDRESS; i++)
        fds[i] = raw_connect(w, INADDR_LOOPBACK);
    RUN_UNTIL(w, count_open(fds, OF_ADDRESS) == 0);
    for (size_t i = 0; i < OF_ADDRESS; i++)
        (void)close(fds[i]);
    assert_int_equal(w->accepted, 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_host_is_known_by_its_certificate),
        T(a_refused_certificate_is_told_in_words),
        T(a_server_of_another_ca_hears_nothing),
        T(a_joiner_may_only_join),
        T(without_tls_there_is_a_word_for_both),
        T(byte_by_byte),
        T(much_goes_both_ways),
        T(a_cut_connection_is_no_goodbye),
        T(a_cut_handshake_is_nobodys_link),
        T(a_slow_handshake_ends),
        T(a_peer_that_stops_reading_in_the_handshake),
        T(a_recorded_session_opens_nothing),
        T(a_thousand_idle_connections_of_one_address),
        T(idle_connections_of_many_addresses),
        T(the_handshake_of_a_crowd_is_bounded_in_time),
    };
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    log_open("test_link_tls", LOG_LEVEL_ERROR);
    (void)alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
