/* hosts.c - the links of the workstations' rsds, and what is up.
 *
 * The state of a host is the core's (core_host_state); here is its link, if it has one. Normal: an rsd connects (TCP,
 * or the unix socket on the queue host), the link's hellos agree on a version, host_hello says who it is and what it
 * has -> checked -> host_welcome, EVENT_HOST_UP. Its messages become events. A ping goes out every heartbeat; nothing
 * heard for SUSPECT_BEATS of them: EVENT_HOST_SILENT, and EVENT_HOST_HEARD when it says something again. Its link ends:
 * EVENT_HOST_SILENT, jobs run on and no new ones come. It links again: EVENT_HOST_UP, and the core reconciles. It does
 * not within host_timeout of its last sign of life: EVENT_HOST_DOWN; so for hosts that are awaited after a start of
 * elmer. A link that is open but silent for host_timeout is closed: down.
 *
 * A hello that fails a check of who it is gets an error and its link is closed. One whose processors do not fit to the
 * configuration is up, too, so that its users can ask and what runs there goes on, but closed to new jobs: unusable
 * says why. A second link of a host: the same boot means that its rsd has been restarted, so the newer wins at once.
 * Another boot may be a reboot behind a dead link, or a second machine with the same name: the old link is pinged, and
 * only if it says nothing for 2 s the new one takes its place. While elmer itself does not run (it is stopped, or
 * starved) nobody's silence counts: hosts_stalled(). Invariant: a peer with a host is that host's peer; a challenger
 * has none yet. */
#include "config.h"

#include "elmer/hosts/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/net/tls.h"

enum core_host_state host_state(const struct host *host)
{
    return core_host(engine_core(host->hosts->room.engine), host->index)->state;
}

static bool is_up(const struct host *host)
{
    return core_host_up(core_host(engine_core(host->hosts->room.engine), host->index));
}

void host_arm(struct host *host, int64_t at_ms)
{
    deadline_set(host->hosts->room.deadlines, &host->deadline, at_ms);
}

bool hosts_may_log(struct hosts *hosts)
{
    return log_allowed(&hosts->limit, LOG_BURST, LOG_WINDOW_MS);
}

/* ---- sending ---- */

static void send_error(struct peer *peer, uint64_t id, const char *code, const char *text)
{
    struct wire_message message = {.type = WIRE_error, .id = id, .u.error = {.code = code, .text = text}};
    link_send(peer->link, &message);
}

void peer_drop(struct peer *peer, const char *text)
{
    if (peer->closing)
        return;
    peer->closing = true;
    deadline_clear(peer->hosts->room.deadlines, &peer->deadline);
    link_close(peer->link, text);
}

void peer_refuse(struct peer *peer, uint64_t id, const char *code, const char *text)
{
    const char *from = peer->local ? "the unix socket" : link_peer_address(peer->link);
    char printable[300];
    if (log_repeats_allowed(&peer->hosts->repeats, from, text) && hosts_may_log(peer->hosts))
        log_warning("link of a host refused: %s (from %s)",
                    str_printable(printable, sizeof(printable), text, strlen(text)), from);
    send_error(peer, id, code, text);
    peer_drop(peer, text);
}

void peer_asked(struct peer *peer, uint64_t id)
{
    peer->asked[peer->nasked++ % ASKED_KEPT] = (struct asked){id, boot_ms()};
}

void peer_ping(struct peer *peer)
{
    struct wire_message message = {.type = WIRE_ping, .id = ++peer->hosts->pings};
    peer_asked(peer, message.id);
    link_send(peer->link, &message);
}

bool hosts_congested(const struct hosts *hosts, int index)
{
    const struct peer *peer = hosts->hosts[index]->peer;
    return peer && (hosts->hosts[index]->waiting || link_unsent(peer->link) > CONGESTED);
}

unsigned hosts_minor(const struct hosts *hosts, int index)
{
    const struct peer *peer = hosts->hosts[index]->peer;
    return peer ? link_minor(peer->link) : 0;
}

/* ---- up and down ---- */

