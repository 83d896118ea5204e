/* tls.c - a session's life:
 *
 *   created -> handshake (tls_handshake() until it returns 1) -> ready (tls_read(), tls_write()) -> ended or failed
 *
 * OpenSSL reads through a BIO of ours straight from the caller's bytes and writes to one buffer, which tls_output()
 * gives away; so nothing but a part of one record (16 KiB at most) is kept between calls. Certificates are verified
 * within the handshake (tls_verify.c). A failed session stays failed; what is in its output (an alert) may still be
 * sent. */
#include "config.h"

#include "lib/net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "lib/net/tls_internal.h"
#include "lib/pki/counter.h"

enum { RECORD_HANDSHAKE = 22, RECORD_ALERT = 21, RECORD_BYTES = 16384, RECORD_EXTRA = 64, OUT_FIRST = 4096 };

/* ---- the BIO ---- */

static int bio_read(BIO *bio, char *out, int size)
{
    struct tls *tls = BIO_get_data(bio);
    size_t n = size < 0 ? 0 : (size_t)size;

    BIO_clear_retry_flags(bio);
    if (tls->in_size == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    if (n > tls->in_size)
        n = tls->in_size;
    memcpy(out, tls->in, n);
    tls->in += n;
    tls->in_size -= n;
    return (int)n;
}

static bool make_room(struct tls *tls, size_t more)
{
    size_t need = tls->out_size + more, capacity = tls->out_capacity > 0 ? tls->out_capacity : OUT_FIRST;
    uint8_t *grown;

    if (need <= tls->out_capacity)
        return true;
    while (capacity < need)
        capacity *= 2;
    grown = realloc(tls->out, capacity);
    if (!grown) {
        tls->out_of_memory = true;
        return false;
    }
    tls->out = grown;
    tls->out_capacity = capacity;
    return true;
}

static int bio_write(BIO *bio, const char *bytes, int size)
{
    struct tls *tls = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (size <= 0 || !make_room(tls, (size_t)size))
        return -1;
    memcpy(tls->out + tls->out_size, bytes, (size_t)size);
    tls->out_size += (size_t)size;
    return size;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

/* Made once and kept: daemons have one thread. */
static const BIO_METHOD *bio_method(void)
{
    static BIO_METHOD *method;

    if (!method) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "elmer");
        if (method) {
            (void)BIO_meth_set_read(method, bio_read);
            (void)BIO_meth_set_write(method, bio_write);
            (void)BIO_meth_set_ctrl(method, bio_control);
        }
    }
    return method;
}

static bool attach(struct tls *tls)
{
    const BIO_METHOD *method = bio_method();
    BIO *bio = method ? BIO_new(method) : NULL;

    if (!bio)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    return true;
}

/* ---- the session ---- */

static bool expect_host(struct tls *tls, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);
    struct in6_addr address;

    tls->host = strdup(host);
    if (!tls->host)
        return false;
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 && SSL_set_tlsext_host_name(tls->ssl, host) == 1;
}

int tls_create(struct tls_context *context, const char *host, struct tls **out, struct err *err)
{
    struct tls *tls = calloc(1, sizeof(*tls));

    if (!tls)
        return err_set(err, -ENOMEM, "out of memory");
    if ((!host) != (context->role == TLS_SERVER)) /* a client must know whom it expects */
        abort();
    tls->context = tls_context_ref(context);
    tls->ssl = SSL_new(context->ssl);
    if (!tls->ssl || !attach(tls) || (host && !expect_host(tls, host))) {
        tls_destroy(tls);
        ERR_clear_error();
        return err_set(err, -ENOMEM, "a TLS session cannot be made: out of memory, or no name of a host");
    }
    SSL_set_app_data(tls->ssl, tls);
    if (context->role == TLS_SERVER)
        SSL_set_accept_state(tls->ssl);
    else
        SSL_set_connect_state(tls->ssl);
    *out = tls;
    return 0;
}

void tls_destroy(struct tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    tls_context_unref(tls->context);
    free(tls->host);
    free(tls->out);
    free(tls->peer_name);
    free(tls->peer_serial);
    free(tls->ca_pem);
    free(tls);
}

void tls_feed(struct tls *tls, const uint8_t *bytes, size_t size)
{
    tls->in = bytes;
    tls->in_size = size;
}

uint8_t *tls_output(struct tls *tls, size_t *size)
{
    uint8_t *out = tls->out;

    *size = tls->out_size;
    if (tls->out_size == 0)
        return NULL;
    tls->out = NULL;
    tls->out_size = tls->out_capacity = 0;
    return out;
}

/* ---- failures ---- */

/* An alert says little; what it mostly means says more. */
static const char *alert_means(const struct tls *tls, int alert)
{
    bool server = tls->context->role == TLS_SERVER;

    switch (alert) {
    case SSL_AD_PROTOCOL_VERSION:
        return server ? "it does not speak TLS 1.3" : "only TLS 1.3 is spoken there";
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_DECRYPT_ERROR:
        return server
                   ? "it does not accept this queue host's certificate: it has joined another cluster, knows this host "
                     "by another name, or the CA was made anew; see its own log"
                   : "it does not accept this host's certificate; see its log";
    default:
        return SSL_alert_desc_string_long(alert);
    }
}

