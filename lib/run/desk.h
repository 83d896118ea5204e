/* desk.h - to elmer-tickets of this host, for a pass (lib/ticket/pass.h) and to have another's looked at. */
#ifndef LIB_RUN_DESK_H
#define LIB_RUN_DESK_H

#include "lib/run/seal.h"
#include "lib/ticket/pass.h"
#include "lib/wire/channel.h"

/* One question; channel.fd, which may become another one, is to be polled for reading. */
struct run_desk {
    struct channel channel;
    bool open;
    const char *trust; /* asked about, see run_desk_ask_trust(); NULL: that is not the question */
};
/* 0, or negative with a sentence: nobody answers there (-ENOENT, -ECONNREFUSED: rsd does not run just now). */
int run_desk_ask_pass(struct run_desk *desk, const uint8_t public_key[SEAL_KEY_BYTES], struct err *err);
/* A pass to see the terminal of this job with. */
int run_desk_ask_look(struct run_desk *desk, uint64_t job, const uint8_t public_key[SEAL_KEY_BYTES], struct err *err);
/* Of who may have something done here, or see it. */
int run_desk_ask_check(struct run_desk *desk, const char *pass, struct err *err);
/* Of who is to do something there: nothing is done here for him. pass stays the caller's while the question is open. */
int run_desk_ask_trust(struct run_desk *desk, const char *pass, struct err *err);
/* Something has come: 1, with the pass in pass (PASS_TEXT_MAX + 1 bytes, NULL: none was asked for); 0: not all yet;
 * -EACCES: refused; another one: nobody answers. The question ends unless it is 0. */
int run_desk_read(struct run_desk *desk, char *pass, struct err *err);
/* The same, waiting for it until the deadline (monotonic ms). 0 or negative. */
int run_desk_wait(struct run_desk *desk, char *pass, int64_t deadline_ms, struct err *err);
void run_desk_close(struct run_desk *desk); /* of zeros: nothing */

#endif
