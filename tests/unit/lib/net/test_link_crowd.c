/* test_link_crowd.c - links with TLS beside a crowd of connections that say nothing. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/lib/net/link_tls_bed.h"

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
    int *fds = calloc(count, sizeof(*fds));

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
