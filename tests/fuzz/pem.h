/* pem.h - what the targets that read certificates share: bytes of the input as PEM, and signatures that hold at will.
 */
#ifndef ELMER_TESTS_FUZZ_PEM_H
#define ELMER_TESTS_FUZZ_PEM_H

#include "tests/fuzz/fuzz.h"

/* A fuzzer cannot sign. With true, each check of a signature says yes without looking (linked with --wrap=X509_verify,
 * --wrap=X509_REQ_verify, --wrap=EVP_DigestVerify), so that what is behind it gets tested, too. */
void pem_signatures_hold(bool hold);
/* malloc'd: these bytes as the DER form of a "CERTIFICATE" or so, exactly as OpenSSL would write it. */
char *pem_wrap(const char *kind, const uint8_t *der, size_t size);
/* The bytes within; at most size of them. Returns how many. */
size_t pem_unwrap(const char *pem, uint8_t *der, size_t size);
/* malloc'd: the text with some of the bytes within replaced, inserted or removed, as the input says. */
char *pem_change(struct input *input, const char *kind, const char *pem);

#endif
