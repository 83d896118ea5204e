/* link.h - frames over a libuv stream (unix or TCP socket), hello included, TLS under them where the options say so.
 * The adapter of libuv streams. There is no TCP without TLS. libuv writes with
 * write(2): a program that uses links ignores SIGPIPE. */
#ifndef LIB_NET_LINK_H
#define LIB_NET_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "lib/quota/budget.h"
#include "lib/wire/wire.h"

struct link;
struct tls_context;

enum { LINK_LITTLE = 64 << 10 };

struct link_callbacks {
    /* hellos exchanged and versions agreed; may be NULL. */
    void (*on_ready)(struct link *link, void *data);
    /* A message that the peer may send; it is freed afterwards unless taken over (set memory to NULL after a move). An
     * error with id 0 is not handed on: it closes the link, with its text in on_close. */
    void (*on_message)(struct link *link, struct wire_message *message, void *data);
    /* The link is gone, why in text (logged by the owner, once). Last callback; the link is freed after it. */
    void (*on_close)(struct link *link, const char *text, void *data);
    /* Something was unsent, and of that at most LINK_LITTLE is left; may be NULL, and comes more often than one needs.
     * Not after what the kernel has taken at once. */
    void (*on_room)(struct link *link, void *data);
};

struct link_options {
    const char *program; /* in our hello; kept, not copied */
    unsigned peer;       /* WIRE_FROM_ bit: what the other side may send */
    size_t out_max;      /* unsent bytes beyond which a peer that does not read is cut off */
    unsigned stall_ms;   /* a peer that takes nothing for so long, while something waits for it, is cut off; 0: no */
    unsigned hello_timeout_ms; /* the peer's hello must have come by then, TLS included */
    bool no_hello; /* both ends are of one build (socketpair; the other end may be a bare channel): ready in the next
                      turn of the loop */
    struct tls_context *tls; /* NULL: none, for unix sockets. A link and a listener keep a reference */
    unsigned handshakes;     /* of a listener with TLS: that may begin in a second; 0: HANDSHAKES_PER_SECOND */
};

/* Dial "HOST:PORT" (with TLS, else -EPERM) or "/path" (addresses tried in turn, deadline timeout_ms for all). The link
 * exists at once; on_ready or on_close follows. */
int link_connect(uv_loop_t *loop, const char *address, unsigned timeout_ms, const struct link_options *options,
                 const struct link_callbacks *callbacks, void *data, struct link **link, struct err *err);

/* Take over a connected socket (also when it fails); see no_hello. */
int link_open_fd(uv_loop_t *loop, int fd, const struct link_options *options, const struct link_callbacks *callbacks,
                 void *data, struct link **link, struct err *err);

struct listener;
/* Called for each accepted link before its hello, with TLS after the handshake (what fails in it is logged, not
 * offered); return the data for its callbacks, or NULL to refuse (it gets an error message and is closed, without
 * callbacks). */
typedef void *(*listener_accept)(struct link *link, void *data);
/* Listen on "ADDRESS:PORT" (with TLS, else -EPERM; * for all; a name is resolved at once, and refused if it stands for
 * a loopback address only, as a host's own name on Debian) or "/path" (mode: of the socket file; a stale socket file is
 * replaced, a live one is an error). max_links: further connections get an error message and are closed. With TLS,
 * those without a verified certificate do not count to them: there may be so many beside that, few of one address, for
 * hello_timeout_ms, and the oldest goes when one too many comes. What they may send is WIRE_FROM_JOINER's, in frames of
 * 16 KiB at most. */
int listener_create(uv_loop_t *loop, const char *address, unsigned mode, unsigned max_links,
                    const struct link_options *options, const struct link_callbacks *callbacks, listener_accept accept,
                    void *data, struct listener **listener, struct err *err);
/* The same on a unix socket that is bound already (taken over): the one that rsd's root half made. */
/* So many links from now on; those that there are stay. */
void listener_allow(struct listener *listener, unsigned max_links);
int listener_create_fd(uv_loop_t *loop, int fd, unsigned max_links, const struct link_options *options,
                       const struct link_callbacks *callbacks, listener_accept accept, void *data,
                       struct listener **listener, struct err *err);
/* The links that it accepted live on, and no callback comes from it any more. Removes its socket file. */
void listener_close(struct listener *listener);
/* The TCP port ("ADDRESS:0" takes a free one); 0 for a unix socket. */
unsigned listener_port(const struct listener *listener);

/* Frees nothing of the message. -ENOTCONN: not ready yet or closing; -EMSGSIZE, -EILSEQ, -ERANGE: the message cannot be
 * encoded (wire_encode() says why), the link stays. Otherwise (-ENOBUFS: the peer does not read, -ENOMEM) the link
 * closes itself later (on_close) and the error is returned. */
int link_send(struct link *link, const struct wire_message *message);
/* The same for what may stay unsent: when there is no memory to encode it (-ENOMEM) nothing happens to the link. */
int link_offer(struct link *link, const struct wire_message *message);
/* A raw frame's JSON (relay). */
int link_send_json(struct link *link, const char *json, size_t size);
/* After what is queued has been written and the peer has closed too, or 1 s; on_close follows with this text (NULL:
 * ""), never from within this call. No more messages come. Does nothing on a link that is closing. */
void link_close(struct link *link, const char *text);
/* Send an error message, also before the hellos are exchanged, and close in order. */
void link_refuse(struct link *link, const char *code, const char *text);
/* Peer credentials of a unix socket: 0, or -ENOTSUP. */
int link_peer_cred(const struct link *link, uid_t *uid, gid_t *gid, pid_t *pid);
/* The first capability of the peer's hello; "": there is none, or it is too long to be one. */
const char *link_peer_capability(const struct link *link);
/* Numeric addresses without port; "" for a unix socket. */
const char *link_peer_address(const struct link *link);
const char *link_local_address(const struct link *link);
/* Of the certificate that the peer has shown and that was accepted, as long as the link lives; NULL: none (no TLS, or a
 * peer that may only join). */
const char *link_peer_name(const struct link *link);
const char *link_peer_serial(const struct link *link);
/* The CA certificate as PEM, of a link to join (tls_context_joiner()) that is ready. */
const char *link_ca_pem(const struct link *link);
/* The counter of the certificate that the other side has shown (lib/pki/counter.h); 0: none. */
uint64_t link_peer_counter(const struct link *link);
/* In on_close: the other side has said in an error message why it closes the link. */
bool link_was_refused(const struct link *link);
bool link_ready(const struct link *link);
/* The minor version that both ends speak, once it is ready. */
unsigned link_minor(const struct link *link);
/* What is sent from now on is counted there until the kernel has taken it; a link for which there is no room closes.
 * The budget lives until on_close() at least. */
void link_set_budget(struct link *link, struct budget *budget);
/* Bytes that have been sent but not yet taken by the kernel: whoever has much to say waits until they are few. */
size_t link_unsent(const struct link *link);

#endif
