/* hosts.c - the links of the workstations' rsds, and what is up.
 *
 * Normal: an rsd connects (TCP, or the unix socket on the queue host), the link's hellos agree on a version, host_hello says who it is and what it
 * has -> checked -> host_welcome, EVENT_HOST_UP: UP. Its messages become events. A ping goes out every heartbeat.
 * Its link ends: CUT, the core knows nothing yet, jobs run on. It links again: UP, and the core reconciles. It does not within host_timeout of
 * its last sign of life: DOWN, EVENT_HOST_DOWN. A link that is open but silent for host_timeout is closed: DOWN.
 * A hello that fails a check of who it is gets an error and its link is closed. One whose processors do not fit to the configuration stays linked, so
 * that its users can ask, but gets no jobs: UNUSABLE.
 * A second link of a host: the same boot means that its rsd has been restarted, so the newer wins at once. Another boot may be a reboot behind a dead link,
 * or a second machine with the same name: the old link is pinged, and only if it says nothing for 2 s the new one takes its place.
 * After a start of elmer, hosts are AWAITED until host_timeout.
 * Invariant: a peer with a host is that host's peer; a challenger has none yet. */
#include "config.h"

#include "elmer/hosts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libelmer/base/clock.h"
#include "libelmer/base/log.h"
#include "libelmer/base/str.h"
#include "libelmer/net/link.h"

enum { HELLO_MS = 10000, CHALLENGE_MS = 2000, OUT_MAX = 64 << 20, CONGESTED = 256 << 10, LOG_BURST = 10, LOG_WINDOW_MS = 10000 };

enum host_state { HOST_AWAITED, HOST_DOWN, HOST_UP, HOST_CUT, HOST_UNUSABLE, HOST_STATE_COUNT };
#define TO(state) (1u << (state))
static const unsigned moves[HOST_STATE_COUNT] = {
    [HOST_AWAITED] = TO(HOST_UP) | TO(HOST_UNUSABLE) | TO(HOST_DOWN),
    [HOST_DOWN] = TO(HOST_UP) | TO(HOST_UNUSABLE),
    [HOST_UP] = TO(HOST_UP) | TO(HOST_CUT) | TO(HOST_UNUSABLE) | TO(HOST_DOWN),
    [HOST_CUT] = TO(HOST_UP) | TO(HOST_UNUSABLE) | TO(HOST_DOWN),
    [HOST_UNUSABLE] = TO(HOST_UP) | TO(HOST_UNUSABLE) | TO(HOST_DOWN),
};

struct peer {
    struct hosts *hosts;
    struct link *link;
    struct host *host;          /* NULL before its hello is accepted */
    struct host *challenged;    /* whose place it wants */
    struct wire_message hello;  /* of a challenger */
    struct deadline deadline;   /* for the hello, or for the challenge */
    bool local, closing;
    struct peer *next, **link_of_list;
};

struct host {
    struct hosts *hosts;
    const struct settings_host *settings;
    int index;
    enum host_state state;
    struct peer *peer, *challenger;
    int64_t heard_ms;
    struct deadline deadline;   /* UP, UNUSABLE: next heartbeat; CUT, AWAITED: give up */
    bool known, pvm, name_loopback;
    char boot[65], address[65];
    char *unusable;
    int *cpus;                  /* [ncpus] those that Elmer uses */
    int *places;                /* [ncpus] their index in the host's reports */
    int ncpus;
    size_t reported;            /* CPUs in a report */
};

struct hosts {
    struct daemon *daemon;
    struct hosts_callbacks callbacks;
    struct listener *unix_listener, *tcp_listener;
    struct host *hosts;
    int nhosts;
    struct peer *peers;
    uid_t host_uid;             /* of the local rsd beside root */
    uint64_t pings;
    struct log_limit limit;
    bool closing;
};

static void move(struct host *host, enum host_state state)
{
    assert(moves[host->state] & TO(state));
    host->state = state;
}

static void arm(struct host *host, int64_t at_ms)
{
    deadline_set(&host->hosts->daemon->deadlines, &host->deadline, at_ms);
}

static bool may_log(struct hosts *hosts)
{
    return log_allowed(&hosts->limit, LOG_BURST, LOG_WINDOW_MS);
}

