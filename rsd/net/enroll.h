/* enroll.h - the talk with elmer by which a host gets its first certificate. */
#ifndef RSD_NET_ENROLL_H
#define RSD_NET_ENROLL_H

#include "lib/base/err.h"
#include "lib/pki/token.h"
#include "lib/pki/x509.h"

/* For the key that signs the host's tickets, which is not of this user (lib/ticket/keys.h). */
struct enrol_ticket {
    const char *key;                  /* hexadecimal; "": it has none */
    char certificate[PKI_PROOF_SIZE]; /* its certificate; "": elmer has made none */
    char ca[PKI_PEM_MAX + 1];         /* whose it is */
};

/* Make a key, ask elmer (HOST:PORT) for a certificate of this name, and write ca.crt, host.crt and host.key into the
 * directory pki, which is made if it is not there and must belong to us; if they cannot be written there, elmer is not
 * asked. Blocks, with deadlines. 0, or negative with the text of err: what was there before stays. */
int enroll(const char *elmer, const char *name, const struct token *token, const char *pki, struct enrol_ticket *ticket,
           struct err *err);

#endif
