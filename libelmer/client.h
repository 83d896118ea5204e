/* client.h - inside the client library: the connection, one request with its answers, and who signs it. */
#ifndef LIBELMER_CLIENT_H
#define LIBELMER_CLIENT_H

#include "libelmer/elmer.h"
#include "lib/wire/channel.h"
#include "lib/wire/wire.h"

/* ---- client_ticket.c: the local rsd signs ---- */

/* A question to it, and what has become of it. */
enum client_signing_state { SIGNING_NONE, SIGNING_TURN, SIGNING_PAUSE, SIGNING_ANSWER, SIGNING_DONE };
struct client_signing {
    /* client_ticket.c's own */
    enum client_signing_state state;
    const struct wire_message *question;
    bool is_submission;
    int64_t begun_ms, deadline_ms, pause_until_ms; /* monotonic, as all times here */
    bool kept;                                     /* by a connection that was there already */
    struct client_signing *next;
    /* SIGNING_DONE: */
    int result; /* 1: answered; 0: nobody signs here; negative: not now */
    struct wire_message answer;
    struct wire_message asks; /* a warrant's question */
    char *json;               /* ... and what it is about */
};
/* A descriptor in an epoll(7) set. It is taken out before it is closed: a child of fork(2) may hold it open. */
struct client_watch {
    bool on;
    int epoll, fd;
    short events;
};
/* events as poll(2) has them; 0: it is not watched, not even for its end. False: the kernel does not take it. */
bool client_watch_set(struct client_watch *watch, int epoll, int fd, short events);
void client_watch_end(struct client_watch *watch);

/* The connection to where it signs, which it closes when it needs the place; and who waits for it, the first is asked
 * now. */
struct client_desk {
    const char *beside; /* the socket that the caller of elmer_open() has named; NULL: none */
    struct channel channel;
    bool connected;
    struct client_signing *first;
    struct client_watch watch;
};
void client_desk_close(struct client_desk *desk);
/* Go on as far as it goes without blocking. readable: there may be something to read. */
void client_desk_step(struct client_desk *desk, bool readable);
/* For poll(2): what is waited for on desk->channel.fd, 0: nothing; and until when (monotonic ms, INT64_MAX: for ever).
 */
short client_desk_events(const struct client_desk *desk);
int64_t client_desk_until_ms(const struct client_desk *desk);
/* Have the submission signed by the deadline; it stays the caller's, who calls client_desk_step() until the signing is
 * SIGNING_DONE. Then client_ticket_take(): the submission gets its ticket, which lives as long as the signing. Where
 * no key is it goes without. Returns ELMER_OK; ELMER_UNAVAILABLE: not now; or ELMER_REFUSED: not as it is. */
void client_ticket_begin(struct client_desk *desk, struct client_signing *signing, const struct wire_message *submit,
                         int64_t deadline_ms);
int client_ticket_take(struct client_signing *signing, struct wire_message *submit, struct elmer_error *error);
/* The same for a decision, which elmer has refused as it stands (-> not-permitted), with elmer's challenge. take: the
 * message decide, whose texts live as long as the signing. Both return ELMER_OK; else with a text why not. */
int client_warrant_begin(struct client_desk *desk, struct client_signing *signing, const struct wire_message *request,
                         unsigned minor, const char *challenge, int64_t deadline_ms, struct elmer_error *error);
int client_warrant_take(struct client_signing *signing, unsigned minor, struct wire_message *decide,
                        struct elmer_error *error);
/* Give it up in any state, and free what it has. The caller's memory may go. */
void client_signing_drop(struct client_desk *desk, struct client_signing *signing);

/* ---- client_call.c: a request ---- */

struct client_call;
/* Called for each answer with the request's id that is not an error. Returns 1 if more are to come, 0 after the last,
 * -ENOMEM, -EPROTO. May move the message away (memory = NULL). */
typedef int (*client_take)(struct wire_message *answer, void *data);
/* The connection broke: forget what was taken, all of it comes again. */
typedef void (*client_restart)(void *data);
/* It has ended so (an enum elmer_result). Returns what the call ends with, or CLIENT_ASK: call->request is another one
 * now, which is asked by the same deadline. */
typedef int (*client_then)(struct client_call *call, int result);
enum { CLIENT_ASK = -100 };

/* CONNECT: as soon as there is a connection; TICKET, WARRANT: the local rsd signs; TURN: until it can be written; SEND:
 * not all of it is; ANSWER: the answers; PAUSE: before the next try. */
