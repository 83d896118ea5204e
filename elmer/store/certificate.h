/* certificate.h - what elmer remembers of a certificate that it passed on to a host. Plain data. */
#ifndef ELMER_STORE_CERTIFICATE_H
#define ELMER_STORE_CERTIFICATE_H

#include <stdint.h>

#include "lib/pki/x509.h"

struct certificate {
    char serial[PKI_SERIAL_SIZE], host[PKI_NAME_MAX + 1];
    int64_t issued_ms, end_ms; /* wall clock of the queue host */
    int64_t revoked_ms;        /* 0: it is not */
};

#endif
