/* test_rsd_net_clients.c - the network half and local programs: requests that are relayed, and those that are too many.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/wire/channel.h"
#include "tests/daemon/rsd_net_lab.h"
#include "tests/unit/peer.h"

/* ---- a local program ---- */

static void expect_error(struct channel *client, uint64_t id, const char *code)
{
    struct wire_message message = peer_expect(client, WIRE_error);

    assert_int_equal(message.id, id);
    assert_string_equal(message.u.error.code, code);
    assert_true(strlen(message.u.error.text) > 10);
    wire_message_fini(&message);
}

/* ---- tests ---- */

static void test_relay(void **data)
{
    struct world *w = *data;

    greet(w);
    check_request(w);
}

static void test_relay_pages(void **data)
{
    struct world *w = *data;
    struct channel client;
    struct wire_message jobs = {.type = WIRE_jobs, .id = 5};
    uint64_t number;

    greet(w);
    client_connect(w, &client);
    client_kill(&client, 5, 1);
    number = expect_relay(w, 5, 1);
    jobs.u.jobs.more = true;
    answer_relay(w, number, &jobs);
    jobs.u.jobs.more = false;
    answer_relay(w, number, &jobs);
    peer_expect_gone(&client, WIRE_jobs);
    peer_expect_gone(&client, WIRE_jobs);
    answer_relay(w, number, &jobs); /* nobody waits for it any more */
    client_kill(&client, 6, 1);
    (void)expect_relay(w, 6, 1);
    jobs.id = 6;
    answer_relay(w, number, &jobs);
    jobs = peer_expect(&client, WIRE_jobs);
    assert_int_equal(jobs.id, 6);
    wire_message_fini(&jobs);
    client_kill(&client, 7, 1); /* any answer may have pages */
    (void)expect_relay(w, 7, 1);
    jobs = (struct wire_message){.type = WIRE_hosts, .id = 7, .u.hosts = {.more = true}};
    answer_relay(w, number, &jobs);
    answer_relay(w, number, &jobs);
    peer_expect_gone(&client, WIRE_hosts);
    peer_expect_gone(&client, WIRE_hosts);
    channel_fini(&client);
}

/* Every request there is, not only those of the first day. */
static void test_administration(void **data)
{
    struct world *w = *data;
    struct wire_message message = {.type = WIRE_query_hosts, .id = 9};
    struct channel client;

    greet(w);
    client_connect(w, &client);
    peer_send(&client, &message);
    message = peer_expect(&w->elmer, WIRE_relay);
    assert_non_null(strstr(message.u.relay.frame, "query_hosts"));
    wire_message_fini(&message);
    channel_fini(&client);
}

static void test_unreachable(void **data)
{
    struct world *w = *data;
    struct channel client;

    client_connect(w, &client); /* before elmer has answered anything */
    client_kill(&client, 1, 42);
    expect_error(&client, 1, WIRE_CODE_UNREACHABLE);
    peer_send(&client, &(struct wire_message){.type = WIRE_query_hosts, .id = 9}); /* not of the first version */
    expect_error(&client, 9, WIRE_CODE_UNREACHABLE);
    greet(w);
    client_kill(&client, 2, 42);
    (void)expect_relay(w, 2, 42);
    channel_fini(&w->elmer); /* elmer dies while the request is outstanding */
    expect_error(&client, 2, WIRE_CODE_UNREACHABLE);
    channel_fini(&client);
}

/* What a local program sends; the connection must end, the daemon go on. */
static void abuse(struct world *w, const char *bytes, size_t size)
{
    int fd = connect_to(w, "rsd.sock");
    char buffer[LINE];
    ssize_t n;
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};

    assert_int_equal(write(fd, bytes, size), size);
    do {
        assert_int_equal(poll(&pollfd, 1, PEER_DEADLINE_MS), 1);
        n = read(fd, buffer, sizeof(buffer));
    } while (n > 0);
    close(fd);
}

static void test_garbage(void **data)
{
    struct world *w = *data;
    struct channel client;
    struct wire_message again = {.type = WIRE_kill, .id = 9, .u.kill = {.job = 1}}, done = {.type = WIRE_done};
    int half_open;

    greet(w);
    half_open = connect_to(w, "rsd.sock");
    abuse(w, "GET / HTTP/1.1\r\n\r\n", 18);
    abuse(w, "\377\377\377\377", 4);
    abuse(w, "\0\0\0\0", 4);
    abuse(w, "\0\0\0\42{\"type\":\"nonsense\",\"id\":1,\"x\":\"y\"}", 38);
    abuse(w, "\0\0\0\2{}", 6);
    client_connect(w, &client); /* a known message that is no request */
    peer_send(&client, &done);
    expect_error(&client, 0, WIRE_CODE_BAD_MESSAGE);
    peer_expect_end(&client);
    channel_fini(&client);
    client_connect(w, &client); /* an id twice */
    peer_send(&client, &again);
    (void)expect_relay(w, 9, 1);
    peer_send(&client, &again);
    peer_expect_end(&client);
    channel_fini(&client);
    peer_expect_gone(&w->elmer, WIRE_relay_closed);
    check_request(w);
    close(half_open);
}

