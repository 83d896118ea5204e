/* tls_verify.c - whom we believe. A client's verification ends its handshake; a server's only notes the outcome, and
 * the link says it in words once the session is up. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "lib/base/str.h"
#include "lib/base/file.h"
#include "lib/net/tls_internal.h"
#include "lib/pki/counter.h"

enum { NAME_MAX_BYTES = 255, SERIAL_MAX_BYTES = 20, TIME_BYTES = 32, DAY_BYTES = 10 };

bool tls_has_use(X509 *certificate, bool server)
{
    uint32_t use = X509_get_extended_key_usage(certificate);

    return use != UINT32_MAX && (use & (server ? XKU_SSL_SERVER : XKU_SSL_CLIENT)) != 0;
}

/* ---- the chain ---- */

/* "ws1, ws1.example.org, 10.0.0.1" */
static void list_names(const X509 *certificate, char *out, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *item = sk_GENERAL_NAME_value(names, i);
        char text[NAME_MAX_BYTES + 1] = "";

        if (item->type == GEN_DNS)
            (void)str_printable(text, sizeof(text), (const char *)ASN1_STRING_get0_data(item->d.dNSName),
                                (size_t)ASN1_STRING_length(item->d.dNSName));
        else if (item->type == GEN_IPADD && ASN1_STRING_length(item->d.iPAddress) == 4) {
            const uint8_t *a = ASN1_STRING_get0_data(item->d.iPAddress);

            (void)snprintf(text, sizeof(text), "%u.%u.%u.%u", a[0], a[1], a[2], a[3]);
        }
        if (text[0] != '\0' && used + strlen(text) + 3 < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", text);
    }
    GENERAL_NAMES_free(names);
    if (out[0] == '\0')
        (void)snprintf(out, size, "nobody");
}

static bool matches_pin(const X509 *certificate, const uint8_t *pin)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;

    return X509_digest(certificate, EVP_sha256(), digest, &size) == 1 && size == TLS_PIN_BYTES &&
           memcmp(digest, pin, TLS_PIN_BYTES) == 0;
}

static char *to_pem(X509 *certificate)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes, *text = NULL;
    long size;

    if (bio && PEM_write_bio_X509(bio, certificate) == 1) {
        size = BIO_get_mem_data(bio, &bytes);
        text = size > 0 ? strndup(bytes, (size_t)size) : NULL;
    }
    BIO_free(bio);
    return text;
}

/* The one certificate in the chain that has the hash becomes the only root. */
static bool trust_pinned(struct tls *tls, X509_STORE_CTX *store, STACK_OF(X509) * roots)
{
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(store);

    for (int i = 0; i < sk_X509_num(chain); i++) {
        X509 *certificate = sk_X509_value(chain, i);

        if (!matches_pin(certificate, tls->context->pin))
            continue;
        tls->ca_pem = to_pem(certificate);
        if (!tls->ca_pem || sk_X509_push(roots, certificate) == 0)
            return false;
        X509_STORE_CTX_set0_trusted_stack(store, roots);
        return true;
    }
    tls->verify_error = TLS_VERIFY_PIN;
    X509_STORE_CTX_set_error(store, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN);
    return false;
}

static bool verify(struct tls *tls, X509_STORE_CTX *store)
{
    if (X509_verify_cert(store) != 1) {
        tls->verify_error = X509_STORE_CTX_get_error(store);
        if (tls->verify_error == X509_V_OK)
            tls->verify_error = X509_V_ERR_UNSPECIFIED;
        return false;
    }
    if (!tls_has_use(X509_STORE_CTX_get0_cert(store), tls->context->role != TLS_SERVER)) {
        tls->verify_error = TLS_VERIFY_USE;
        X509_STORE_CTX_set_error(store, X509_V_ERR_INVALID_PURPOSE);
        return false;
    }
    return true;
}

int tls_verify_chain(X509_STORE_CTX *store, void *unused)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *tls = SSL_get_app_data(ssl);
    STACK_OF(X509) *roots = NULL;
    bool good = true;

    (void)unused;
    if (tls->context->role == TLS_JOINER) {
        roots = sk_X509_new_null();
        good = roots && trust_pinned(tls, store, roots);
    }
    good = good && verify(tls, store);
    if (!good)
        list_names(X509_STORE_CTX_get0_cert(store), tls->names, sizeof(tls->names));
    if (roots)
        sk_X509_free(roots);
    return good || tls->context->role == TLS_SERVER;
}

/* ---- the server's view ---- */

static struct wall to_wall(const ASN1_TIME *time)
{
    struct tm tm;

    return (struct wall){ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) * 1000 : 0};
}

static char *read_serial(const X509 *certificate)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    char *digits = number && BN_num_bytes(number) <= SERIAL_MAX_BYTES ? BN_bn2hex(number) : NULL;
    char *copy = digits ? strdup(digits) : NULL;

    OPENSSL_free(digits);
    BN_free(number);
    return copy;
}

static char *take_name(const ASN1_STRING *text)
{
    char name[NAME_MAX_BYTES + 1];
    int size = ASN1_STRING_length(text);

    if (size <= 0 || size > NAME_MAX_BYTES)
        return NULL;
    memcpy(name, ASN1_STRING_get0_data(text), (size_t)size);
    name[size] = '\0';
    return strlen(name) == (size_t)size && str_valid_hostname(name) ? strdup(name) : NULL;
}

static char *read_name(const X509 *certificate)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    char *name = NULL;

    for (int i = 0; !name && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *item = sk_GENERAL_NAME_value(names, i);

        if (item->type == GEN_DNS)
            name = take_name(item->d.dNSName);
    }
    GENERAL_NAMES_free(names);
    return name;
}

