/* hello.c - who a host is, and whether it may be: the checks of host_hello, and two links that want to be the
 * same host. The life story is in hosts.c. */
#include "config.h"

#include "elmer/hosts/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"

/* Far beyond what counting from 1 reaches; the orders to come must fit into a message. */
#define GENERATION_MAX ((uint64_t)INT64_MAX / 2)

static void use_cpu(struct host *host, const struct wire_uints *cpus, size_t place)
{
    host->cpus[host->ncpus] = (int)cpus->items[place];
    host->places[host->ncpus++] = (int)place;
}

/* Which of the host's CPUs are used. Returns why it takes no new jobs (malloc'd), or NULL; then all of them are, so
 * that jobs which run there go on if their CPUs are still there. */
static char *choose_cpus(struct host *host, const struct wire_uints *cpus)
{
    const struct host_settings *settings = settings_of(host);
    char *unusable = NULL;
    free(host->cpus);
    free(host->places);
    host->cpus = mem_array(cpus->count, sizeof(int));
    host->places = mem_array(cpus->count, sizeof(int));
    host->ncpus = 0;
    host->reported = cpus->count;
    host->load = LOAD_UNKNOWN;
    for (size_t i = 0; settings->cpus && i < cpus->count && host->ncpus < settings->ncpus; i++)
        if ((uint64_t)settings->cpus[host->ncpus] == cpus->items[i])
            use_cpu(host, cpus, i);
    if (settings->cpus && host->ncpus == settings->ncpus)
        return NULL;
    if (settings->cpus)
        unusable = mem_format("the configuration gives it CPU %d, which the host does not have or may not use: correct "
                              "cpus in section [host %s]",
                              settings->cpus[host->ncpus], settings->name);
    host->ncpus = 0;
    for (size_t i = 0; i < cpus->count; i++)
        use_cpu(host, cpus, i);
    return unusable;
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
    const char *address = settings_of(host)->address ? settings_of(host)->address
                          : *hello->address          ? hello->address
                                                     : link_peer_address(peer->link);
    if (strncmp(address, "::ffff:", 7) == 0)
        address += 7;
    snprintf(host->address, sizeof(host->address), "%s", strchr(address, ':') ? "" : address);
}

static void tell_up(struct host *host, const struct wire_host_hello *hello, bool rebooted)
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
    event.u.up.rebooted = rebooted;
    event.u.up.closed = host->unusable != NULL;
    event.u.up.offers = launchers_of_host(hello);
    if (link_minor(host->peer->link) >= WIRE_ARRAY_MINOR)
        event.u.up.offers |= OFFERS_ARRAYS;
    if (link_minor(host->peer->link) >= WIRE_LINES_MINOR)
        event.u.up.offers |= OFFERS_LINES;
    if (link_minor(host->peer->link) >= WIRE_MEMORY_MINOR && hello->memory_bytes)
        event.u.up.offers |= OFFERS_MEMORY;
    event.u.up.memory_bytes = hello->memory_bytes < MEMORY_MAX_BYTES ? hello->memory_bytes : MEMORY_MAX_BYTES;
    if (link_minor(host->peer->link) >= WIRE_TERMINAL_MINOR)
        event.u.up.offers |= OFFERS_TERMINALS;
    if (link_minor(host->peer->link) >= WIRE_MACHINE_MINOR)
        event.u.up.offers |= OFFERS_MACHINES;
    event.u.up.no_lease = link_minor(host->peer->link) < WIRE_LEASE_MINOR;
    engine_event(host->hosts->room.engine, &event);
    free(holdings);
}

static void note_lacks(struct host *host, const struct wire_strs *lacks)
{
    while (host->nlacks > 0)
        free(host->lacks[--host->nlacks]);
    for (size_t i = 0; i < lacks->count && i < LACKS; i++) {
        char text[LACK_SIZE];
        str_printable(text, sizeof(text), lacks->items[i], strlen(lacks->items[i]));
        host->lacks[host->nlacks++] = mem_strdup(text);
    }
}

static void log_up(struct host *host, const struct wire_host_hello *hello)
{
    char printable[600], launchers[100];
    str_printable(printable, sizeof(printable), hello->mode_reason, strlen(hello->mode_reason));
    if (host->unusable)
        log_warning("host=%s is linked but gets no new jobs: %s", settings_of(host)->name, host->unusable);
    else
        log_notice("host=%s is up: %d processor%s, mode %s%s%s, %s, %zu job%s there", settings_of(host)->name,
                   host->ncpus, host->ncpus == 1 ? "" : "s",
                   strcmp(hello->mode, "rt") != 0 ? strcmp(hello->mode, "idle") != 0 ? "none" : "idle" : "rt",
                   *printable ? ": " : "", printable,
                   launchers_describe(launchers_of_host(hello), launchers, sizeof(launchers)), hello->holdings.count,
                   hello->holdings.count == 1 ? "" : "s");
}