/* ---- sending ---- */

static void send_error(struct peer *peer, uint64_t id, const char *code, const char *text)
{
    struct wire_message message = {.type = WIRE_error, .id = id, .u.error = {.code = code, .text = text}};
    link_send(peer->link, &message);
}

static void drop_peer(struct peer *peer, const char *text)
{
    if (peer->closing)
        return;
    peer->closing = true;
    deadline_clear(&peer->hosts->daemon->deadlines, &peer->deadline);
    link_close(peer->link, text);
}

static void refuse_peer(struct peer *peer, uint64_t id, const char *code, const char *text)
{
    char printable[300];
    if (may_log(peer->hosts))
        log_warning("link of a host refused: %s (from %s)", str_printable(printable, sizeof(printable), text, strlen(text)),
                    peer->local ? "the unix socket" : link_peer_address(peer->link));
    send_error(peer, id, code, text);
    drop_peer(peer, text);
}

static void ping(struct peer *peer)
{
    struct wire_message message = {.type = WIRE_ping, .id = ++peer->hosts->pings};
    link_send(peer->link, &message);
}

bool hosts_send(struct hosts *hosts, int index, const struct wire_message *message)
{
    struct host *host = &hosts->hosts[index];
    return host->peer && !host->peer->closing && !link_send(host->peer->link, message);
}

bool hosts_congested(const struct hosts *hosts, int index)
{
    const struct peer *peer = hosts->hosts[index].peer;
    return peer && link_unsent(peer->link) > CONGESTED;
}

/* ---- up and down ---- */

static void tell_down(struct host *host)
{
    struct event event = {.type = EVENT_HOST_DOWN, .host = host->index};
    daemon_event(host->hosts->daemon, &event);
}

static void give_up(struct host *host)
{
    log_warning("host=%s is down: nothing heard for %" PRId64 " s; its jobs end", host->settings->name, (daemon_now_ms() - host->heard_ms) / 1000);
    deadline_clear(&host->hosts->daemon->deadlines, &host->deadline);
    move(host, HOST_DOWN);
    tell_down(host);
}

static void accept_challenger(struct host *host);

static void cut(struct host *host)
{
    host->peer = NULL;
    host->hosts->callbacks.on_cut(host->hosts->daemon, host->index);
    if (host->state == HOST_UNUSABLE) {
        deadline_clear(&host->hosts->daemon->deadlines, &host->deadline);
        move(host, HOST_DOWN);
    } else if (host->state == HOST_UP) {
        move(host, HOST_CUT);
        arm(host, host->heard_ms + host->hosts->daemon->settings->host_timeout_ms);
    }
    if (host->challenger)
        accept_challenger(host);
}

static void on_heartbeat(struct host *host)
{
    const struct settings *settings = host->hosts->daemon->settings;
    int64_t now = daemon_now_ms();
    if (now - host->heard_ms >= settings->host_timeout_ms) {
        struct peer *peer = host->peer;
        peer->host = NULL;
        drop_peer(peer, "silent for too long");
        cut(host);
        if (host->state == HOST_CUT)
            give_up(host);
        return;
    }
    ping(host->peer);
    arm(host, now + settings->heartbeat_ms);
}

static void on_host_deadline(struct deadline *deadline)
{
    struct host *host = (struct host *)((char *)deadline - offsetof(struct host, deadline));
    if (host->state == HOST_UP || host->state == HOST_UNUSABLE)
        on_heartbeat(host);
    else
        give_up(host);
}

/* ---- hello ---- */

/* Which of the host's CPUs are used. Returns why it is unusable (malloc'd), or NULL. */
static char *choose_cpus(struct host *host, const struct wire_uints *cpus)
{
    const struct settings_host *settings = host->settings;
    int wanted = settings->cpus ? settings->ncpus : (int)cpus->count;
    free(host->cpus);
    free(host->places);
    host->cpus = mem_array((size_t)wanted, sizeof(int));
    host->places = mem_array((size_t)wanted, sizeof(int));
    host->ncpus = 0;
    host->reported = cpus->count;
    for (size_t i = 0; i < cpus->count; i++) {
        if (settings->cpus && (host->ncpus == wanted || (uint64_t)settings->cpus[host->ncpus] != cpus->items[i]))
            continue;
        host->cpus[host->ncpus] = (int)cpus->items[i];
        host->places[host->ncpus++] = (int)i;
    }
    if (host->ncpus < wanted)
        return mem_format("the configuration gives it CPU %d, which the host does not have or may not use: correct cpus in section [host %s]", settings->cpus[host->ncpus], settings->name);
    return NULL;
}

