/* client_hosts.c - the hosts of the cluster. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/client.h"

/* The pages as they came; the strings of the public view stay in them. */
struct hosts {
    struct elmer_host_list list; /* first: what the caller sees */
    struct elmer_host *items;
    struct wire_message *pages;
    size_t npages;
};

static void forget(void *data)
{
    struct hosts *hosts = data;

    for (size_t i = 0; i < hosts->npages; i++)
        wire_message_fini(&hosts->pages[i]);
    hosts->npages = 0;
}

static void free_hosts(void *data)
{
    struct hosts *hosts = data;

    if (!hosts)
        return;
    forget(hosts);
    free(hosts->pages);
    free(hosts->items);
    free(hosts);
}

static int take_page(struct wire_message *answer, void *data)
{
    struct hosts *hosts = data;
    struct wire_message *grown;

    if (answer->type != WIRE_hosts)
        return -EPROTO;
    grown = reallocarray(hosts->pages, hosts->npages + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    hosts->pages = grown;
    grown[hosts->npages++] = *answer;
    answer->memory = NULL;
    return grown[hosts->npages - 1].u.hosts.more;
}

/* An rsd of before has said nothing of its memory, and an elmer of before nothing at all: 0. */
static struct elmer_host host_of(const struct wire_host_view *view)
{
    bool known = view->memory_bytes != 0;

    return (struct elmer_host){.host = view->host,
                               .state = view->state,
                               .reason = view->reason,
                               .processors = (uint32_t)view->processors,
                               .jobs = (uint32_t)view->jobs,
                               .mode = view->mode,
                               .lacks = view->lacks.items,
                               .nlacks = view->lacks.count,
                               .busy = known ? view->busy : -1,
                               .busy_jobs = known ? view->busy_jobs : -1,
                               .memory_bytes = known ? view->memory_bytes : -1,
                               .memory_free_bytes = known ? view->memory_free_bytes : -1,
                               .memory_for_jobs_bytes = view->memory_for_jobs_bytes,
                               .memory_asked_bytes = view->memory_asked_bytes};
}

static int then_present(struct client_call *call, int result)
{
    struct hosts *hosts = call->data;
    size_t count = 0, at = 0;

    if (result != ELMER_OK)
        return result;
    for (size_t i = 0; i < hosts->npages; i++)
        count += hosts->pages[i].u.hosts.hosts.count;
    hosts->list.items = hosts->items = calloc(count ? count : 1, sizeof(*hosts->items));
    if (!hosts->items)
        return client_error(call->error, ELMER_FAILED, "out of memory");
    for (size_t i = 0; i < hosts->npages; i++)
        for (size_t k = 0; k < hosts->pages[i].u.hosts.hosts.count; k++)
            hosts->items[at++] = host_of(&hosts->pages[i].u.hosts.hosts.items[k]);
    hosts->list.count = at;
    return ELMER_OK;
}

static struct elmer_call *make(struct elmer *elmer)
{
    const struct wire_message request = {.type = WIRE_query_hosts};
    struct hosts *hosts = calloc(1, sizeof(*hosts));
    const struct client_call call = {.take = take_page, .restart = forget, .then = then_present, .data = hosts};

    return client_call_create(elmer, &request, &call, hosts, free_hosts);
}

int elmer_query_hosts(struct elmer *elmer, int timeout_ms, struct elmer_host_list **hosts, struct elmer_error *error)
{
    return client_call_run(make(elmer), timeout_ms, (void **)hosts, error);
}

int elmer_query_hosts_begin(struct elmer *elmer, int timeout_ms, struct elmer_call **call, struct elmer_error *error)
{
    return client_call_begin(make(elmer), timeout_ms, call, error);
}

struct elmer_host_list *elmer_call_hosts(struct elmer_call *call)
{
    return client_call_answer(call, free_hosts);
}

void elmer_host_list_free(struct elmer_host_list *hosts)
{
    free_hosts(hosts);
}

size_t client_share(const struct elmer_job *job, const char *host)
{
    size_t count = 0;

    for (size_t i = 0; i < job->nprocessors; i++)
        count += strcmp(job->processors[i].host, host) == 0;
    return count;
}
