/* channel.h - frames over a file descriptor for poll(2) loops (root half, supervisor, agent, blocking client). No
 * libuv. */
#ifndef LIB_WIRE_CHANNEL_H
#define LIB_WIRE_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/wire.h"

/* Reassembles frames from bytes; used by channel.c and net/link.c. The length is checked before anything is allocated.
 */
struct frame_reader {
    uint8_t *data;
    size_t size, capacity, max, begin /* of the first frame not handed out */,
        header /* where the next unchecked header is */;
    bool may_lose /* set by the owner: without memory lose a frame, not the stream */, lost;
    size_t lost_at /* the one that was cut short */, skip /* so much of it is still to come and thrown away */;
};
void frame_reader_init(struct frame_reader *reader, size_t max_frame);
void frame_reader_fini(struct frame_reader *reader);
int frame_reader_push(struct frame_reader *reader, const uint8_t *bytes,
                      size_t size); /* -EMSGSIZE: a length over max or 0; -ENOMEM: throw the reader away */
/* 1: *json points to a whole frame (valid until the next call of push or next), 0: more bytes are needed. */
int frame_reader_next(struct frame_reader *reader, const char **json,
                      size_t *size); /* 2, with may_lose: the beginning of one for which there was no memory */

struct channel {
    int fd; /* non-blocking, owned */
    unsigned minor;
    unsigned peer; /* WIRE_FROM_ bit of the other side: what it may send */
    struct frame_reader in;
    uint8_t *out;
    size_t out_size, out_capacity, out_max;
    size_t read_max; /* of one channel_fill(); 0: as usual. The owner's, where reading must not take long */
    bool dead;       /* broken: close it */
    bool held; /* by the owner: what is sent waits for channel_flush(), so that the peer wakes up once for all of it */
};
/* Without hello, both ends speak WIRE_MINOR_LASTING: a supervisor lives on under an rsd of a later build, and may start
 * an agent of one. A supervisor says in a pong, as its id, which minor it knows. Messages that are later than the
 * lasting ones go to it only then, and come from it only as answers, in that minor: channel_later() on both sides. All
 * others go on as they were, on both sides, so that it does not matter when the pong comes. Two ends that are of one
 * build for certain (rsd's halves) set channel.minor to WIRE_MINOR. */
void channel_later(struct channel *channel, unsigned minor);
/* Takes over fd, a connected socket (made non-blocking, close-on-exec). On failure fd stays the caller's. */
int channel_init(struct channel *channel, int fd, unsigned peer, size_t out_max);
void channel_fini(struct channel *channel);
/* Queue and, unless it is held, try to write. -ENOBUFS: the peer does not read and out_max is reached (dead). -EPIPE..
 * (dead). */
int channel_send(struct channel *channel, const struct wire_message *message, struct err *err);
bool channel_wants_write(const struct channel *channel);
int channel_flush(struct channel *channel);
/* After POLLIN: read some of what is there. 0, or -EPIPE at end of file, or -errno (dead). What came before the end is
 * still there for channel_next. */
int channel_fill(struct channel *channel, struct err *err);
/* 1: a message (fini it), 0: none complete, -EBADMSG..: undecodable or not allowed from the peer (dead). */
int channel_next(struct channel *channel, struct wire_message *message, struct err *err);
/* Blocking use with a deadline (CLOCK_MONOTONIC ms, absolute). 1: a message, 0: deadline passed, negative: error. */
int channel_receive(struct channel *channel, struct wire_message *message, int64_t deadline_ms, struct err *err);
/* 0: all is written; -ETIMEDOUT: not by the deadline (dead); or as channel_send. Until then this end does not read. */
int channel_send_all(struct channel *channel, const struct wire_message *message, int64_t deadline_ms, struct err *err);
/* For a peer that speaks first as link.h does. Sends our hello, waits for the peer's, agrees on the
 * minor. -ETIMEDOUT; -EPROTONOSUPPORT: another major version; -ECONNREFUSED: the peer refused with the reason in err;
 * -EBADMSG. */
int channel_hello(struct channel *channel, const char *program, int64_t deadline_ms, struct err *err);
/* Its two halves, for who must not block: queue our hello, with this one among its capabilities (NULL: none); and what
 * the first message of the peer says, as channel_hello(). */
void channel_hello_say(struct channel *channel, const char *program, const char *capability);
int channel_hello_take(struct channel *channel, const struct wire_message *message, struct err *err);
/* What our hello says, and the check of the peer's: the minor to speak, or -EPROTONOSUPPORT with a sentence. Used by
 * link.c too. */
void wire_hello_fill(struct wire_message *message, const char *program);
/* The one capability there is: of root, who has called sudo, as "sudo=USER". Root's own word, for what others read. */
#define WIRE_CAPABILITY_SUDO "sudo="
int wire_hello_check(const struct wire_hello *hello, struct err *err);

#endif