static void tell(struct host *host, enum event_type type)
{
    struct event event = {.type = type, .host = host->index};
    engine_event(host->hosts->room.engine, &event);
}

void host_tell_down(struct host *host, const char *what)
{
    struct event event = {.type = EVENT_HOST_DOWN, .host = host->index, .u.down.what = what};
    event.u.down.silence_ms = engine_now_ms() - host->heard_ms;
    engine_event(host->hosts->room.engine, &event);
}

static void give_up(struct host *host)
{
    log_warning("host=%s is down: nothing heard for %" PRId64 " s; its jobs end", settings_of(host)->name,
                (engine_now_ms() - host->heard_ms) / 1000);
    deadline_clear(host->hosts->room.deadlines, &host->deadline);
    host_tell_down(host, NULL);
}

void host_cut(struct host *host)
{
    host->peer = NULL;
    hosts_pace_drop(host);
    host->hosts->callbacks.on_cut(host->index, host->hosts->data);
    assert(is_up(host)); /* since it has had a link */
    host_arm(host, host->silent_since_ms + host->hosts->settings->host_timeout_ms);
    tell(host, EVENT_HOST_SILENT);
    if (host->challenger)
        hello_accept_challenger(host);
}

static void on_heartbeat(struct host *host)
{
    const struct hosts_settings *settings = host->hosts->settings;
    int64_t now = engine_now_ms();
    assert(host->peer->host == host);
    if (now - host->silent_since_ms >= settings->host_timeout_ms) {
        struct peer *peer = host->peer;
        peer->host = NULL;
        peer_drop(peer, "silent for too long");
        host_cut(host);
        if (!host->peer && is_up(host))
            give_up(host);
        return;
    }
    if (host_state(host) == CORE_HOST_UP && now - host->silent_since_ms >= SUSPECT_BEATS * settings->heartbeat_ms) {
        log_notice("host=%s says nothing: it gets no new jobs until it is heard", settings_of(host)->name);
        tell(host, EVENT_HOST_SILENT);
    }
    peer_ping(host->peer);
    host_arm(host, now + settings->heartbeat_ms);
}

/* The deadlines of hosts that are up are heartbeats, which ask and then judge by what is set here. */
void hosts_stalled(struct hosts *hosts, int64_t ms)
{
    int64_t now = engine_now_ms();
    for (int i = 0; i < hosts->nhosts; i++) {
        struct host *host = hosts->hosts[i];
        host->silent_since_ms = now - host->silent_since_ms > ms ? host->silent_since_ms + ms : now;
        if (host->deadline.slot && !host->peer)
            host_arm(host, host->deadline.at_ms + ms);
    }
    for (struct peer *peer = hosts->peers; peer; peer = peer->next)
        if (peer->deadline.slot)
            deadline_set(hosts->room.deadlines, &peer->deadline, peer->deadline.at_ms + ms);
}

static void heard(struct host *host)
{
    host->heard_ms = host->silent_since_ms = engine_now_ms();
    if (host->challenger)
        hello_fend_off(host);
    if (host_state(host) != CORE_HOST_SILENT)
        return;
    log_notice("host=%s is heard again", settings_of(host)->name);
    tell(host, EVENT_HOST_HEARD);
}

static void on_host_deadline(struct deadline *deadline)
{
    struct host *host = CONTAINER_OF(deadline, struct host, deadline);
    if (host->peer)
        on_heartbeat(host);
    else
        give_up(host);
}

/* ---- messages ---- */

/* How long ago the interval ended, at most: the host heard that ping after it was sent. So however long the ping or the
 * report was under way, the report is no newer than it is taken for. -1: nobody knows. */
static int64_t age_of(const struct peer *peer, const struct wire_report *report)
{
    if (link_minor(peer->link) < WIRE_AGE_MINOR)
        return 0;
    for (unsigned i = 0; i < ASKED_KEPT; i++) {
        const struct asked *asked = &peer->asked[i];
        if (asked->sent_ms == 0 || asked->id != report->heard)
            continue;
        int64_t age_ms = boot_ms() - asked->sent_ms - (int64_t)report->since_heard_ms;
        return age_ms > 0 ? age_ms : 0;
    }
    return -1;
}

