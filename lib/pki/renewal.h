/* renewal.h - both ends of a renewal that have a pair of their own: host.key and host.crt beside ca.crt in one
 * directory. */
#ifndef LIB_PKI_RENEWAL_H
#define LIB_PKI_RENEWAL_H

#include "lib/base/err.h"
#include "lib/pki/x509.h"

struct pki_renewal {
    char *old, *key, *request; /* the certificate that there is; what is to follow */
    char proof[PKI_PROOF_SIZE];
};

/* Reads the pair, makes a new key and a request, and signs it with the present key. Slow: it reads files. */
int pki_renewal_prepare(const char *dir, struct pki_renewal *renewal, struct err *err);
/* The certificate must be of the same CA, name and use, and for the new key; then the pair is replaced. Slow: it brings
 * files to disk. */
int pki_renewal_save(const char *dir, const struct pki_renewal *renewal, const char *certificate, struct err *err);
void pki_renewal_fini(struct pki_renewal *renewal); /* also of zeros */
/* Finish what a crash has left of a save, and say what the present certificate is. */
int pki_renewal_recover(const char *dir, struct pki_certificate *facts, struct err *err);

#endif
