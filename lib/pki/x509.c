/* x509.c - keys, requests, proofs, and inspecting certificates; making certificates is in issue.c. */
#include "config.h"

#include "lib/pki/x509.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/pki/token.h"
#include "lib/pki/counter.h"
#include "lib/pki/x509_internal.h"

/* ---- PEM ---- */

int pki_fail(struct err *err, int code, const char *what)
{
    char reason[200] = "";
    unsigned long number = ERR_get_error(); /* 0: not OpenSSL, but a check of our own has failed */

    if (number)
        ERR_error_string_n(number, reason, sizeof(reason));
    ERR_clear_error();
    return err_set(err, code, "%s%s%s", what, number ? ": " : "", reason);
}

int pki_text(BIO *bio, bool written, char **text, struct err *err)
{
    char *data = NULL;
    long size = written ? BIO_get_mem_data(bio, &data) : -1;
    char *copy = size > 0 && size <= PKI_PEM_MAX ? strndup(data, (size_t)size) : NULL;

    BIO_free(bio);
    if (!copy)
        return pki_fail(err, -EIO, "cannot write a PEM text");
    *text = copy;
    return 0;
}

/* Keys of ours have no passphrase; nobody is asked for one. */
static int no_passphrase(char *buffer, int size, int writing, void *data)
{
    (void)buffer, (void)size, (void)writing, (void)data;
    return -1;
}

EVP_PKEY *pki_read_key(const char *key, struct err *err)
{
    BIO *bio = BIO_new_mem_buf(key, -1);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;

    BIO_free(bio);
    if (!pkey)
        pki_fail(err, -EINVAL, "the key cannot be read");
    return pkey;
}

/* The text is exactly what we would write: nothing before, between or behind, one spelling. */
static bool same_text(BIO *bio, bool written, const char *text)
{
    char *again = NULL;
    bool same = pki_text(bio, written, &again, NULL) == 0 && strcmp(again, text) == 0;

    free(again);
    return same;
}

X509 *pki_read_certificate(const char *text, struct err *err)
{
    BIO *in = strlen(text) <= PKI_PEM_MAX ? BIO_new_mem_buf(text, -1) : NULL, *out = BIO_new(BIO_s_mem());
    X509 *certificate = in ? PEM_read_bio_X509(in, NULL, no_passphrase, NULL) : NULL;

    BIO_free(in);
    if (!same_text(out, certificate && out && PEM_write_bio_X509(out, certificate), text)) {
        X509_free(certificate);
        certificate = NULL;
        pki_fail(err, -EINVAL, "this is not one certificate in PEM");
    }
    ERR_clear_error();
    return certificate;
}

X509_REQ *pki_read_request(const char *text, struct err *err)
{
    BIO *in = strlen(text) <= PKI_PEM_MAX ? BIO_new_mem_buf(text, -1) : NULL, *out = BIO_new(BIO_s_mem());
    X509_REQ *request = in ? PEM_read_bio_X509_REQ(in, NULL, no_passphrase, NULL) : NULL;

    BIO_free(in);
    if (!same_text(out, request && out && PEM_write_bio_X509_REQ(out, request), text)) {
        X509_REQ_free(request);
        request = NULL;
        pki_fail(err, -EINVAL, "this is not one certificate request in PEM");
    }
    ERR_clear_error();
    return request;
}

/* ---- keys and requests ---- */

int pki_write_key(EVP_PKEY *pkey, char **key, struct err *err)
{
    BIO *bio = BIO_new(BIO_s_secmem());

    return pki_text(bio, bio && PEM_write_bio_PKCS8PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL), key, err);
}

int pki_key_create(char **key, struct err *err)
{
    EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    int result = pkey ? pki_write_key(pkey, key, err) : pki_fail(err, -EIO, "cannot make a key");

    EVP_PKEY_free(pkey);
    return result;
}

void pki_key_free(char *key)
{
    if (key)
        OPENSSL_cleanse(key, strlen(key));
    free(key);
}

