/* link.h - a connection between two processes of a job: erun and a courier (rsd/courier); or between who looks at a
 * job's terminal (eattach) and what holds that (rsd/courier/holder.c).
 *
 * CONNECTING (of who dials) -> SHOWING: each sends its pass and waits for the other's -> CHECKING: the owner has that
 * looked at -> OPEN: frames, sealed. DEAD: the text says why; of a link that was OPEN all frames have been handed out.
 * Before OPEN nothing but a pass is read, and no more than a few thousand bytes kept. What is on the wire: a length (4
 * bytes, the high one first) and so many bytes: in the clear the words "elmer run 1\n" and the pass, then sealed
 * frames: a type (1 byte), a rank (4 bytes), data.
 *
 * Nothing here waits: the owner polls fd for run_link_events() and calls run_link_step(); also, without waiting, when
 * run_link_over(). How much it may send is the business of its windows; who queues RUN_OUT_MAX bytes that the other
 * does not take has a dead link. */
#ifndef LIB_RUN_LINK_H
#define LIB_RUN_LINK_H

#include "lib/base/err.h"
#include "lib/run/seal.h"
#include "lib/ticket/pass.h"

enum {
    RUN_FRAME_MAX = 4 << 20, /* what is to be started, with its environment */
    RUN_HELLO_MAX = 2048,
    RUN_OUT_MAX = 8 << 20,
    RUN_SILENT_MS = 12000, /* as long the kernel of the other host may say nothing */
    RUN_WATCH_MS = 2000
};

enum run_state { RUN_CONNECTING, RUN_SHOWING, RUN_CHECKING, RUN_OPEN, RUN_DEAD };

/* Who says what, and what is in the data. Numbers have 4 bytes, the high one first. */
enum run_type {
    RUN_START = 1, /* erun, once: struct run_start, see pack.h */
    RUN_STARTED,   /* courier: pid; of each rank that is asked for this or the next */
    RUN_FAILED,    /* courier: errno, and a sentence */
    RUN_OUT,       /* courier: standard output */
    RUN_ERR,       /* courier: standard error */
    RUN_IN,        /* erun: standard input */
    RUN_IN_END,    /* erun: there is no more of it */
    RUN_TAKEN,     /* both: so many bytes of RUN_OUT, RUN_ERR, RUN_IN, which is in place of the rank, have gone on */
    RUN_SIGNAL,    /* erun: its number, for all */
    RUN_SIZE,      /* erun: rows and columns of the terminal */
    RUN_EXIT,      /* courier: exit status, signal; there is no more of its output */
    RUN_REFUSED,   /* courier: a sentence; and the end */
    /* of a terminal, beside RUN_OUT, RUN_IN, RUN_IN_END, RUN_TAKEN, RUN_SIZE, RUN_EXIT and RUN_REFUSED, whose rank is 0
     */
    RUN_LOOK,    /* eattach, once, first: struct run_look, see look.h */
    RUN_LOOKING, /* holder: struct run_looking; then the output */
    RUN_LEAVE,   /* eattach: it goes because its user wants to */
    /* of ranks of MPI */
    RUN_PMI, /* courier: a piece of what a rank says by its descriptor; erun: the answer to it, once, which may be
               empty. Until then the courier sends nothing more of that rank */
    RUN_DIED /* courier: exit status, signal, not 0: others hold its output open, and RUN_EXIT comes with the last */
};
enum { RUN_WINDOW = 256 << 10, RUN_PIECE = 32 << 10 }; /* bytes of a stream that are underway; in one frame */
enum { RUN_PMI_PIECE = 4 << 10, RUN_PMI_ANSWER = 16 << 10 };

struct run_frame {
    enum run_type type;
    uint32_t rank;
    const uint8_t *data; /* until the next call */
    size_t size;
};

struct run_link {
    int fd;
    enum run_state state;
    bool dialler;
    struct seal_key key;
    char pass[PASS_TEXT_MAX + 1], other[PASS_TEXT_MAX + 1];
    struct pass peer; /* from CHECKING on */
    struct seal seal_out, seal_in;
    uint8_t *out, *in, *plain;
    size_t out_begin, out_size, out_capacity, plain_capacity; /* size: where what waits ends */
    size_t in_begin, in_size, in_capacity, used /* by the frame handed out */;
    bool patient; /* see run_link_patient() */
    bool broken;  /* nothing can be sent any more, but what the other side has said before is still read */
    bool ended;   /* nothing more comes, but what has come is still handed out */
    bool silent;  /* its end: nothing came from the other host any more */
    char text[300];
};

/* A socket that connects there, or -errno; address: of IPv4, "": this host. */
int run_link_connect(const char *address, uint16_t port);
/* fd is taken over: connected, or connecting; key and pass are copied. */
void run_link_init(struct run_link *link, int fd, bool dialler, const struct seal_key *key, const char *pass);
void run_link_fini(struct run_link *link);
short run_link_events(const struct run_link *link);
/* Whoever does not read is waited for, as long as the kernel of his host answers: he may be stopped. The owner calls
 * run_link_watch(), every RUN_WATCH_MS while run_link_underway(), which ends the link of a host that is silent. */
void run_link_patient(struct run_link *link);
void run_link_watch(struct run_link *link);
/* Something of ours is not known to have come there. */
bool run_link_underway(const struct run_link *link);
/* It has ended, or will when what has come is handed out; poll(2) says nothing of that. */
bool run_link_over(const struct run_link *link);
/* What poll(2) has found. */
void run_link_step(struct run_link *link, short revents);
/* CHECKING: call this when the other side's pass is valid and names the expected job and user. */
void run_link_accept(struct run_link *link);
void run_link_kill(struct run_link *link, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* OPEN: 1: there is a frame, 0: none yet, or the link is not open. */
int run_link_next(struct run_link *link, struct run_frame *frame);
void run_link_send(struct run_link *link, enum run_type type, uint32_t rank, const void *data, size_t size);
void run_link_send_number(struct run_link *link, enum run_type type, uint32_t rank, uint32_t number);
void run_link_send_numbers(struct run_link *link, enum run_type type, uint32_t rank, uint32_t one, uint32_t two);
/* Bytes that wait to be sent. */
size_t run_link_waiting(const struct run_link *link);
uint32_t run_number(const uint8_t *bytes);

#endif
