/* erun.h - what the files of erun share. */
#ifndef CLIENT_ERUN_H
#define CLIENT_ERUN_H

#include <signal.h>
#include <sys/ioctl.h>

#include "client/erun_plan.h"
#include "client/pmi.h"
#include "lib/run/link.h"
#include "libelmer/elmer.h"

enum { ERUN_LOST = 255 }; /* exit status where a part of it is lost, as ssh's */

/* A part of the plan, with the connection to its courier. */
struct target {
    const struct erun_part *part;
    struct run_link link;
    bool linked;      /* there is a link, in whatever state */
    bool ready;       /* it is open, and the courier has been told what to start */
    bool begun;       /* and has answered */
    uint32_t signals; /* that came before, as bits */
    uint16_t port;
    unsigned tries;
    size_t left;     /* processes that have not ended */
    size_t taken[2]; /* of standard output and error: written, and not told yet */
};

/* Ranks of MPI. */
struct mpi {
    struct pmi *pmi;    /* NULL: there are none */
    struct target **of; /* [total] by rank */
    int status;         /* nonzero: all are told to end, and this is how it ends ... */
    int64_t end_ms;     /* ... then at the latest */
    bool by_word;       /* because of what a rank has said, or an exit: the cause may be another one */
    bool said_silent, said_spawns;
    bool *ended; /* [total] by rank: it has been heard, which happens twice where others hold its output open */
};

enum { ERUN_NO_INPUT = -1 /* which the command has to be told */, ERUN_INPUT_ENDED = -2 /* it has been */ };
struct erun {
    const struct erun_job *job;
    const struct erun_plan *plan;
    struct elmer *elmer;
    struct seal_key key;
    char pass[PASS_TEXT_MAX + 1];
    struct target *targets;
    size_t ntargets;
    struct mpi mpi;
    int status; /* the worst so far */
    int lost;   /* nonzero: it ends now, with this */
    int input;  /* a descriptor, or one of the above */
    size_t input_window;
    sigset_t ending; /* signals that end it while nothing runs yet */
};

/* ---- erun.c ---- */

/* What may take seconds begins, or is over: signals end erun then as they end any process, unless something has been
 * started. */
void erun_asks(const struct erun *erun, bool asks);
/* To all that runs, or will; whether anything does. */
bool erun_signal(struct erun *erun, int number);
size_t erun_left(const struct erun *erun); /* processes that have not ended */

/* ---- erun_links.c ---- */

/* The job whose process this is, whatever its environment says; 0: of none, or that is not known. */
uint64_t erun_inside(void);
/* A pass for this process: 0, or an exit status, and it has said why. */
int erun_get_pass(struct erun *erun);
/* Find the courier, and begin to connect; false: it has said why. */
bool target_dial(struct erun *erun, struct target *target);
/* Its link has ended before anything was started: another way there. False: there is none, and it has said why. */
bool target_again(struct erun *erun, struct target *target, bool connecting);
/* What poll(2) has found at its link; until it is ready. False: it is lost, and said why. */
bool target_step(struct erun *erun, struct target *target, short revents);

/* Of the terminal that it has, be it for input, output or error; false: it has none. */
bool erun_size(struct winsize *size);

/* ---- erun_mpi.c: what ranks of MPI want of each other, and what follows from their ends ---- */

/* With its key. */
void mpi_init(struct erun *erun);
void mpi_fini(struct erun *erun);
void mpi_hear(struct erun *erun, const struct target *target, const struct run_frame *frame);
/* A process has ended with that status of erun, by that signal (0: none). */
void mpi_ended(struct erun *erun, const struct target *target, uint32_t rank, int status, int number);
/* They were told to end: how long they have for it yet, in milliseconds; -1: they were not. */
int mpi_timeout(const struct erun *erun, int64_t now);
/* They have had their time. */
void mpi_check_time(struct erun *erun, int64_t now);

/* ---- erun_streams.c: what is read, and what couriers have sent until it is written ---- */

/* The descriptor itself; of a pipe another one that never waits (flags: O_RDONLY or O_WRONLY). What is read is waited
 * for by the descriptor itself: to one of a FIFO whose writers had gone when it was opened poll(2) says nothing. */
int streams_own(int fd, int flags);
/* read(2), of a socket without waiting. */
ssize_t streams_read(int fd, void *bytes, size_t size);
void streams_put(int stream, struct target *target, const void *data, size_t size); /* stream: 1 or 2 */
/* By which descriptor something is to be written; -1: nothing is. */
int streams_wait(int stream);
/* Its descriptor takes something. False: it takes nothing any more. */
bool streams_write(int stream);
/* All that is to be written, as long as some of it is taken each STREAMS_STILL_MS. */
enum { STREAMS_STILL_MS = 1000 };
void streams_finish(void);

#endif
