/* client_asked.c - what was asked for when a job was submitted. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/job/fields.h"
#include "libelmer/client.h"

struct asked {
    struct elmer_submission submission; /* first: what the caller sees */
    struct wire_message message;        /* which has its texts */
    const char **command, **hosts, **after;
};

static int take_asked(struct wire_message *answer, void *data)
{
    struct asked *asked = data;

    if (answer->type != WIRE_asked)
        return -EPROTO;
    wire_message_fini(&asked->message);
    asked->message = *answer;
    answer->memory = NULL;
    return 0;
}

/* With a NULL at its end; false: out of memory. */
static bool list_of(const struct wire_strs *strs, const char ***list)
{
    *list = calloc(strs->count + 1, sizeof(**list));
    if (*list && strs->count > 0)
        memcpy(*list, strs->items, strs->count * sizeof(**list));
    return *list != NULL;
}

static const char *text_or_null(const char *text)
{
    return text && *text ? text : NULL;
}

/* A text that is empty was not asked for. */
#define SET_LINE(name) s->name = text_or_null(s->name);
#define SET_ASKED(name, type, core, since, shown, line, seen, json, option, ...)                                       \
    JOB_IF(PLAIN, option, s->name = JOB_CAST(option, from->name); JOB_IF_AGAIN(LINE, type, SET_LINE(name)))

static int then_present(struct client_call *call, int result)
{
    struct asked *asked = call->data;
    struct elmer_submission *s = &asked->submission;
    const struct wire_submit *from = &asked->message.u.submit;

    if (result != ELMER_OK)
        return result;
    if (!list_of(&from->command, &asked->command) || !list_of(&from->hosts, &asked->hosts) ||
        !list_of(&from->after, &asked->after))
        return client_error(call->error, ELMER_FAILED, "out of memory");
    JOB_FIELDS(SET_ASKED, JOB_NONE, JOB_NONE)
    s->command = asked->command;
    s->hosts = from->hosts.count > 0 ? asked->hosts : NULL;
    s->after = from->after.count > 0 ? asked->after : NULL;
    s->name = text_or_null(from->name);
    s->dir = text_or_null(from->dir);
    s->output = text_or_null(from->output);
    s->errors = text_or_null(from->errors);
    s->tasks = text_or_null(from->tasks);
    s->lines = text_or_null(from->lines);
    s->terminal = text_or_null(from->terminal);
    s->umask = (int)from->umask | ELMER_UMASK_SET;
    return ELMER_OK;
}

static void free_asked(void *data)
{
    struct asked *asked = data;

    if (!asked)
        return;
    wire_message_fini(&asked->message);
    free(asked->command);
    free(asked->hosts);
    free(asked->after);
    free(asked);
}

static struct elmer_call *make(struct elmer *elmer, uint64_t job)
{
    const struct wire_message request = {.type = WIRE_query_asked, .u.query_asked = {.job = job}};
    struct asked *asked = calloc(1, sizeof(*asked));
    const struct client_call call = {.take = take_asked, .then = then_present, .data = asked};

    return client_call_create(elmer, &request, &call, asked, free_asked);
}

int elmer_asked(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_submission **asked,
                struct elmer_error *error)
{
    return client_call_run(make(elmer, job), timeout_ms, (void **)asked, error);
}

int elmer_asked_begin(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_call **call,
                      struct elmer_error *error)
{
    return client_call_begin(make(elmer, job), timeout_ms, call, error);
}

struct elmer_submission *elmer_call_asked(struct elmer_call *call)
{
    return client_call_answer(call, free_asked);
}

void elmer_asked_free(struct elmer_submission *asked)
{
    free_asked(asked);
}
