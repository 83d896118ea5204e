/* look_internal.h - what the files of look.h share. */
#ifndef CLIENT_LOOK_INTERNAL_H
#define CLIENT_LOOK_INTERNAL_H

#include "client/escape.h"
#include "client/look.h"
#include "lib/run/link.h"
#include "lib/run/look.h"

/* FINDING: where it is, and whether it is there yet. DIALLING: to an open link. ASKED: what we want to see is said.
 * SHOWN. ENDED: with code. */
enum look_state { LOOK_FINDING, LOOK_DIALLING, LOOK_ASKED, LOOK_SHOWN, LOOK_ENDED };

struct look {
    struct elmer *elmer;
    uint64_t job;
    struct look_options options;
    enum look_state state;
    int code;         /* ENDED */
    bool wait_status; /* ENDED: that of the job, when it has ended, in place of code */
    int64_t next_ms;  /* FINDING: the next try; DIALLING, ASKED: until it is given up */
    int64_t lost_ms;  /* a connection was lost then; 0: none is missing */
    int pause_ms;
    unsigned failures; /* in a row, before the first that was good */
    bool told;         /* that the job waits */
    bool told_why;     /* that its terminal cannot be seen yet */
    char why[300];     /* the last reason */
    /* where it is */
    struct client_reached *reached;
    char host[256];
    struct run_link link;
    bool linked;
    /* output, counted as in run_looking */
    int out_fd;
    uint64_t session, received, written, acknowledged;
    uint8_t *out; /* [RUN_WINDOW] */
    size_t out_begin, out_size;
    /* input: what the other side has not taken */
    uint8_t *in; /* [RUN_WINDOW] */
    uint64_t in_base, sent;
    size_t in_size;
    bool in_end, in_end_sent, exited;
    struct escape escape;
};

/* ---- look_out.c ---- */

/* Where it goes: standard output, in a way that does not wait for who does not read that. */
void look_out_open(struct look *look);
void look_out_close(const struct look *look);
void look_out_hear(struct look *look, const struct run_frame *frame);
void look_out_write(struct look *look);
/* ENDED: what has come is written, until a signal, which is our code then, or ~. ends that. */
void look_out_rest(struct look *look, int signal_fd);

/* ---- look_link.c ---- */

/* FINDING: one try to find it and to begin a connection. */
void look_find(struct look *look);
/* DIALLING: what poll(2) has found. ASKED when it is open, and said what is to be seen. */
void look_dial_step(struct look *look, short revents);
/* The connection is gone, or was none. why: for people. */
void look_lose(struct look *look, const char *why);
/* The other side has not answered in time: it may be behind a job that spins. */
void look_late(struct look *look, const char *why);
/* Not even the kernel of the other side has. */
void look_unanswered(struct look *look);
/* Nobody would look at what we have submitted ourselves. */
void look_take_back(struct look *look);
void look_end(struct look *look, int code);
void look_close(struct look *look);

#endif
