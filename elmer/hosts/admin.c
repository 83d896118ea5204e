/* admin.c - what others do with links: answer a peer, cut a host off, show all of them. */
#include "config.h"

#include "elmer/hosts/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"

/* ---- peers ---- */

const char *hosts_peer_address(const struct peer *peer)
{
    return peer->local ? "the unix socket" : link_peer_address(peer->link);
}

const char *hosts_peer_serial(const struct peer *peer)
{
    return link_peer_serial(peer->link);
}

void hosts_peer_send(struct peer *peer, const struct wire_message *message)
{
    if (!peer->closing)
        link_send(peer->link, message);
}

void hosts_peer_close(struct peer *peer)
{
    peer_drop(peer, "");
}

void hosts_peer_refuse(struct peer *peer, uint64_t id, const char *text)
{
    struct wire_message message = {.type = WIRE_error, .id = id};
    message.u.error.code = WIRE_CODE_REFUSED;
    message.u.error.text = text;
    hosts_peer_send(peer, &message);
    peer_drop(peer, text);
}

const char *hosts_serial(const struct hosts *hosts, int index, int64_t *linked_ms)
{
    const struct host *host = hosts->hosts[index];
    *linked_ms = host->linked_ms;
    return host->peer ? hosts_peer_serial(host->peer) : NULL;
}

/* ---- cutting a host off ---- */

/* A host that obeys ends them before it notices that it is cut off. */
static void end_jobs(struct host *host)
{
    struct hosts *hosts = host->hosts;
    const struct core_job *job;
    uint64_t cursor = 0;
    while ((job = core_next_job(engine_core(hosts->room.engine), &cursor))) {
        bool here = false;
        for (uint32_t i = 0; job->processors && i < job->nprocs && !here; i++)
            here = job->processors[i].host == host->index;
        if (!here || job->state == JOB_DONE)
            continue;
        struct wire_message message = {
            .type = WIRE_end,
            .u.end = {.job = job->id, .attempt = job->attempt, .grace_ms = (uint64_t)hosts->settings->kill_grace_ms}};
        hosts_send(hosts, host->index, &message);
    }
}

/* It was refused with the others. */
static void forget_challenger(struct host *host)
{
    if (!host->challenger)
        return;
    wire_message_fini(&host->challenger->hello);
    host->challenger->hello = (struct wire_message){0};
    host->challenger->challenged = NULL;
    host->challenger = NULL;
}

static void close_links(struct host *host, const char *text)
{
    struct hosts *hosts = host->hosts;
    for (struct peer *peer = hosts->peers; peer; peer = peer->next) {
        const char *name = link_peer_name(peer->link);
        if (peer->closing || (peer != host->peer && (!name || strcmp(name, settings_of(host)->name) != 0)))
            continue;
        if (peer->host)
            peer->host = NULL;
        hosts_peer_refuse(peer, 0, text);
    }
    forget_challenger(host);
    if (host->peer)
        host_cut(host);
}

void hosts_cut_off(struct hosts *hosts, int index, const char *lost, const char *text)
{
    struct host *host = hosts->hosts[index];
    if (lost)
        end_jobs(host);
    close_links(host, text);
    if (lost && !host->peer && host_state(host) != CORE_HOST_DOWN) {
        log_warning("host=%s is given up: %s", settings_of(host)->name, text);
        deadline_clear(hosts->room.deadlines, &host->deadline);
        host_tell_down(host, lost);
    }
}

void hosts_on_gone(int index, void *data)
{
    struct hosts *hosts = data;
    struct host *host = hosts->hosts[index];
    log_notice("host=%s is removed: it was taken out of the configuration, and has no job any more",
               settings_of(host)->name);
    close_links(host, "this host was taken out of the configuration of elmer");
    deadline_clear(hosts->room.deadlines, &host->deadline);
    if (host_state(host) != CORE_HOST_DOWN)
        host_tell_down(host, NULL);
}

int hosts_index(const struct hosts *hosts, const char *name)
{
    const struct core *core = engine_core(hosts->room.engine);
    int index = core_host_by_name(core, name);
    return index >= 0 && core_host_gone(core, index) ? -1 : index;
}

/* ---- queries ---- */

static const char *state_name(const struct host *host, const struct core_host *core)
{
    switch (core->state) {
    case CORE_HOST_UP:
        return core->retired ? "leaving" : host->unusable ? "unusable" : core->drained ? "drained" : "up";
    case CORE_HOST_SILENT:
    case CORE_HOST_AWAITED:
        return "suspect";
    case CORE_HOST_DOWN:
    case CORE_HOST_STATE_COUNT:
        break;
    }
    return core->known ? "down" : "never-seen";
}

void hosts_note_refused(struct hosts *hosts, const char *name, const char *why)
{
    int index = name ? hosts_index(hosts, name) : -1;
    if (index < 0 || hosts->hosts[index]->peer)
        return;
    struct host *host = hosts->hosts[index];
    free(host->refused);
    host->refused = mem_strndup(why, REFUSED_SIZE);
    host->refused_ms = wall_now().ms;
}

/* "8 s", "3 min", "5 h", "2 days". */
static const char *how_long(int64_t ms, char *text, size_t size)
{
    int64_t s = ms > 0 ? ms / 1000 : 0;
    if (s < 120)
        snprintf(text, size, "%" PRId64 " s", s);
    else if (s < 7200)
        snprintf(text, size, "%" PRId64 " min", s / 60);
    else if (s < 172800)
        snprintf(text, size, "%" PRId64 " h", s / 3600);
    else
        snprintf(text, size, "%" PRId64 " days", s / 86400);
    return text;
}

