/* issue.c - making certificates. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/rand.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/pki/counter.h"
#include "lib/pki/x509_internal.h"

/* 127 random bits, not 0: nobody has to keep count, and two requests at once need no lock. */
static bool set_serial(X509 *certificate)
{
    uint8_t bytes[16];
    BIGNUM *number;
    bool set;

    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] = (uint8_t)((bytes[0] & 0x7F) | 0x40);
    number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return set;
}

static bool set_dates(X509 *certificate, int64_t begin_s, int64_t end_s)
{
    return ASN1_TIME_set(X509_getm_notBefore(certificate), (time_t)begin_s) &&
           ASN1_TIME_set(X509_getm_notAfter(certificate), (time_t)end_s);
}

static bool add(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    bool added;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    added = extension && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

static int write_certificate(X509 *x, char **certificate, struct err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());

    return pki_text(bio, bio && PEM_write_bio_X509(bio, x), certificate, err);
}

/* By its own key. */
static bool sign_ca(X509 *x, const X509_NAME *name, EVP_PKEY *key, int64_t begin_s, int64_t end_s)
{
    return X509_set_version(x, X509_VERSION_3) && set_serial(x) && set_dates(x, begin_s, end_s) &&
           X509_set_subject_name(x, name) && X509_set_issuer_name(x, name) && X509_set_pubkey(x, key) &&
           add(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           add(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") && add(x, x, NID_subject_key_identifier, "hash") &&
           X509_sign(x, key, NULL);
}

int pki_ca_create(const char *name, int64_t begin_s, int64_t end_s, char **key, char **certificate, struct err *err)
{
    EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    X509 *x = X509_new();
    X509_NAME *subject = X509_NAME_new();
    int result = 0;

    if (!(pkey && x && subject && pki_set_subject(subject, name) && sign_ca(x, subject, pkey, begin_s, end_s)))
        result = pki_fail(err, -EIO, "cannot make the CA");
    if (result == 0)
        result = pki_write_key(pkey, key, err);
    if (result == 0 && (result = write_certificate(x, certificate, err)) < 0) {
        pki_key_free(*key);
        *key = NULL;
    }
    X509_NAME_free(subject);
    X509_free(x);
    EVP_PKEY_free(pkey);
    return result;
}

int pki_ca_renew(const char *key, const char *old, int64_t begin_s, int64_t end_s, char **certificate, struct err *err)
{
    EVP_PKEY *pkey = pki_read_key(key, err);
    X509 *from = pki_read_certificate(old, err), *x = X509_new();
    int result = pkey && from && x ? 0 : -EINVAL;

    if (result == 0 && !sign_ca(x, X509_get_subject_name(from), pkey, begin_s, end_s))
        result = pki_fail(err, -EIO, "cannot renew the CA");
    if (result == 0)
        result = write_certificate(x, certificate, err);
    X509_free(x);
    X509_free(from);
    EVP_PKEY_free(pkey);
    return result;
}

/* "DNS:ws1,IP:10.0.0.1"; NULL: a name is none. */
static char *alternative_names(const struct pki_terms *terms)
{
    char *all = strdup("");

    for (size_t i = 0; all && i < terms->count; i++) {
        const char *name = terms->names[i];
        uint8_t address[16];
        bool numeric = i > 0 && (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1);
        char *longer = numeric || str_valid_hostname(name)
                           ? str_format("%s%s%s:%s", all, i ? "," : "", numeric ? "IP" : "DNS", name)
                           : NULL;

        free(all);
        all = longer;
    }
    return all;
}

static bool terms_valid(const struct pki_terms *terms)
{
    return terms->count > 0 && strlen(terms->names[0]) <= PKI_NAME_MAX && terms->begin_s < terms->end_s;
}

/* All but the alternative names. */
static bool fill(X509 *x, X509 *ca, X509_REQ *request, const char *name, bool server, int64_t begin_s, int64_t end_s)
{
    return X509_set_version(x, X509_VERSION_3) && set_serial(x) && set_dates(x, begin_s, end_s) &&
           pki_set_subject(X509_get_subject_name(x), name) && X509_set_issuer_name(x, X509_get_subject_name(ca)) &&
           X509_set_pubkey(x, X509_REQ_get0_pubkey(request)) &&
           add(x, ca, NID_basic_constraints, "critical,CA:FALSE") &&
           add(x, ca, NID_key_usage, "critical,digitalSignature") &&
           add(x, ca, NID_ext_key_usage, server ? "serverAuth" : "clientAuth") &&
           add(x, ca, NID_subject_key_identifier, "hash") && add(x, ca, NID_authority_key_identifier, "keyid:always");
}

struct signing {
    EVP_PKEY *key;
    X509 *ca, *x;
    X509_REQ *request;
};

static void signing_fini(struct signing *s)
{
    EVP_PKEY_free(s->key);
    X509_free(s->ca);
    X509_free(s->x);
    X509_REQ_free(s->request);
}

static int signing_init(struct signing *s, const char *ca_key, const char *ca_certificate, const char *request,
                        const char *name, struct err *err)
{
    *s = (struct signing){.key = pki_read_key(ca_key, err), .x = X509_new()};
    s->ca = pki_read_certificate(ca_certificate, err);
    s->request = pki_read_request(request, err);
    return s->key && s->x && s->ca && s->request ? pki_check_read_request(s->request, name, err) : -EINVAL;
}

static int sign(struct signing *s, bool filled, char **certificate, struct err *err)
{
    return filled && X509_sign(s->x, s->key, NULL) ? write_certificate(s->x, certificate, err)
                                                   : pki_fail(err, -EIO, "cannot sign a certificate");
}

int pki_issue(const char *ca_key, const char *ca_certificate, const char *request, const struct pki_terms *terms,
              char **certificate, struct err *err)
{
    struct signing s = {0};
    char *names = terms_valid(terms) ? alternative_names(terms) : NULL;
    int result = names ? signing_init(&s, ca_key, ca_certificate, request, terms->names[0], err)
                       : err_set(err, -EINVAL,
                                 "a certificate needs dates in order, and host names of at most %d bytes or addresses",
                                 PKI_NAME_MAX);

    if (result == 0)
        result = sign(&s,
                      fill(s.x, s.ca, s.request, terms->names[0], terms->server, terms->begin_s, terms->end_s) &&
                          add(s.x, s.ca, NID_subject_alt_name, names) &&
                          (terms->counter == 0 || counter_add(s.x, terms->counter)),
                      certificate, err);
    free(names);
    signing_fini(&s);
    return result;
}

static bool copy_alternative_names(X509 *to, const X509 *from)
{
    X509_EXTENSION *names = X509_get_ext(from, X509_get_ext_by_NID(from, NID_subject_alt_name, -1));

    return names && X509_add_ext(to, names, -1);
}

int pki_reissue(const char *ca_key, const char *ca_certificate, const char *request, const char *old, int64_t begin_s,
                int64_t end_s, char **certificate, struct err *err)
{
    struct signing s = {0};
    struct pki_certificate facts = {0};
    X509 *from = NULL;
    int result = pki_inspect(old, &facts, err);

    if (result == 0 && !(from = pki_read_certificate(old, err)))
        result = -EINVAL;
    if (result == 0)
        result = signing_init(&s, ca_key, ca_certificate, request, facts.name, err);
    if (result == 0)
        result = pki_verify_read(from, s.ca, err);
    if (result == 0 && (facts.ca || facts.client == facts.server || begin_s >= end_s))
        result = err_set(err, -EINVAL, "the present certificate is neither a host's nor elmer's");
    if (result == 0)
        result = sign(&s,
                      fill(s.x, s.ca, s.request, facts.name, facts.server, begin_s, end_s) &&
                          copy_alternative_names(s.x, from) && counter_copy(s.x, from),
                      certificate, err);
    X509_free(from);
    signing_fini(&s);
    return result;
}
