#include "config.h"

#include "tests/unit/lib/net/certs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "lib/pki/counter.h"

enum { HOUR_S = 3600, YEAR_S = 365 * 24 * 3600 };

static EVP_PKEY *make_key(bool p256)
{
    EVP_PKEY *key = p256 ? EVP_EC_gen("P-256") : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");

    assert_non_null(key);
    return key;
}

static void add(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    if (!value)
        return;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static X509 *begin(EVP_PKEY *key, const char *name, long serial, long begins_s, long ends_s)
{
    X509 *certificate = X509_new();
    X509_NAME *subject;

    assert_non_null(certificate);
    assert_int_equal(X509_set_version(certificate, X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), begins_s));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), ends_s));
    assert_int_equal(X509_set_pubkey(certificate, key), 1);
    subject = X509_get_subject_name(certificate);
    assert_int_equal(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0),
                     1);
    return certificate;
}

static void sign(X509 *certificate, EVP_PKEY *key)
{
    bool p256 = EVP_PKEY_is_a(key, "EC") == 1;

    assert_true(X509_sign(certificate, key, p256 ? EVP_sha256() : NULL) > 0);
}

void certs_make_ca(struct certs_ca *ca, const char *name)
{
    ca->key = make_key(true);
    ca->certificate = begin(ca->key, name, 1, -HOUR_S, 25L * YEAR_S);
    assert_int_equal(X509_set_issuer_name(ca->certificate, X509_get_subject_name(ca->certificate)), 1);
    add(ca->certificate, ca->certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
    add(ca->certificate, ca->certificate, NID_key_usage, "critical,keyCertSign");
    add(ca->certificate, ca->certificate, NID_subject_key_identifier, "hash");
    sign(ca->certificate, ca->key);
}

void certs_renew_ca(struct certs_ca *ca)
{
    X509 *old = ca->certificate;

    ca->certificate = X509_dup(old);
    assert_non_null(ca->certificate);
    X509_free(old);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(ca->certificate), 2), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(ca->certificate), 50L * YEAR_S));
    sign(ca->certificate, ca->key);
}

void certs_free_ca(struct certs_ca *ca)
{
    X509_free(ca->certificate);
    EVP_PKEY_free(ca->key);
    *ca = (struct certs_ca){0};
}

static FILE *create(const char *dir, const char *name, mode_t mode)
{
    char path[300];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    (void)unlink(path);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), mode), 0);
    return file;
}

static void write_certificate(X509 *certificate, const char *dir, const char *name)
{
    FILE *file = create(dir, name, 0644);

    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
}

void certs_issue(const struct certs_ca *ca, const struct certs_wish *wish, const char *dir)
{
    EVP_PKEY *key = make_key(wish->p256);
    X509 *certificate =
        begin(key, "host", wish->serial != 0 ? wish->serial : 1, wish->begins_s != 0 ? wish->begins_s : -HOUR_S,
              wish->ends_s != 0 ? wish->ends_s : YEAR_S);
    FILE *file;

    assert_int_equal(X509_set_issuer_name(certificate, X509_get_subject_name(ca->certificate)), 1);
    add(certificate, ca->certificate, NID_basic_constraints, "critical,CA:FALSE");
    add(certificate, ca->certificate, NID_ext_key_usage, wish->use);
    add(certificate, ca->certificate, NID_subject_alt_name, wish->names);
    assert_true(wish->counter == 0 || counter_add(certificate, wish->counter));
    sign(certificate, ca->key);
    (void)mkdir(dir, 0700);
    write_certificate(ca->certificate, dir, "ca.crt");
    write_certificate(certificate, dir, "host.crt");
    file = create(dir, "host.key", 0600);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void certs_pin(const struct certs_ca *ca, uint8_t pin[32])
{
    unsigned size = 0;

    assert_int_equal(X509_digest(ca->certificate, EVP_sha256(), pin, &size), 1);
    assert_int_equal(size, 32);
}

void certs_remove(const char *dir)
{
    static const char *const names[] = {"ca.crt", "host.crt", "host.key", "elmer.counter"};
    char path[300];

    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
}