bool pki_set_subject(X509_NAME *subject, const char *name)
{
    return strlen(name) <= PKI_NAME_MAX &&
           X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0);
}

int pki_request_create(const char *key, const char *name, char **request, struct err *err)
{
    EVP_PKEY *pkey = pki_read_key(key, err);
    X509_REQ *req = X509_REQ_new();
    BIO *bio = BIO_new(BIO_s_mem());
    int result = pkey ? 0 : -EINVAL;

    if (result == 0 && !(req && pki_set_subject(X509_REQ_get_subject_name(req), name) &&
                         X509_REQ_set_version(req, X509_REQ_VERSION_1) && X509_REQ_set_pubkey(req, pkey) &&
                         X509_REQ_sign(req, pkey, NULL)))
        result = pki_fail(err, -EIO, "cannot make a certificate request");
    if (result == 0)
        result = pki_text(bio, bio && PEM_write_bio_X509_REQ(bio, req), request, err);
    else
        BIO_free(bio);
    X509_REQ_free(req);
    EVP_PKEY_free(pkey);
    return result;
}

static bool subject_is(X509_NAME *subject, const char *name)
{
    X509_NAME *wanted = X509_NAME_new();
    bool same = wanted && pki_set_subject(wanted, name) && X509_NAME_cmp(subject, wanted) == 0;

    X509_NAME_free(wanted);
    ERR_clear_error();
    return same;
}

int pki_check_read_request(X509_REQ *req, const char *name, struct err *err)
{
    EVP_PKEY *pkey = X509_REQ_get0_pubkey(req);

    if (X509_REQ_get_version(req) != X509_REQ_VERSION_1 || X509_REQ_get_attr_count(req) > 0)
        return err_set(err, -EINVAL, "the certificate request asks for more than its name");
    if (!subject_is(X509_REQ_get_subject_name(req), name))
        return err_set(err, -EINVAL, "the certificate request is not for the name %s", name);
    if (!pkey || EVP_PKEY_get_id(pkey) != EVP_PKEY_ED25519)
        return err_set(err, -EINVAL, "the certificate request is for another kind of key than Ed25519");
    if (X509_REQ_verify(req, pkey) != 1)
        return pki_fail(err, -EACCES, "the certificate request is not signed by its own key");
    return 0;
}

int pki_request_check(const char *request, const char *name, struct err *err)
{
    X509_REQ *req = pki_read_request(request, err);
    int result = req ? pki_check_read_request(req, name, err) : -EINVAL;

    X509_REQ_free(req);
    return result;
}

/* ---- inspecting certificates ---- */

enum { NAME_SIZE = 256 };

/* A host name, or a numeric address. False: it is neither. */
static bool name_text(const GENERAL_NAME *item, char *name, size_t size)
{
    const ASN1_STRING *text = item->type == GEN_DNS ? item->d.dNSName : NULL;
    size_t length = text ? (size_t)ASN1_STRING_length(text) : size;

    if (item->type == GEN_IPADD && (length = (size_t)ASN1_STRING_length(item->d.iPAddress)) != 4 && length != 16)
        return false;
    if (item->type == GEN_IPADD)
        return inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(item->d.iPAddress), name,
                         (socklen_t)size);
    if (length >= size || memchr(ASN1_STRING_get0_data(text), 0, length))
        return false;
    memcpy(name, ASN1_STRING_get0_data(text), length);
    name[length] = 0;
    return str_valid_hostname(name);
}

static void first_dns_name(X509 *certificate, char *name, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    bool found = false;

    for (int i = 0; i < sk_GENERAL_NAME_num(names) && !found; i++) {
        const GENERAL_NAME *item = sk_GENERAL_NAME_value(names, i);

        found = item->type == GEN_DNS && name_text(item, name, size);
    }
    if (!found)
        name[0] = 0;
    GENERAL_NAMES_free(names);
}

