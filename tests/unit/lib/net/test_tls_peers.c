/* test_tls_peers.c - sessions with those who join, with peers of OpenSSL's own making, and with bytes that are no TLS.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/lib/net/tls_bed.h"

/* ---- joining ---- */

static void a_joiner_gets_the_ca(void **state)
{
    struct world *w = *state;
    struct tls_context *joiner;
    struct err err = ERR_INIT;
    uint8_t pin[TLS_PIN_BYTES];
    struct pair p;
    BIO *bio;
    X509 *ca;

    certs_pin(&w->ca, pin);
    assert_int_equal(tls_context_joiner(pin, &joiner, &err), 0);
    start(&p, joiner, w->server, "ws1");
    shake(&p, SIZE_MAX);
    assert_int_equal(p.client_code, 1);
    assert_int_equal(p.server_code, 1);
    assert_null(tls_peer(p.server));
    assert_null(tls_refusal(p.server));
    assert_int_equal(w->judged, 0);
    bio = BIO_new_mem_buf(tls_ca_pem(p.client), -1);
    ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    assert_non_null(ca);
    assert_int_equal(X509_cmp(ca, w->ca.certificate), 0);
    X509_free(ca);
    BIO_free(bio);
    stop(&p);
    client_refuses(w, joiner, "ws7", "not for \"ws7\"");
    pin[5] ^= 1;
    tls_context_unref(joiner);
    assert_int_equal(tls_context_joiner(pin, &joiner, &err), 0);
    client_refuses(w, joiner, "ws1", "not the one that the token names");
    tls_context_unref(joiner);
}

/* The pinned certificate alone is not enough: it must have signed what the server shows. */
static void a_stolen_ca_certificate_helps_nobody(void **state)
{
    struct world *w = *state;
    struct tls_context *joiner;
    struct err err = ERR_INIT;
    uint8_t pin[TLS_PIN_BYTES];
    SSL_CTX *forger = SSL_CTX_new(TLS_server_method());
    char cert[128], key[128], byte;
    uint8_t bytes[16384], *out;
    SSL *ssl;
    struct tls *tls;
    size_t size;
    int n, result = 0;

    certs_pin(&w->ca, pin);
    assert_int_equal(tls_context_joiner(pin, &joiner, &err), 0);
    certs_issue(&w->other, &server_wish, w->server_dir);
    (void)snprintf(cert, sizeof(cert), "%s/host.crt", w->server_dir);
    (void)snprintf(key, sizeof(key), "%s/host.key", w->server_dir);
    assert_int_equal(SSL_CTX_use_certificate_file(forger, cert, SSL_FILETYPE_PEM), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(forger, key, SSL_FILETYPE_PEM), 1);
    assert_int_equal(SSL_CTX_add1_chain_cert(forger, w->ca.certificate), 1);
    ssl = SSL_new(forger);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl);
    assert_int_equal(tls_create(joiner, "ws1", &tls, &err), 0);
    for (int i = 0; i < 5 && result == 0; i++) {
        result = tls_handshake(tls, &err);
        out = tls_output(tls, &size);
        if (out)
            assert_int_equal(BIO_write(SSL_get_rbio(ssl), out, (int)size), size);
        free(out);
        (void)SSL_read(ssl, &byte, 1);
        n = BIO_read(SSL_get_wbio(ssl), bytes, sizeof(bytes));
        if (result == 0 && n > 0) {
            tls_feed(tls, bytes, (size_t)n);
            result = tls_handshake(tls, &err);
        }
    }
    assert_int_equal(result, -EPROTO);
    assert_non_null(strstr(err.text, "not signed by the CA in the token"));
    assert_null(tls_ca_pem(tls));
    tls_destroy(tls);
    SSL_free(ssl);
    SSL_CTX_free(forger);
    tls_context_unref(joiner);
}

/* ---- peers of OpenSSL's own making ---- */

struct foreign {
    SSL_CTX *context;
    SSL *ssl;
};

