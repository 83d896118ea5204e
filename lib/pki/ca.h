/* ca.h - the cluster's CA: its directory, its tokens, what it signs. For root on the queue host alone.
 *
 * A process that makes or opens it is undumpable from then on: no core, and nobody of its user looks into it.
 *
 *   ca.key ca.crt     the CA
 *   elmer.counter     of elmer's latest certificate, see counter.h
 *   elmer.crt         that one, as it was made: its names are for the next one, which is made when it is gone, too
 *   tokens/ID         a token that waits      used/ID    one that was used (moved before anything is signed)
 */
#ifndef LIB_PKI_CA_H
#define LIB_PKI_CA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define CA_DIR      "/var/lib/elmer-ca"
#define CA_ELMER    "elmer.crt"
#define CA_VALID_MS INT64_C(31536000000) /* of certificates, where ca.conf says nothing: a year */

struct ca {
    int dir;
    char *key, *certificate;
    int64_t valid_ms; /* of the certificates that it signs; ca_open() sets CA_VALID_MS */
};

/* A CA that is there is left alone: returns 1. 0: made. name: of the cluster or the queue host, for people. -EUCLEAN:
 * ca.key or ca.crt is gone, with what to do: another CA in its place would be one that no host knows. */
int ca_create(const char *path, const char *name, int64_t now_ms, struct err *err);
/* Whether it is there: 0, -ENOENT, or -EUCLEAN as above. */
int ca_look(const char *path, struct err *err);
/* -ENOENT: there is none; -EPERM: its directory is not ours alone; -EUCLEAN: a file of it is gone or damaged. */
int ca_open(const char *path, struct ca *ca, struct err *err);
/* When two thirds of the CA's time are over: a new certificate of it, with the same key, so that hosts need nothing,
 * and all that was signed stays good. Tokens that wait are not: they name the one before. 0: done, 1: it is not due. */
int ca_renew(struct ca *ca, int64_t now_ms, struct err *err);
/* What ca.conf says (it need not be there): section ca, certificate_valid. */
int ca_configure(struct ca *ca, const char *path, struct err *err);
void ca_close(struct ca *ca); /* also of zeros */

/* A new token for these hosts (none: for any), good for so many of them (TOKEN_USES_MAX), as text of TOKEN_TEXT_SIZE.
 * Forgets tokens that ended 30 days ago. */
int ca_token(struct ca *ca, const char *const *hosts, size_t count, int uses, int64_t now_ms, int64_t valid_ms,
             char *text, struct err *err);

/* The counter of elmer's latest certificate; 0: it has none. */
int ca_counter(const struct ca *ca, uint64_t *counter, struct err *err);
/* Elmer's own certificate: names as in pki_terms. Once a host has linked with it, it refuses elmer's older ones. */
int ca_issue_elmer(struct ca *ca, const char *request, const char *const *names, size_t count, int64_t now_ms,
                   char **certificate, struct err *err);
/* A host's first: token is an id, proof as in token.h. The token is used up, on disk, before anything is signed.
 * -EACCES with who, why and what to do. */
int ca_sign_join(struct ca *ca, const char *host, const char *token, const char *proof, const char *request,
                 int64_t now_ms, char **certificate, struct err *err);
/* The same for a name that a host of the cluster has: a token that does not name it is not good for it, and not used
 * up. */
int ca_sign_rejoin(struct ca *ca, const char *host, const char *token, const char *proof, const char *request,
                   int64_t now_ms, char **certificate, struct err *err);
/* Either of these for a host that has a ticket key, in hexadecimal: the proof is of the request with the key behind it.
 * ticket_certificate has PKI_PROOF_SIZE bytes. */
int ca_sign_host(struct ca *ca, const char *host, bool taken, const char *token, const char *proof, const char *request,
                 const char *ticket_key, int64_t now_ms, char **certificate, char *ticket_certificate, struct err *err);
/* The queue host's own, which needs no token. */
int ca_sign_ticket_key(const struct ca *ca, const char *host, const char *key, char *certificate, struct err *err);
/* A further one, of a host or of elmer: the old one must be ours and not be over, elmer's must be the latest, and its
 * key must have signed the request. */
int ca_sign_renew(struct ca *ca, const char *old, const char *proof, const char *request, int64_t now_ms,
                  char **certificate, struct err *err);

#endif