void pki_each_name(const char *certificate, void (*found)(const char *name, void *data), void *data)
{
    X509 *x = pki_read_certificate(certificate, NULL);
    GENERAL_NAMES *names = x ? X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL) : NULL;
    char name[NAME_SIZE];

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
        if (name_text(sk_GENERAL_NAME_value(names, i), name, sizeof(name)))
            found(name, data);
    ERR_clear_error();
    GENERAL_NAMES_free(names);
    X509_free(x);
}

static bool serial_text(X509 *certificate, char serial[PKI_SERIAL_SIZE])
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    char *hex =
        number && !BN_is_negative(number) && BN_num_bytes(number) <= PKI_SERIAL_SIZE / 2 ? BN_bn2hex(number) : NULL;

    snprintf(serial, PKI_SERIAL_SIZE, "%s", hex ? hex : "");
    OPENSSL_free(hex);
    BN_free(number);
    return serial[0];
}

static bool unix_time(const ASN1_TIME *from, int64_t *seconds)
{
    ASN1_TIME *zero = ASN1_TIME_set(NULL, 0);
    int days = 0, rest = 0;
    bool known = zero && ASN1_TIME_diff(&days, &rest, zero, from);

    *seconds = (int64_t)days * 86400 + rest;
    ASN1_TIME_free(zero);
    return known;
}

int pki_inspect(const char *text, struct pki_certificate *facts, struct err *err)
{
    X509 *certificate = pki_read_certificate(text, err);
    struct pki_certificate found = {0};
    uint32_t usage, flags;
    int result = 0;

    if (!certificate)
        return -EINVAL;
    flags = X509_get_extension_flags(certificate); /* reads all extensions */
    usage = X509_get_extended_key_usage(certificate);
    found.ca = flags & EXFLAG_CA;
    found.client = flags & EXFLAG_XKUSAGE && usage & XKU_SSL_CLIENT;
    found.server = flags & EXFLAG_XKUSAGE && usage & XKU_SSL_SERVER;
    found.counter = counter_of(certificate);
    first_dns_name(certificate, found.name, sizeof(found.name));
    if (flags & EXFLAG_INVALID || !serial_text(certificate, found.serial) ||
        !unix_time(X509_get0_notBefore(certificate), &found.begin_s) ||
        !unix_time(X509_get0_notAfter(certificate), &found.end_s))
        result = err_set(err, -EINVAL, "the certificate is malformed");
    else
        *facts = found;
    ERR_clear_error();
    X509_free(certificate);
    return result;
}

int pki_verify_read(X509 *certificate, X509 *ca, struct err *err)
{
    EVP_PKEY *key = X509_get0_pubkey(ca);

    if (!key || X509_NAME_cmp(X509_get_issuer_name(certificate), X509_get_subject_name(ca)) != 0 ||
        X509_verify(certificate, key) != 1) {
        ERR_clear_error();
        return err_set(err, -EACCES, "the certificate is not signed by this cluster's CA");
    }
    return 0;
}

int pki_verify(const char *certificate, const char *ca_certificate, struct err *err)
{
    X509 *x = pki_read_certificate(certificate, err), *ca = pki_read_certificate(ca_certificate, err);
    int result = x && ca ? pki_verify_read(x, ca, err) : -EINVAL;

    X509_free(x);
    X509_free(ca);
    return result;
}

bool pki_names_host(const char *certificate, const char *host)
{
    X509 *x = pki_read_certificate(certificate, NULL);
    bool named = x && (X509_check_ip_asc(x, host, 0) == 1 || X509_check_host(x, host, 0, 0, NULL) == 1);

    ERR_clear_error();
    X509_free(x);
    return named;
}