static void welcome(struct peer *peer, uint64_t id)
{
    const struct hosts_settings *settings = peer->hosts->settings;
    struct wire_message message = {.type = WIRE_host_welcome, .id = id};
    message.u.host_welcome.report_ms = (uint64_t)settings->report_ms;
    message.u.host_welcome.heartbeat_ms = (uint64_t)settings->heartbeat_ms;
    peer_asked(peer, 0);
    link_send(peer->link, &message);
}

/* The peer is the host from now on. */
static void take_place(struct host *host, struct peer *peer, const struct wire_message *message)
{
    const struct wire_host_hello *hello = &message->u.host_hello;
    const char *serial = hosts_peer_serial(peer);
    bool rebooted = *host->boot && strcmp(host->boot, hello->boot) != 0;
    assert(!host->peer && !peer->host && !peer->challenged);
    deadline_clear(host->hosts->room.deadlines, &peer->deadline);
    peer->host = host;
    host->peer = peer;
    host->heard_ms = host->silent_since_ms = engine_now_ms();
    host->name_loopback = hello->name_loopback;
    host->linked_ms = wall_now().ms;
    free(host->refused);
    host->refused = NULL;
    snprintf(host->mode, sizeof(host->mode), "%s",
             strcmp(hello->mode, "rt") != 0 ? strcmp(hello->mode, "idle") != 0 ? "none" : "idle" : "rt");
    str_printable(host->mode_reason, sizeof(host->mode_reason), hello->mode_reason, strlen(hello->mode_reason));
    snprintf(host->boot, sizeof(host->boot), "%s", hello->boot);
    str_printable(host->version, sizeof(host->version), hello->version, strlen(hello->version));
    note_address(host, peer, hello);
    if (serial)
        host->hosts->callbacks.on_shown(serial, host->hosts->data);
    note_lacks(host, &hello->lacks);
    host->limits_memory = hello->limits_memory;
    free(host->unusable);
    host->unusable = choose_cpus(host, &hello->cpus);
    log_up(host, hello);
    welcome(peer, message->id);
    host_arm(host, host->heard_ms + host->hosts->settings->heartbeat_ms);
    tell_up(host, hello, rebooted);
    hosts_warn_of_limits(host, hello);
    host->hosts->callbacks.on_up(host->index, host->hosts->data);
}

void hello_accept_challenger(struct host *host)
{
    struct peer *peer = host->challenger;
    assert(peer->challenged == host);
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
    assert(old->host == host);
    log_notice("host=%s links again: the older link is closed", settings_of(host)->name);
    old->host = NULL;
    peer_drop(old, "the host has linked again");
    host->peer = NULL;
    hosts_pace_drop(host);
    host->hosts->callbacks.on_cut(host->index, host->hosts->data);
}

static void challenge(struct host *host, struct peer *peer, struct wire_message *message)
{
    assert(host->peer && !host->challenger);
    host->challenger = peer;
    peer->challenged = host;
    peer->hello = *message;
    message->memory = NULL;
    peer_ping(host->peer);
    deadline_set(host->hosts->room.deadlines, &peer->deadline, engine_now_ms() + CHALLENGE_MS);
}

/* The old link lives: there are two machines of this name. */
void hello_fend_off(struct host *host)
{
    struct peer *peer = host->challenger;
    assert(host->peer && peer->challenged == host);
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
    int index = hosts_index(hosts, hello->host);
    if (index < 0)
        return "this host is not in the configuration: add its name to \"hosts = ...\" in elmer.conf and reload elmer, "
               "or join with a token that names it";
    if (peer->local && !peer->any_host && strcmp(hello->host, hosts->settings->queue_host) != 0)
        return "the unix socket is for the host that elmer runs on, and that has another name (name = ... in "
               "elmer.conf and rsd.conf)";
    if (hello->generation > GENERATION_MAX)
        return "the generation of its order is beyond any that elmer has given: restart rsd on it";
    *found = hosts->hosts[index];
    return check_cpus(&hello->cpus);
}

void hello_received(struct peer *peer, struct wire_message *message)
{
    struct host *host = NULL;
    char *wrong_name = hosts_wrong_name(peer, message->u.host_hello.host);
    const char *wrong = wrong_name ? wrong_name : check_identity(peer, &message->u.host_hello, &host);
    if (wrong) {
        char *text = mem_format("host \"%s\": %s", message->u.host_hello.host, wrong);
        peer_refuse(peer, message->id, WIRE_CODE_REFUSED, text);
        free(text);
        free(wrong_name);
        return;
    }
    if (!rate_hello(peer, host, message))
        return;
    if (host->peer && strcmp(host->boot, message->u.host_hello.boot) != 0) {
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
