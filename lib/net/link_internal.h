/* link_internal.h - what link.c, dial.c and listener.c share. */
#ifndef LIB_NET_LINK_INTERNAL_H
#define LIB_NET_LINK_INTERNAL_H

#include "lib/net/link.h"
#include "lib/net/tls.h"
#include "lib/wire/channel.h"

enum link_state {
    LINK_RESOLVING,
    LINK_CONNECTING,
    LINK_SECURING, /* connected, the TLS handshake is under way */
    LINK_HELLO,    /* connected, the peer's hello has not come */
    LINK_READY,
    LINK_DRAINING, /* closing in order: what is queued is written, what comes is thrown away */
    LINK_CLOSED,   /* waits for libuv to let go of the handles */
    LINK_STATE_COUNT
};

union link_io {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

struct resolution;

struct link {
    uv_loop_t *loop;
    struct link_options options;
    struct link_callbacks callbacks;
    void *data;
    enum link_state state;
    uv_timer_t timer; /* the deadline of the present state */
    union link_io io;
    bool io_open;
    unsigned handles; /* that libuv still knows */
    uv_shutdown_t shutdown;
    struct frame_reader in;
    struct budget *budget; /* of unsent bytes; NULL: none */
    size_t given, taken;   /* bytes to be sent, ever; the kernel had taken so many when watching began */
    bool watching, suspect;
    struct tls *tls; /* NULL: none, or the first byte of an accepted link has not come */
    unsigned minor;
    bool was_refused;                                                                   /* by the peer, in words */
    struct listener *listener;                                                          /* that accepted it, or NULL */
    enum link_place { LINK_OWNED, LINK_WAITING, LINK_JOINING, LINK_TURNED_AWAY } place; /* see listener.c */
    struct link *older, *newer;                                                         /* WAITING, JOINING */
    uint8_t *first; /* bytes of one that is WAITING, and may not begin its handshake yet; NULL: none */
    size_t first_size;
    char peer[64], local[64];
    char capability[64]; /* of the peer's hello */
    char text[512];      /* why it closes */
    /* dial.c */
    char target[300];
    uv_connect_t connect;
    struct resolution *resolution;
    struct addrinfo *addresses, *next;
    int64_t deadline_ms;
    int last_error;
};

struct link *link_create(uv_loop_t *loop, enum link_state state, const struct link_options *options,
                         const struct link_callbacks *callbacks, void *data);
void link_move(struct link *link, enum link_state to);
/* The stream is connected: TLS, then hellos. */
void link_begin(struct link *link);
/* TLS is up, or there is none: exchange hellos. */
void link_say_hello(struct link *link);
/* Where a connected link begins. */
enum link_state link_first_state(const struct link_options *options);
int link_start_reading(struct link *link);
void link_stop_reading(struct link *link);
/* Plain bytes from the peer. */
void link_take_bytes(struct link *link, const uint8_t *bytes, size_t size);
/* In HELLO and READY. */
int link_put(struct link *link, const struct wire_message *message);
/* Closes the link if the reader has taken nothing for the stall time; otherwise checks again later. */
void link_watch_reader(struct link *link);
/* Write bytes as they are; takes them over. -ENOBUFS, -ENOMEM and broken streams close the link. */
int link_write(struct link *link, uint8_t *bytes, size_t size);
bool link_is_open(const struct link *link);
/* Close at once, with nothing more written. */
void link_drop(struct link *link, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Close in order: from HELLO and READY after what there is to say, from SECURING after an alert. */
void link_drain(struct link *link, const char *text);
void link_timer(struct link *link, int64_t ms);
/* Initialise the stream and count it; fd >= 0 is put into it (and closed on failure). */
int link_io_init(struct link *link, bool pipe, int fd);
/* Set up a connected socket and keep its addresses. */
void link_note_addresses(struct link *link);
/* Called for a handle that libuv has let go: frees the link after the last one. */
void link_handle_gone(struct link *link);

/* dial.c: the deadline has passed, or the link closes. */
void dial_timeout(struct link *link);
void dial_cancel(struct link *link);
/* link_tls.c: begin the handshake; bytes have come; encrypt and write (takes frame over); say goodbye; why the stream
 * ended. */
void link_tls_begin(struct link *link);
void link_tls_input(struct link *link, const uint8_t *bytes, size_t size);
int link_tls_send(struct link *link, uint8_t *frame, size_t size);
void link_tls_goodbye(struct link *link);
const char *link_tls_end_text(const struct link *link);
/* link_refusal.c: there is no memory for this message, of which json is the beginning at least: answer, or drop the
 * link. */
void link_no_memory(struct link *link, const char *json, size_t size);
/* listener.c: an accepted link is gone, or its handshake is done. */
void listener_link_gone(struct link *link);
/* The first bytes have come: may its handshake begin? Else they are kept, and come again when it may. */
bool listener_link_begins(struct link *link, const uint8_t *bytes, size_t size);
void listener_link_secured(struct link *link);

#endif
