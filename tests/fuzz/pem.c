#include "config.h"

#include "tests/fuzz/pem.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 64, CHANGES = 4, DER_MAX = 6000 };

static bool holds;

void pem_signatures_hold(bool hold)
{
    holds = hold;
}

int __real_X509_verify(X509 *certificate, EVP_PKEY *key);
int __wrap_X509_verify(X509 *certificate, EVP_PKEY *key);
int __wrap_X509_verify(X509 *certificate, EVP_PKEY *key)
{
    return holds ? 1 : __real_X509_verify(certificate, key);
}

int __real_X509_REQ_verify(X509_REQ *request, EVP_PKEY *key);
int __wrap_X509_REQ_verify(X509_REQ *request, EVP_PKEY *key);
int __wrap_X509_REQ_verify(X509_REQ *request, EVP_PKEY *key)
{
    return holds ? 1 : __real_X509_REQ_verify(request, key);
}

int __real_EVP_DigestVerify(EVP_MD_CTX *context, const unsigned char *signature, size_t size, const unsigned char *text,
                            size_t length);
int __wrap_EVP_DigestVerify(EVP_MD_CTX *context, const unsigned char *signature, size_t size, const unsigned char *text,
                            size_t length);
int __wrap_EVP_DigestVerify(EVP_MD_CTX *context, const unsigned char *signature, size_t size, const unsigned char *text,
                            size_t length)
{
    return holds ? 1 : __real_EVP_DigestVerify(context, signature, size, text, length);
}

char *pem_wrap(const char *kind, const uint8_t *der, size_t size)
{
    size_t length = 4 * ((size + 2) / 3);
    char *code = malloc(length + 1), *text = malloc(2 * length + 200);
    int used;

    if (!code || !text)
        abort();
    (void)EVP_EncodeBlock((unsigned char *)code, der, (int)size);
    used = snprintf(text, 100, "-----BEGIN %s-----\n", kind);
    for (size_t i = 0; i < length; i += COLUMNS)
        used += snprintf(text + used, COLUMNS + 2, "%.*s\n", COLUMNS, code + i);
    (void)snprintf(text + used, 100, "-----END %s-----\n", kind);
    free(code);
    return text;
}

size_t pem_unwrap(const char *pem, uint8_t *der, size_t size)
{
    const char *at = strchr(pem, '\n'), *end = at ? strstr(at, "-----END") : NULL;
    EVP_ENCODE_CTX *context = EVP_ENCODE_CTX_new();
    uint8_t bytes[DER_MAX + 100];
    int first = 0, last = 0;

    if (!at || !end || end - at >= DER_MAX || !context)
        abort(); /* texts of ours are all right */
    EVP_DecodeInit(context);
    (void)EVP_DecodeUpdate(context, bytes, &first, (const unsigned char *)at + 1, (int)(end - at - 1));
    (void)EVP_DecodeFinal(context, bytes + first, &last);
    EVP_ENCODE_CTX_free(context);
    if ((size_t)first + (size_t)last < size)
        size = (size_t)first + (size_t)last;
    memcpy(der, bytes, size);
    return size;
}

/* One byte, or a few: another value, gone, or more of them. */
static size_t change(struct input *input, uint8_t *der, size_t size)
{
    uint8_t how = input_byte(input);
    size_t at = (input_byte(input) | (size_t)(how & 3) << 8) % size, count = 1 + input_below(input, 8);

    if (how < 0x80) {
        der[at] = input_byte(input);
    } else if (how < 0xC0) {
        if (count > size - at - 1)
            return size;
        memmove(der + at, der + at + count, size - at - count);
        size -= count;
    } else {
        memmove(der + at + count, der + at, size - at);
        for (size_t i = 0; i < count; i++)
            der[at + i] = input_byte(input);
        size += count;
    }
    return size;
}

char *pem_change(struct input *input, const char *kind, const char *pem)
{
    uint8_t der[DER_MAX];
    size_t size = pem_unwrap(pem, der, DER_MAX - 8 * CHANGES), changes = 1 + input_below(input, CHANGES);

    for (size_t i = 0; i < changes && size > 1; i++)
        size = change(input, der, size);
    return pem_wrap(kind, der, size);
}
