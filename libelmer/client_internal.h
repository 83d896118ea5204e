/* client_internal.h - struct elmer, and what the files of its machine call of each other: client_link.c (the
 * connection), client_call.c (requests), client_loop.c (waiting), client_calls.c (what the public functions begin). */
#ifndef LIBELMER_CLIENT_INTERNAL_H
#define LIBELMER_CLIENT_INTERNAL_H

#include "libelmer/client.h"

/* Inside a call, beside enum elmer_result. */
enum {
    TRY_AGAIN = -1,  /* the connection failed */
    NOT_LINKED = -2, /* rsd has no link to elmer now */
    TOO_OLD = -4,    /* the other side, or elmer behind it, does not know the request */
};

enum client_link { LINK_NONE, LINK_HELLO, LINK_OPEN };

struct elmer {
    const char *sockets[2]; /* in the order of trying */
    size_t nsockets;
    char *own_socket;
    int patience_ms;
    void (*on_wait)(const char *why, void *data);
    void *data;
    char capability[64]; /* in our hello; "": none */
    int page_ms;         /* how long a call goes on after a page at least; 0: its timeout alone counts */
    void (*on_slow)(void);
    /* the connection */
    enum client_link link;
    unsigned link_number; /* of connections so far */
    int64_t hello_deadline_ms;
    struct channel channel;
    unsigned minor; /* what the peer spoke last, ours at first: what is said before its hello is written in this */
    bool heard;     /* the last connection had the peer's hello */
    struct client_watch watch;
    size_t at; /* index of the socket in use */
    /* what is asked, the oldest first */
    struct client_call *first;
    uint64_t next_id;
    bool again;        /* a call has ended, which may let others go on, since they were looked at */
    unsigned on_link;  /* calls in SEND and ANSWER */
    unsigned given_up; /* ... and answers that still come for calls that have gone */
    struct client_desk desk;
    /* client_calls.c and client_loop.c */
    int epoll;      /* -1: nobody has asked for it */
    bool unwatched; /* it does not have all that is waited for */
    struct elmer_call *calls, *ended, **last_ended;
};

/* ---- client_link.c ---- */

/* Begin to connect. ELMER_OK; TRY_AGAIN, ELMER_FAILED with a text. */
int client_link_begin(struct elmer *elmer, struct elmer_error *error);
void client_link_end(struct elmer *elmer);
/* It broke: the calls on it are told why. */
void client_link_lose(struct elmer *elmer, const char *why);
/* Write and read as far as it goes, and hand on what came. readable: there may be something. */
void client_link_step(struct elmer *elmer, bool readable);

/* ---- client_call.c ---- */

/* The connection is no more: result and why, for all calls on it. */
void client_calls_lost(struct elmer *elmer, int result, const char *text);
/* A try has ended with this result; sent: after the request may have arrived. */
void client_call_tried(struct elmer *elmer, struct client_call *call, int result, bool sent);
/* The same for all that are chosen, with one sentence: what is done to one may end others. */
void client_calls_tell(struct elmer *elmer, int result, const char *text);
/* In SEND or ANSWER. */
bool client_call_on_link(const struct client_call *call);
/* client_answer.c: it has taken too long; with what result it ends, and why in its error. */
int client_call_late(const struct elmer *elmer, const struct client_call *call);
/* client_answer.c: it ends with nobody reached; says in its error if that is no answer to something that was sent. */
void client_call_doubt(const struct client_call *call);
/* client_answer.c: a message of elmer, which stays the caller's. */
void client_calls_take(struct elmer *elmer, struct wire_message *message);
/* All that was written has gone out. */
void client_calls_written(struct elmer *elmer);
/* The peer's hello is there; minor: in which was written what went before it. Perhaps the connection is ended. */
void client_calls_heard(struct elmer *elmer, unsigned minor);
/* The peer will not read, or carry out, what was written. */
void client_calls_unsaid(struct elmer *elmer);
/* Begin what can be begun, and end what is over. */
void client_calls_step(struct elmer *elmer);
/* When client_calls_step() is to be called at the latest; INT64_MAX: never. */
int64_t client_calls_until_ms(const struct elmer *elmer);

/* ---- client_loop.c ---- */

/* All of it, as far as it goes without blocking. */
void client_step(struct elmer *elmer, bool link_readable, bool desk_readable);
/* Until the call has ended. */
void client_wait(struct elmer *elmer, const struct client_call *call);
/* The epoll set, if there is one, has what is waited for now. */
void client_watch_all(struct elmer *elmer);

#endif
