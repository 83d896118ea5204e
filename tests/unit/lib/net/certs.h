/* certs.h - certificates for tests, made on the spot. */
#ifndef TESTS_UNIT_LIB_NET_CERTS_H
#define TESTS_UNIT_LIB_NET_CERTS_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/x509.h>

struct certs_ca {
    EVP_PKEY *key;
    X509 *certificate;
};

/* What a certificate is to say; zero members have the usual value. */
struct certs_wish {
    const char *names; /* subjectAltName as OpenSSL writes it, "DNS:ws1,IP:127.0.0.1"; NULL: none */
    const char *use;   /* "serverAuth", "clientAuth"; NULL: no extendedKeyUsage */
    long begins_s;     /* from now; 0: an hour ago */
    long ends_s;       /* from now; 0: in a year */
    long serial;       /* 0: 1 */
    bool p256;         /* the key; else Ed25519 */
    uint64_t counter;  /* 0: none */
};

void certs_make_ca(struct certs_ca *ca, const char *name);
void certs_renew_ca(struct certs_ca *ca); /* other dates, the same key and name */
void certs_free_ca(struct certs_ca *ca);
/* DIR/ca.crt, DIR/host.crt, DIR/host.key; DIR is made. */
void certs_issue(const struct certs_ca *ca, const struct certs_wish *wish, const char *dir);
void certs_pin(const struct certs_ca *ca, uint8_t pin[32]);
/* Removes DIR with what certs_issue() puts there. */
void certs_remove(const char *dir);

#endif
