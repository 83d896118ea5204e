#include "config.h"

#include "elmer/requests/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 256 };

static void view_host(const struct requests *requests, int host, struct wire_host_view *view)
{
    const struct certificate *certificate = membership_newest(requests->membership, host);
    hosts_view(requests->hosts, host, view);
    view->certificate = certificate != NULL;
    view->valid_until_ms = certificate ? certificate->end_ms : -1;
}

/* [hosts] jobs that have processors there; the caller's. */
static uint32_t *count_jobs(struct engine *engine, int hosts)
{
    uint32_t *jobs = mem_array((size_t)hosts, sizeof(*jobs));
    uint64_t *last = mem_array((size_t)hosts, sizeof(*last)), cursor = 0;
    for (const struct core_job *job; (job = core_next_job(engine_core(engine), &cursor));)
        for (uint32_t i = 0; job->processors && job->state != JOB_DONE && i < job->nprocs; i++) {
            int host = job->processors[i].host;
            jobs[host] += last[host] != job->id;
            last[host] = job->id;
        }
    free(last);
    return jobs;
}

void admin_query_hosts(struct request *request)
{
    const struct requests *requests = request->requests;
    int count = engine_host_count(requests->room.engine), host = 0;
    struct wire_host_view views[PAGE];
    uint32_t *jobs = count_jobs(requests->room.engine, count);
    do {
        struct wire_message message = {.type = WIRE_hosts, .id = request->id};
        size_t n = 0;
        for (; host < count && n < PAGE; host++) {
            if (core_host_gone(engine_core(requests->room.engine), host))
                continue;
            view_host(requests, host, &views[n]);
            views[n++].jobs = jobs[host];
        }
        message.u.hosts.hosts.items = views;
        message.u.hosts.hosts.count = n;
        message.u.hosts.more = host < count;
        request_send(request, &message);
    } while (host < count);
    free(jobs);
    request_end(request);
}

static bool is_queue_host(const struct request *request, const char *host)
{
    return strcmp(host, request->requests->settings->queue_host) == 0;
}

/* It is on disk. */
static void on_removed(const struct engine_wait *wait)
{
    struct request *request = requests_find(wait->owner, wait->number);
    if (!request)
        return;
    const char *host = request->message.u.remove_host.host;
    bool member = core_member_by_name(engine_core(request->requests->room.engine), host) >= 0;
    request_done(request, "host %s is removed: its certificates are revoked, its link is cut and its jobs end. %s",
                 host,
                 member ? "It is still in \"hosts = ...\" of elmer.conf, and can join again with a new token"
                        : "It is no host of the cluster any more; a token that names it lets it join again");
}

/* One that the configuration does not name is a host because it has joined. */
static bool is_joined(const struct requests *requests, const char *host)
{
    int index = core_member_by_name(engine_core(requests->room.engine), host);
    return index >= 0 && core_host(engine_core(requests->room.engine), index)->joined;
}

static void retire(struct requests *requests, int index)
{
    struct event event = {.type = EVENT_HOST_RETIRE, .host = index};
    engine_event(requests->room.engine, &event);
}

void admin_remove_host(struct request *request)
{
    struct requests *requests = request->requests;
    const char *host = request->message.u.remove_host.host;
    int index = core_host_by_name(engine_core(requests->room.engine), host);
    if (!request->admin) {
        request_not_admin(request, "remove hosts");
    } else if (is_queue_host(request, host)) {
        request_error(
            request, WIRE_CODE_REFUSED,
            "%s is the queue host: its rsd has no certificate; stop it, or take the host out of \"hosts = ...\"", host);
    } else if (!membership_revoke(requests->membership, host) && !is_joined(requests, host)) {
        request_error(request, WIRE_CODE_REFUSED, "%s%s", host,
                      index < 0 ? " is no host of the cluster" : " has no certificate: there is nothing to revoke");
    } else {
        struct decision decision;
        char lost[CORE_BY_TEXT];
        decide_begin(request, "removed", &decision);
        snprintf(lost, sizeof(lost), "was removed from the cluster by %s", decision.by);
        snprintf(decision.host, sizeof(decision.host), "%s", host);
        engine_note(requests->room.engine, &decision);
        if (index >= 0)
            hosts_cut_off(requests->hosts, index, lost,
                          "this host was removed from the cluster by an administrator, and its certificate revoked: "
                          "join again with a new token of `eadmin token` if it is to come back");
        if (is_joined(requests, host))
            retire(requests, index);
        request->holder = HOLDER_CORE;
        struct engine_wait wait = {
            .run = on_removed, .owner = requests, .urgency = ENGINE_ANSWER, .number = request->number, .host = -1};
        engine_after_commit(requests->room.engine, &wait);
    }
}

/* ---- its configuration ---- */

void requests_configured(struct requests *requests)
{
    clients_configured(requests->clients);
}
