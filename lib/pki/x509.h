/* x509.h - keys, requests and certificates, all as PEM texts. With digest.c, tls.c and lib/ticket/sign.c the only user
 * of OpenSSL.
 *
 * Keys are Ed25519: no parameters to choose, no random number per signature that could give the key away, and small. */
#ifndef LIB_PKI_X509_H
#define LIB_PKI_X509_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum {
    PKI_PEM_MAX = 8191,   /* bytes of any of the texts */
    PKI_NAME_MAX = 64,    /* a common name ends there, and a host name of Linux too */
    PKI_SERIAL_SIZE = 41, /* hexadecimal, with the NUL */
    PKI_SHA256_BYTES = 32,
    PKI_PROOF_SIZE = 129,  /* hexadecimal, with the NUL; a renewal's has all of it, a join's half */
    PKI_BACKDATE_S = 86400 /* certificates begin earlier than now, for clocks that are set back a little */
};

struct pki_certificate {
    char name[PKI_NAME_MAX + 1];  /* the first DNS name */
    char serial[PKI_SERIAL_SIZE]; /* upper case, whole bytes, as in tls.h */
    int64_t begin_s, end_s;       /* Unix time */
    bool client, server, ca;      /* what it is good for */
    uint64_t counter;             /* of elmer's, see counter.h */
};

/* Texts that these functions return are malloc'd; keys are for pki_key_free(). Errors: -EINVAL: what was given is not
 * what it should be; -EACCES: a signature does not hold; -EIO, -ENOMEM. */
int pki_key_create(char **key, struct err *err);
void pki_key_free(char *key); /* wipes it; NULL is fine */
/* A request says who asks, in its subject, and proves that the key is there. */
int pki_request_create(const char *key, const char *name, char **request, struct err *err);
/* It is exactly what pki_request_create() makes for this name: one subject, no wish for any extension, our kind of key,
 * its own signature. */
int pki_request_check(const char *request, const char *name, struct err *err);

/* A self-signed CA. */
int pki_ca_create(const char *name, int64_t begin_s, int64_t end_s, char **key, char **certificate, struct err *err);

/* The same CA with other dates: name and key stay, so what the one has signed the other has, too. */
int pki_ca_renew(const char *key, const char *old, int64_t begin_s, int64_t end_s, char **certificate, struct err *err);

struct pki_terms {            /* what the certificate will say; nothing else of a request than its key is taken */
    bool server;              /* of elmer, else of a host */
    const char *const *names; /* [count] host names and numeric addresses; the first is a host name and the subject */
    size_t count;
    int64_t begin_s, end_s;
    uint64_t counter; /* of elmer's; 0: none */
};
/* Sign, after pki_request_check() for the first name. The serial is random. */
int pki_issue(const char *ca_key, const char *ca_certificate, const char *request, const struct pki_terms *terms,
              char **certificate, struct err *err);
/* The same terms as an older certificate, its counter too, with other dates. */
int pki_reissue(const char *ca_key, const char *ca_certificate, const char *request, const char *old, int64_t begin_s,
                int64_t end_s, char **certificate, struct err *err);

int pki_inspect(const char *certificate, struct pki_certificate *facts, struct err *err);
/* The CA has signed it. Dates are not checked. */
int pki_verify(const char *certificate, const char *ca_certificate, struct err *err);
/* Who dials this name or numeric address takes the certificate for the host's. */
bool pki_names_host(const char *certificate, const char *host);
/* Each host name and numeric address that it names, in their order; of other kinds, and what is no host name, none. */
void pki_each_name(const char *certificate, void (*found)(const char *name, void *data), void *data);
int pki_key_fits(const char *key, const char *certificate, struct err *err);
/* The raw key that a certificate, which has one of Ed25519, is for: 32 bytes. */
int pki_public_key(const char *certificate, uint8_t *key, struct err *err);
int pki_sha256(const char *certificate, uint8_t hash[PKI_SHA256_BYTES], struct err *err);
/* When two thirds of its time are over. */
int64_t pki_renewal_s(const struct pki_certificate *facts);

/* Joining: HMAC-SHA256 under the token's secret of the host's name and the request, so that nobody on the way can use
 * it for another. */
int pki_join_proof(const uint8_t *secret, size_t size, const char *host, const char *request,
                   char proof[PKI_PROOF_SIZE], struct err *err);
bool pki_join_proof_check(const uint8_t *secret, size_t size, const char *host, const char *request,
                          const char *proof); /* in constant time */
/* Renewal: the old key signs the new request. */
int pki_prove(const char *old_key, const char *request, char proof[PKI_PROOF_SIZE], struct err *err);
int pki_proof_check(const char *old_certificate, const char *request, const char *proof, struct err *err);

#endif
