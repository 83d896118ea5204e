/* tls.h - TLS 1.3 from bytes to bytes, with certificates of the cluster's own CA. The adapter of OpenSSL's TLS: it
 * knows no sockets, no loop and no frames. There are no tickets, no resumption and no early data, so each session sees
 * the certificates anew and a revocation counts at once. */
#ifndef LIB_NET_TLS_H
#define LIB_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"

enum { TLS_PIN_BYTES = 32 /* SHA-256 of a certificate's DER form */, TLS_AUTHORITY_BYTES = 32 };

struct tls_context; /* who we are and whom we believe; shared by sessions */
struct tls;         /* one session */

/* What a verified certificate says. Texts live as long as the session (in tls_judge: as long as the call). */
struct tls_peer {
    const char *name;   /* the first DNS name of its subjectAltName */
    const char *serial; /* upper-case hexadecimal, without leading zeros, whole bytes */
    struct wall not_before, not_after;
    const char *untimely; /* in tls_judge: why its time is not now, by this clock; NULL: it is */
};

/* What a server says of a certificate of our CA, for clients, beyond all that is verified; whether its time counts is
 * for it to say, too (without a judge it does). 0, or negative with the sentence that the peer gets. */
typedef int (*tls_judge)(const struct tls_peer *peer, void *data, struct err *err);

/* Of the queue host: asks for a certificate and accepts a peer without one, which tls_peer() tells apart. Reads
 * DIR/ca.crt, DIR/host.crt and DIR/host.key (PEM; the key for its owner alone). judge may be NULL. -ENOENT: a file is
 * missing; -EINVAL: they are unusable or do not belong together. The text names the file. One reference is the
 * caller's. */
int tls_context_server(const char *dir, tls_judge judge, void *data, struct tls_context **context, struct err *err);
/* Of a workstation, with the same files: verifies chain, use and name of the server, but not the time, because its own
 * clock may be wrong. A server's certificate with a lower counter than was seen before is refused; DIR/elmer.counter
 * remembers it (lib/pki/counter.h). */
int tls_context_client(const char *dir, struct tls_context **context, struct err *err);
/* Of a host that wants to join and has nothing but the hash of the CA certificate, which must come in the server's
 * chain. */
int tls_context_joiner(const uint8_t ca_sha256[TLS_PIN_BYTES], struct tls_context **context, struct err *err);
/* Of a server: the raw Ed25519 key of its CA. False: it has none. */
bool tls_context_authority(const struct tls_context *context, uint8_t key[TLS_AUTHORITY_BYTES]);
/* Read the files again. Sessions that have begun keep the old ones; on failure everybody does. */
int tls_context_reload(struct tls_context *context, struct err *err);
struct tls_context *tls_context_ref(struct tls_context *context);
void tls_context_unref(struct tls_context *context); /* NULL is fine */

/* host: a client's server, DNS name or numeric address, as configured; a server passes NULL. Keeps a reference to the
 * context. */
int tls_create(struct tls_context *context, const char *host, struct tls **tls, struct err *err);
void tls_destroy(struct tls *tls); /* NULL is fine; says no goodbye */

/* Bytes from the peer, the caller's, which stay valid until they have been used up: until tls_handshake() or tls_read()
 * returns 0 or fails. */
void tls_feed(struct tls *tls, const uint8_t *bytes, size_t size);
/* Go on with the handshake (also before the first byte). 1: done; 0: more bytes are needed; -EPROTO: it has failed, why
 * in text; -EPROTONOSUPPORT: the same, and the other side speaks Elmer's protocol without TLS. Whatever comes out of
 * it: send tls_output(). */
int tls_handshake(struct tls *tls, struct err *err);
bool tls_ready(const struct tls *tls);
/* After the handshake: the number of bytes put into out; 0: more are needed; -EPIPE: the other side has ended the
 * session in order; -EPROTO: it is broken. */
ssize_t tls_read(struct tls *tls, void *out, size_t size, struct err *err);
/* After the handshake: all of it will be in tls_output(). 0, -ENOMEM or -EPROTO. */
int tls_write(struct tls *tls, const void *bytes, size_t size, struct err *err);
/* Say goodbye; nothing can be written any more. Does nothing before the handshake is done. */
void tls_end(struct tls *tls);
/* What must be sent to the peer now, malloc'd and the caller's from now on; NULL: nothing. */
uint8_t *tls_output(struct tls *tls, size_t *size);

/* Of a server, after the handshake: why the peer's certificate is refused (the handshake is brought to its end, so that
 * the peer can be told), or NULL. */
const char *tls_refusal(const struct tls *tls);
/* After the handshake: the verified certificate, or NULL: the peer has shown none, or a refused one. */
const struct tls_peer *tls_peer(const struct tls *tls);
/* Of a joiner, after the handshake: the CA certificate as PEM. */
const char *tls_ca_pem(const struct tls *tls);
/* After the handshake: the counter of the other side's certificate. */
uint64_t tls_peer_counter(const struct tls *tls);

#endif