static void test_too_many_requests(void **data)
{
    struct world *w = *data;
    struct channel client;

    greet(w);
    client_connect(w, &client);
    for (uint64_t id = 1; id <= 64; id++)
        client_kill(&client, id, id);
    for (uint64_t id = 1; id <= 64; id++)
        (void)expect_relay(w, id, id);
    client_kill(&client, 65, 65);
    expect_error(&client, 65, WIRE_CODE_REFUSED);
    channel_fini(&client);
}

/* ---- limits ---- */

/* As a user who is not root; his socket is the kernel's word for it. */
static bool connect_as(struct world *w, uid_t uid, struct channel *client, struct err *err)
{
    int fd;

    assert_int_equal(chmod(w->dir, 0755), 0);
    assert_int_equal(seteuid(uid), 0);
    fd = connect_to(w, "rsd.sock");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(channel_init(client, fd, WIRE_FROM_ELMER, 1 << 24), 0);
    return channel_hello(client, "test", peer_soon(), err) == 0;
}

static void test_connections_of_a_user(void **data)
{
    struct world *w = *data;
    struct channel clients[3], one_more;
    struct err err = ERR_INIT;
    char path[108];

    if (geteuid() != 0) {
        print_message("skipped: only root can connect as somebody else\n");
        skip();
    }
    path_in(w, "rsd.sock", path);
    assert_int_equal(chmod(path, 0666), 0);
    for (int i = 0; i < 3; i++)
        assert_true(connect_as(w, 1, &clients[i], &err));
    assert_false(connect_as(w, 1, &one_more, &err));
    assert_string_equal(err.text, "too many connections: a user may have 3 (user_connections in rsd.conf); end some of "
                                  "them, such as esubmit -w, or try again later");
    channel_fini(&one_more);
    assert_true(connect_as(w, 2, &one_more, &err)); /* another user */
    channel_fini(&one_more);
    channel_fini(&clients[0]);
    for (int64_t until = peer_soon(); err_clear(&err), !connect_as(w, 1, &one_more, &err); channel_fini(&one_more))
        assert_true(mono_ms(mono_now()) < until);
    channel_fini(&one_more);
    channel_fini(&clients[1]);
    channel_fini(&clients[2]);
}

static void go_on_until_cut_off(struct channel *client, uint64_t first_id)
{
    struct wire_message message;
    struct err err = ERR_INIT;
    int result;

    for (uint64_t id = first_id; id < first_id + 30; id++)
        if (channel_send_all(client, &(struct wire_message){.type = WIRE_kill, .id = id, .u.kill = {.job = 1}},
                             peer_soon(), &err) != 0)
            break;
    while ((result = channel_receive(client, &message, peer_soon(), &err)) > 0)
        wire_message_fini(&message);
    assert_true(result < 0); /* and not late */
}

/* As many as there may be at once, and one for each second that it takes. Returns the id of the first that was refused.
 */
static uint64_t ask_until_refused(struct channel *client)
{
    int64_t begin_ms = mono_ms(mono_now());

    for (uint64_t id = 1;; id++) {
        struct wire_message answer;
        bool refused;

        client_kill(client, id, id);
        answer = peer_expect(client, WIRE_error);
        assert_int_equal(answer.id, id);
        refused = strcmp(answer.u.error.code, WIRE_CODE_REFUSED) == 0;
        if (!refused)
            assert_string_equal(answer.u.error.code, WIRE_CODE_UNREACHABLE);
        wire_message_fini(&answer);
        assert_in_range(id, refused ? 11 : 1, 11 + (uint64_t)(mono_ms(mono_now()) - begin_ms) / 1000);
        if (refused)
            return id;
    }
}

