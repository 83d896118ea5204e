/* link_tls_bed.c - see link_tls_bed.h. */
#include "config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "lib/wire/channel.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/lib/net/link_tls_bed.h"
#include "tests/unit/scratch.h"

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
    (void)snprintf(end->text, sizeof(end->text), "%s", text);
    end->link = NULL;
}

static const struct link_callbacks callbacks = {.on_ready = on_ready, .on_message = on_message, .on_close = on_close};

static void *accept_link(struct link *link, void *data)
{
    struct world *w = data;

    w->accepted++;
    (void)snprintf(w->accepted_name, sizeof(w->accepted_name), "%s", link_peer_name(link) ? link_peer_name(link) : "-");
    if (w->server.link)
        return NULL;
    w->server = (struct end){.link = link};
    return &w->server;
}

int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct err err = ERR_INIT;

    assert_non_null(w);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/elmer-link-XXXXXX");
    assert_non_null(scratch_dir(w->dir));
    (void)snprintf(w->server_dir, sizeof(w->server_dir), "%s/server", w->dir);
    (void)snprintf(w->client_dir, sizeof(w->client_dir), "%s/client", w->dir);
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

void turn(struct world *w)
{
    uv_timer_t timer;

    (void)uv_timer_init(&w->loop, &timer);
    (void)uv_timer_start(&timer, tick, 2, 0);
    (void)uv_run(&w->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
}

int teardown(void **state)
{
    struct world *w = *state;

    if (w->client.link)
        link_close(w->client.link, "end of test");
    if (w->server.link)
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

void listen_here(struct world *w, unsigned max_links)
{
    struct err err = ERR_INIT;

    if (listener_create(&w->loop, "127.0.0.1:0", 0, max_links, &w->server_options, &callbacks, accept_link, w,
                        &w->listener, &err) != 0)
        fail_msg("%s", err.text);
}

void dial(struct world *w, unsigned port)
{
    struct err err = ERR_INIT;
    char address[64];

    w->client = (struct end){.link = NULL};
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    assert_int_equal(
        link_connect(&w->loop, address, 5000, &w->client_options, &callbacks, &w->client, &w->client.link, &err), 0);
}

void both_ready(struct world *w)
{
    dial(w, listener_port(w->listener));
    RUN_UNTIL(w, w->client.closed || (w->client.ready && w->server.ready));
    assert_string_equal(w->client.text, "");
}

/* ---- raw sockets ---- */

int raw_connect(struct world *w, uint32_t from)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons((uint16_t)listener_port(w->listener));
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}
