/* client_asked.c - what was asked for when a job was submitted. */
#include "config.h"

#include <errno.h>

#include "libelmer/client.h"

static int take_asked(struct wire_message *answer, void *data)
{
    struct wire_message *asked = data;

    if (answer->type != WIRE_asked)
        return -EPROTO;
    wire_message_fini(asked);
    *asked = *answer;
    answer->memory = NULL;
    return 0;
}

int client_asked(struct elmer *elmer, uint64_t job, int timeout_ms, struct wire_message *asked,
                 struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_query_asked, .u.query_asked = {.job = job}};
    struct client_call call = {.take = take_asked, .data = asked};

    *asked = (struct wire_message){.type = WIRE_asked};
    return client_call(elmer, &request, &call, timeout_ms, error);
}
