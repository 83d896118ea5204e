/* test_tls.c - two sessions that feed each other: who is accepted, who is refused, and with which words. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/lib/net/tls_bed.h"

enum { DAY_S = 24 * 3600, BIG = 1 << 20 };

/* ---- the wire ---- */

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
    if (!strstr(tls_refusal(p.server), words) || !strstr(tls_refusal(p.server), more))
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
    (void)snprintf(path, sizeof(path), "%s/ca.crt", w->client_dir);
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
    wish.begins_s = 10 * DAY_S;
    wish.ends_s = 20 * DAY_S;
    reissue(w, &w->ca, &wish);
    server_refuses(w, "begins at 20", "clock says 20");
    w->timeless = true; /* whose clock is wrong, the judge may know better */
    start(&p, w->client, w->server, "ws1");
    shake(&p, SIZE_MAX);
    assert_null(tls_refusal(p.server));
    assert_string_equal(tls_peer(p.server)->name, "ws2");
    assert_null(tls_peer(p.server)->untimely);
    stop(&p);
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

static void both_believe(struct world *w)
{
    struct pair p;

    start(&p, w->client, w->server, "ws1");
    shake(&p, SIZE_MAX);
    assert_int_equal(p.client_code, 1);
    assert_int_equal(p.server_code, 1);
    assert_non_null(tls_peer(p.server));
    stop(&p);
}

/* The queue host has its new certificate, the hosts still have the old one, and keep it. */
static void a_renewed_ca_is_the_same(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;

    certs_renew_ca(&w->ca);
    certs_issue(&w->ca, &server_wish, w->server_dir);
    assert_int_equal(tls_context_reload(w->server, &err), 0);
    both_believe(w);
    reissue(w, &w->ca, &client_wish); /* a host that joins later */
    both_believe(w);
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
    (void)snprintf(key, sizeof(key), "%s/host.key", w->server_dir);
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
    (void)snprintf(path, sizeof(path), "%s/host.key", w->client_dir);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(tls_context_reload(w->client, &err), -EINVAL);
    assert_non_null(strstr(err.text, "chmod 600"));
    err_clear(&err);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tls_context_reload(w->client, &err), -ENOENT);
    err_clear(&err);
    (void)snprintf(path, sizeof(path), "%s/ca.crt", w->client_dir);
    assert_int_equal(truncate(path, 30), 0);
    assert_int_equal(tls_context_reload(w->client, &err), -EINVAL);
    assert_non_null(strstr(err.text, "not a certificate"));
    assert_null(none);
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
        T(a_renewed_ca_is_the_same),
        T(the_judge_is_heard),
        T(a_new_certificate_counts_at_once),
        T(files_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
