/* test_rsd_net.c - the network half between a root half and an elmer that are scripted: its link to elmer, and what it
 * passes on. */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/wire/channel.h"
#include "tests/daemon/rsd_net_lab.h"
#include "tests/unit/peer.h"

/* ---- the world ---- */

static int set_up_tcp(void **data)
{
    return set_up_with(data, "127.0.0.1:9");
}

static int set_up_two(void **data)
{
    return set_up_with(data, "+other.sock");
}

/* ---- tests ---- */

static void exited(struct world *w, uint64_t job)
{
    struct wire_message message = {.type = WIRE_exited, .u.exited = {.job = job, .attempt = 1, .role = "command"}};

    peer_send(&w->root, &message);
}

static void test_greeting(void **data)
{
    struct world *w = *data;
    struct wire_message message;

    accept_elmer(w);
    peer_expect_gone(&w->root, WIRE_resync);
    exited(w, 1); /* said before root_state: comes again by the rules, so it is not passed on */
    say_state(w);
    exited(w, 2); /* said again after it: waits for the welcome */
    message = peer_expect(&w->elmer, WIRE_host_hello);
    assert_string_equal(message.u.host_hello.host, "localhost");
    assert_int_equal(message.u.host_hello.cpus.count, 2);
    assert_int_equal(message.u.host_hello.generation, 11);
    assert_int_equal(message.u.host_hello.holdings.count, 1);
    assert_int_equal(message.u.host_hello.holdings.items[0].job, 3);
    assert_string_equal(message.u.host_hello.mode, "rt");
    assert_string_equal(message.u.host_hello.address, "");
    assert_true(message.u.host_hello.name_loopback);
    assert_int_equal(message.u.host_hello.lacks.count, 2);
    assert_string_equal(message.u.host_hello.lacks.items[1], "no butter");
    assert_true(strlen(message.u.host_hello.boot) > 8);
    wire_message_fini(&message);
    say_welcome(w);
    message = peer_expect(&w->elmer, WIRE_exited);
    assert_int_equal(message.u.exited.job, 2);
    wire_message_fini(&message);
}

static void test_passing(void **data)
{
    struct world *w = *data;
    uint64_t cpus[] = {1};
    struct wire_order_entry entry = {.job = 7, .attempt = 1, .level = 0, .cpus = {cpus, 1}};
    struct wire_message order = {.type = WIRE_order, .u.order = {.generation = 12}};
    struct wire_message ordered = {.type = WIRE_ordered, .u.ordered = {.generation = 12}};
    struct wire_message message;

    greet(w);
    order.u.order.entries.items = &entry;
    order.u.order.entries.count = 1;
    peer_send(&w->elmer, &order);
    message = peer_expect(&w->root, WIRE_order);
    assert_int_equal(message.u.order.generation, 12);
    assert_int_equal(message.u.order.entries.count, 1);
    assert_int_equal(message.u.order.entries.items[0].cpus.items[0], 1);
    wire_message_fini(&message);
    peer_send(&w->root, &ordered);
    message = peer_expect(&w->elmer, WIRE_ordered);
    assert_int_equal(message.u.ordered.generation, 12);
    wire_message_fini(&message);
}

/* What leases count from: that elmer has answered, and when that was said which it has answered. */
static void test_contacts(void **data)
{
    struct world *w = *data;
    struct wire_message order = {.type = WIRE_order, .u.order = {.generation = 1}}, pong = {.type = WIRE_pong}, message;
    int64_t begin_ms = boot_ms(), end_ms;
    struct err err = ERR_INIT;

    greet(w);
    end_ms = boot_ms();
    peer_send(&w->elmer, &order);
    message = peer_expect(&w->root, WIRE_contact); /* before the order */
    assert_in_range(message.u.contact.said_ms, begin_ms, end_ms);
    wire_message_fini(&message);
    peer_expect_gone(&w->root, WIRE_order);
    for (int i = 0; i < 2; i++) {
        message = peer_expect(&w->elmer, WIRE_ping);
        assert_in_range(message.id, end_ms, boot_ms());
        pong.id = message.id;
        wire_message_fini(&message);
        peer_send(&w->elmer, &pong);
        message = peer_expect(&w->root, WIRE_contact);
        assert_int_equal(message.u.contact.said_ms, pong.id);
        wire_message_fini(&message);
        pong.id = 0;
        peer_expect_gone(&w->elmer, WIRE_ping); /* elmer answers, but does not count us as up: no contact */
        peer_send(&w->elmer, &pong);
    }
    order.u.order.generation = 2;
    peer_send(&w->elmer, &order); /* answers nothing */
    assert_int_equal(channel_receive(&w->root, &message, peer_soon(), &err), 1);
    assert_int_equal(message.type, WIRE_order);
    wire_message_fini(&message);
}

static void test_reconnect(void **data)
{
    struct world *w = *data;
    struct wire_message message;

    greet(w);
    channel_fini(&w->elmer);
    accept_elmer(w);
    peer_expect_gone(&w->root, WIRE_resync);
    channel_fini(&w->elmer); /* lost again before the root half has answered */
    accept_elmer(w);
    peer_expect_gone(&w->root, WIRE_resync);
    exited(w, 8);
    say_state(w); /* for the lost one */
    exited(w, 9);
    say_state(w);
    exited(w, 10);
    peer_expect_gone(&w->elmer, WIRE_host_hello);
    say_welcome(w);
    message = peer_expect(&w->elmer, WIRE_exited);
    assert_int_equal(message.u.exited.job, 10);
    wire_message_fini(&message);
    check_request(w);
}

