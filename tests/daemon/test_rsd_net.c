/* test_rsd_net.c - the network half of rsd between a root half and an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/wire/channel.h"
#include "rsd/net/net.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

enum { HEARTBEAT_MS = 150, REPORT_MS = 100, LINE = 4096 };

struct world {
    char dir[64];
    int elmer_listen;
    pid_t rsd;
    struct channel root, elmer; /* our ends */
    struct rsd_config config;
};

/* ---- files and sockets ---- */

static void path_in(const struct world *w, const char *name, char *path)
{
    assert_true(snprintf(path, 108, "%s/%s", w->dir, name) < 108);
}

/* Replaced in one step: a reader sees the old or the new text. */
static void write_file(const struct world *w, const char *name, const char *text)
{
    char path[108], draft[108];
    FILE *file;

    path_in(w, name, path);
    path_in(w, "draft", draft);
    file = fopen(draft, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(draft, path), 0);
}

static int listen_at(const struct world *w, const char *name)
{
    char path[108];

    path_in(w, name, path);
    return peer_listen(path);
}

static int connect_to(const struct world *w, const char *name)
{
    char path[108];

    path_in(w, name, path);
    return peer_connect(path);
}

/* ---- the greeting, step by step ---- */

static void accept_elmer(struct world *w)
{
    peer_accept(w->elmer_listen, &w->elmer, WIRE_FROM_HOST);
}

static void say_state(struct world *w)
{
    uint64_t cpus[] = {0, 1};
    struct wire_holding holding = {.job = 3, .attempt = 1};
    struct wire_message state = {.type = WIRE_root_state};
    const char *lacks[] = {"no bread", "no butter"};
    char group[108];

    path_in(w, "jobs", group);
    state.u.root_state.cpus = (struct wire_uints){cpus, 2};
    state.u.root_state.generation = 11;
    state.u.root_state.holdings.items = &holding;
    state.u.root_state.holdings.count = 1;
    state.u.root_state.mode = "rt";
    state.u.root_state.jobs_group = group;
    state.u.root_state.lacks = (struct wire_strs){lacks, 2};
    peer_send(&w->root, &state);
}

static void say_welcome(struct world *w)
{
    struct wire_message welcome = {.type = WIRE_host_welcome,
                                   .u.host_welcome = {.report_ms = REPORT_MS, .heartbeat_ms = HEARTBEAT_MS}};

    peer_send(&w->elmer, &welcome);
}

static void greet(struct world *w)
{
    accept_elmer(w);
    peer_expect_gone(&w->root, WIRE_resync);
    say_state(w);
    peer_expect_gone(&w->elmer, WIRE_host_hello);
    say_welcome(w);
}

/* ---- the world ---- */

static const char *const stat_text =
    "cpu  300 0 0 500 0 0 0 0 0 0\ncpu0 100 0 0 300 0 0 0 0 0 0\ncpu1 200 0 0 200 0 0 0 0 0 0\nintr 1\n";

