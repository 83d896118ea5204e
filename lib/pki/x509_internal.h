/* x509_internal.h - what x509.c and issue.c share: OpenSSL's objects. */
#ifndef LIB_PKI_X509_INTERNAL_H
#define LIB_PKI_X509_INTERNAL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "lib/pki/x509.h"

/* err_set() with OpenSSL's reason, whose queue is emptied. */
int pki_fail(struct err *err, int code, const char *what);
/* What was written into bio, which is freed (may be NULL), unless nothing was. */
int pki_text(BIO *bio, bool written, char **text, struct err *err);
/* NULL: text set. */
EVP_PKEY *pki_read_key(const char *key, struct err *err);
X509 *pki_read_certificate(const char *text, struct err *err);
X509_REQ *pki_read_request(const char *text, struct err *err);
int pki_write_key(EVP_PKEY *pkey, char **key, struct err *err);
bool pki_set_subject(X509_NAME *subject, const char *name);
int pki_check_read_request(X509_REQ *request, const char *name, struct err *err);
int pki_verify_read(X509 *certificate, X509 *ca, struct err *err);

#endif
