#include "config.h"

#include "client/answers.h"

#include <errno.h>
#include <stdlib.h>

#include "client/common.h"

static void forget(void *data)
{
    struct answers *answers = data;

    for (size_t i = 0; i < answers->count; i++)
        wire_message_fini(&answers->pages[i]);
    answers->count = 0;
}

static bool more(const struct wire_message *page)
{
    return page->type == WIRE_hosts ? page->u.hosts.more : page->u.explained.more;
}

static int take(struct wire_message *page, void *data)
{
    struct answers *answers = data;

    if (page->type != answers->type)
        return -EPROTO;
    answers->pages = must(reallocarray(answers->pages, answers->count + 1, sizeof(*answers->pages)));
    answers->pages[answers->count++] = *page;
    page->memory = NULL;
    return more(page) ? 1 : 0;
}

int answers_ask(struct elmer *elmer, struct wire_message *request, enum wire_type type, struct answers *answers,
                struct elmer_error *error)
{
    struct client_call call = {.take = take, .restart = forget, .data = answers};

    *answers = (struct answers){.type = type};
    return client_call(elmer, request, &call, ANSWER_MS, error);
}

void answers_free(struct answers *answers)
{
    forget(answers);
    free(answers->pages);
    answers->pages = NULL;
}