/* Who was cut off comes in again when one request more is due, after a second, and not earlier. */
static void test_requests_of_a_user(void **data)
{
    struct world *w = *data;
    struct channel client, one_more;
    struct err err = ERR_INIT;
    char path[108];
    uint64_t next_id;
    bool connected = true;

    if (geteuid() != 0) {
        print_message("skipped: only root can connect as somebody else\n");
        skip();
    }
    path_in(w, "rsd.sock", path);
    assert_int_equal(chmod(path, 0666), 0);
    assert_true(connect_as(w, 1, &client, &err));
    next_id = ask_until_refused(&client) + 1;
    for (unsigned tries = 1; connected; tries++) { /* on a slow machine it may be due again */
        int64_t before_ms = mono_ms(mono_now());

        assert_in_range(tries, 1, 20);
        go_on_until_cut_off(tries == 1 ? &client : &one_more, tries == 1 ? next_id : 1);
        if (tries > 1)
            channel_fini(&one_more);
        err_clear(&err);
        connected = connect_as(w, 1, &one_more, &err);
        if (connected)
            assert_true(mono_ms(mono_now()) - before_ms >= 1000);
    }
    assert_non_null(strstr(
        err.text, "too many requests: a user may send 1 in a second (user_requests in rsd.conf) and 10 at once"));
    channel_fini(&one_more);
    channel_fini(&client);
}

/* What is kept for the programs of a user who read nothing is bounded for all of them together. */
static void test_deaf_user(void **data)
{
    enum { PAGE = 500000, PAGES = 40 };
    static char large[PAGE + 1];
    const char *word = large;
    struct world *w = *data;
    struct channel clients[2];
    struct wire_job_view view = {.command = {&word, 1}};
    struct wire_message jobs = {.type = WIRE_jobs, .id = 1, .u.jobs = {.jobs = {&view, 1}, .more = true}};
    struct err err = ERR_INIT;
    uint64_t numbers[2];
    char path[108];

    if (geteuid() != 0) {
        print_message("skipped: only root can connect as somebody else\n");
        skip();
    }
    path_in(w, "rsd.sock", path);
    assert_int_equal(chmod(path, 0666), 0);
    memset(large, 'x', PAGE);
    greet(w);
    for (int i = 0; i < 2; i++) {
        assert_true(connect_as(w, 1, &clients[i], &err));
        client_kill(&clients[i], 1, 1);
        struct wire_message relay = peer_expect(&w->elmer, WIRE_relay);
        numbers[i] = relay.u.relay.client;
        wire_message_fini(&relay);
    }
    for (int i = 0; i < PAGES;
         i++) /* 10 MB each: neither is cut for itself. This elmer does not hear that it is much */
        answer_relay(w, numbers[i % 2], &jobs);
    peer_expect_gone(&w->elmer, WIRE_relay_room);
    peer_expect_gone(&w->elmer, WIRE_relay_room);
    peer_expect_gone(&w->elmer, WIRE_relay_closed);
    channel_fini(&clients[0]);
    channel_fini(&clients[1]);
}

static void expect_room(struct world *w, uint64_t client, bool room)
{
    struct wire_message message = peer_expect(&w->elmer, WIRE_relay_room);

    assert_int_equal(message.u.relay_room.client, client);
    assert_int_equal(message.u.relay_room.room, room);
    wire_message_fini(&message);
}

/* elmer is told when a program reads slower than it answers, and when it may go on. */
static void test_slow_reader(void **data)
{
    static char large[500001];
    const char *word = large;
    struct world *w = *data;
    struct channel client;
    struct wire_job_view view = {.command = {&word, 1}};
    struct wire_message jobs = {.type = WIRE_jobs, .id = 5, .u.jobs = {.jobs = {&view, 1}, .more = true}};
    uint64_t number;

    memset(large, 'x', sizeof(large) - 1);
    greet(w);
    client_connect(w, &client);
    client_kill(&client, 5, 1);
    number = expect_relay(w, 5, 1);
    for (int i = 0; i < 3; i++)
        answer_relay(w, number, &jobs);
    expect_room(w, number, false);
    for (int i = 0; i < 3; i++)
        peer_expect_gone(&client, WIRE_jobs);
    expect_room(w, number, true);
    jobs.u.jobs.more = false;
    answer_relay(w, number, &jobs);
    peer_expect_gone(&client, WIRE_jobs);
    channel_fini(&client);
}

int main(void)
{
#define WITH_RSD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_RSD(test_relay),
        WITH_RSD(test_relay_pages),
        WITH_RSD(test_administration),
        WITH_RSD(test_unreachable),
        WITH_RSD(test_garbage),
        WITH_RSD(test_too_many_requests),
        WITH_RSD(test_connections_of_a_user),
        WITH_RSD(test_requests_of_a_user),
        WITH_RSD(test_deaf_user),
        WITH_RSD(test_slow_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
