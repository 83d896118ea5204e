/* ca_ticket.c - the certificate of a host's ticket key: see lib/ticket/ticket.h. The CA's key signs X.509 too; what is
 * signed here begins with words, which no DER does. */
#include "config.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/pki/ca.h"
#include "lib/pki/x509_internal.h"
#include "lib/ticket/keys.h"

int pki_public_key(const char *certificate, uint8_t *key, struct err *err)
{
    X509 *x = pki_read_certificate(certificate, err);
    EVP_PKEY *pkey = x ? X509_get0_pubkey(x) : NULL;
    size_t size = TICKET_KEY_BYTES;
    int result = 0;

    if (!pkey || EVP_PKEY_get_id(pkey) != EVP_PKEY_ED25519 || EVP_PKEY_get_raw_public_key(pkey, key, &size) != 1 ||
        size != TICKET_KEY_BYTES)
        result = err_set(err, -EINVAL, "the CA's certificate has no Ed25519 key");
    X509_free(x);
    return result;
}

static bool raw_key(const char *text, uint8_t secret[TICKET_KEY_BYTES], struct err *err)
{
    EVP_PKEY *pkey = pki_read_key(text, err);
    size_t size = TICKET_KEY_BYTES;
    bool read = pkey && EVP_PKEY_get_id(pkey) == EVP_PKEY_ED25519 &&
                EVP_PKEY_get_raw_private_key(pkey, secret, &size) == 1 && size == TICKET_KEY_BYTES;

    EVP_PKEY_free(pkey);
    return read;
}

int ca_sign_ticket_key(const struct ca *ca, const char *host, const char *key, char *certificate, struct err *err)
{
    uint8_t secret[TICKET_KEY_BYTES], bytes[TICKET_BYTES_MAX], raw[TICKET_KEY_BYTES], signature[TICKET_SIGNATURE_BYTES];
    int result = 0;

    if (strlen(host) > TICKET_HOST_MAX || !hex_read(key, raw, sizeof(raw)))
        return err_set(err, -EINVAL, "this is no ticket key of a host");
    if (!raw_key(ca->key, secret, err) ||
        !ticket_sign_bytes(secret, bytes, ticket_certified_bytes(host, raw, bytes), signature))
        result = err_set(err, -EIO, "the ticket key cannot be certified");
    OPENSSL_cleanse(secret, sizeof(secret));
    if (result == 0)
        hex_write(signature, sizeof(signature), certificate);
    return result;
}