int pki_key_fits(const char *key, const char *certificate, struct err *err)
{
    EVP_PKEY *pkey = pki_read_key(key, err);
    X509 *x = pki_read_certificate(certificate, err);
    int result = pkey && x ? 0 : -EINVAL;

    if (result == 0 && X509_check_private_key(x, pkey) != 1)
        result = pki_fail(err, -EACCES, "the certificate is for another key");
    X509_free(x);
    EVP_PKEY_free(pkey);
    return result;
}

int pki_sha256(const char *certificate, uint8_t hash[PKI_SHA256_BYTES], struct err *err)
{
    X509 *x = pki_read_certificate(certificate, err);
    unsigned size = 0;
    int result = !x ? -EINVAL
                 : X509_digest(x, EVP_sha256(), hash, &size) && size == PKI_SHA256_BYTES
                     ? 0
                     : pki_fail(err, -EIO, "no SHA-256");

    X509_free(x);
    return result;
}

int64_t pki_renewal_s(const struct pki_certificate *facts)
{
    int64_t life = facts->end_s - facts->begin_s - PKI_BACKDATE_S;

    return facts->end_s - (life > 0 ? life / 3 : 0);
}

/* ---- proofs ---- */

int pki_join_proof(const uint8_t *secret, size_t size, const char *host, const char *request,
                   char proof[PKI_PROOF_SIZE], struct err *err)
{
    uint8_t mac[PKI_SHA256_BYTES];
    unsigned length = 0;
    char *text = str_format("elmer join 1\n%s\n%s", host, request);
    bool made = text && HMAC(EVP_sha256(), secret, (int)size, (const uint8_t *)text, strlen(text), mac, &length) &&
                length == sizeof(mac);

    free(text);
    if (!made)
        return pki_fail(err, -EIO, "cannot prove that the token is there");
    hex_write(mac, sizeof(mac), proof);
    return 0;
}

bool pki_join_proof_check(const uint8_t *secret, size_t size, const char *host, const char *request, const char *proof)
{
    char wanted[PKI_PROOF_SIZE];

    return pki_join_proof(secret, size, host, request, wanted, NULL) == 0 && strlen(proof) == strlen(wanted) &&
           CRYPTO_memcmp(proof, wanted, strlen(wanted)) == 0;
}

static char *renewal_text(const char *request)
{
    return str_format("elmer renew 1\n%s", request);
}

enum { SIGNATURE_BYTES = 64 };

int pki_prove(const char *old_key, const char *request, char proof[PKI_PROOF_SIZE], struct err *err)
{
    EVP_PKEY *pkey = pki_read_key(old_key, err);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    char *text = renewal_text(request);
    uint8_t signature[SIGNATURE_BYTES];
    size_t size = sizeof(signature);
    int result = pkey ? 0 : -EINVAL;

    if (result == 0 && !(context && text && EVP_DigestSignInit(context, NULL, NULL, NULL, pkey) == 1 &&
                         EVP_DigestSign(context, signature, &size, (const uint8_t *)text, strlen(text)) == 1 &&
                         size == sizeof(signature)))
        result = pki_fail(err, -EIO, "cannot sign with the present key");
    if (result == 0)
        hex_write(signature, sizeof(signature), proof);
    free(text);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pkey);
    return result;
}

int pki_proof_check(const char *old_certificate, const char *request, const char *proof, struct err *err)
{
    X509 *x = pki_read_certificate(old_certificate, err);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    char *text = renewal_text(request);
    uint8_t signature[SIGNATURE_BYTES];
    int result = x ? 0 : -EINVAL;

    if (result == 0 &&
        !(context && text && hex_read(proof, signature, sizeof(signature)) &&
          EVP_DigestVerifyInit(context, NULL, NULL, NULL, X509_get0_pubkey(x)) == 1 &&
          EVP_DigestVerify(context, signature, sizeof(signature), (const uint8_t *)text, strlen(text)) == 1))
        result = err_set(err, -EACCES, "the request for a new certificate is not signed by the key of the present one");
    ERR_clear_error();
    free(text);
    EVP_MD_CTX_free(context);
    X509_free(x);
    return result;
}