static const char *check_cpus(const struct wire_uints *cpus)
{
    for (size_t i = 0; i < cpus->count; i++)
        if (cpus->items[i] >= CORE_MAX_CPUS || (i && cpus->items[i] <= cpus->items[i - 1]))
            return "its list of CPUs makes no sense";
    return cpus->count ? NULL : "it has no CPUs";
}

static void note_address(struct host *host, struct peer *peer, const struct wire_host_hello *hello)
{
    const char *address = host->settings->address ? host->settings->address : *hello->address ? hello->address : link_peer_address(peer->link);
    if (!strncmp(address, "::ffff:", 7))
        address += 7;
    snprintf(host->address, sizeof(host->address), "%s", strchr(address, ':') ? "" : address);
}

static int tell_up(struct host *host, const struct wire_host_hello *hello)
{
    struct core_holding *holdings = mem_array(hello->holdings.count, sizeof(*holdings));
    for (size_t i = 0; i < hello->holdings.count; i++)
        holdings[i] = (struct core_holding){hello->holdings.items[i].job, (uint32_t)hello->holdings.items[i].attempt};
    struct event event = {.type = EVENT_HOST_UP, .host = host->index};
    event.u.up.cpus = host->cpus;
    event.u.up.ncpus = host->ncpus;
    event.u.up.generation = hello->generation;
    event.u.up.holdings = holdings;
    event.u.up.nholdings = (int)hello->holdings.count;
    int code = daemon_event(host->hosts->daemon, &event);
    free(holdings);
    return code;
}

static void log_up(struct host *host, const struct wire_host_hello *hello)
{
    char printable[600];
    str_printable(printable, sizeof(printable), hello->mode_reason, strlen(hello->mode_reason));
    if (host->unusable)
        log_warning("host=%s is linked but gets no jobs: %s", host->settings->name, host->unusable);
    else
        log_notice("host=%s is up: %d processors, mode %s%s%s, PVM %s, %zu jobs there", host->settings->name, host->ncpus,
                   strcmp(hello->mode, "rt") ? strcmp(hello->mode, "idle") ? "none" : "idle" : "rt", *printable ? ": " : "", printable,
                   hello->pvm ? "yes" : "no", hello->holdings.count);
}

static void welcome(struct peer *peer, uint64_t id)
{
    const struct settings *settings = peer->hosts->daemon->settings;
    struct wire_message message = {.type = WIRE_host_welcome, .id = id};
    message.u.host_welcome.report_ms = (uint64_t)settings->report_ms;
    message.u.host_welcome.heartbeat_ms = (uint64_t)settings->heartbeat_ms;
    link_send(peer->link, &message);
}

/* The peer is the host from now on. */
static void take_place(struct host *host, struct peer *peer, const struct wire_message *message)
{
    const struct wire_host_hello *hello = &message->u.host_hello;
    bool was_up = host->state == HOST_UP || host->state == HOST_CUT || host->state == HOST_AWAITED;
    deadline_clear(&host->hosts->daemon->deadlines, &peer->deadline);
    peer->host = host;
    host->peer = peer;
    host->heard_ms = daemon_now_ms();
    host->known = true;
    host->pvm = hello->pvm;
    host->name_loopback = hello->name_loopback;
    snprintf(host->boot, sizeof(host->boot), "%s", hello->boot);
    note_address(host, peer, hello);
    free(host->unusable);
    host->unusable = choose_cpus(host, &hello->cpus);
    log_up(host, hello);
    welcome(peer, message->id);
    move(host, host->unusable ? HOST_UNUSABLE : HOST_UP);
    arm(host, host->heard_ms + host->hosts->daemon->settings->heartbeat_ms);
    if (host->unusable) {
        if (was_up)
            tell_down(host);
    } else if (tell_up(host, hello)) {
        drop_peer(peer, "elmer could not take the host in; try again");
    } else {
        host->hosts->callbacks.on_up(host->hosts->daemon, host->index);
    }
}

