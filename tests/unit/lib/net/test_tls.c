/* test_tls.c - sessions against each other and against OpenSSL's own API, over buffers: who is let in, and what the
 * others are told. */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/scratch.h"

enum { DAY_S = 24 * 3600, BIG = 1 << 20 };

struct world {
    char dir[64], server_dir[96], client_dir[96];
    struct certs_ca ca, other;
    struct tls_context *server, *client;
    int judged;          /* calls of the judge */
    const char *verdict; /* what it refuses with, or NULL */
    char judged_name[64], judged_serial[64];
};

/* The two ends of a connection. */
struct pair {
    struct tls *client, *server;
    struct err client_err, server_err;
    int client_code, server_code; /* of the handshake */
};

static const struct certs_wish server_wish = {.names = "DNS:ws1,IP:127.0.0.1", .use = "serverAuth"};
static const struct certs_wish client_wish = {.names = "DNS:ws2", .use = "clientAuth", .serial = 0xabc};

static int judge(const struct tls_peer *peer, void *data, struct err *err)
{
    struct world *w = data;

    w->judged++;
    (void)snprintf(w->judged_name, sizeof w->judged_name, "%s", peer->name);
    (void)snprintf(w->judged_serial, sizeof w->judged_serial, "%s", peer->serial);
    return w->verdict != NULL ? err_set(err, -EPERM, "%s", w->verdict) : 0;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct err err = ERR_INIT;

    assert_non_null(w);
    (void)snprintf(w->dir, sizeof w->dir, "/tmp/elmer-tls-XXXXXX");
    assert_non_null(scratch_dir(w->dir));
    (void)snprintf(w->server_dir, sizeof w->server_dir, "%s/server", w->dir);
    (void)snprintf(w->client_dir, sizeof w->client_dir, "%s/client", w->dir);
    certs_make_ca(&w->ca, "Elmer CA");
    certs_make_ca(&w->other, "Elmer CA");
    certs_issue(&w->ca, &server_wish, w->server_dir);
    certs_issue(&w->ca, &client_wish, w->client_dir);
    assert_int_equal(tls_context_server(w->server_dir, judge, w, &w->server, &err), 0);
    assert_int_equal(tls_context_client(w->client_dir, &w->client, &err), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    tls_context_unref(w->server);
    tls_context_unref(w->client);
    certs_free_ca(&w->ca);
    certs_free_ca(&w->other);
    certs_remove(w->server_dir);
    certs_remove(w->client_dir);
    assert_int_equal(rmdir(w->dir), 0);
    free(w);
    return 0;
}

/* ---- the wire ---- */

static void start(struct pair *p, struct tls_context *client, struct tls_context *server, const char *host)
{
    struct err err = ERR_INIT;

    *p = (struct pair){.client = NULL};
    assert_int_equal(tls_create(client, host, &p->client, &err), 0);
    assert_int_equal(tls_create(server, NULL, &p->server, &err), 0);
}

static void stop(struct pair *p)
{
    tls_destroy(p->client);
    tls_destroy(p->server);
}

/* Move what one has for the other in pieces; returns whether there was anything. */
static bool carry(struct tls *from, struct tls *to, size_t piece, int *code, struct err *err)
{
    size_t size, n;
    uint8_t *bytes = tls_output(from, &size);

    for (size_t at = 0; at < size && *code == 0; at += n) {
        n = size - at < piece ? size - at : piece;
        tls_feed(to, bytes + at, n);
        *code = tls_handshake(to, err);
        assert_true(*code == 1 || at + n == size || *code <= 0);
        if (*code == 1)
            assert_true(at + n == size || piece > 1); /* nothing left for tls_read() in these tests */
    }
    free(bytes);
    return bytes != NULL;
}

static void shake(struct pair *p, size_t piece)
{
    bool moved = true;

    p->client_code = tls_handshake(p->client, &p->client_err);
    while (moved) {
        moved = carry(p->client, p->server, piece, &p->server_code, &p->server_err);
        moved |= carry(p->server, p->client, piece, &p->client_code, &p->client_err);
        if (p->client_code == 1 && p->server_code < 0) { /* the client learns of it when it reads */
            char byte;

            assert_int_equal(tls_read(p->client, &byte, 1, &p->client_err), 0);
            break;
        }
    }
}

/* Bytes from one end must come out of the other; piece: of the encrypted ones. */
static void send_through(struct tls *from, struct tls *to, const uint8_t *bytes, size_t size, size_t piece)
{
    struct err err = ERR_INIT;
    size_t got = 0, sealed_size, n;
    uint8_t *sealed, *out = malloc(size + 1);
    ssize_t count;

    assert_non_null(out);
    assert_int_equal(tls_write(from, bytes, size, &err), 0);
    sealed = tls_output(from, &sealed_size);
    assert_non_null(sealed);
    assert_true(sealed_size > size);
    for (size_t at = 0; at < sealed_size; at += n) {
        n = sealed_size - at < piece ? sealed_size - at : piece;
        tls_feed(to, sealed + at, n);
        while ((count = tls_read(to, out + got, size + 1 - got, &err)) > 0)
            got += (size_t)count;
        assert_int_equal(count, 0);
    }
    assert_int_equal(got, size);
    assert_memory_equal(out, bytes, size);
    free(sealed);
    free(out);
}

/* A handshake that the client must refuse, with words. */
static void client_refuses(struct world *w, struct tls_context *client, const char *host, const char *words)
{
    struct pair p;

    start(&p, client, w->server, host);
    shake(&p, SIZE_MAX);
    assert_int_equal(p.client_code, -EPROTO);
    if (strstr(p.client_err.text, words) == NULL)
        fail_msg("\"%s\" is not in: %s", words, p.client_err.text);
    assert_false(tls_ready(p.client));
    /* The server hears an alert and understands it. */
    assert_int_equal(p.server_code, -EPROTO);
    assert_non_null(strstr(p.server_err.text, "does not accept this queue host's certificate"));
    stop(&p);
}

/* A handshake that ends well, but with a refusal that the server can say to the client. */
static void server_refuses(struct world *w, const char *words, const char *more)
{
    struct pair p;

    start(&p, w->client, w->server, "ws1");
    shake(&p, SIZE_MAX);
    assert_int_equal(p.client_code, 1);
    assert_int_equal(p.server_code, 1);
    assert_null(tls_peer(p.server));
    assert_non_null(tls_refusal(p.server));
    if (strstr(tls_refusal(p.server), words) == NULL || strstr(tls_refusal(p.server), more) == NULL)
        fail_msg("\"%s\", \"%s\" are not in: %s", words, more, tls_refusal(p.server));
    send_through(p.server, p.client, (const uint8_t *)"sorry", 5, SIZE_MAX);
    stop(&p);
}

static void reissue(struct world *w, const struct certs_ca *ca, const struct certs_wish *wish)
{
    struct err err = ERR_INIT;

    certs_issue(ca, wish, w->client_dir);
    assert_int_equal(tls_context_reload(w->client, &err), 0);
}

/* ---- the tests ---- */

static void two_ends_talk(void **state)
{
    struct world *w = *state;
    uint8_t *big = malloc(BIG);
    struct pair p;

    assert_non_null(big);
    for (size_t i = 0; i < BIG; i++)
        big[i] = (uint8_t)(i * 7 + i / 251);
    start(&p, w->client, w->server, "ws1");
    assert_false(tls_ready(p.client));
    shake(&p, SIZE_MAX);
    assert_int_equal(p.client_code, 1);
    assert_int_equal(p.server_code, 1);
    assert_null(tls_refusal(p.server));
    assert_string_equal(tls_peer(p.server)->name, "ws2");
    assert_string_equal(tls_peer(p.server)->serial, "0ABC");
    assert_true(tls_peer(p.server)->not_before.ms < wall_now().ms && tls_peer(p.server)->not_after.ms > wall_now().ms);
    assert_int_equal(w->judged, 1);
    assert_string_equal(w->judged_name, "ws2");
    assert_string_equal(w->judged_serial, "0ABC");
    send_through(p.client, p.server, (const uint8_t *)"hello", 5, SIZE_MAX);
    send_through(p.server, p.client, big, BIG, 65536);
    send_through(p.client, p.server, big, BIG, 1000);
    stop(&p);
    free(big);
}

static void byte_by_byte(void **state)
{
    struct world *w = *state;
    struct pair p;

    start(&p, w->client, w->server, "127.0.0.1");
    shake(&p, 1);
    assert_int_equal(p.client_code, 1);
    assert_int_equal(p.server_code, 1);
    send_through(p.client, p.server, (const uint8_t *)"hello", 5, 1);
    send_through(p.server, p.client, (const uint8_t *)"and back", 8, 1);
    stop(&p);
}

static void other_keys_do_too(void **state)
{
    struct world *w = *state;
    struct certs_wish wish = client_wish;
    struct pair p;

    wish.p256 = true;
    reissue(w, &w->ca, &wish);
    start(&p, w->client, w->server, "ws1");
    shake(&p, SIZE_MAX);
    assert_string_equal(tls_peer(p.server)->name, "ws2");
    stop(&p);
}

static void a_host_of_another_cluster_is_refused(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    char path[128];
    FILE *file;

    /* It believes our CA but has a certificate of another one: what a forger would bring. */
    certs_issue(&w->other, &client_wish, w->client_dir);
    assert_int_equal(tls_context_reload(w->client, &err), 0);
    client_refuses(w, w->client, "ws1", "join again");
    (void)snprintf(path, sizeof path, "%s/ca.crt", w->client_dir);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, w->ca.certificate), 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(tls_context_reload(w->client, &err), -EINVAL); /* we would not use it ourselves */
    assert_non_null(strstr(err.text, "not signed by the CA"));
}

