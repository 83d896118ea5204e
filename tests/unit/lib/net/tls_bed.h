/* tls_bed.h - two TLS sessions without a socket, and certificates for them. */
#ifndef TESTS_UNIT_LIB_NET_TLS_BED_H
#define TESTS_UNIT_LIB_NET_TLS_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <cmocka.h>

#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"

struct world {
    char dir[64], server_dir[96], client_dir[96];
    struct certs_ca ca, other;
    struct tls_context *server, *client;
    int judged;          /* calls of the judge */
    const char *verdict; /* what it refuses with, or NULL */
    bool timeless;       /* it does not care for time */
    char judged_name[64], judged_serial[64];
};

/* The two ends of a connection. */
struct pair {
    struct tls *client, *server;
    struct err client_err, server_err;
    int client_code, server_code; /* of the handshake */
};

static const struct certs_wish server_wish = {.names = "DNS:ws1,IP:127.0.0.1", .use = "serverAuth"};

static const struct certs_wish client_wish = {.names = "DNS:ws2", .use = "clientAuth", .serial = 0xabc};

int setup(void **state);
int teardown(void **state);
void start(struct pair *p, struct tls_context *client, struct tls_context *server, const char *host);
void stop(struct pair *p);
void shake(struct pair *p, size_t piece);

/* A handshake that the client must refuse, with words. */
void client_refuses(struct world *w, struct tls_context *client, const char *host, const char *words);

#endif