/* Local time, as the journal shows it; with the date if that is not today's. */
static const char *at_time(int64_t ms, char *text, size_t size)
{
    time_t at = (time_t)(ms / 1000), now = (time_t)(wall_now().ms / 1000);
    struct tm then, today;
    localtime_r(&at, &then);
    localtime_r(&now, &today);
    bool same = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
    strftime(text, size, same ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then);
    return text;
}

static int64_t heard_wall_ms(const struct host *host)
{
    return host->linked_ms ? wall_now().ms - (engine_now_ms() - host->heard_ms) : -1;
}

/* What stops its link, or why nothing is heard; "": nothing does. */
static void link_words(const struct host *host, const struct core_host *core, char *text, size_t size)
{
    char when[40];
    if (core->state == CORE_HOST_UP && host->peer)
        snprintf(text, size, "%s", host->unusable ? host->unusable : "");
    else if (host->refused && !host->peer)
        snprintf(text, size, "refused %s ago: %s", how_long(wall_now().ms - host->refused_ms, when, sizeof(when)),
                 host->refused);
    else if (host->linked_ms)
        snprintf(text, size, "not heard since %s%s", at_time(heard_wall_ms(host), when, sizeof(when)),
                 core->state == CORE_HOST_DOWN ? ""
                 : host->peer                  ? ": its link is silent"
                                               : ": its link is cut");
    else
        snprintf(text, size,
                 core->known || core->state == CORE_HOST_AWAITED ? "not heard since elmer was started at %s"
                                                                 : "never linked; elmer was started at %s",
                 at_time(host->hosts->began_ms, when, sizeof(when)));
}

static void drain_words(const struct hosts *hosts, const struct host *host, char *text, size_t size)
{
    const struct host_drain *drain = engine_drain(hosts->room.engine, host->index);
    char when[40];
    if (drain)
        snprintf(text, size, "drained by %s %s ago%s%s", drain->by,
                 how_long(wall_now().ms - drain->at_ms, when, sizeof(when)), *drain->text ? ": " : "", drain->text);
    else
        snprintf(text, size, "drained: it takes no new jobs");
}

/* All that stops it, else where it is. */
static void reason_of(const struct hosts *hosts, struct host *host, const struct core_host *core)
{
    const char *const local = host->peer && host->peer->local ? "local" : "";
    char link[REFUSED_SIZE + 100], drained[600] = "";
    link_words(host, core, link, sizeof(link));
    if (core->drained)
        drain_words(hosts, host, drained, sizeof(drained));
    const char *parts[] = {link,
                           core->retired ? "taken out of the configuration: removed when its jobs have ended" : "",
                           drained, host->peer ? host->mode_reason : ""};
    size_t used = 0;
    *host->reason = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (*parts[i] && used < sizeof(host->reason))
            used +=
                (size_t)snprintf(host->reason + used, sizeof(host->reason) - used, "%s%s", used ? "; " : "", parts[i]);
    if (!used)
        snprintf(host->reason, sizeof(host->reason), "%s", local);
}

/* The queue host, also while its rsd is away. */
static bool is_here(const struct host *host)
{
    return strcmp(settings_of(host)->name, host->hosts->settings->queue_host) == 0;
}

void hosts_view(const struct hosts *hosts, int index, struct wire_host_view *view)
{
    struct host *host = hosts->hosts[index];
    const struct core_host *core = core_host(engine_core(hosts->room.engine), index);
    const struct host_load load = core->state == CORE_HOST_UP ? host->load : LOAD_UNKNOWN;
    const struct host_drain *drain = engine_drain(hosts->room.engine, index);
    reason_of(hosts, host, core);
    *view = (struct wire_host_view){.host = settings_of(host)->name,
                                    .state = state_name(host, core),
                                    .processors = (uint64_t)host->ncpus,
                                    .mode = host->mode,
                                    .address = host->address,
                                    .version = host->peer ? host->version : "",
                                    .valid_until_ms = -1,
                                    .reason = host->reason,
                                    .lacks = {(const char **)host->lacks, host->nlacks},
                                    .local = is_here(host),
                                    .heard_ms = heard_wall_ms(host),
                                    .refused_ms = host->refused ? host->refused_ms : -1,
                                    .refused = host->refused,
                                    .drained_by = drain ? drain->by : "",
                                    .drained_for = drain ? drain->text : "",
                                    .drained_ms = drain ? drain->at_ms : -1,
                                    .busy = load.busy,
                                    .busy_jobs = load.jobs,
                                    .memory_bytes = load.memory_bytes,
                                    .memory_free_bytes = load.memory_free_bytes};
    core_memory(engine_core(hosts->room.engine), index, &view->memory_for_jobs_bytes, &view->memory_asked_bytes);
}

struct host_facts hosts_facts(const struct hosts *hosts, int index)
{
    const struct host *host = hosts->hosts[index];
    return (struct host_facts){.name = settings_of(host)->name,
                               .address = host->address,
                               .launchers = core_host(engine_core(hosts->room.engine), index)->offers,
                               .name_loopback = host->name_loopback,
                               .limits_memory = host->limits_memory};
}

const char *hosts_local_address(const struct hosts *hosts, int index)
{
    const struct peer *peer = hosts->hosts[index]->peer;
    const char *address = peer && !peer->local ? link_local_address(peer->link) : "";
    if (strncmp(address, "::ffff:", 7) == 0)
        address += 7;
    return strchr(address, ':') ? "" : address;
}

size_t hosts_count_linked(const struct hosts *hosts)
{
    size_t count = 0;
    for (int i = 0; i < hosts->nhosts; i++)
        count += hosts->hosts[i]->peer != NULL;
    return count;
}

size_t hosts_count(const struct hosts *hosts)
{
    size_t count = 0;
    for (int i = 0; i < hosts->nhosts; i++)
        count += !core_host_gone(engine_core(hosts->room.engine), i);
    return count;
}