static void the_wrong_use_is_refused(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct tls_context *posing = NULL;

    /* Nobody loads one of the wrong kind. */
    certs_issue(&w->ca, &server_wish, w->client_dir);
    assert_int_equal(tls_context_reload(w->client, &err), -EINVAL);
    assert_non_null(strstr(err.text, "clientAuth"));
    err_clear(&err);
    certs_issue(&w->ca, &client_wish, w->client_dir);
    assert_int_equal(tls_context_server(w->client_dir, NULL, NULL, &posing, &err), -EINVAL);
    assert_non_null(strstr(err.text, "serverAuth"));
    certs_issue(&w->ca, &(struct certs_wish){.names = "DNS:ws2"}, w->client_dir);
    assert_int_equal(tls_context_reload(w->client, &err), -EINVAL);
}

static void the_name_must_be_right(void **state)
{
    struct world *w = *state;

    client_refuses(w, w->client, "ws9", "is for ws1, 127.0.0.1, not for \"ws9\"");
    client_refuses(w, w->client, "127.0.0.2", "not for \"127.0.0.2\"");
}

static void time_is_the_servers_business(void **state)
{
    struct world *w = *state;
    struct certs_wish wish = client_wish;
    struct err err = ERR_INIT;
    struct pair p;

    wish.begins_s = -20 * DAY_S;
    wish.ends_s = -10 * DAY_S;
    reissue(w, &w->ca, &wish);
    server_refuses(w, "ended at 20", "clock says 20");
    assert_int_equal(w->judged, 0);
    wish.begins_s = 10 * DAY_S;
    wish.ends_s = 20 * DAY_S;
    reissue(w, &w->ca, &wish);
    server_refuses(w, "begins at 20", "clock says 20");
    /* The workstation's clock does not count: the server's certificate may look ended to it. */
    reissue(w, &w->ca, &client_wish);
    wish = server_wish;
    wish.begins_s = -20 * DAY_S;
    wish.ends_s = -10 * DAY_S;
    certs_issue(&w->ca, &wish, w->server_dir);
    assert_int_equal(tls_context_reload(w->server, &err), 0);
    start(&p, w->client, w->server, "ws1");
    shake(&p, SIZE_MAX);
    assert_int_equal(p.client_code, 1);
    assert_non_null(tls_peer(p.server));
    stop(&p);
}

