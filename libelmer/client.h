/* client.h - inside the client library: the connection and one request with its answers. */
#ifndef LIBELMER_CLIENT_H
#define LIBELMER_CLIENT_H

#include "libelmer/elmer.h"
#include "lib/wire/channel.h"
#include "lib/wire/wire.h"

/* Called for each answer with the request's id that is not an error. Returns 1 if more are to come, 0 after the last,
 * -ENOMEM, -EPROTO. May move the message away (memory = NULL). */
typedef int (*client_take)(struct wire_message *answer, void *data);
/* The connection broke: forget what was taken, all of it comes again. */
typedef void (*client_restart)(void *data);
/* Add what is only known now to a request that is to be sent, by the deadline (monotonic ms). Returns an enum
 * elmer_result. */
typedef int (*client_prepare)(struct wire_message *request, int64_t deadline_ms, void *data, struct elmer_error *error);

struct client_call {
    client_take take;
    client_restart restart; /* may be NULL */
    client_prepare prepare; /* may be NULL; once, as soon as there is a connection */
    bool prepared;
    void *data;
    bool repeated; /* out: the request was sent more than once */
    bool too_old;  /* out, with ELMER_FAILED: somebody on the way to elmer, or elmer itself, does not know this request
                      yet */
};

/* Send and wait for the answer, connecting as often as needed. Fills in request->id. Returns an enum elmer_result. */
int client_call(struct elmer *elmer, struct wire_message *request, struct client_call *call, int timeout_ms,
                struct elmer_error *error);
/* What both ends of the last connection know. */
unsigned client_minor(const struct elmer *elmer);
/* What elmer said of each of the jobs, in their order; NULL of a list of lines. */
const struct wire_job_view *const *client_views(const struct elmer_jobs *jobs);
/* The connection to where the local rsd signs; it closes it when it needs the place. */
struct client_desk {
    const char *beside; /* the socket that the caller of elmer_open() has named; NULL: none */
    struct channel channel;
    bool connected;
};
struct client_desk *client_desk(struct elmer *elmer);
void client_desk_close(struct client_desk *desk);
/* Ask the local rsd to sign the submission: it gets its ticket, which lives as long as answer. Where nobody signs it
 * goes without, and so does one that cannot be signed as it is: elmer says what is wrong with it. Returns ELMER_OK, or
 * ELMER_UNAVAILABLE: not now. deadline_ms is monotonic. */
int client_ticket(struct client_desk *desk, struct wire_message *submit, int64_t deadline_ms,
                  struct wire_message *answer, struct elmer_error *error);
/* A decision, which elmer has refused as it stands (-> not-permitted), signed by the local rsd with elmer's challenge:
 * the message decide, whose texts live as long as answer and *json, the caller's. ELMER_OK; else with a text why not.
 */
int client_warrant(struct client_desk *desk, const struct wire_message *request, unsigned minor, const char *challenge,
                   int64_t deadline_ms, struct wire_message *decide, struct wire_message *answer, char **json,
                   struct elmer_error *error);
/* Where the courier of a running job on that host listens; it is started if there is none. gone: not at this port any
 * more, 0: nothing is known. address: "" on this host. Returns an enum elmer_result. */
struct client_reached {
    uint32_t attempt;
    uint16_t port;
    char address[65];
};
int client_reach(struct elmer *elmer, uint64_t job, const char *host, uint16_t gone, int timeout_ms,
                 struct client_reached *reached, struct elmer_error *error);
/* The same for what holds the terminal of a running job; host (256 bytes): where that is. ELMER_WRONG_STATE: the job
 * does not run now, or not yet. */
int client_reach_terminal(struct elmer *elmer, uint64_t job, int timeout_ms, struct client_reached *reached, char *host,
                          struct elmer_error *error);
/* The environment of a job with a terminal, which says so there, for who signs it: *environment is to be freed. Returns
 * an enum elmer_result. */
int client_terminal(const struct elmer_submission *submission, const char ***environment, struct elmer_error *error);
/* What was asked for when the job was submitted, without environment, token and ticket: a message to be ended by
 * wire_message_fini() in any case. Returns an enum elmer_result. */
int client_asked(struct elmer *elmer, uint64_t job, int timeout_ms, struct wire_message *asked,
                 struct elmer_error *error);
/* Fill in the text and return result. */
int client_error(struct elmer_error *error, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