/* An rsd of before minor 7 has said nothing of its memory, which is 0 then. */
static void note_load(struct host *host, const struct wire_report *report, const double *busy, const double *jobs)
{
    struct host_load load = {0, 0, -1, -1};
    for (int i = 0; i < host->ncpus; i++) {
        load.busy += busy[i] / host->ncpus;
        load.jobs += jobs[i] / host->ncpus;
    }
    if (report->memory_bytes > 0) {
        load.memory_bytes = report->memory_bytes;
        load.memory_free_bytes = report->memory_free_bytes;
    }
    host->load = load;
}

static void on_report(struct host *host, const struct wire_report *report)
{
    struct hosts *hosts = host->hosts;
    int64_t age_ms = age_of(host->peer, report);
    if (age_ms < 0 || report->busy.count != host->reported || report->jobs.count != host->reported ||
        report->interval_ms == 0)
        return;
    double *busy = mem_array((size_t)host->ncpus, sizeof(*busy)), *jobs = mem_array((size_t)host->ncpus, sizeof(*jobs));
    for (int i = 0; i < host->ncpus; i++) {
        double all = report->busy.items[host->places[i]], ours = report->jobs.items[host->places[i]];
        busy[i] = all >= 0 ? all <= 1 ? all : 1 : 0;
        jobs[i] = ours >= 0 ? ours <= busy[i] ? ours : busy[i] : 0;
    }
    int64_t end_ms = engine_now_ms() - age_ms;
    struct event event = {.type = EVENT_REPORT, .host = host->index};
    event.u.report = (struct core_report){.begin_ms = end_ms - (int64_t)report->interval_ms,
                                          .end_ms = end_ms,
                                          .busy = busy,
                                          .jobs = jobs,
                                          .ncpus = host->ncpus};
    engine_event(hosts->room.engine, &event);
    note_load(host, report, busy, jobs);
    free(busy);
    free(jobs);
    for (size_t i = 0; i < report->used.count; i++)
        engine_used(hosts->room.engine, host->index, report->used.items[i].job, (uint32_t)report->used.items[i].attempt,
                    (double)report->used.items[i].cpu_ms / 1000, report->used.items[i].polls);
}

static void on_host_message(struct host *host, struct wire_message *message)
{
    struct hosts *hosts = host->hosts;
    if (message->type == WIRE_relay || message->type == WIRE_relay_closed || message->type == WIRE_relay_room) {
        bool here = strcmp(settings_of(host)->name, hosts->settings->queue_host) == 0;
        hosts->callbacks.on_relay(host->index, here, message, hosts->data);
    } else if (message->type == WIRE_renew) {
        hosts->callbacks.on_certificate(host->peer, host->index, message, hosts->data);
    } else if (!is_up(host)) {
        return;
    } else if (message->type == WIRE_report) {
        on_report(host, &message->u.report);
    } else if (message->type == WIRE_ordered) {
        struct event event = {
            .type = EVENT_ORDERED, .host = host->index, .u.generation = message->u.ordered.generation};
        engine_event(hosts->room.engine, &event);
    } else {
        hosts_on_job(host, message);
    }
}

static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct peer *peer = data;
    (void)link;
    if (peer->closing || (peer->host && !rate_message(peer, message)))
        return;
    if (peer->host)
        heard(peer->host);
    if (message->type == WIRE_ping) {
        /* with its id it is a contact, from which the host's leases count: as if the core had answered */
        bool up = peer->host && is_up(peer->host);
        struct wire_message pong = {.type = WIRE_pong, .id = up ? message->id : 0};
        link_send(peer->link, &pong);
    } else if (message->type == WIRE_pong || message->type == WIRE_error || message->type == WIRE_done) {
        return;
    } else if (message->type == WIRE_join && !peer->host && !hosts_peer_serial(peer)) {
        peer->hosts->callbacks.on_certificate(peer, -1, message, peer->hosts->data);
    } else if (message->type == WIRE_host_hello && !peer->host && !peer->challenged) {
        hello_received(peer, message);
    } else if (!peer->host || message->type == WIRE_host_hello) {
        peer_refuse(peer, message->id, WIRE_CODE_BAD_MESSAGE,
                    peer->host ? "a second host_hello" : "a host's first message must be host_hello");
    } else {
        on_host_message(peer->host, message);
    }
}