static void the_judge_is_heard(void **state)
{
    struct world *w = *state;

    w->verdict = "ws2 was removed: join again";
    server_refuses(w, "ws2 was removed", "join again");
    assert_int_equal(w->judged, 1);
    reissue(w, &w->ca, &(struct certs_wish){.use = "clientAuth", .names = "IP:10.0.0.1"});
    server_refuses(w, "no host name", "join again");
    assert_int_equal(w->judged, 1);
}

static void a_new_certificate_counts_at_once(void **state)
{
    struct world *w = *state;
    struct certs_wish wish = server_wish;
    struct err err = ERR_INIT;
    struct pair old, new;
    char key[128];

    start(&old, w->client, w->server, "ws1");
    shake(&old, SIZE_MAX);
    wish.names = "DNS:ws3";
    certs_issue(&w->ca, &wish, w->server_dir);
    assert_int_equal(tls_context_reload(w->server, &err), 0);
    start(&new, w->client, w->server, "ws3");
    shake(&new, SIZE_MAX);
    assert_int_equal(new.client_code, 1);
    stop(&new);
    client_refuses(w, w->client, "ws1", "is for ws3");
    send_through(old.client, old.server, (const uint8_t *)"still here", 10, SIZE_MAX);
    stop(&old);
    /* A half-written renewal changes nothing. */
    (void)snprintf(key, sizeof key, "%s/host.key", w->server_dir);
    assert_int_equal(truncate(key, 10), 0);
    assert_int_equal(tls_context_reload(w->server, &err), -EINVAL);
    assert_non_null(strstr(err.text, "host.key"));
    start(&new, w->client, w->server, "ws3");
    shake(&new, SIZE_MAX);
    assert_int_equal(new.client_code, 1);
    stop(&new);
}

