/* link_tls_bed.h - a listener with TLS, a link to it, certificates, and a relay between them that a test may disturb.
 */
#ifndef TESTS_UNIT_LIB_NET_LINK_TLS_BED_H
#define TESTS_UNIT_LIB_NET_LINK_TLS_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"

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

int setup(void **state);
void turn(struct world *w);

#define RUN_UNTIL(w, condition)                                                                                        \
    do {                                                                                                               \
        int64_t end_ = mono_ms(mono_now()) + DEADLINE_MS;                                                              \
        while (!(condition)) {                                                                                         \
            assert_true(mono_ms(mono_now()) < end_);                                                                   \
            turn(w);                                                                                                   \
        }                                                                                                              \
    } while (0)

int teardown(void **state);
void listen_here(struct world *w, unsigned max_links);
void dial(struct world *w, unsigned port);
void both_ready(struct world *w);
int raw_connect(struct world *w, uint32_t from);

#endif
