/* hosts_hello.c - who a host is, and whether it may be: the checks of host_hello, and two links that want to be the
 * same host. The life story is in hosts.c. */
#include "config.h"

#include "elmer/hosts_internal.h"

#include <stdlib.h>
#include <string.h>

#include "libelmer/base/str.h"

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
        return mem_format("the configuration gives it CPU %d, which the host does not have or may not use: correct "
                          "cpus in section [host %s]",
                          settings->cpus[host->ncpus], settings->name);
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
    const char *address = host->settings->address ? host->settings->address
                          : *hello->address       ? hello->address
                                                  : link_peer_address(peer->link);
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
        log_notice("host=%s is up: %d processors, mode %s%s%s, PVM %s, %zu jobs there", host->settings->name,
                   host->ncpus, strcmp(hello->mode, "rt") ? strcmp(hello->mode, "idle") ? "none" : "idle" : "rt",
                   *printable ? ": " : "", printable, hello->pvm ? "yes" : "no", hello->holdings.count);
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
    host_move(host, host->unusable ? HOST_UNUSABLE : HOST_UP);
    host_arm(host, host->heard_ms + host->hosts->daemon->settings->heartbeat_ms);
    if (host->unusable) {
        if (was_up)
            host_tell_down(host);
    } else if (tell_up(host, hello)) {
        peer_drop(peer, "elmer could not take the host in; try again");
    } else {
        host->hosts->callbacks.on_up(host->hosts->daemon, host->index);
    }
}

void hello_accept_challenger(struct host *host)
{
    struct peer *peer = host->challenger;
    struct wire_message hello = peer->hello;
    host->challenger = NULL;
    peer->challenged = NULL;
    peer->hello = (struct wire_message){0};
    take_place(host, peer, &hello);
    wire_message_fini(&hello);
}

void hello_replace(struct host *host)
{
    struct peer *old = host->peer;
    log_notice("host=%s links again: the older link is closed", host->settings->name);
    old->host = NULL;
    peer_drop(old, "the host has linked again");
    host->peer = NULL;
    host->hosts->callbacks.on_cut(host->hosts->daemon, host->index);
}

static void challenge(struct host *host, struct peer *peer, struct wire_message *message)
{
    host->challenger = peer;
    peer->challenged = host;
    peer->hello = *message;
    message->memory = NULL;
    peer_ping(host->peer);
    deadline_set(&host->hosts->daemon->deadlines, &peer->deadline, daemon_now_ms() + CHALLENGE_MS);
}

/* The old link lives: there are two machines of this name. */
void hello_fend_off(struct host *host)
{
    struct peer *peer = host->challenger;
    uint64_t id = peer->hello.id;
    host->challenger = NULL;
    peer->challenged = NULL;
    wire_message_fini(&peer->hello);
    peer->hello = (struct wire_message){0};
    peer_refuse(peer, id, WIRE_CODE_REFUSED,
                "a host of this name is linked and alive: two machines have the same name; give one another (name = "
                "... in rsd.conf)");
}

static const char *check_identity(struct peer *peer, const struct wire_host_hello *hello, struct host **found)
{
    struct hosts *hosts = peer->hosts;
    int index = core_host_by_name(hosts->daemon->core, hello->host);
    if (index < 0)
        return "this host is not in the configuration: add its name to \"hosts = ...\" in elmer.conf";
    if (peer->local && strcmp(hello->host, hosts->daemon->settings->name))
        return "the unix socket is for the host that elmer runs on, and that has another name (name = ... in "
               "elmer.conf and rsd.conf)";
    *found = &hosts->hosts[index];
    return check_cpus(&hello->cpus);
}

void hello_received(struct peer *peer, struct wire_message *message)
{
    struct host *host = NULL;
    const char *wrong = check_identity(peer, &message->u.host_hello, &host);
    if (wrong) {
        char *text = mem_format("host \"%s\": %s", message->u.host_hello.host, wrong);
        peer_refuse(peer, message->id, WIRE_CODE_REFUSED, text);
        free(text);
        return;
    }
    if (host->peer && strcmp(host->boot, message->u.host_hello.boot)) {
        if (host->challenger)
            peer_refuse(peer, message->id, WIRE_CODE_REFUSED,
                        "another link of this host is being looked at; try again");
        else
            challenge(host, peer, message);
        return;
    }
    if (host->peer)
        hello_replace(host);
    take_place(host, peer, message);
}