static void accept_challenger(struct host *host)
{
    struct peer *peer = host->challenger;
    struct wire_message hello = peer->hello;
    host->challenger = NULL;
    peer->challenged = NULL;
    peer->hello = (struct wire_message){0};
    take_place(host, peer, &hello);
    wire_message_fini(&hello);
}

static void replace(struct host *host)
{
    struct peer *old = host->peer;
    log_notice("host=%s links again: the older link is closed", host->settings->name);
    old->host = NULL;
    drop_peer(old, "the host has linked again");
    host->peer = NULL;
    host->hosts->callbacks.on_cut(host->hosts->daemon, host->index);
}

static void challenge(struct host *host, struct peer *peer, struct wire_message *message)
{
    host->challenger = peer;
    peer->challenged = host;
    peer->hello = *message;
    message->memory = NULL;
    ping(host->peer);
    deadline_set(&host->hosts->daemon->deadlines, &peer->deadline, daemon_now_ms() + CHALLENGE_MS);
}

/* The old link lives: there are two machines of this name. */
static void fend_off(struct host *host)
{
    struct peer *peer = host->challenger;
    uint64_t id = peer->hello.id;
    host->challenger = NULL;
    peer->challenged = NULL;
    wire_message_fini(&peer->hello);
    peer->hello = (struct wire_message){0};
    refuse_peer(peer, id, WIRE_CODE_REFUSED, "a host of this name is linked and alive: two machines have the same name; give one another (name = ... in rsd.conf)");
}

static const char *check_identity(struct peer *peer, const struct wire_host_hello *hello, struct host **found)
{
    struct hosts *hosts = peer->hosts;
    int index = core_host_by_name(hosts->daemon->core, hello->host);
    if (index < 0)
        return "this host is not in the configuration: add its name to \"hosts = ...\" in elmer.conf";
    if (peer->local && strcmp(hello->host, hosts->daemon->settings->name))
        return "the unix socket is for the host that elmer runs on, and that has another name (name = ... in elmer.conf and rsd.conf)";
    *found = &hosts->hosts[index];
    return check_cpus(&hello->cpus);
}

static void on_hello(struct peer *peer, struct wire_message *message)
{
    struct host *host = NULL;
    const char *wrong = check_identity(peer, &message->u.host_hello, &host);
    if (wrong) {
        char *text = mem_format("host \"%s\": %s", message->u.host_hello.host, wrong);
        refuse_peer(peer, message->id, WIRE_CODE_REFUSED, text);
        free(text);
        return;
    }
    if (host->peer && strcmp(host->boot, message->u.host_hello.boot)) {
        if (host->challenger)
            refuse_peer(peer, message->id, WIRE_CODE_REFUSED, "another link of this host is being looked at; try again");
        else
            challenge(host, peer, message);
        return;
    }
    if (host->peer)
        replace(host);
    take_place(host, peer, message);
}

/* ---- messages ---- */

static void on_report(struct host *host, const struct wire_report *report)
{
    struct hosts *hosts = host->hosts;
    if (report->busy.count != host->reported || report->jobs.count != host->reported || report->interval_ms == 0)
        return;
    double *busy = mem_array((size_t)host->ncpus, sizeof(*busy)), *jobs = mem_array((size_t)host->ncpus, sizeof(*jobs));
    for (int i = 0; i < host->ncpus; i++) {
        double all = report->busy.items[host->places[i]], ours = report->jobs.items[host->places[i]];
        busy[i] = all >= 0 ? all <= 1 ? all : 1 : 0;
        jobs[i] = ours >= 0 ? ours <= busy[i] ? ours : busy[i] : 0;
    }
    int64_t now = daemon_now_ms();
    struct event event = {.type = EVENT_REPORT, .host = host->index};
    event.u.report = (struct core_report){.begin_ms = now - (int64_t)report->interval_ms, .end_ms = now, .busy = busy, .jobs = jobs, .ncpus = host->ncpus};
    daemon_event(hosts->daemon, &event);
    free(busy);
    free(jobs);
}

