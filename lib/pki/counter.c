#include "config.h"

#include "lib/pki/counter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/pki/x509_internal.h"

/* Of no registry: below 2.25 stands a number that was drawn at random (ITU-T X.667). Not critical, so that a host that
 * does not know it takes the certificate all the same. */
#define COUNTER_OID "2.25.179075168254812441552390253069018475501"

enum { HASH_TEXT = 2 * PKI_SHA256_BYTES };
_Static_assert(COUNTER_TEXT_SIZE >= HASH_TEXT + 23, "a hash, a blank, 20 digits, a newline");

/* ---- in a certificate ---- */

static int find(const X509 *certificate)
{
    ASN1_OBJECT *object = OBJ_txt2obj(COUNTER_OID, 1);
    int at = object ? X509_get_ext_by_OBJ(certificate, object, -1) : -1;

    ASN1_OBJECT_free(object);
    return at;
}

bool counter_add(X509 *certificate, uint64_t counter)
{
    ASN1_OBJECT *object = OBJ_txt2obj(COUNTER_OID, 1);
    ASN1_INTEGER *number = ASN1_INTEGER_new();
    ASN1_OCTET_STRING *octets = ASN1_OCTET_STRING_new();
    X509_EXTENSION *extension = NULL;
    uint8_t *der = NULL;
    int size = number && ASN1_INTEGER_set_uint64(number, counter) ? i2d_ASN1_INTEGER(number, &der) : -1;
    bool added = object && octets && size > 0 && ASN1_OCTET_STRING_set(octets, der, size) &&
                 (extension = X509_EXTENSION_create_by_OBJ(NULL, object, 0, octets)) &&
                 X509_add_ext(certificate, extension, -1);

    X509_EXTENSION_free(extension);
    OPENSSL_free(der);
    ASN1_OCTET_STRING_free(octets);
    ASN1_INTEGER_free(number);
    ASN1_OBJECT_free(object);
    return added;
}

bool counter_copy(X509 *to, const X509 *from)
{
    int at = find(from);

    return at < 0 || X509_add_ext(to, X509_get_ext(from, at), -1);
}

uint64_t counter_of(const X509 *certificate)
{
    int at = find(certificate);
    const ASN1_OCTET_STRING *octets = at < 0 ? NULL : X509_EXTENSION_get_data(X509_get_ext(certificate, at));
    const uint8_t *der = octets ? ASN1_STRING_get0_data(octets) : NULL;
    ASN1_INTEGER *number = der ? d2i_ASN1_INTEGER(NULL, &der, ASN1_STRING_length(octets)) : NULL;
    uint64_t counter;

    if (!number || !ASN1_INTEGER_get_uint64(&counter, number))
        counter = 0;
    ASN1_INTEGER_free(number);
    ERR_clear_error();
    return counter;
}

/* ---- in a file: "HASH-OF-THE-CA COUNTER\n" ---- */

static int hash_of(const char *ca, char text[HASH_TEXT + 1], struct err *err)
{
    uint8_t hash[PKI_SHA256_BYTES];
    int result = pki_sha256(ca, hash, err);

    if (result == 0)
        hex_write(hash, sizeof(hash), text);
    return result;
}

int counter_read(int dir, const char *ca, uint64_t *counter, struct err *err)
{
    char wanted[HASH_TEXT + 1], *text = NULL, *end;
    struct err none = ERR_INIT;
    int result = hash_of(ca, wanted, err);

    *counter = 0;
    if (result < 0)
        return result;
    result = file_read(dir, COUNTER_FILE, COUNTER_TEXT_SIZE, &text, &none);
    if (result == -ENOENT)
        return 0;
    if (result < 0)
        return err_set(err, result, "%s", none.text);
    end = strchr(text, '\n');
    if (end)
        *end = '\0';
    if (!end || strlen(text) < HASH_TEXT + 2 || text[HASH_TEXT] != ' ' || !str_to_u64(text + HASH_TEXT + 1, counter))
        result = err_set(err, -EINVAL,
                         COUNTER_FILE " is damaged, which says what certificate of elmer was the latest: remove it if "
                                      "you know that nobody else has a key of elmer");
    else if (strncmp(text, wanted, HASH_TEXT) != 0)
        *counter = 0;
    free(text);
    return result;
}

int counter_text(const char *ca, uint64_t counter, char text[COUNTER_TEXT_SIZE], struct err *err)
{
    char hash[HASH_TEXT + 1];
    int result = hash_of(ca, hash, err);

    if (result == 0)
        snprintf(text, COUNTER_TEXT_SIZE, "%s %" PRIu64 "\n", hash, counter);
    return result;
}

int counter_write(int dir, const char *ca, uint64_t counter, struct err *err)
{
    char text[COUNTER_TEXT_SIZE];
    int result = counter_text(ca, counter, text, err);

    return result == 0 ? file_write(dir, COUNTER_FILE, text, 0600, err) : result;
}