static int explain(const struct tls *tls, struct err *err)
{
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    const char *text;

    if (tls->context->role != TLS_SERVER && tls_explain_verify(tls, err))
        return -EPROTO;
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET)
        return err_set(err, -EPROTO, "the other side ends TLS: %s", alert_means(tls, reason - SSL_AD_REASON_OFFSET));
    if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
        (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_WRONG_SSL_VERSION || reason == SSL_R_VERSION_TOO_LOW))
        return err_set(err, -EPROTO, "TLS 1.3 is needed, and the other side knows only an older version");
    text = ERR_reason_error_string(code);
    return err_set(err, -EPROTO, "TLS is broken: %s", text ? text : "no reason known");
}

/* Of an operation's return value: 0 to wait for more, or the end. */
static int fail(struct tls *tls, int code, struct err *err)
{
    int error = SSL_get_error(tls->ssl, code);
    int result;

    if (error == SSL_ERROR_WANT_READ && !tls->out_of_memory)
        return 0;
    if (error == SSL_ERROR_ZERO_RETURN)
        return err_set(err, -EPIPE, "the other side closed the connection");
    tls->failed = true;
    result = tls->out_of_memory ? err_set(err, -ENOMEM, "out of memory") : explain(tls, err);
    ERR_clear_error();
    return result;
}

/* ---- the handshake ---- */

/* OpenSSL has many errors for what is not TLS, and none says it plainly. */
static int look_at_first_byte(struct tls *tls, struct err *err)
{
    bool server = tls->context->role == TLS_SERVER;
    int result;

    if (tls->begun || tls->in_size == 0)
        return 0;
    tls->begun = true;
    if (tls->in[0] == RECORD_HANDSHAKE || tls->in[0] == RECORD_ALERT)
        return 0;
    tls->failed = true;
    result = tls->in[0] == 0 ? -EPROTONOSUPPORT : -EPROTO; /* the length of a frame begins with 0 */
    if (result == -EPROTO)
        return err_set(err, result, "the other side does not speak TLS");
    return err_set(err, result, "the other side speaks without TLS: it is older, and its %s says \"transport = plain\"",
                   server ? "rsd.conf" : "elmer.conf");
}

int tls_handshake(struct tls *tls, struct err *err)
{
    int result;

    if (tls->ready)
        return 1;
    if (tls->failed)
        return err_set(err, -EPROTO, "TLS has failed");
    result = look_at_first_byte(tls, err);
    if (result != 0)
        return result;
    ERR_clear_error();
    result = SSL_do_handshake(tls->ssl);
    if (result != 1) {
        result = fail(tls, result, err);
        return result == -EPIPE ? -EPROTO : result;
    }
    tls->ready = true;
    tls_note_peer(tls);
    if (tls->context->role == TLS_CLIENT && tls_judge_counter(tls, err) != 0) {
        tls->failed = true;
        return -EPROTO;
    }
    return 1;
}

bool tls_ready(const struct tls *tls)
{
    return tls->ready && !tls->failed;
}

const char *tls_refusal(const struct tls *tls)
{
    return tls->refusal.text[0] != '\0' ? tls->refusal.text : NULL;
}

const struct tls_peer *tls_peer(const struct tls *tls)
{
    return tls->has_peer ? &tls->peer : NULL;
}

const char *tls_ca_pem(const struct tls *tls)
{
    return tls->ready ? tls->ca_pem : NULL;
}

uint64_t tls_peer_counter(const struct tls *tls)
{
    X509 *certificate = tls->ready ? SSL_get0_peer_certificate(tls->ssl) : NULL;

    return certificate ? counter_of(certificate) : 0;
}

/* ---- data ---- */

ssize_t tls_read(struct tls *tls, void *out, size_t size, struct err *err)
{
    int result;

    if (!tls_ready(tls))
        return err_set(err, -EPROTO, "TLS has failed");
    ERR_clear_error();
    result = SSL_read(tls->ssl, out, size > INT_MAX ? INT_MAX : (int)size);
    return result > 0 ? result : fail(tls, result, err);
}

int tls_write(struct tls *tls, const void *bytes, size_t size, struct err *err)
{
    const uint8_t *from = bytes;

    if (!tls_ready(tls))
        return err_set(err, -EPROTO, "TLS has failed");
    if (!make_room(tls, size + (size / RECORD_BYTES + 1) * RECORD_EXTRA))
        return err_set(err, -ENOMEM, "out of memory");
    ERR_clear_error();
    while (size > 0) {
        int part = size > RECORD_BYTES ? RECORD_BYTES : (int)size, result = SSL_write(tls->ssl, from, part);

        if (result <= 0) {
            result = fail(tls, result, err);
            tls->failed = true; /* a write never waits: the buffer takes all */
            return result < 0 ? result : err_set(err, -EPROTO, "TLS cannot write");
        }
        from += result;
        size -= (size_t)result;
    }
    return 0;
}

void tls_end(struct tls *tls)
{
    if (tls_ready(tls))
        (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
}
