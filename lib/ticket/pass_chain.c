/* pass_chain.c - passes that are signed and looked at: apart, so that who only shows one needs no OpenSSL. */
#include "config.h"

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
    return ticket_check_signer(pass->host, pass->key, pass->certificate, bytes, pass_signed_bytes(pass, bytes),
                               pass->signature, trust);
}
