/* digest.h - SHA-256 of texts, and of files. */
#ifndef LIB_PKI_DIGEST_H
#define LIB_PKI_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { PKI_DIGEST_SIZE = 65 }; /* hexadecimal, with the NUL */

/* Of the texts in this order, each with its NUL. -EIO, -ENOMEM. */
int pki_digest(const char *const *texts, size_t count, char digest[PKI_DIGEST_SIZE], struct err *err);
/* Of so many bytes of a file, from there on. -EINVAL: it has fewer. */
int pki_digest_part(int fd, int64_t at, int64_t size, char digest[PKI_DIGEST_SIZE], struct err *err);

#endif