static void on_host_message(struct host *host, struct wire_message *message)
{
    struct hosts *hosts = host->hosts;
    if (message->type == WIRE_relay || message->type == WIRE_relay_closed) {
        bool here = !strcmp(host->settings->name, hosts->daemon->settings->name);
        hosts->callbacks.on_relay(hosts->daemon, host->index, here, message);
    } else if (host->state != HOST_UP) {
        return;
    } else if (message->type == WIRE_report) {
        on_report(host, &message->u.report);
    } else if (message->type == WIRE_ordered) {
        struct event event = {.type = EVENT_ORDERED, .host = host->index, .u.generation = message->u.ordered.generation};
        daemon_event(hosts->daemon, &event);
    } else {
        hosts->callbacks.on_job(hosts->daemon, host->index, message);
    }
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct peer *peer = data;
    (void)link;
    if (peer->closing)
        return;
    if (peer->host) {
        peer->host->heard_ms = daemon_now_ms();
        if (peer->host->challenger)
            fend_off(peer->host);
    }
    if (message->type == WIRE_ping) {
        struct wire_message pong = {.type = WIRE_pong, .id = message->id};
        link_send(peer->link, &pong);
    } else if (message->type == WIRE_pong || message->type == WIRE_error || message->type == WIRE_done) {
        return;
    } else if (message->type == WIRE_host_hello && !peer->host && !peer->challenged) {
        on_hello(peer, message);
    } else if (!peer->host || message->type == WIRE_host_hello) {
        refuse_peer(peer, message->id, WIRE_CODE_BAD_MESSAGE, peer->host ? "a second host_hello" : "a host's first message must be host_hello");
    } else {
        on_host_message(peer->host, message);
    }
}

/* ---- links ---- */

static void on_peer_deadline(struct deadline *deadline)
{
    struct peer *peer = (struct peer *)((char *)deadline - offsetof(struct peer, deadline));
    if (!peer->challenged) {
        refuse_peer(peer, 0, WIRE_CODE_BAD_MESSAGE, "no host_hello in time");
        return;
    }
    struct host *host = peer->challenged;
    replace(host);
    accept_challenger(host);
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct peer *peer = data;
    struct hosts *hosts = peer->hosts;
    struct host *host = peer->host;
    char printable[300];
    (void)link;
    deadline_clear(&hosts->daemon->deadlines, &peer->deadline);
    *peer->link_of_list = peer->next;
    if (peer->next)
        peer->next->link_of_list = peer->link_of_list;
    if (peer->challenged)
        peer->challenged->challenger = NULL;
    wire_message_fini(&peer->hello);
    bool log = !hosts->closing && !peer->closing && may_log(hosts);
    free(peer);
    str_printable(printable, sizeof(printable), text, strlen(text));
    if (log)
        log_notice("%s%s link ended: %s", host ? "host=" : "a host's", host ? host->settings->name : "", printable);
    if (host && !hosts->closing)
        cut(host);
}

static bool local_peer_allowed(struct hosts *hosts, struct link *link)
{
    uid_t uid;
    gid_t gid;
    pid_t pid;
    if (!link_peer_cred(link, &uid, &gid, &pid) && (uid == 0 || uid == hosts->host_uid || uid == geteuid()))
        return true;
    if (may_log(hosts))
        log_warning("link on %s refused: not from root or user %s", hosts->daemon->settings->host_socket, hosts->daemon->settings->host_user);
    return false;
}

static struct peer *accept_peer(struct link *link, struct hosts *hosts, bool local)
{
    if (hosts->closing)
        return NULL;
    struct peer *peer = mem_zalloc(sizeof(*peer));
    *peer = (struct peer){.hosts = hosts, .link = link, .local = local, .next = hosts->peers, .link_of_list = &hosts->peers};
    peer->deadline.fire = on_peer_deadline;
    if (hosts->peers)
        hosts->peers->link_of_list = &peer->next;
    hosts->peers = peer;
    deadline_set(&hosts->daemon->deadlines, &peer->deadline, daemon_now_ms() + HELLO_MS);
    return peer;
}

