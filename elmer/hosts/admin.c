/* admin.c - what others do with links: answer a peer, cut a host off, show all of them. */
#include "config.h"

#include "elmer/hosts/internal.h"

#include <stdio.h>
#include <string.h>

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
        if (peer->closing || (peer != host->peer && (!name || strcmp(name, host->settings->name))))
            continue;
        if (peer->host)
            peer->host = NULL;
        hosts_peer_refuse(peer, 0, text);
    }
    forget_challenger(host);
    if (host->peer)
        host_cut(host);
}

void hosts_cut_off(struct hosts *hosts, int index, bool give_up, const char *text)
{
    struct host *host = hosts->hosts[index];
    if (give_up)
        end_jobs(host);
    close_links(host, text);
    if (give_up && !host->peer && host_state(host) != CORE_HOST_DOWN) {
        log_warning("host=%s is given up: %s", host->settings->name, text);
        deadline_clear(hosts->room.deadlines, &host->deadline);
        host_tell_down(host);
    }
}

void hosts_on_gone(int index, void *data)
{
    struct hosts *hosts = data;
    struct host *host = hosts->hosts[index];
    log_notice("host=%s is removed: it was taken out of the configuration, and has no job any more",
               host->settings->name);
    close_links(host, "this host was taken out of the configuration of elmer");
    deadline_clear(hosts->room.deadlines, &host->deadline);
    if (host_state(host) != CORE_HOST_DOWN)
        host_tell_down(host);
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

void hosts_view(const struct hosts *hosts, int index, struct wire_host_view *view)
{
    struct host *host = hosts->hosts[index];
    const struct core_host *core = core_host(engine_core(hosts->room.engine), index);
    const struct host_load load = core->state == CORE_HOST_UP ? host->load : LOAD_UNKNOWN;
    *view = (struct wire_host_view){.host = host->settings->name,
                                    .state = state_name(host, core),
                                    .processors = (uint64_t)host->ncpus,
                                    .mode = host->mode,
                                    .address = host->address,
                                    .valid_until_ms = -1,
                                    .reason = core->state == CORE_HOST_AWAITED ? "not heard of since elmer was started"
                                              : core->state == CORE_HOST_SILENT && !host->peer ? "its link is cut"
                                              : core->state == CORE_HOST_SILENT ? "nothing is heard over its link"
                                              : core->retired
                                                  ? "taken out of the configuration: removed when its jobs have ended"
                                              : host->unusable && host->peer ? host->unusable
                                              : core->drained                ? "drained: it takes no new jobs"
                                                                             : host->mode_reason,
                                    .lacks = {(const char **)host->lacks, host->nlacks},
                                    .busy = load.busy,
                                    .busy_jobs = load.jobs,
                                    .memory_bytes = load.memory_bytes,
                                    .memory_free_bytes = load.memory_free_bytes};
}

struct host_facts hosts_facts(const struct hosts *hosts, int index)
{
    const struct host *host = hosts->hosts[index];
    return (struct host_facts){.name = host->settings->name,
                               .address = host->address,
                               .launchers = core_host(engine_core(hosts->room.engine), index)->offers,
                               .name_loopback = host->name_loopback};
}

const char *hosts_local_address(const struct hosts *hosts, int index)
{
    const struct peer *peer = hosts->hosts[index]->peer;
    const char *address = peer && !peer->local ? link_local_address(peer->link) : "";
    if (!strncmp(address, "::ffff:", 7))
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