static int set_up_with(void **data, const char *elmer)
{
    struct world *w = calloc(1, sizeof(*w));
    char path[108];
    int pair[2], listening;

    assert_non_null(w);
    signal(SIGPIPE, SIG_IGN);
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/rsdnet.XXXXXX");
    assert_non_null(scratch_dir(w->dir));
    write_file(w, "stat", stat_text);
    path_in(w, "jobs", path);
    assert_int_equal(mkdir(path, 0700), 0);
    path_in(w, "jobs/7.1", path);
    assert_int_equal(mkdir(path, 0700), 0);
    path_in(w, "jobs/7.1/job", path);
    assert_int_equal(mkdir(path, 0700), 0);
    w->elmer_listen = listen_at(w, "elmer.sock");
    listening = listen_at(w, "rsd.sock");
    path_in(w, "elmer.sock", w->config.elmer);
    if (elmer)
        (void)snprintf(w->config.elmer, sizeof(w->config.elmer), "%s", elmer);
    (void)snprintf(w->config.pki, sizeof(w->config.pki), "%.60s/pki", w->dir);
    path_in(w, "stat", w->config.proc_stat);
    (void)snprintf(w->config.name, sizeof(w->config.name), "localhost");
    w->config.user_connections = 3;
    w->config.user_requests = 1;
    w->config.user_requests_burst = 10;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    w->rsd = fork();
    assert_true(w->rsd >= 0);
    if (w->rsd == 0) {
        close(pair[0]);
        close(w->elmer_listen);
        log_open("rsd-net", getenv("TEST_VERBOSE") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
        _exit(rsd_net_main(pair[1], listening, &w->config) == 0 ? 0 : 1);
    }
    close(pair[1]);
    close(listening);
    assert_int_equal(channel_init(&w->root, pair[0], WIRE_FROM_HOST, 1 << 24), 0);
    w->root.minor = WIRE_MINOR;
    w->elmer.fd = -1;
    *data = w;
    return 0;
}

static int set_up(void **data)
{
    return set_up_with(data, NULL);
}

static int set_up_tcp(void **data)
{
    return set_up_with(data, "127.0.0.1:9");
}

/* The exit status, -1 if it does not end in time. */
static int wait_for_rsd(struct world *w)
{
    int64_t deadline = peer_soon();
    int status;
    pid_t pid;

    while ((pid = waitpid(w->rsd, &status, WNOHANG)) == 0 && mono_ms(mono_now()) < deadline)
        poll(NULL, 0, 5);
    if (pid == 0) {
        kill(w->rsd, SIGKILL);
        waitpid(w->rsd, NULL, 0);
    }
    w->rsd = 0;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int tear_down(void **data)
{
    static const char *const names[] = {"stat", "elmer.sock", "rsd.sock", "jobs/7.1/job/cpu.stat"};
    static const char *const dirs[] = {"jobs/7.1/job", "jobs/7.1", "jobs"};
    struct world *w = *data;
    char path[108];
    int status = 0;

    if (w->rsd > 0) {
        kill(w->rsd, SIGTERM);
        status = wait_for_rsd(w);
    }
    channel_fini(&w->root);
    if (w->elmer.fd >= 0)
        channel_fini(&w->elmer);
    close(w->elmer_listen);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        path_in(w, names[i], path);
        unlink(path);
    }
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        path_in(w, dirs[i], path);
        rmdir(path);
    }
    rmdir(w->dir);
    free(w);
    return status;
}

/* ---- a local program ---- */

static void client_connect(struct world *w, struct channel *client)
{
    struct err err = ERR_INIT;

    assert_int_equal(channel_init(client, connect_to(w, "rsd.sock"), WIRE_FROM_ELMER, 1 << 24), 0);
    if (channel_hello(client, "test", peer_soon(), &err) != 0)
        fail_msg("%s", err.text);
}

static void client_kill(struct channel *client, uint64_t id, uint64_t job)
{
    struct wire_message message = {.type = WIRE_kill, .id = id, .u.kill = {.job = job}};

    peer_send(client, &message);
}

static void expect_error(struct channel *client, uint64_t id, const char *code)
{
    struct wire_message message = peer_expect(client, WIRE_error);

    assert_int_equal(message.id, id);
    assert_string_equal(message.u.error.code, code);
    assert_true(strlen(message.u.error.text) > 10);
    wire_message_fini(&message);
}

