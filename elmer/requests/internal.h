/* internal.h - what the files of this room share: a request, and the room itself. */
#ifndef ELMER_REQUESTS_INTERNAL_H
#define ELMER_REQUESTS_INTERNAL_H

#include "elmer/requests/clients.h"
#include "elmer/requests/requests.h"
#include "elmer/requests/users.h"
#include "lib/base/log.h"
#include "lib/memory/map.h"

struct requests {
    struct room room;
    const struct requests_settings *settings;
    struct hosts *hosts;
    struct membership *membership;
    struct launches *launches;
    struct users *users;
    struct clients *clients;
    struct map by_number;
    struct map waiting; /* wait.c: by job, who waits for its end */
    uint64_t next;
    int64_t rehearse_ms, rehearse_again_ms; /* submit.c: not before; not of rehearse_uid, who had the last one */
    uint32_t rehearse_uid;
    int64_t top_ms;            /* of a job that has many before it: not before */
    struct ticket_trust trust; /* warrant.c */
    struct log_limit refused, foreign_tickets;
};

enum request_holder { HOLDER_NONE, HOLDER_USERS, HOLDER_CORE, HOLDER_STORE, HOLDER_QUERY, HOLDER_WAIT, HOLDER_HOST };

struct request {
    struct requests *requests;
    uint64_t number;             /* in the core's events */
    struct client *client;       /* NULL: gone */
    uint32_t uid;                /* of the client */
    bool admin;                  /* an administrator; only known when it matters */
    bool admin_elsewhere;        /* he is one, but asks from where that does not count, */
    bool reads_all;              /* or only for what he reads */
    struct wire_message message; /* owned; empty after a submission became a job */
    enum wire_type type;
    uint64_t id; /* the client's */
    uint64_t job;
    enum request_holder holder;    /* who will come back to it */
    struct request *next, **place; /* of the client */
    struct quota *quota;           /* where so many bytes are kept for it; NULL: nowhere */
    size_t kept;
    char name[65]; /* submit.c: a name made from the command */
    struct request_after {
        struct core_after what;
        bool asked, read; /* the store; and it has answered */
    } * after;            /* [nafter] after.c: what the submitted job waits for */
    size_t nafter;
    /* query.c */
    struct deadline deadline;
    uint64_t cursor;       /* last job looked at */
    size_t next_id;        /* of message.u.query.jobs */
    struct record **found; /* from memory, while the store is asked for the others */
    size_t nfound;
    struct client *turn_of; /* it is among this client's turns; NULL: in none */
    struct request *next_turn;
    bool reads; /* a page of the store, for which room is kept */
    /* work.c */
    struct quota *put_off_of; /* it is among those of this user that wait for elmer's time; NULL: it is not */
    struct request *next_put_off;
    int host; /* output.c: that was asked */
    /* wait.c */
    struct request_hook *hooks; /* [nhooks] on each job that it waits for */
    size_t nhooks;
};

/* ---- tasks.c ---- */

/* Which tasks of an array a verb is about, into its event. false: the request is answered. ranges: to be freed after
 * the step in any case. */
bool tasks_fill(struct request *request, struct event *event, struct core_range **ranges);
/* As the request has named them; "": all, or it is about no array. */
const char *tasks_text_of(const struct request *request);
/* A task that waits in its array, as it is. NULL: it is none, or waits there no more. */
struct record *tasks_waiting(struct engine *engine, uint64_t id);
/* A task that waits no more, is no job in memory, and has no row: it was cancelled while it waited. NULL: it is no task
 * of an array of which anything is known, or was started, and the history has let it go. */
struct record *tasks_cancelled(struct engine *engine, uint64_t id);
/* Answers, if it is an array that the core has refused. */
bool tasks_explain(struct request *request, const char *verb, enum answer answer);

/* ---- requests.c ---- */

/* The callbacks of clients.h. */
void requests_begin(struct client *client, struct wire_message *message);
void requests_client_gone(struct client *client);
/* NULL: it has ended. */
struct request *requests_find(const struct requests *requests, uint64_t number);

