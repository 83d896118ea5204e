/* link_fixture.h - a loop with a listener and a link to it, and bare sockets that speak to the listener. */
#ifndef TESTS_UNIT_LIB_NET_LINK_FIXTURE_H
#define TESTS_UNIT_LIB_NET_LINK_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "lib/wire/channel.h"

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

void on_ready(struct link *link, void *data);
void on_message(struct link *link, struct wire_message *message, void *data);
void on_close(struct link *link, const char *text, void *data);

static const struct link_callbacks callbacks = {.on_ready = on_ready, .on_message = on_message, .on_close = on_close};

void *accept_link(struct link *link, void *data);
int setup(void **state);

/* Turn the loop until the value differs from 0; fails at the deadline. */
#define RUN_UNTIL(world, condition)                                                                                    \
    do {                                                                                                               \
        int64_t end_ = mono_ms(mono_now()) + DEADLINE_MS;                                                              \
        while (!(condition)) {                                                                                         \
            assert_true(mono_ms(mono_now()) < end_);                                                                   \
            turn(world);                                                                                               \
        }                                                                                                              \
    } while (0)

void turn(struct world *world);

/* Everything closes by itself, and the loop then holds nothing. */
int teardown(void **state);
/* A TCP address has TLS, in both options. */
void use_tls(struct world *world);
void listen_on(struct world *world, const char *address, unsigned max_links);
void connect_link(struct world *world, unsigned timeout_ms);
void both_ready(struct world *world);
int send_wait(struct link *link, uint64_t id);

/* A peer without any of our code's help: a connected blocking socket. */
int raw_connect(struct world *world);
void raw_send(int fd, const char *json);

#define RAW_HELLO "{\"type\":\"hello\",\"id\":0,\"program\":\"raw\",\"major\":1,\"minor\":0,\"capabilities\":[]}"

/* All that comes until the end of the stream, while the loop turns. The last frame must be an error with that code. */
void raw_expect_error(struct world *world, int fd, const char *code);
void exchange(struct world *world);

#define LINK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