/* The request of a local program as elmer gets it; returns the program's number. */
static uint64_t expect_relay(struct world *w, uint64_t id, uint64_t job)
{
    struct wire_message relay = peer_expect(&w->elmer, WIRE_relay), inner;
    struct err err = ERR_INIT;
    uint64_t client = relay.u.relay.client;
    const struct passwd *passwd = getpwuid(geteuid());

    assert_int_equal(relay.u.relay.uid, geteuid());
    assert_non_null(passwd);
    assert_string_equal(relay.u.relay.user, passwd->pw_name);
    if (wire_decode(relay.u.relay.frame, strlen(relay.u.relay.frame), WIRE_MINOR, &inner, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(inner.type, WIRE_kill);
    assert_int_equal(inner.id, id);
    assert_int_equal(inner.u.kill.job, job);
    wire_message_fini(&inner);
    wire_message_fini(&relay);
    return client;
}

static void answer_relay(struct world *w, uint64_t client, const struct wire_message *inner)
{
    struct wire_message relayed = {.type = WIRE_relayed};
    char *json;
    size_t size;

    assert_int_equal(wire_encode(inner, WIRE_MINOR, &json, &size, NULL), 0);
    relayed.u.relayed.client = client;
    relayed.u.relayed.frame = json;
    peer_send(&w->elmer, &relayed);
    free(json);
}

/* A whole request of a local program works. */
static void check_request(struct world *w)
{
    struct channel client;
    struct wire_message done = {.type = WIRE_done, .id = 77, .u.done = {.text = "it ends"}}, answer;
    uint64_t number;

    client_connect(w, &client);
    client_kill(&client, 77, 42);
    number = expect_relay(w, 77, 42);
    answer_relay(w, number, &done);
    answer = peer_expect(&client, WIRE_done);
    assert_int_equal(answer.id, 77);
    assert_string_equal(answer.u.done.text, "it ends");
    wire_message_fini(&answer);
    channel_fini(&client);
    answer = peer_expect(&w->elmer, WIRE_relay_closed);
    assert_int_equal(answer.u.relay_closed.client, number);
    wire_message_fini(&answer);
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
    assert_int_equal(poll(&pollfd, 1, 1500), 0); /* no storm of tries */
    client_connect(w, &client);
    client_kill(&client, 1, 1);
    hello = peer_expect(&client, WIRE_error);
    assert_non_null(strstr(hello.u.error.text, "names no host localhost"));
    wire_message_fini(&hello);
    channel_fini(&client);
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

/* Reports until one shows a busy processor 0 (or a job on processor 1); its values. */
static struct wire_message report_with(struct world *w, bool job)
{
    for (int i = 0; i < 100; i++) {
        struct wire_message report = peer_expect(&w->elmer, WIRE_report);

        assert_int_equal(report.u.report.busy.count, 2);
        assert_int_equal(report.u.report.jobs.count, 2);
        if ((job ? report.u.report.jobs.items[1] : report.u.report.busy.items[0]) > 0)
            return report;
        wire_message_fini(&report);
    }
    fail_msg("no report shows it");
    abort();
}

static void test_reports(void **data)
{
    struct world *w = *data;
    uint64_t cpus[] = {1};
    struct wire_message open = {.type = WIRE_open, .u.open = {.job = 7, .attempt = 1, .user = "x", .cpus = {cpus, 1}}};
    struct wire_message empty = {.type = WIRE_empty,
                                 .u.empty = {.job = 7, .attempt = 1, .cpu_seconds = 0.05, .memory_peak_bytes = -1}};
    struct wire_message report;

    greet(w);
    peer_expect_gone(&w->elmer, WIRE_report);
    write_file(w, "stat", "cpu0 160 10 5 325 0 0 0 0 0 0\ncpu1 200 0 0 300 0 0 0 0 0 0\n");
    report = report_with(w, false);
    assert_true(fabs(report.u.report.busy.items[0] - 0.75) < 1e-6); /* 75 of 100 ticks */
    assert_true(report.u.report.busy.items[1] < 1e-6);
    assert_true(report.u.report.interval_ms >= REPORT_MS / 2);
    wire_message_fini(&report);
    peer_send(&w->elmer, &open);
    peer_expect_gone(&w->root, WIRE_open);
    write_file(w, "jobs/7.1/job/cpu.stat", "usage_usec 30000\nuser_usec 20000\n");
    report = report_with(w, true);
    assert_true(fabs(report.u.report.jobs.items[1] * (double)report.u.report.interval_ms - 30) < 1.5);
    assert_true(report.u.report.jobs.items[0] < 1e-6);
    wire_message_fini(&report);
    peer_send(&w->root, &empty); /* its last 20 ms */
    peer_expect_gone(&w->elmer, WIRE_empty);
    report = report_with(w, true);
    assert_true(fabs(report.u.report.jobs.items[1] * (double)report.u.report.interval_ms - 20) < 1.5);
    wire_message_fini(&report);
}

/* A report says which ping was heard last, and how long before the end of its interval. */
static void test_age_of_reports(void **data)
{
    struct world *w = *data;
    struct wire_message ping = {.type = WIRE_ping, .id = 4711}, report;
    int64_t welcome_ms, asked_ms = 0;
    int seen = 0;

    welcome_ms = mono_ms(mono_now());
    greet(w);
    for (int i = 0; i < 200 && seen < 2; i++) {
        int64_t now_ms, since_ms;

        report = peer_expect(&w->elmer, WIRE_report);
        now_ms = mono_ms(mono_now());
        since_ms = (int64_t)report.u.report.since_heard_ms;
        if (seen == 0) {
            assert_int_equal(report.u.report.heard, 0);
            assert_true(since_ms <= now_ms - welcome_ms);
            asked_ms = now_ms;
            peer_send(&w->elmer, &ping);
            peer_expect_gone(&w->elmer, WIRE_pong);
            seen++;
        } else if (report.u.report.heard == 4711) {
            assert_true(since_ms <= now_ms - asked_ms);
            seen++;
        }
        wire_message_fini(&report);
    }
    assert_int_equal(seen, 2);
}

/* What cannot be read for a moment must not keep the host from reporting for ever: v2 would never use it. */
static void test_reports_after_a_failed_look(void **data)
{
    struct world *w = *data;
    struct channel client;
    struct wire_message report;
    char path[108];

    path_in(w, "stat", path);
    assert_int_equal(unlink(path), 0);
    greet(w);
    client_connect(w, &client);
    client_kill(&client, 1, 1);
    (void)expect_relay(w, 1, 1); /* so it has taken the welcome, and looked */
    write_file(w, "stat", stat_text);
    report = peer_expect(&w->elmer, WIRE_report);
    assert_int_equal(report.u.report.busy.count, 2);
    wire_message_fini(&report);
    channel_fini(&client);
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
    int code;

    for (uint64_t id = first_id; id < first_id + 30; id++)
        if (channel_send_all(client, &(struct wire_message){.type = WIRE_kill, .id = id, .u.kill = {.job = 1}},
                             peer_soon(), &err) != 0)
            break;
    while ((code = channel_receive(client, &message, peer_soon(), &err)) > 0)
        wire_message_fini(&message);
    assert_true(code < 0); /* and not late */
}

static void test_requests_of_a_user(void **data)
{
    struct world *w = *data;
    struct channel client, one_more;
    struct err err = ERR_INIT;
    char path[108];
    unsigned tries = 0;

    if (geteuid() != 0) {
        print_message("skipped: only root can connect as somebody else\n");
        skip();
    }
    path_in(w, "rsd.sock", path);
    assert_int_equal(chmod(path, 0666), 0);
    assert_true(connect_as(w, 1, &client, &err));
    for (uint64_t id = 1; id <= 10; id++) {
        client_kill(&client, id, id);
        expect_error(&client, id, WIRE_CODE_UNREACHABLE);
    }
    client_kill(&client, 11, 1);
    expect_error(&client, 11, WIRE_CODE_REFUSED);
    go_on_until_cut_off(&client, 12);
    for (bool connected = true; connected && ++tries <= 20;) { /* on a slow machine one may be due again */
        err_clear(&err);
        connected = connect_as(w, 1, &one_more, &err);
        if (connected)
            go_on_until_cut_off(&one_more, 1);
        channel_fini(&one_more);
    }
    assert_in_range(tries, 1, 20);
    assert_non_null(strstr(
        err.text, "too many requests: a user may send 1 in a second (user_requests in rsd.conf) and 10 at once"));
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
    for (int i = 0; i < PAGES; i++) /* 10 MB each: neither is cut for itself */
        answer_relay(w, numbers[i % 2], &jobs);
    peer_expect_gone(&w->elmer, WIRE_relay_closed);
    channel_fini(&clients[0]);
    channel_fini(&clients[1]);
}

int main(void)
{
#define WITH_RSD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_RSD(test_greeting),
        WITH_RSD(test_passing),
        WITH_RSD(test_relay),
        WITH_RSD(test_relay_pages),
        WITH_RSD(test_administration),
        WITH_RSD(test_unreachable),
        WITH_RSD(test_reconnect),
        WITH_RSD(test_heartbeat),
        WITH_RSD(test_contacts),
        WITH_RSD(test_refused_host),
        WITH_RSD(test_wrong_message_of_elmer),
        WITH_RSD(test_garbage),
        WITH_RSD(test_too_many_requests),
        WITH_RSD(test_reports),
        WITH_RSD(test_age_of_reports),
        WITH_RSD(test_reports_after_a_failed_look),
        WITH_RSD(test_end),
        WITH_RSD(test_root_gone),
        cmocka_unit_test_setup_teardown(test_no_certificate, set_up_tcp, tear_down),
        WITH_RSD(test_connections_of_a_user),
        WITH_RSD(test_requests_of_a_user),
        WITH_RSD(test_deaf_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
