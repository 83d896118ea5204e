/* test_link_tls.c - links with TLS: who is who, and what may happen on the way. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "lib/wire/channel.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/lib/net/link_tls_bed.h"

static void assert_says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in: %s", words, text);
}

/* ---- raw sockets ---- */

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
    assert_int_equal(bind(r->listening, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(r->listening, 4), 0);
}

static unsigned relay_port(const struct relay *r)
{
    struct sockaddr_in in;
    socklen_t size = sizeof(in);

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

/* As a daemon from before speaks that has "transport = plain". */
static void say_without_tls(int fd)
{
    static const char json[] =
        "{\"type\":\"hello\",\"id\":0,\"program\":\"old\",\"major\":1,\"minor\":0,\"capabilities\":[]}";
    uint8_t header[WIRE_FRAME_HEADER];

    wire_frame_header(header, sizeof(json) - 1);
    assert_int_equal(send(fd, header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
    assert_int_equal(send(fd, json, sizeof(json) - 1, MSG_NOSIGNAL), sizeof(json) - 1);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
}

static void without_tls_there_is_a_word_for_both(void **state)
{
    struct world *w = *state;
    struct relay r;
    char told[1000] = "";
    size_t size = 0;
    ssize_t n = -1;
    int fd;

    listen_here(w, 4);
    fd = raw_connect(w, INADDR_LOOPBACK);
    say_without_tls(fd);
    RUN_UNTIL(w, (n = recv(fd, told + size, sizeof(told) - 1 - size, MSG_DONTWAIT)) == 0 ||
                     (n > 0 && (size += (size_t)n) == sizeof(told) - 1));
    assert_int_equal(n, 0);
    assert_non_null(memmem(told, size, "speaks without TLS", 18));
    assert_non_null(memmem(told, size, "rsd.conf", 8));
    assert_int_equal(w->accepted, 0);
    (void)close(fd);

    relay_begin(&r);
    dial(w, relay_port(&r));
    RUN_UNTIL(w, (fd = accept4(r.listening, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    say_without_tls(fd);
    RUN_UNTIL(w, w->client.closed);
    assert_says(w->client.text, "speaks without TLS");
    assert_says(w->client.text, "elmer.conf");
    (void)close(fd);
    relay_end(&r);
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
    RUN_UNTIL(w, (n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) == 0 || (n < 0 && errno == ECONNRESET));
    assert_int_equal(w->accepted, 1);
    (void)close(fd);
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
