/* client_terminal.c - jobs with a terminal: how they are submitted, and where their terminal is. What is typed and
 * shown goes between eattach and the host; libelmer has no part in that. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/variable.h"
#include "lib/job/terminal.h"
#include "libelmer/client.h"

int client_terminal(const struct elmer_submission *submission, const char ***environment, struct elmer_error *error)
{
    static const char pty[] = TERMINAL_VARIABLE "=" TERMINAL_PTY, keep[] = TERMINAL_VARIABLE "=" TERMINAL_KEEP;
    const char *const *given = submission->environment;
    size_t count = 0;

    if (!terminal_is_known(submission->terminal))
        return client_error(error, ELMER_USAGE, "there is no terminal of that kind: \"%s\" or \"%s\"", TERMINAL_PTY,
                            TERMINAL_KEEP);
    for (; given && given[count]; count++)
        if (variable_value(given[count], TERMINAL_VARIABLE))
            return client_error(error, ELMER_USAGE, "the variable %s is Elmer's own: leave it out", TERMINAL_VARIABLE);
    *environment = calloc(count + 2, sizeof(**environment));
    if (!*environment)
        return client_error(error, ELMER_FAILED, "out of memory");
    for (size_t i = 0; i < count; i++)
        (*environment)[i] = given[i];
    (*environment)[count] = strcmp(submission->terminal, TERMINAL_KEEP) == 0 ? keep : pty;
    return ELMER_OK;
}

struct place {
    struct client_reached *reached;
    char *host;
};

static int take_reached(struct wire_message *answer, void *data)
{
    const struct place *place = data;

    if (answer->type != WIRE_reached)
        return -EPROTO;
    place->reached->attempt = (uint32_t)answer->u.reached.attempt;
    place->reached->port = (uint16_t)answer->u.reached.port;
    snprintf(place->reached->address, sizeof(place->reached->address), "%s", answer->u.reached.address);
    snprintf(place->host, 256, "%s", answer->u.reached.host);
    return 0;
}

int client_reach_terminal(struct elmer *elmer, uint64_t job, int timeout_ms, struct client_reached *reached, char *host,
                          struct elmer_error *error)
{
    struct wire_message request = {.type = WIRE_reach, .u.reach = {.job = job, .host = "", .terminal = true}};
    struct place place = {reached, host};
    struct client_call call = {.take = take_reached, .data = &place};

    return client_call(elmer, &request, &call, timeout_ms, error);
}