enum client_state {
    CLIENT_IDLE,
    CLIENT_CONNECT,
    CLIENT_TICKET,
    CLIENT_TURN,
    CLIENT_SEND,
    CLIENT_ANSWER,
    CLIENT_WARRANT,
    CLIENT_PAUSE,
    CLIENT_DONE,
    CLIENT_STATE_COUNT
};
/* What is asked of elmer: the request; for its challenge; the request, signed with that. */
enum client_step { CLIENT_REQUEST, CLIENT_CHALLENGE, CLIENT_DECIDE };
enum { CLIENT_CHALLENGE_TEXT = 65 }; /* as in messages.def, with the NUL */

struct client_call {
    client_take take;
    client_restart restart; /* may be NULL */
    client_then then;       /* may be NULL */
    bool signs;             /* a submission, for which a ticket is asked; once, as soon as there is a connection */
    void *data;
    bool repeated; /* out: the request was sent once without an answer, and perhaps again */
    bool too_old;  /* out, with ELMER_FAILED: somebody on the way to elmer, or elmer itself, does not know this request
                      yet */
    /* client_call.c's own */
    struct wire_message *request;
    struct elmer_error *error; /* may be NULL */
    enum client_state state;
    int result;                                                     /* of CLIENT_DONE */
    void (*on_done)(struct elmer *elmer, struct client_call *call); /* may be NULL */
    enum client_step step;
    bool is_signed, told, chosen;
    unsigned pages; /* of this try's answer, without the last */
    int64_t begun_ms;
    int64_t deadline_ms, missing_since_ms, pause_until_ms;
    int pause_ms;
    uint64_t id;
    unsigned link; /* whose number the challenge is from */
    char challenge[CLIENT_CHALLENGE_TEXT];
    unsigned signed_minor; /* in which the request is signed */
    struct client_signing signing;
    struct wire_message decide;
    struct client_call *next; /* of those that are not done */
};

/* Send and wait for the answer, connecting as often as needed. Fills in request->id. Returns an enum elmer_result. */
int client_call(struct elmer *elmer, struct wire_message *request, struct client_call *call, int timeout_ms,
                struct elmer_error *error);
/* The same without blocking: request, call and error stay where they are until the call is CLIENT_DONE, or dropped. */
void client_begin(struct elmer *elmer, struct wire_message *request, struct client_call *call, int timeout_ms,
                  struct elmer_error *error);
/* From now on calls of this handle go on for each_ms at least after each page of their answer, beyond their timeout:
 * for a program whose user can end what takes him too long. 0: no longer. on_slow() is called of each that has pages
 * and takes seconds. */
void client_wait_for_pages(struct elmer *elmer, int each_ms, void (*on_slow)(void));
/* This one has called sudo, as which the program runs; before the first call. A name that is too long is left out. */
void client_called_by(struct elmer *elmer, const char *user);
/* A part of the answer has come, more follows. */
void client_call_goes_on(struct elmer *elmer, struct client_call *call);
/* Free what it has, in any state; an answer that still comes is thrown away. */
void client_drop(struct elmer *elmer, struct client_call *call);
/* What both ends of the last connection know. */
unsigned client_minor(const struct elmer *elmer);

/* ---- client_calls.c: a request of the public functions, with its answer ---- */

struct elmer_call {
    struct client_call call; /* first */
    struct elmer *elmer;
    struct wire_message request;
    void *answer; /* call.data, until the caller takes it */
    void (*free_answer)(void *answer);
    struct elmer_error *text; /* in the answer: of a call that brings a sentence; NULL */
    struct elmer_error error;
    void *data;                       /* the caller's */
    bool waits;                       /* for the end of a job: its answer may take a minute */
    int margin_ms;                    /* then: so long before its end elmer answers */
    int64_t round_ends_ms;            /* ... or before, at this time, to be asked again */
    uint64_t *ids;                    /* of a query of more than one request has */
    size_t nids, asked;               /* so many of them, with those that the request has */
    struct elmer_call *next, **place; /* all of its elmer that do not block */
    struct elmer_call *next_ended;
};
/* It takes the answer over; NULL when out of memory (an answer of NULL is that, too), and then has freed it. */
struct elmer_call *client_call_create(struct elmer *elmer, const struct wire_message *request,
                                      const struct client_call *call, void *answer, void (*free_answer)(void *answer));
