/* talk.h - what a rank of MPICH asks of the erun that has started it, by a descriptor of its own (PMI). A piece at a
 * time: the next one is read when erun has answered, and the answer is written. So no more than that is ever kept. */
#ifndef RSD_COURIER_TALK_H
#define RSD_COURIER_TALK_H

#include "lib/run/link.h"

struct talk {
    int fd;     /* -1: there is none, or nobody at its other end */
    bool asked; /* it has said something that erun has not answered */
    uint8_t *bytes;
    size_t size, done; /* of the answer */
};

/* For poll(2), fd too. */
struct pollfd talk_poll(const struct talk *talk);
/* What that has found. */
void talk_step(struct talk *talk, struct run_link *link, uint32_t rank, short revents);
/* erun's answer; false: nobody has asked, or it is too long, or there is no memory. */
bool talk_hear(struct talk *talk, const void *bytes, size_t size);
void talk_fini(struct talk *talk);

#endif
