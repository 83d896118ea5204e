#include "config.h"

#include "lib/pki/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/pki/x509.h"

/* Frees context. */
static int finish(EVP_MD_CTX *context, int made, char digest[PKI_DIGEST_SIZE], struct err *err)
{
    unsigned char hash[PKI_SHA256_BYTES];
    unsigned size = 0;

    made = made && EVP_DigestFinal_ex(context, hash, &size) && size == sizeof(hash);
    EVP_MD_CTX_free(context);
    if (!made)
        return err_set(err, -EIO, "no SHA-256");
    hex_write(hash, sizeof(hash), digest);
    return 0;
}

int pki_digest(const char *const *texts, size_t count, char digest[PKI_DIGEST_SIZE], struct err *err)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int made = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);

    for (size_t i = 0; made && i < count; i++)
        made = EVP_DigestUpdate(context, texts[i], strlen(texts[i]) + 1);
    return finish(context, made, digest, err);
}

int pki_digest_part(int fd, int64_t at, int64_t size, char digest[PKI_DIGEST_SIZE], struct err *err)
{
    static unsigned char bytes[1 << 16];
    const size_t used = size < (int64_t)sizeof(bytes) ? (size_t)size : sizeof(bytes);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int made = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL), result = 0;

    while (made && result == 0 && size > 0) {
        ssize_t n = pread(fd, bytes, size < (int64_t)sizeof(bytes) ? (size_t)size : sizeof(bytes), at);

        if (n <= 0 && !(n < 0 && errno == EINTR))
            result =
                err_set(err, n < 0 ? -errno : -EINVAL, "cannot read it: %s", n < 0 ? strerror(errno) : "it is short");
        made = n <= 0 || EVP_DigestUpdate(context, bytes, (size_t)n);
        at += n > 0 ? n : 0;
        size -= n > 0 ? n : 0;
    }
    explicit_bzero(bytes, used); /* it may have been a key, and processes of others are forked later */
    if (result < 0) {
        EVP_MD_CTX_free(context);
        return result;
    }
    return finish(context, made, digest, err);
}
