#include "config.h"

#include "client/host_pages.h"

#include <errno.h>
#include <stdlib.h>

#include "client/common.h"

static void forget(void *data)
{
    struct host_pages *pages = data;

    for (size_t i = 0; i < pages->count; i++)
        wire_message_fini(&pages->items[i]);
    pages->count = 0;
}

static int take(struct wire_message *page, void *data)
{
    struct host_pages *pages = data;

    if (page->type != WIRE_hosts)
        return -EPROTO;
    pages->items = must(reallocarray(pages->items, pages->count + 1, sizeof(*pages->items)));
    pages->items[pages->count++] = *page;
    page->memory = NULL;
    return page->u.hosts.more ? 1 : 0;
}

int host_pages_ask(struct elmer *elmer, struct host_pages *pages, struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_query_hosts};
    struct client_call call = {.take = take, .restart = forget, .data = pages};

    *pages = (struct host_pages){.count = 0};
    return client_call(elmer, &request, &call, ANSWER_MS, error);
}

void host_pages_free(struct host_pages *pages)
{
    forget(pages);
    free(pages->items);
    pages->items = NULL;
}