static struct foreign foreign_client(int version, const char *dir)
{
    struct foreign f = {.context = SSL_CTX_new(TLS_client_method())};
    char path[128];

    assert_int_equal(SSL_CTX_set_max_proto_version(f.context, version), 1);
    if (dir) {
        (void)snprintf(path, sizeof(path), "%s/host.crt", dir);
        assert_int_equal(SSL_CTX_use_certificate_file(f.context, path, SSL_FILETYPE_PEM), 1);
        (void)snprintf(path, sizeof(path), "%s/host.key", dir);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(f.context, path, SSL_FILETYPE_PEM), 1);
    }
    f.ssl = SSL_new(f.context);
    SSL_set_bio(f.ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(f.ssl);
    return f;
}

static void foreign_free(struct foreign *f)
{
    SSL_free(f->ssl);
    SSL_CTX_free(f->context);
}

/* The server's last code; the foreign end does what it wants. */
static int foreign_shake(struct foreign *f, struct tls *server, struct err *err)
{
    uint8_t bytes[16384];
    int result = 0;

    for (int i = 0; i < 5 && result == 0; i++) {
        size_t size;
        uint8_t *out;
        int n;

        (void)SSL_do_handshake(f->ssl);
        n = BIO_read(SSL_get_wbio(f->ssl), bytes, sizeof(bytes));
        if (n > 0) {
            tls_feed(server, bytes, (size_t)n);
            result = tls_handshake(server, err);
        }
        out = tls_output(server, &size);
        if (out)
            assert_int_equal(BIO_write(SSL_get_rbio(f->ssl), out, (int)size), size);
        free(out);
    }
    return result;
}

static void foreign_case(struct world *w, int version, const char *dir, int code, const char *words)
{
    struct foreign f = foreign_client(version, dir);
    struct err err = ERR_INIT;
    struct tls *server;
    const char *text;

    assert_int_equal(tls_create(w->server, NULL, &server, &err), 0);
    assert_int_equal(foreign_shake(&f, server, &err), code);
    text = code == 1 ? tls_refusal(server) : err.text;
    if (!words)
        assert_null(text);
    else if (!text || !strstr(text, words))
        fail_msg("\"%s\" is not in: %s", words, text ? text : "NULL");
    assert_null(tls_peer(server));
    assert_int_equal(w->judged, 0);
    tls_destroy(server);
    foreign_free(&f);
}

static void strangers_are_told_apart(void **state)
{
    struct world *w = *state;

    foreign_case(w, TLS1_2_VERSION, w->client_dir, -EPROTO, "TLS 1.3 is needed");
    foreign_case(w, TLS1_3_VERSION, NULL, 1, NULL); /* may join */
    certs_issue(&w->other, &client_wish, w->client_dir);
    foreign_case(w, TLS1_3_VERSION, w->client_dir, 1, "not signed by this cluster's CA");
    certs_issue(&w->ca, &server_wish, w->client_dir);
    foreign_case(w, TLS1_3_VERSION, w->client_dir, 1, "no clientAuth");
    certs_issue(&w->ca, &(struct certs_wish){.names = "DNS:ws2"}, w->client_dir);
    foreign_case(w, TLS1_3_VERSION, w->client_dir, 1, "no clientAuth");
}

static void there_is_no_resumption(void **state)
{
    struct world *w = *state;
    struct foreign f = foreign_client(TLS1_3_VERSION, w->client_dir);
    struct err err = ERR_INIT;
    struct tls *server;
    uint8_t *out;
    size_t size;
    char byte;

    assert_int_equal(tls_create(w->server, NULL, &server, &err), 0);
    assert_int_equal(foreign_shake(&f, server, &err), 1);
    assert_int_equal(tls_write(server, "x", 1, &err), 0);
    out = tls_output(server, &size);
    assert_int_equal(BIO_write(SSL_get_rbio(f.ssl), out, (int)size), size);
    free(out);
    assert_int_equal(SSL_read(f.ssl, &byte, 1), 1);
    assert_int_equal(SSL_SESSION_is_resumable(SSL_get0_session(f.ssl)), 0);
    tls_destroy(server);
    foreign_free(&f);
}