static void test_heartbeat(void **data)
{
    struct world *w = *data;
    struct wire_message message;
    struct err err = ERR_INIT;
    int64_t began;

    greet(w);
    for (int i = 0; i < 8; i++) /* longer than three heartbeats: answered, so it stays */
        peer_expect_gone(&w->elmer, WIRE_ping), peer_send(&w->elmer, &(struct wire_message){.type = WIRE_pong});
    began = mono_ms(mono_now());
    while (channel_receive(&w->elmer, &message, peer_soon(), &err) == 1)
        wire_message_fini(&message);
    assert_true(w->elmer.dead);
    assert_true(mono_ms(mono_now()) - began >= 3 * HEARTBEAT_MS - HEARTBEAT_MS / 2);
    channel_fini(&w->elmer);
    greet(w);
}

static void test_refused_host(void **data)
{
    struct world *w = *data;
    struct wire_message hello,
        error = {.type = WIRE_error,
                 .u.error = {.code = WIRE_CODE_REFUSED, .text = "elmer.conf names no host localhost"}};
    struct pollfd pollfd = {.fd = w->elmer_listen, .events = POLLIN};
    struct channel client;

    accept_elmer(w);
    peer_expect_gone(&w->root, WIRE_resync);
    say_state(w);
    hello = peer_expect(&w->elmer, WIRE_host_hello);
    error.id = hello.id;
    wire_message_fini(&hello);
    peer_send(&w->elmer, &error);
    peer_expect_end(&w->elmer);
    channel_fini(&w->elmer);
    hello = peer_expect(&w->root, WIRE_uplink); /* for the status of the service */
    assert_non_null(strstr(hello.u.uplink.text, "no link to "));
    assert_non_null(strstr(hello.u.uplink.text, ": elmer.conf names no host localhost"));
    wire_message_fini(&hello);
    assert_int_equal(poll(&pollfd, 1, 1500), 0); /* no storm of tries */
    client_connect(w, &client);
    client_kill(&client, 1, 1);
    hello = peer_expect(&client, WIRE_error);
    assert_non_null(strstr(hello.u.error.text, "names no host localhost"));
    wire_message_fini(&hello);
    channel_fini(&client);
}

static void expect_why(struct world *w, const char *where, const char *what)
{
    struct wire_message why = peer_expect(&w->root, WIRE_uplink);

    if (!strstr(why.u.uplink.text, where) || !strstr(why.u.uplink.text, what))
        fail_msg("\"%s\" does not say %s, %s", why.u.uplink.text, where, what);
    wire_message_fini(&why);
}

/* Nobody is at the first address; the second one's link is lost and is looked for there first. */
static void test_other_address(void **data)
{
    struct world *w = *data;

    accept_elmer(w);
    expect_why(w, "/other.sock: ", "; the other addresses are tried too");
    peer_expect_gone(&w->root, WIRE_resync);
    say_state(w);
    peer_expect_gone(&w->elmer, WIRE_host_hello);
    say_welcome(w);
    peer_expect_gone(&w->root, WIRE_uplink); /* there is one */
    channel_fini(&w->elmer);
    accept_elmer(w);
    expect_why(w, "/elmer.sock: ", "; the other addresses are tried too");
    peer_expect_gone(&w->root, WIRE_resync); /* and nothing about the first one between */
    channel_fini(&w->elmer);
    accept_elmer(w); /* by way of the first one */
    expect_why(w, "/elmer.sock: ", "tried too");
    expect_why(w, "/other.sock: ", "tried too");
    peer_expect_gone(&w->root, WIRE_resync);
}

static void test_wrong_message_of_elmer(void **data)
{
    struct world *w = *data;
    struct wire_message jobs = {.type = WIRE_jobs};

    greet(w);
    peer_send(&w->elmer, &jobs);
    peer_expect_end(&w->elmer);
    channel_fini(&w->elmer);
    greet(w);
    assert_int_equal(write(w->elmer.fd, "\0\0\0\4nope", 8), 8);
    peer_expect_end(&w->elmer);
    channel_fini(&w->elmer);
    greet(w);
    check_request(w);
}

static void test_end(void **data)
{
    struct world *w = *data;
    struct channel client;

    greet(w);
    client_connect(w, &client);
    kill(w->rsd, SIGTERM);
    assert_int_equal(wait_for_rsd(w), 0);
    peer_expect_end(&client);
    channel_fini(&client);
}

static void test_root_gone(void **data)
{
    struct world *w = *data;

    greet(w);
    channel_fini(&w->root);
    assert_int_equal(wait_for_rsd(w), 0);
}

/* Over TCP a host needs a certificate; its users are told how to get one. */
static void test_no_certificate(void **data)
{
    struct world *w = *data;
    struct channel client;

    client_connect(w, &client);
    for (;;) {
        struct wire_message message;
        bool told;

        client_kill(&client, 1, 42);
        message = peer_expect(&client, WIRE_error);
        assert_string_equal(message.u.error.code, WIRE_CODE_UNREACHABLE);
        told = strstr(message.u.error.text, "rsd --join 127.0.0.1:9 TOKEN") != NULL;
        wire_message_fini(&message);
        if (told)
            break;
        poll(NULL, 0, 5); /* it may not have dialled yet; alarm(2) bounds this */
    }
    channel_fini(&client);
}

int main(void)
{
#define WITH_RSD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_RSD(test_greeting),
        WITH_RSD(test_passing),
        WITH_RSD(test_reconnect),
        WITH_RSD(test_heartbeat),
        WITH_RSD(test_contacts),
        WITH_RSD(test_refused_host),
        cmocka_unit_test_setup_teardown(test_other_address, set_up_two, tear_down),
        WITH_RSD(test_wrong_message_of_elmer),
        WITH_RSD(test_end),
        WITH_RSD(test_root_gone),
        cmocka_unit_test_setup_teardown(test_no_certificate, set_up_tcp, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
