/* requests.h - what clients ask for, from the message to the answer. */
#ifndef ELMER_REQUESTS_REQUESTS_H
#define ELMER_REQUESTS_REQUESTS_H

#include "elmer/requests/clients.h"

enum request_holder { HOLDER_NONE, HOLDER_USERS, HOLDER_CORE, HOLDER_STORE, HOLDER_QUERY, HOLDER_WAIT };

struct request {
    struct daemon *daemon;
    uint64_t number;             /* in the core's events */
    struct client *client;       /* NULL: gone */
    uint32_t uid;                /* of the client */
    bool admin;                  /* an administrator; only known when it matters */
    struct wire_message message; /* owned; empty after a submission became a job */
    enum wire_type type;
    uint64_t id; /* the client's */
    uint64_t job;
    enum request_holder holder;    /* who will come back to it */
    struct request *next, **place; /* of the client */
    char name[65];                 /* submit.c: a name made from the command */
    /* query.c */
    struct deadline deadline;
    uint64_t cursor;       /* last job looked at */
    size_t next_id;        /* of message.u.query.jobs */
    struct record **found; /* from memory, while the store is asked for the others */
    size_t nfound;
    struct request *next_waiting, **waiting_place; /* of the job */
};

struct requests;
struct requests *requests_create(struct daemon *daemon);
void requests_destroy(struct requests *requests); /* when all clients are gone */

/* The callbacks of clients.h. */
void requests_begin(struct client *client, struct wire_message *message);
void requests_client_gone(struct client *client);
/* The core's answer; all before it is on disk. */
void requests_answered(struct requests *requests, uint64_t number, enum answer answer, uint64_t job);
/* LATER_SUBMITTED. */
void requests_submitted(struct requests *requests, uint64_t number);
/* LATER_REMOVED. */
void requests_removed(struct requests *requests, uint64_t number);
/* A submission that waits for the store: it cannot be written. False when the number is of something else. */
bool requests_store_failed(struct requests *requests, uint64_t number, const char *text);

/* Send and end the request. */
void request_send(struct request *request, const struct wire_message *message); /* does not end it */
void request_end(struct request *request);
void request_error(struct request *request, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void request_done(struct request *request, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The one who asks may know everything about a job of this user. */
bool request_sees(const struct request *request, uint32_t owner);

/* submit.c: the message submit; its answer. */
void submit_begin(struct request *request);
void submit_answer(struct request *request, uint64_t job);
/* lines.c: the jobs of a slice as one or more messages `lines`, at least one; count <= QUERY_SLICE. */
enum { QUERY_SLICE = 256 };
void lines_send(struct request *request, struct job *const *jobs, size_t count, bool more);
/* query.c: query and wait; a request that loses its client; the end of a job. */
void query_begin(struct request *request);
void wait_begin(struct request *request);
void query_abandon(struct request *request);
void waits_release(struct daemon *daemon, struct job *job);

#endif
