/* courier.h - what the files of elmer-courier share. */
#ifndef RSD_COURIER_COURIER_H
#define RSD_COURIER_COURIER_H

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "lib/run/desk.h"
#include "lib/run/link.h"
#include "lib/run/pack.h"
#include "rsd/courier/talk.h"
#include "rsd/courier/typed.h"
#include "rsd/courier/used.h"

enum {
    SESSIONS = 512,
    START_MS = 5000,       /* for what is started, to have executed */
    KILL_MS = 1000,        /* from TERM to KILL of what an erun has started that has ended */
    KILL_AGAIN_MS = 200,   /* from then on, of what was made meanwhile ... */
    KILL_ROUNDS = 50,      /* ... so often: what is left then is not ours to kill, or a disk holds it */
    HANDSHAKE_MS = 10000,  /* until it has shown its pass; then, until that is known to be good */
    ACCEPT_AGAIN_MS = 100, /* while there is no descriptor for another connection: its listener stays readable */
    EXIT_NOT_FOUND = 127,
    EXIT_NOT_EXECUTED = 126
};

/* RUNNING -> REAPED, and told when nothing more comes of its output. */
struct child {
    uint32_t rank;
    pid_t pid;      /* 0: it has not been started */
    int out, error; /* its output; -1: at its end */
    struct talk talk;
    bool terminal;  /* it has one of its own, which out reads */
    ino_t pipes[2]; /* out and error, where these are pipes; else 0 */
    bool reaped, told, told_dead;
    bool ends;  /* it was not told yet when erun ended: all of its family ends, too */
    int status; /* of waitpid(2); without pid: its exit status */
};

/* family.h */
struct relative {
    pid_t pid, group;
    unsigned long long begun; /* as the kernel counts it: with pid it names a process for good */
};
struct family {
    struct relative *members; /* by pid */
    size_t count;
};

struct session {
    struct run_link link;
    struct run_desk desk; /* asks about the other's pass */
    int64_t deadline_ms;  /* handshake; then, of what is to end, for KILL */
    int64_t ask_ms;       /* elmer-tickets did not answer: when it is asked again; 0: not asked yet */
    int64_t stepped_ms;   /* its last turn */
    bool started, mpi, ending, killed;
    struct child *children;
    size_t nchildren, next_child;    /* who is read from first: in turn */
    int input;                       /* of the first child; -1: none, or closed */
    struct typed typed;              /* for it; without memory: nothing has been started */
    size_t out_window, error_window; /* bytes that may still be sent */
    struct family family;            /* ending: what is still there */
    bool scan;                       /* something has ended since that was seen */
    unsigned rounds;                 /* of KILL */
};

/* What couriers have of their own. */
struct courier {
    struct seal_key key;
    char text[PASS_TEXT_MAX + 1];
    struct pass pass;
    struct used used;    /* keys of diallers */
    struct rlimit files; /* for children */
    cpu_set_t cpus;      /* that the job has here */
    char *hosts;         /* of the job, as elmer has said; a courier's own. NULL: not known */
    char between;        /* two of them */
};

/* ---- begin.c ---- */

/* Its pass, its port, which is said in one line, and what children get. 0, or -errno with a sentence. */
int courier_begin(struct courier *courier, int *listener, struct err *err);
/* Reads which hosts the job has; before the first session. */
void courier_read_hosts(struct courier *courier);
/* Who has started us reads one line on standard output, which is closed then. */
bool courier_say(const char *line);
/* accept(2) has failed for want of something, which poll(2) does not know. */
bool accept_fails(int error);
/* As poll(2), which refuses more entries than descriptors are allowed, also entries of -1. others: room for as many. */
int courier_poll(struct pollfd *fds, struct pollfd *others, size_t count, int timeout);
/* Its environment without one variable; items is to be freed, NULL: no memory. */
struct run_strings courier_environment(const char *without);

/* ---- holder.c ---- */

/* Start the command in a terminal and be there for who looks at it: its exit status, or it dies as the command did. */
int hold_terminal(char **argv);

/* ---- child.c ---- */

struct birth {
    const struct courier *courier;
    const struct run_start *start;
    const struct run_rank *rank;
    bool input;       /* it gets standard input */
    int64_t until_ms; /* so long the courier, which others need, waits for its directory and its command */
};
/* Starts it: 0 (it may not have got to its command yet: what fails then it says itself), and *input is where its
 * standard input is to be written (-1: nowhere); or an errno, and *text says what has failed. */
int child_start(const struct birth *birth, struct child *child, int *input, char *text, size_t size);
void child_signal(const struct child *child, int number);
/* Nothing more is heard of it but its end. */
void child_close(struct child *child);

/* ---- ending.c ---- */

/* Its erun is gone: what it has started ends. */
void session_end(struct session *session, int64_t now);
/* What is left of it by now; who makes processes without end is met again and again. */
void session_end_rest(struct session *session, int64_t now);
bool session_all_reaped(const struct session *session);

/* ---- session.c ---- */

/* The job is on this host; without a list only on the courier's own. */
bool courier_has_host(const struct courier *courier, const char *host);

/* Takes over a socket. NULL: no memory. */
struct session *session_create(int fd, const struct courier *courier, int64_t now);
void session_destroy(struct session *session);
/* How many it has filled in. */
size_t session_fds(const struct session *session, struct pollfd *fds);
size_t session_fds_max(const struct session *session);
/* fds, as it has filled them in. */
void session_step(struct session *session, struct courier *courier, const struct pollfd *fds, int64_t now);
/* It was one of its children; others may descend from these. */
bool session_reaped(struct session *session, pid_t pid, int status);
bool session_over(const struct session *session);
int64_t session_next_ms(const struct session *session); /* INT64_MAX: nothing to do by time */

#endif
