#include "config.h"

#include "lib/pki/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "lib/pki/token.h"
#include "lib/pki/x509.h"

int pki_digest(const char *const *texts, size_t count, char digest[PKI_DIGEST_SIZE], struct err *err)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char hash[PKI_SHA256_BYTES];
    unsigned size = 0;
    int made = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);

    for (size_t i = 0; made && i < count; i++)
        made = EVP_DigestUpdate(context, texts[i], strlen(texts[i]) + 1);
    made = made && EVP_DigestFinal_ex(context, hash, &size) && size == sizeof(hash);
    EVP_MD_CTX_free(context);
    if (!made)
        return err_set(err, -EIO, "no SHA-256");
    token_hex(hash, sizeof(hash), digest);
    return 0;
}
