/* client_explain.c - why a job waits. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "libelmer/client.h"

/* The pages as they came; the strings of the public view stay in them. */
struct reasons {
    struct elmer_explained explained; /* first: what the caller sees */
    struct elmer_host_why *hosts;
    struct wire_message *pages;
    size_t npages;
};

static void forget(void *data)
{
    struct reasons *reasons = data;

    for (size_t i = 0; i < reasons->npages; i++)
        wire_message_fini(&reasons->pages[i]);
    reasons->npages = 0;
}

static void free_reasons(void *data)
{
    struct reasons *reasons = data;

    if (!reasons)
        return;
    forget(reasons);
    free(reasons->pages);
    free(reasons->hosts);
    free(reasons);
}

static int take_page(struct wire_message *answer, void *data)
{
    struct reasons *reasons = data;
    struct wire_message *grown;

    if (answer->type != WIRE_explained)
        return -EPROTO;
    grown = reallocarray(reasons->pages, reasons->npages + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    reasons->pages = grown;
    grown[reasons->npages++] = *answer;
    answer->memory = NULL;
    return grown[reasons->npages - 1].u.explained.more;
}

static int present_hosts(struct reasons *reasons)
{
    size_t count = 0, at = 0;

    for (size_t i = 0; i < reasons->npages; i++)
        count += reasons->pages[i].u.explained.hosts.count;
    reasons->explained.hosts = reasons->hosts = calloc(count ? count : 1, sizeof(*reasons->hosts));
    if (!reasons->hosts)
        return -ENOMEM;
    for (size_t i = 0; i < reasons->npages; i++)
        for (size_t k = 0; k < reasons->pages[i].u.explained.hosts.count; k++) {
            const struct wire_host_why *host = &reasons->pages[i].u.explained.hosts.items[k];

            reasons->hosts[at++] = (struct elmer_host_why){.host = host->host,
                                                           .rule = host->rule,
                                                           .processors = (uint32_t)host->processors,
                                                           .usable = (uint32_t)host->usable,
                                                           .text = host->text,
                                                           .help = host->help};
        }
    reasons->explained.nhosts = at;
    return 0;
}

/* What is said of the job is the same on each page. */
static int then_present(struct client_call *call, int result)
{
    struct reasons *reasons = call->data;
    const struct wire_explained *page;

    if (result != ELMER_OK)
        return result;
    page = &reasons->pages[0].u.explained;
    reasons->explained = (struct elmer_explained){.job = page->job,
                                                  .state = page->state,
                                                  .level = (int)page->level,
                                                  .nprocs = (uint32_t)page->nprocs,
                                                  .reason_code = page->reason_code,
                                                  .reason = page->reason,
                                                  .help = page->help,
                                                  .ahead = (uint32_t)page->ahead,
                                                  .first = page->first,
                                                  .first_reason = page->first_reason,
                                                  .above = page->above.items,
                                                  .nabove = page->above.count};
    return present_hosts(reasons) < 0 ? client_error(call->error, ELMER_FAILED, "out of memory") : ELMER_OK;
}

static struct elmer_call *make(struct elmer *elmer, uint64_t job)
{
    const struct wire_message request = {.type = WIRE_explain, .u.explain = {.job = job}};
    struct reasons *reasons = calloc(1, sizeof(*reasons));
    const struct client_call call = {.take = take_page, .restart = forget, .then = then_present, .data = reasons};

    return client_call_create(elmer, &request, &call, reasons, free_reasons);
}

int elmer_explain(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_explained **explained,
                  struct elmer_error *error)
{
    return client_call_run(make(elmer, job), timeout_ms, (void **)explained, error);
}

int elmer_explain_begin(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_call **call,
                        struct elmer_error *error)
{
    return client_call_begin(make(elmer, job), timeout_ms, call, error);
}

struct elmer_explained *elmer_call_explained(struct elmer_call *call)
{
    return client_call_answer(call, free_reasons);
}

void elmer_explained_free(struct elmer_explained *explained)
{
    free_reasons(explained);
}

const struct wire_message *client_explained_pages(const struct elmer_explained *explained, size_t *count)
{
    const struct reasons *reasons = (const struct reasons *)explained;

    *count = reasons->npages;
    return reasons->pages;
}
