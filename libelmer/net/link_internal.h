/* link_internal.h - what link.c, dial.c and listener.c share. */
#ifndef ELMER_NET_LINK_INTERNAL_H
#define ELMER_NET_LINK_INTERNAL_H

#include "libelmer/net/link.h"
#include "libelmer/wire/channel.h"

enum link_state {
    LINK_RESOLVING,
    LINK_CONNECTING,
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
    unsigned minor;
    struct listener *listener; /* that accepted it, or NULL */
    bool refused;              /* never shown to an owner */
    char peer[64], local[64];
    char text[512]; /* why it closes */
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
/* The stream is connected: exchange hellos. */
void link_begin(struct link *link);
/* Close at once, with nothing more written. */
void link_drop(struct link *link, const char *format, ...) __attribute__((format(printf, 2, 3)));
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
/* listener.c */
void listener_link_gone(struct listener *listener, bool refused);

#endif
