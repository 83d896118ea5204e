/* client_reach.c - where the courier of a job on a host listens. */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "libelmer/client.h"

static int take_reached(struct wire_message *answer, void *data)
{
    struct client_reached *reached = data;

    if (answer->type != WIRE_reached)
        return -EPROTO;
    reached->attempt = (uint32_t)answer->u.reached.attempt;
    reached->port = (uint16_t)answer->u.reached.port;
    snprintf(reached->address, sizeof(reached->address), "%s", answer->u.reached.address);
    return 0;
}

int client_reach(struct elmer *elmer, uint64_t job, const char *host, uint16_t gone, int timeout_ms,
                 struct client_reached *reached, struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_reach, .u.reach = {.job = job, .host = host, .gone = gone}};
    struct client_call call = {.take = take_reached, .data = reached};

    return client_call(elmer, &request, &call, timeout_ms, error);
}