static void what_is_not_tls_is_named(void **state)
{
    static const uint8_t frame[] = {0, 0, 0, 2, '{', '}'};
    static const struct {
        const char *bytes;
        size_t size;
        int code;
        const char *words;
    } cases[] = {
        {"GET / HTTP/1.0\r\n\r\n", 18, -EPROTO, "does not speak TLS"},
        {(const char *)frame, sizeof(frame), -EPROTONOSUPPORT, "transport = plain"},
        {"\x16\x03\x01\xff\xff garbage that claims to be a handshake", 44, -EPROTO, "TLS is broken"},
        {"\x15\x03\x03\x00\x02\x02\x46", 7, -EPROTO, "TLS"},
    };
    struct world *w = *state;

    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int side = 0; side < 2; side++) {
            struct err err = ERR_INIT;
            struct tls *tls;

            assert_int_equal(tls_create(side ? w->client : w->server, side ? "ws1" : NULL, &tls, &err), 0);
            assert_int_equal(tls_handshake(tls, &err), 0);
            tls_feed(tls, (const uint8_t *)cases[i].bytes, cases[i].size);
            assert_int_equal(tls_handshake(tls, &err), cases[i].code);
            if (!strstr(err.text, cases[i].words))
                fail_msg("case %u: \"%s\" is not in: %s", i, cases[i].words, err.text);
            assert_int_equal(tls_handshake(tls, &err), -EPROTO); /* it stays so */
            tls_destroy(tls);
        }
    }
}

static void goodbye_and_damage_differ(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct pair p;
    size_t size;
    uint8_t *out, byte;

    start(&p, w->client, w->server, "ws1");
    shake(&p, SIZE_MAX);
    tls_end(p.client);
    out = tls_output(p.client, &size);
    assert_non_null(out);
    tls_feed(p.server, out, size);
    assert_int_equal(tls_read(p.server, &byte, 1, &err), -EPIPE);
    free(out);
    err_clear(&err);
    assert_true(tls_write(p.client, "x", 1, &err) < 0);
    stop(&p);
    /* A changed bit, and a record that comes twice. */
    for (int replay = 0; replay < 2; replay++) {
        start(&p, w->client, w->server, "ws1");
        shake(&p, SIZE_MAX);
        assert_int_equal(tls_write(p.client, "x", 1, &err), 0);
        out = tls_output(p.client, &size);
        if (!replay)
            out[size - 1] ^= 1;
        tls_feed(p.server, out, size);
        assert_int_equal(tls_read(p.server, &byte, 1, &err), replay ? 1 : -EPROTO);
        tls_feed(p.server, out, size);
        err_clear(&err);
        assert_int_equal(tls_read(p.server, &byte, 1, &err), -EPROTO);
        assert_true(err.text[0] != '\0');
        free(out);
        stop(&p);
    }
}

static void every_cut_of_a_handshake_waits(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct pair p;
    size_t size;
    uint8_t *hello;

    start(&p, w->client, w->server, "ws1");
    assert_int_equal(tls_handshake(p.client, &err), 0);
    hello = tls_output(p.client, &size);
    stop(&p);
    for (size_t cut = 0; cut < size; cut++) {
        struct tls *server;
        size_t none;

        assert_int_equal(tls_create(w->server, NULL, &server, &err), 0);
        tls_feed(server, hello, cut);
        assert_int_equal(tls_handshake(server, &err), 0);
        assert_null(tls_output(server, &none));
        tls_destroy(server);
    }
    free(hello);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_joiner_gets_the_ca),           T(a_stolen_ca_certificate_helps_nobody),
        T(strangers_are_told_apart),       T(there_is_no_resumption),
        T(what_is_not_tls_is_named),       T(goodbye_and_damage_differ),
        T(every_cut_of_a_handshake_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