static void files_are_checked(void **state)
{
    struct world *w = *state;
    struct tls_context *none = NULL;
    struct err err = ERR_INIT;
    char path[128];

    assert_int_equal(tls_context_client("/nonexistent", &none, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/ca.crt"));
    err_clear(&err);
    (void)snprintf(path, sizeof path, "%s/host.key", w->client_dir);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(tls_context_reload(w->client, &err), -EINVAL);
    assert_non_null(strstr(err.text, "chmod 600"));
    err_clear(&err);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tls_context_reload(w->client, &err), -ENOENT);
    err_clear(&err);
    (void)snprintf(path, sizeof path, "%s/ca.crt", w->client_dir);
    assert_int_equal(truncate(path, 30), 0);
    assert_int_equal(tls_context_reload(w->client, &err), -EINVAL);
    assert_non_null(strstr(err.text, "not a certificate"));
    assert_null(none);
}

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
    int n, code = 0;

    certs_pin(&w->ca, pin);
    assert_int_equal(tls_context_joiner(pin, &joiner, &err), 0);
    certs_issue(&w->other, &server_wish, w->server_dir);
    (void)snprintf(cert, sizeof cert, "%s/host.crt", w->server_dir);
    (void)snprintf(key, sizeof key, "%s/host.key", w->server_dir);
    assert_int_equal(SSL_CTX_use_certificate_file(forger, cert, SSL_FILETYPE_PEM), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(forger, key, SSL_FILETYPE_PEM), 1);
    assert_int_equal(SSL_CTX_add1_chain_cert(forger, w->ca.certificate), 1);
    ssl = SSL_new(forger);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl);
    assert_int_equal(tls_create(joiner, "ws1", &tls, &err), 0);
    for (int i = 0; i < 5 && code == 0; i++) {
        code = tls_handshake(tls, &err);
        out = tls_output(tls, &size);
        if (out != NULL)
            assert_int_equal(BIO_write(SSL_get_rbio(ssl), out, (int)size), size);
        free(out);
        (void)SSL_read(ssl, &byte, 1);
        n = BIO_read(SSL_get_wbio(ssl), bytes, sizeof bytes);
        if (code == 0 && n > 0) {
            tls_feed(tls, bytes, (size_t)n);
            code = tls_handshake(tls, &err);
        }
    }
    assert_int_equal(code, -EPROTO);
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
    if (dir != NULL) {
        (void)snprintf(path, sizeof path, "%s/host.crt", dir);
        assert_int_equal(SSL_CTX_use_certificate_file(f.context, path, SSL_FILETYPE_PEM), 1);
        (void)snprintf(path, sizeof path, "%s/host.key", dir);
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
    int code = 0;

    for (int i = 0; i < 5 && code == 0; i++) {
        size_t size;
        uint8_t *out;
        int n;

        (void)SSL_do_handshake(f->ssl);
        n = BIO_read(SSL_get_wbio(f->ssl), bytes, sizeof bytes);
        if (n > 0) {
            tls_feed(server, bytes, (size_t)n);
            code = tls_handshake(server, err);
        }
        out = tls_output(server, &size);
        if (out != NULL)
            assert_int_equal(BIO_write(SSL_get_rbio(f->ssl), out, (int)size), size);
        free(out);
    }
    return code;
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
    if (words == NULL)
        assert_null(text);
    else if (text == NULL || strstr(text, words) == NULL)
        fail_msg("\"%s\" is not in: %s", words, text != NULL ? text : "NULL");
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
        {(const char *)frame, sizeof frame, -EPROTONOSUPPORT, "transport = plain"},
        {"\x16\x03\x01\xff\xff garbage that claims to be a handshake", 44, -EPROTO, "TLS is broken"},
        {"\x15\x03\x03\x00\x02\x02\x46", 7, -EPROTO, "TLS"},
    };
    struct world *w = *state;

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int side = 0; side < 2; side++) {
            struct err err = ERR_INIT;
            struct tls *tls;

            assert_int_equal(tls_create(side ? w->client : w->server, side ? "ws1" : NULL, &tls, &err), 0);
            assert_int_equal(tls_handshake(tls, &err), 0);
            tls_feed(tls, (const uint8_t *)cases[i].bytes, cases[i].size);
            assert_int_equal(tls_handshake(tls, &err), cases[i].code);
            if (strstr(err.text, cases[i].words) == NULL)
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
        T(two_ends_talk),
        T(byte_by_byte),
        T(other_keys_do_too),
        T(a_host_of_another_cluster_is_refused),
        T(the_wrong_use_is_refused),
        T(the_name_must_be_right),
        T(time_is_the_servers_business),
        T(the_judge_is_heard),
        T(a_new_certificate_counts_at_once),
        T(files_are_checked),
        T(a_joiner_gets_the_ca),
        T(a_stolen_ca_certificate_helps_nobody),
        T(strangers_are_told_apart),
        T(there_is_no_resumption),
        T(what_is_not_tls_is_named),
        T(goodbye_and_damage_differ),
        T(every_cut_of_a_handshake_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