/* ---- links ---- */

static void on_peer_deadline(struct deadline *deadline)
{
    struct peer *peer = CONTAINER_OF(deadline, struct peer, deadline);
    if (!peer->challenged) {
        peer_refuse(peer, 0, WIRE_CODE_BAD_MESSAGE, "no host_hello in time");
        return;
    }
    struct host *host = peer->challenged;
    hello_replace(host);
    hello_accept_challenger(host);
}

static void on_close(struct link *link, const char *text, void *data)
{
    struct peer *peer = data;
    struct hosts *hosts = peer->hosts;
    struct host *host = peer->host;
    const char *from = host ? "" : link_peer_address(link);
    char printable[300];
    deadline_clear(hosts->room.deadlines, &peer->deadline);
    *peer->link_of_list = peer->next;
    if (peer->next)
        peer->next->link_of_list = peer->link_of_list;
    if (peer->challenged)
        peer->challenged->challenger = NULL;
    wire_message_fini(&peer->hello);
    hosts->callbacks.on_peer_gone(peer, hosts->data);
    bool log = !hosts->closing && !peer->closing && hosts_may_log(hosts);
    free(peer);
    str_printable(printable, sizeof(printable), text, strlen(text));
    if (log)
        log_notice("%s%s link%s%s ended: %s", host ? "host=" : "a host's", host ? settings_of(host)->name : "",
                   *from ? " from " : "", from, printable);
    if (host && !hosts->closing)
        host_cut(host);
}

static void on_room(struct link *link, void *data)
{
    const struct peer *peer = data;
    (void)link;
    if (!peer->closing && peer->host && peer->host->peer == peer)
        peer->hosts->callbacks.on_room(peer->host->index, peer->hosts->data);
}

static struct peer *accept_peer(struct link *link, struct hosts *hosts, bool local)
{
    if (hosts->closing)
        return NULL;
    struct peer *peer = mem_zalloc(sizeof(*peer));
    *peer = (struct peer){
        .hosts = hosts, .link = link, .local = local, .next = hosts->peers, .link_of_list = &hosts->peers};
    peer->deadline.fire = on_peer_deadline;
    if (hosts->peers)
        hosts->peers->link_of_list = &peer->next;
    hosts->peers = peer;
    deadline_set(hosts->room.deadlines, &peer->deadline, engine_now_ms() + HELLO_MS);
    return peer;
}

static void *on_accept_unix(struct link *link, void *data)
{
    struct hosts *hosts = data;
    uid_t uid = (uid_t)-1;
    gid_t gid;
    pid_t pid;
    bool known = !link_peer_cred(link, &uid, &gid, &pid), owner = known && (uid == 0 || uid == geteuid());
    struct peer *peer = owner || (known && uid == hosts->host_uid) ? accept_peer(link, hosts, true) : NULL;
    if (peer)
        peer->any_host = owner;
    else if (!hosts->closing && hosts_may_log(hosts))
        log_warning("link on %s refused: from uid %u, neither root nor user %s", hosts->settings->host_socket,
                    (unsigned)uid, hosts->settings->host_user);
    return peer;
}

static void *on_accept_tcp(struct link *link, void *data)
{
    struct hosts *hosts = data;
    const char *name = link_peer_name(link);
    if (!name || !hosts_too_many(hosts, name))
        return accept_peer(link, hosts, false);
    if (hosts_may_log(hosts))
        log_warning("host=%s link refused: it has too many already (from %s)", name, link_peer_address(link));
    link_refuse(link, WIRE_CODE_REFUSED, "this host has too many links already: is more than one rsd running on it?");
    return NULL;
}

