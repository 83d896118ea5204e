/* pass_chain.c - passes that are signed and looked at: apart, so that who only shows one needs no OpenSSL. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "lib/ticket/pass.h"

bool pass_sign(struct pass *pass, const uint8_t key[TICKET_KEY_BYTES], const uint8_t secret[TICKET_KEY_BYTES])
{
    uint8_t bytes[PASS_BYTES_MAX];
    memcpy(pass->key, key, sizeof(pass->key));
    return ticket_sign_bytes(secret, bytes, pass_signed_bytes(pass, bytes), pass->signature);
}

enum ticket_refusal pass_check_chain(const struct pass *pass, struct ticket_trust *trust)
{
    uint8_t bytes[PASS_BYTES_MAX];
    struct ticket signer = {.counter = 0}; /* whose key it is is asked in the same way */
    snprintf(signer.host, sizeof(signer.host), "%s", pass->host);
    memcpy(signer.key, pass->key, sizeof(signer.key));
    memcpy(signer.certificate, pass->certificate, sizeof(signer.certificate));
    if (!ticket_key_is_known(&signer, trust))
        return TICKET_OTHER_CLUSTER;
    return ticket_signature_holds(pass->key, bytes, pass_signed_bytes(pass, bytes), pass->signature) ? TICKET_GOOD
                                                                                                     : TICKET_FORGED;
}