static void *on_accept_unix(struct link *link, void *data)
{
    return local_peer_allowed(data, link) ? accept_peer(link, data, true) : NULL;
}

static void *on_accept_tcp(struct link *link, void *data)
{
    return accept_peer(link, data, false);
}

int hosts_create(struct daemon *daemon, const struct hosts_callbacks *callbacks, struct hosts **out, struct err *err)
{
    static const struct link_options options = {.program = "elmer", .peer = WIRE_FROM_HOST, .out_max = OUT_MAX, .hello_timeout_ms = HELLO_MS};
    static const struct link_callbacks links = {.on_message = on_message, .on_close = on_close};
    const struct settings *settings = daemon->settings;
    struct hosts *hosts = mem_zalloc(sizeof(*hosts));
    hosts->daemon = daemon;
    hosts->callbacks = *callbacks;
    hosts->nhosts = (int)settings->nhosts;
    hosts->hosts = mem_array(settings->nhosts, sizeof(*hosts->hosts));
    for (int i = 0; i < hosts->nhosts; i++) {
        hosts->hosts[i] = (struct host){.hosts = hosts, .settings = &settings->hosts[i], .index = i, .heard_ms = daemon_now_ms()};
        hosts->hosts[i].deadline.fire = on_host_deadline;
    }
    const struct passwd *passwd = getpwnam(settings->host_user); /* at start, once */
    hosts->host_uid = passwd ? passwd->pw_uid : 0;
    *out = hosts;
    unsigned room = (unsigned)settings->nhosts * 2 + 16;
    int code = listener_create(daemon->loop, settings->host_socket, 0666, room, &options, &links, on_accept_unix, hosts, &hosts->unix_listener, err);
    if (!code && settings->listen)
        code = listener_create(daemon->loop, settings->listen, 0, room, &options, &links, on_accept_tcp, hosts, &hosts->tcp_listener, err);
    return code;
}

void hosts_await(struct hosts *hosts)
{
    for (int i = 0; i < hosts->nhosts; i++) {
        const struct core_host *host = core_host(hosts->daemon->core, i);
        hosts->hosts[i].state = host->awaited ? HOST_AWAITED : HOST_DOWN;
        if (host->awaited)
            arm(&hosts->hosts[i], daemon_now_ms() + hosts->daemon->settings->host_timeout_ms);
    }
}

void hosts_close(struct hosts *hosts)
{
    if (!hosts)
        return;
    hosts->closing = true;
    if (hosts->unix_listener)
        listener_close(hosts->unix_listener);
    if (hosts->tcp_listener)
        listener_close(hosts->tcp_listener);
    for (struct peer *peer = hosts->peers; peer; peer = peer->next)
        drop_peer(peer, "elmer stops");
    for (int i = 0; i < hosts->nhosts; i++)
        deadline_clear(&hosts->daemon->deadlines, &hosts->hosts[i].deadline);
}

void hosts_destroy(struct hosts *hosts)
{
    for (int i = 0; hosts && i < hosts->nhosts; i++) {
        free(hosts->hosts[i].unusable);
        free(hosts->hosts[i].cpus);
        free(hosts->hosts[i].places);
    }
    if (hosts)
        free(hosts->hosts);
    free(hosts);
}

/* ---- looking ---- */

struct host_facts hosts_facts(const struct hosts *hosts, int index)
{
    const struct host *host = &hosts->hosts[index];
    return (struct host_facts){.name = host->settings->name, .address = host->address, .linked = host->peer != NULL, .known = host->known,
                               .pvm = host->pvm, .name_loopback = host->name_loopback, .unusable = host->unusable};
}

const char *hosts_local_address(const struct hosts *hosts, int index)
{
    const struct peer *peer = hosts->hosts[index].peer;
    const char *address = peer && !peer->local ? link_local_address(peer->link) : "";
    if (!strncmp(address, "::ffff:", 7))
        address += 7;
    return strchr(address, ':') ? "" : address;
}

size_t hosts_count_linked(const struct hosts *hosts)
{
    size_t count = 0;
    for (int i = 0; i < hosts->nhosts; i++)
        count += hosts->hosts[i].state == HOST_UP;
    return count;
}