/* Send and end the request. */
void request_send(struct request *request, const struct wire_message *message); /* does not end it */
void request_end(struct request *request);
void request_error(struct request *request, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* It names a job that elmer does not have: it has ended, or there never was one. */
void request_no_job(struct request *request, uint64_t job);
void request_done(struct request *request, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* End the request: only administrators may, and how he becomes one if he is one elsewhere. what: "drain hosts". */
void request_not_admin(struct request *request, const char *what);

/* warrant.c: the rest of a sentence, for one who is an administrator elsewhere; "": he is none. */
const char *request_how_to_rule(const struct request *request, char *text, size_t size);
/* challenge_ask; decide. */
void warrant_challenge(struct request *request);
void warrant_decide(struct request *request);
/* The request is this one, which an administrator has signed; its memory is taken over. */
void request_replace(struct request *request, struct wire_message *message);

/* The one who asks may know everything about a job of this user. */
bool request_sees(const struct request *request, uint32_t owner);

/* notice.c: what is wrong with it, if it is one. */
enum { NOTICE_MAX_MS = 60000 };
int notice_check(const struct wire_submit *submit, struct err *err);
/* It has output read, and tells nothing. */
bool notice_reads(const struct wire_submit *submit);
/* And whether it may come: there is a job that it may tell about, or a host to read from; false: the request has
 * ended. */
bool notice_may_come(struct request *request);
/* The hosts that it may use, of any submission; *here is memory for one. */
struct wire_strs notice_hosts(const struct wire_submit *submit, const char **here);

/* submit_check.c: what the message submit says; -1 and why it is refused, or 0. */
int submit_check(const struct requests_settings *settings, const struct wire_submit *submit, struct err *err);
/* Its ticket, if it has one, is signed by the host that it has come from. The same; the log has it, too. */
int submit_check_ticket(struct request *request, struct err *err);
/* submit.c: it has no command but one that waits for the end of its virtual machine (esubmit -P). */
bool submit_is_machine(const struct wire_submit *submit);
void submit_begin(struct request *request); /* the message submit */
void submit_answer(struct request *request, uint64_t job);
void submit_again(struct request *request); /* what was missing is known */
/* after.c: are the texts right? */
int after_check(const struct wire_strs *items, struct err *err);
/* Whether the core may be asked. false: submit_again() follows, or the request has ended. */
bool after_find(struct request *request);
/* What the core is told. */
void after_fill(const struct request *request, struct event *event, struct core_after after[AFTER_MAX]);
/* verbs.c: who asks, as far as it is known. */
enum { WHO_BYTES = 256 };
const char *verb_who(const struct request *request, char text[WHO_BYTES]);
void signal_begin(struct request *request); /* signal_job */
/* What the reason of the job says of who asks; "": nothing. */
void verb_sign(const struct request *request, enum event_type event, char text[CORE_BY_TEXT]);
/* output.c: read_output. */
void output_begin(struct request *request);
void output_abandon(struct request *request); /* nobody waits for the answer any more */
/* explain.c: why a job waits. */
void explain_begin(struct request *request);
/* lines.c: the jobs of a slice as one or more messages `lines`, at least one; count <= QUERY_SLICE. */
enum { QUERY_SLICE = 256 };
void lines_send(struct request *request, const struct engine_job *const *jobs, size_t count, bool more);
/* work.c: what lists take of elmer's CPU time. Whatever is done between begin and end is counted, also if the request
 * is over then, and its client gone: its user's quota is there for longer. */
struct work {
    struct quota *quota; /* NULL: without limits */
    int64_t begin_ns;
};
struct work work_begin(const struct request *request);
void work_end(const struct work *work);
/* Whether its next slice has to wait: then it is made when its turn comes, or the request has ended. */
bool work_must_wait(struct request *request);
void work_leave(struct request *request); /* it waits no longer; nothing if it did not */
/* query.c: query. */
void query_go_on(struct request *request, int64_t in_ms); /* with its next slice */
void query_begin(struct request *request);
void query_room(struct client *client);         /* it was stalled, and has room again */
void query_leave_turn(struct request *request); /* its client's next one goes on */
void query_abandon(struct request *request);    /* it ends */
/* These jobs, in one page at least. */
void query_send(struct request *request, struct record *const *records, size_t count, bool more);
/* reach.c: reach. */
void reach_begin(struct request *request);
void reach_connect(struct requests *requests); /* the room begins */
/* wait.c: wait and wait_any. */
void wait_begin(struct request *request);
void wait_leave(struct request *request); /* it waits no longer */
/* Answers those that wait for this job, whose end is on disk. */
void waits_release(struct requests *requests, const struct engine_job *job);
/* Those that wait for tasks of the array that have gone without having been jobs, which is on disk. Of another job:
 * nothing. */
void waits_release_tasks(struct requests *requests, uint64_t array);

#endif