/* Both end what client_call_create() has made: run and return its result, with the answer in *answer if that is
 * ELMER_OK (else NULL); or begin it. NULL: out of memory. */
int client_call_run(struct elmer_call *call, int timeout_ms, void **answer, struct elmer_error *error);
int client_call_begin(struct elmer_call *call, int timeout_ms, struct elmer_call **begun, struct elmer_error *error);
/* The answer of a call that has ended well and has one of this kind; NULL otherwise. */
void *client_call_answer(struct elmer_call *call, void (*free_answer)(void *answer));

/* ---- client_fill.c: a submission becomes a message ---- */

enum { CLIENT_NAME_BYTES = 64 };
/* What the library has made for one submission. */
struct client_made {
    char *dir;
    char token[33];
    char host[256];
    char name[CLIENT_NAME_BYTES + 1];
    const char **environment; /* of a job with a terminal */
};
/* Check it, and fill in its defaults; submit lives as long as both. made: to be ended in any case. Returns ELMER_OK,
 * ELMER_USAGE, ELMER_FAILED. */
int client_fill(struct wire_submit *submit, const struct elmer_submission *submission, struct client_made *made,
                struct elmer_error *error);
void client_made_fini(struct client_made *made);

/* ---- client_notices.c: the notices of a job, as a chain of submissions ---- */

/* The text of a job script, which is nothing for notices: client/script.h. */
#define CLIENT_SCRIPT_VARIABLE "ELMER_SCRIPT"
struct client_notices;
/* *notices: what is asked for, in copies; NULL: nothing. Returns ELMER_OK, or an enum elmer_result with what is wrong
 * or missing on this host. */
int client_notices_create(const struct elmer *elmer, const struct elmer_notices *asked, struct client_notices **notices,
                          struct elmer_error *error);
void client_notices_destroy(struct client_notices *notices);
/* Of this job; before the first one is asked for. */
void client_notices_of(struct client_notices *notices, uint64_t job);
/* In a client_then: result is that of the notice before, ELMER_OK before the first one. Returns CLIENT_ASK with the
 * next one in call->request, which lives as long as the notices; ELMER_OK after the last; else the result of the one
 * that was not accepted, with what is in call->error. */
int client_notices_then(struct client_notices *notices, struct client_call *call, int result);
/* Behind that result: which end of the job, or both, nobody is told of. "end" */
const char *client_notices_missed(const struct client_notices *notices);
/* elmer_notify() that says so, too. */
int client_notify(struct elmer *elmer, uint64_t job, const struct elmer_notices *asked, int timeout_ms,
                  const char **missed, struct elmer_error *error);
/* What mail is given to: the program that is chosen, or where mail systems have theirs; NULL: there is none. */
const char *client_sendmail(const char *chosen);
/* elmer_submit() without the notices. */
int client_submit(struct elmer *elmer, const struct elmer_submission *submission, int timeout_ms,
                  struct elmer_submitted **submitted, struct elmer_error *error);

/* ---- what is asked ---- */

/* client_jobs.c: lists as they come; what create makes is a struct elmer_jobs when it is presented (0, -ENOMEM). */
struct client_filter {
    bool running, queued, any, latest_first, lines;
    int64_t since_ms;
};
void *client_jobs_create(struct client_filter filter);
void client_jobs_free(void *jobs);
int client_jobs_take(struct wire_message *answer, void *jobs);
void client_jobs_restart(void *jobs);
int client_jobs_present(void *jobs);
/* From now on whole jobs are taken; whether it was lines before. */
bool client_jobs_whole(void *jobs);

/* What elmer said of each of the jobs, in their order; NULL of a list of lines. */
const struct wire_job_view *const *client_views(const struct elmer_jobs *jobs);
/* As elmer_explained_json(), of several. */
char *client_explained_json(const struct elmer_explained *const *explained, size_t count);
/* As elmer_host_list_json(), of some of them. */
char *client_hosts_json(const struct elmer_host *const *hosts, size_t count, const struct elmer_jobs *jobs);
/* How many processors the job has on that host. */
size_t client_share(const struct elmer_job *job, const char *host);
/* client_explain.c: in what messages it has come. */
const struct wire_message *client_explained_pages(const struct elmer_explained *explained, size_t *count);
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
/* Fill in the text and return result. */
int client_error(struct elmer_error *error, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
