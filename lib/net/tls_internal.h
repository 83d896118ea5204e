/* tls_internal.h - what tls.c, tls_context.c and tls_verify.c share. */
#ifndef LIB_NET_TLS_INTERNAL_H
#define LIB_NET_TLS_INTERNAL_H

#include <openssl/ssl.h>

#include "lib/net/tls.h"

enum tls_role { TLS_SERVER, TLS_CLIENT, TLS_JOINER };
/* Reasons of our own beside OpenSSL's X509_V_ERR_. */
enum tls_verify_error { TLS_VERIFY_USE = -1, TLS_VERIFY_PIN = -2, TLS_VERIFY_NO_NAME = -3 };

struct tls_context {
    unsigned refs;
    enum tls_role role;
    char *dir; /* NULL of a joiner */
    SSL_CTX *ssl;
    uint8_t pin[TLS_PIN_BYTES];
    char *ca;         /* of a client: its CA's certificate, PEM ... */
    uint64_t counter; /* ... and the highest counter of elmer's certificates that was seen, see lib/pki/counter.h */
    uint8_t authority[TLS_AUTHORITY_BYTES]; /* of a server: the raw key of its CA, */
    bool has_authority;                     /* if it is one of Ed25519 */
    tls_judge judge;
    void *judge_data;
};

struct tls {
    struct tls_context *context;
    SSL *ssl;
    char *host; /* of a client */
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t out_size, out_capacity;
    bool begun /* the first byte has come */, ready, failed, out_of_memory;
    int verify_error; /* X509_V_ERR_ or tls_verify_error; 0: none */
    bool has_peer;
    struct tls_peer peer;
    char *peer_name, *peer_serial, *ca_pem;
    char names[300]; /* of a certificate that was not verified, for people */
    struct err refusal;
};

/* tls_verify.c: OpenSSL's hook for the other side's chain. A server lets all pass and keeps the error, so that the peer
 * can be told in words. */
int tls_verify_chain(X509_STORE_CTX *store, void *unused);
/* Fill in the peer of a server's session, or its refusal. */
void tls_note_peer(struct tls *tls);
/* Of a client: elmer's certificate is the latest that was seen, or a later one, which is remembered. */
int tls_judge_counter(struct tls *tls, struct err *err);
/* Why a client's verification has failed, in words; false: it has not. */
bool tls_explain_verify(const struct tls *tls, struct err *err);
/* X509 usable for this end (X509_PURPOSE_ alone accepts a certificate without any EKU). */
bool tls_has_use(X509 *certificate, bool server);

#endif
