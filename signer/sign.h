/* sign.h - what elmer-signer does with a request. */
#ifndef ELMER_SIGNER_SIGN_H
#define ELMER_SIGNER_SIGN_H

#include <stdint.h>

#include "lib/pki/ca.h"
#include "lib/pki/x509.h"
#include "lib/wire/wire.h"

struct sign_answer {
    struct wire_message message; /* issued, issued_host, or error; its texts are the members below */
    char *certificate;
    char ticket_certificate[PKI_PROOF_SIZE];
    struct err err;
};

/* sign_host, sign_join, sign_rejoin or sign_renew; anything else is refused. Logs one line. */
void sign(struct ca *ca, const struct wire_message *request, int64_t now_ms, struct sign_answer *answer);
void sign_answer_fini(struct sign_answer *answer);

#endif