/* Both times, because either clock may be the wrong one. Of now the day alone: the host tries again and again, and what
 * it is told goes to its log when it changes. */
static int judge_time(const struct tls_peer *peer, struct err *err)
{
    struct wall now = wall_now();
    char from[TIME_BYTES], until[TIME_BYTES], here[TIME_BYTES];

    if (now.ms >= peer->not_before.ms && now.ms <= peer->not_after.ms)
        return 0;
    wall_format(peer->not_before, from, sizeof(from));
    wall_format(peer->not_after, until, sizeof(until));
    wall_format(now, here, sizeof(here));
    here[DAY_BYTES] = '\0';
    if (now.ms > peer->not_after.ms)
        return err_set(
            err, -EPERM,
            "the certificate of %s (serial %s) ended at %s, and the queue host's clock says %s: make a token "
            "there (eadmin token) and join again (rsd --join), or set the queue host's clock",
            peer->name, peer->serial, until, here);
    return err_set(err, -EPERM,
                   "the certificate of %s (serial %s) begins at %s, and the queue host's clock says %s: set the queue "
                   "host's clock",
                   peer->name, peer->serial, from, here);
}

static const char *client_fault(int error)
{
    switch (error) {
    case TLS_VERIFY_USE:
    case X509_V_ERR_INVALID_PURPOSE:
        return "the certificate is not that of a workstation (no clientAuth in it): join as one (rsd --join)";
    case TLS_VERIFY_NO_NAME:
        return "there is no host name in the certificate: join again (rsd --join)";
    default:
        return "the certificate is not signed by this cluster's CA: the host has joined another cluster, or the CA was "
               "made anew; make a token (eadmin token) and join again (rsd --join)";
    }
}

static int judge_peer(struct tls *tls)
{
    struct err when = ERR_INIT;
    int result = judge_time(&tls->peer, &when);

    if (!tls->context->judge)
        return result == 0 ? 0 : err_set(&tls->refusal, result, "%s", when.text);
    tls->peer.untimely = result == 0 ? NULL : when.text;
    result = tls->context->judge(&tls->peer, tls->context->judge_data, &tls->refusal);
    tls->peer.untimely = NULL;
    return result;
}

void tls_note_peer(struct tls *tls)
{
    X509 *certificate = SSL_get0_peer_certificate(tls->ssl);

    if (!certificate)
        return;
    if (tls->verify_error == 0) {
        tls->peer_name = read_name(certificate);
        tls->peer_serial = read_serial(certificate);
        if (!tls->peer_name || !tls->peer_serial)
            tls->verify_error = TLS_VERIFY_NO_NAME;
    }
    if (tls->verify_error != 0) {
        err_set(&tls->refusal, -EPERM, "%s", client_fault(tls->verify_error));
        return;
    }
    tls->peer = (struct tls_peer){.name = tls->peer_name,
                                  .serial = tls->peer_serial,
                                  .not_before = to_wall(X509_get0_notBefore(certificate)),
                                  .not_after = to_wall(X509_get0_notAfter(certificate))};
    if (tls->context->role == TLS_SERVER && judge_peer(tls) != 0) {
        err_set(&tls->refusal, -EPERM, "the certificate is not accepted");
        return;
    }
    tls->has_peer = true;
}

/* ---- the client's words ---- */

static int explain_name(const struct tls *tls, struct err *err)
{
    return err_set(err, -EPROTO,
                   "the certificate there is for %s, not for \"%s\": write one of its names (elmer = NAME:PORT)",
                   tls->names, tls->host);
}

bool tls_explain_verify(const struct tls *tls, struct err *err)
{
    switch (tls->verify_error) {
    case 0:
        return false;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        (void)explain_name(tls, err);
        break;
    case TLS_VERIFY_PIN:
        err_set(err, -EPROTO,
                "the CA of the queue host there is not the one that the token names: check HOST:PORT, and whether the "
                "token is of this cluster; nothing secret was sent");
        break;
    case TLS_VERIFY_USE:
    case X509_V_ERR_INVALID_PURPOSE:
        err_set(
            err, -EPROTO,
            "the certificate there is not that of a queue host (no serverAuth in it): somebody else answers at this "
            "address");
        break;
    default:
        err_set(
            err, -EPROTO,
            "the certificate there is not signed by the CA in %s (%s): this host has joined another cluster, or the "
            "CA was made anew; join again (rsd --join)",
            tls->context->dir ? tls->context->dir : "the token", X509_verify_cert_error_string(tls->verify_error));
        break;
    }
    return true;
}

/* ---- the counter in elmer's certificate ---- */

static int remember(struct tls_context *context, uint64_t counter, struct err *err)
{
    struct err why = ERR_INIT;
    int dir = file_dir(context->dir, 0, &why);
    int result = dir < 0 ? dir : counter_write(dir, context->ca, counter, &why);

    if (dir >= 0)
        (void)close(dir);
    if (result < 0)
        return err_set(err, result, "elmer has a new certificate, and this host cannot note that: %s: %s", context->dir,
                       why.text);
    context->counter = counter;
    return 0;
}

/* After the handshake: before, nobody has shown that he has the key. */
int tls_judge_counter(struct tls *tls, struct err *err)
{
    struct tls_context *context = tls->context;
    uint64_t counter = tls_peer_counter(tls);

    if (counter > context->counter)
        return remember(context, counter, err);
    if (counter == context->counter)
        return 0;
    return err_set(
        err, -EPROTO,
        "elmer there shows a certificate that was replaced: somebody may have its old key, or its files come "
        "from a backup; do \"eadmin init\" on the queue host and restart elmer");
}
