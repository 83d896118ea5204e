/* rsd_net_lab.c - see rsd_net_lab.h. */
#include "config.h"

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
#include "lib/base/service.h"
#include "lib/wire/channel.h"
#include "rsd/net/door.h"
#include "rsd/net/net.h"
#include "tests/daemon/rsd_net_lab.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

/* ---- files and sockets ---- */

void path_in(const struct world *w, const char *name, char *path)
{
    assert_true(snprintf(path, 108, "%s/%s", w->dir, name) < 108);
}

void write_file(const struct world *w, const char *name, const char *text)
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

int connect_to(const struct world *w, const char *name)
{
    char path[108];

    path_in(w, name, path);
    return peer_connect(path);
}

/* ---- the greeting, step by step ---- */

void accept_elmer(struct world *w)
{
    peer_accept(w->elmer_listen, &w->elmer, WIRE_FROM_HOST);
}

void say_state(struct world *w)
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

void say_welcome(struct world *w)
{
    struct wire_message welcome = {.type = WIRE_host_welcome,
                                   .u.host_welcome = {.report_ms = REPORT_MS, .heartbeat_ms = HEARTBEAT_MS}};

    peer_send(&w->elmer, &welcome);
}

void greet(struct world *w)
{
    accept_elmer(w);
    peer_expect_gone(&w->root, WIRE_resync);
    say_state(w);
    peer_expect_gone(&w->elmer, WIRE_host_hello);
    say_welcome(w);
}

/* ---- the world ---- */

/* The last part of our own control group: as a unit is called. */
static const char *own_unit(void)
{
    static char line[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) && strncmp(line, "0::", 3) != 0) {
    }
    fclose(file);
    line[strcspn(line, "\n")] = 0;
    assert_non_null(strrchr(line, '/'));
    return strrchr(line, '/') + 1;
}

static int run_unit(const struct world *w, int listener, int users)
{
    static struct door door;
    int fd;

    door.listener = listener;
    door.rsd = door.root = getuid();
    door.unit = own_unit();
    path_in(w, NET_PLAN_FILE, door.plan_path);
    fd = door_await(&door);
    return fd < 0 ? SERVICE_AGAIN : rsd_net_main(fd, users, &door, &door.plan.config);
}

bool join(struct world *w)
{
    const struct timeval most = {.tv_sec = PEER_DEADLINE_MS / 1000};
    int32_t pid = 0;
    int fd;

    assert_int_equal(service_plan_write(w->dir, NET_PLAN_FILE, &w->plan, sizeof(w->plan)), 0);
    fd = connect_to(w, "net.sock");
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
    if (recv(fd, &pid, sizeof(pid), MSG_WAITALL) != (ssize_t)sizeof(pid)) {
        close(fd);
        return false;
    }
    assert_int_equal(pid, w->rsd);
    channel_fini(&w->root);
    assert_int_equal(channel_init(&w->root, fd, WIRE_FROM_HOST, 1 << 24), 0);
    w->root.minor = WIRE_MINOR;
    return true;
}

static int make_world(void **data, const char *elmer, bool unit)
{
    struct world *w = calloc(1, sizeof(*w));
    char path[108];
    int pair[2] = {-1, -1}, listening, door = -1;

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
    if (elmer && *elmer == '+')
        (void)snprintf(w->config.elmer, sizeof(w->config.elmer), "%s/%s %s/elmer.sock", w->dir, elmer + 1, w->dir);
    else if (elmer)
        (void)snprintf(w->config.elmer, sizeof(w->config.elmer), "%s", elmer);
    (void)snprintf(w->config.pki, sizeof(w->config.pki), "%.60s/pki", w->dir);
    path_in(w, "stat", w->config.proc_stat);
    (void)snprintf(w->config.name, sizeof(w->config.name), "localhost");
    w->config.user_connections = 3;
    w->config.user_requests = 1;
    w->config.user_requests_burst = 10;
    if (unit)
        door = listen_at(w, "net.sock");
    else
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    w->rsd = fork();
    assert_true(w->rsd >= 0);
    if (w->rsd == 0) {
        if (!unit)
            close(pair[0]);
        close(w->elmer_listen);
        log_open("rsd-net", getenv("TEST_VERBOSE") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
        if (unit)
            _exit(run_unit(w, door, listening));
        _exit(rsd_net_main(pair[1], listening, NULL, &w->config) == 0 ? 0 : 1);
    }
    close(unit ? door : pair[1]);
    close(listening);
    w->root.fd = w->elmer.fd = -1;
    w->plan = (struct net_plan){.size = sizeof(w->plan), .version = PACKAGE_VERSION, .begun = 7};
    w->plan.config = w->config;
    if (!unit) {
        assert_int_equal(channel_init(&w->root, pair[0], WIRE_FROM_HOST, 1 << 24), 0);
        w->root.minor = WIRE_MINOR;
    }
    *data = w;
    return 0;
}

int set_up_with(void **data, const char *elmer)
{
    return make_world(data, elmer, false);
}

int set_up_unit(void **data)
{
    return make_world(data, NULL, true);
}

int set_up(void **data)
{
    return set_up_with(data, NULL);
}

int wait_for_rsd(struct world *w)
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

int tear_down(void **data)
{
    static const char *const names[] = {"stat", "elmer.sock", "rsd.sock", "net.sock", "jobs/7.1/job/cpu.stat"};
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

void client_connect(struct world *w, struct channel *client)
{
    struct err err = ERR_INIT;

    assert_int_equal(channel_init(client, connect_to(w, "rsd.sock"), WIRE_FROM_ELMER, 1 << 24), 0);
    if (channel_hello(client, "test", peer_soon(), &err) != 0)
        fail_msg("%s", err.text);
}

void client_kill(struct channel *client, uint64_t id, uint64_t job)
{
    struct wire_message message = {.type = WIRE_kill, .id = id, .u.kill = {.job = job}};

    peer_send(client, &message);
}

uint64_t expect_relay(struct world *w, uint64_t id, uint64_t job)
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

void answer_relay(struct world *w, uint64_t client, const struct wire_message *inner)
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

void check_request(struct world *w)
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