/* As many as the settings have; those that there are stay where they are, links and deadlines know them. */
static void add_hosts(struct hosts *hosts)
{
    const struct hosts_settings *settings = hosts->settings;
    size_t before = (size_t)hosts->nhosts;
    assert(settings->nhosts >= before);
    hosts->hosts = mem_exactly(hosts->hosts, before, settings->nhosts, sizeof(*hosts->hosts));
    for (; hosts->nhosts < (int)settings->nhosts; hosts->nhosts++) {
        struct host *host = mem_zalloc(sizeof(*host));
        *host = (struct host){.hosts = hosts, .index = hosts->nhosts, .heard_ms = engine_now_ms()};
        host->silent_since_ms = host->heard_ms;
        host->deadline.fire = on_host_deadline;
        hosts->hosts[hosts->nhosts] = host;
    }
}

static unsigned links_for(const struct hosts *hosts)
{
    return (unsigned)hosts->nhosts * 2 + 16;
}

void hosts_configured(struct hosts *hosts, bool relink)
{
    add_hosts(hosts);
    hosts->links.max = links_for(hosts);
    listener_allow(hosts->unix_listener, hosts->links.max);
    if (hosts->tcp_listener)
        listener_allow(hosts->tcp_listener, hosts->links.max);
    for (int i = 0; relink && i < hosts->nhosts; i++) {
        struct host *host = hosts->hosts[i];
        struct peer *peer = host->peer;
        if (!peer)
            continue;
        peer->host = NULL;
        peer_drop(peer, "elmer has another heartbeat or report_interval: link again");
        host_cut(host);
    }
}

int hosts_create(const struct room *room, const struct hosts_settings *settings,
                 const struct hosts_callbacks *callbacks, void *data, struct hosts **out, struct err *err)
{
    static const struct link_options options = {
        .program = "elmer", .peer = WIRE_FROM_HOST, .out_max = OUT_MAX, .hello_timeout_ms = HELLO_MS};
    static const struct link_callbacks links = {.on_message = on_message, .on_close = on_close, .on_room = on_room};
    struct hosts *hosts = mem_zalloc(sizeof(*hosts));
    hosts->room = *room;
    hosts->settings = settings;
    hosts->data = data;
    hosts->callbacks = *callbacks;
    hosts->last_paced = &hosts->paced;
    hosts->pace.fire = hosts_pace_go_on;
    hosts_take_orders(hosts);
    add_hosts(hosts);
    const struct passwd *passwd = getpwnam(settings->host_user); /* at start, once */
    hosts->host_uid = passwd ? passwd->pw_uid : 0;
    *out = hosts;
    hosts->links.max = links_for(hosts);
    hosts->links.options = options;
    hosts->links.callbacks = &links;
    hosts->links.accept_tcp = on_accept_tcp;
    int result = listener_create(room->loop, settings->host_socket, 0666, hosts->links.max, &options, &links,
                                 on_accept_unix, hosts, &hosts->unix_listener, err);
    return result ? result : hosts_listen(hosts, err);
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
        peer_drop(peer, "elmer stops");
    for (int i = 0; i < hosts->nhosts; i++)
        deadline_clear(hosts->room.deadlines, &hosts->hosts[i]->deadline);
    deadline_clear(hosts->room.deadlines, &hosts->pace);
    deadline_clear(hosts->room.deadlines, &hosts->listen_again);
}

void hosts_destroy(struct hosts *hosts)
{
    for (int i = 0; hosts && i < hosts->nhosts; i++) {
        hosts_pace_drop(hosts->hosts[i]);
        free(hosts->hosts[i]->unusable);
        free(hosts->hosts[i]->refused);
        while (hosts->hosts[i]->nlacks > 0)
            free(hosts->hosts[i]->lacks[--hosts->hosts[i]->nlacks]);
        free(hosts->hosts[i]->cpus);
        free(hosts->hosts[i]->places);
        free(hosts->hosts[i]);
    }
    if (hosts) {
        tls_context_unref(hosts->tls);
        free(hosts->listen_failure);
        free(hosts->hosts);
    }
    free(hosts);
}
