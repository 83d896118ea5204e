/* tls_bed.c - see tls_bed.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/lib/net/tls_bed.h"
#include "tests/unit/scratch.h"

static int judge(const struct tls_peer *peer, void *data, struct err *err)
{
    struct world *w = data;

    w->judged++;
    (void)snprintf(w->judged_name, sizeof(w->judged_name), "%s", peer->name);
    (void)snprintf(w->judged_serial, sizeof(w->judged_serial), "%s", peer->serial);
    if (!w->verdict && peer->untimely && !w->timeless)
        return err_set(err, -EPERM, "%s", peer->untimely);
    return w->verdict ? err_set(err, -EPERM, "%s", w->verdict) : 0;
}

int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct err err = ERR_INIT;

    assert_non_null(w);
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/elmer-tls-XXXXXX");
    assert_non_null(scratch_dir(w->dir));
    (void)snprintf(w->server_dir, sizeof(w->server_dir), "%s/server", w->dir);
    (void)snprintf(w->client_dir, sizeof(w->client_dir), "%s/client", w->dir);
    certs_make_ca(&w->ca, "Elmer CA");
    certs_make_ca(&w->other, "Elmer CA");
    certs_issue(&w->ca, &server_wish, w->server_dir);
    certs_issue(&w->ca, &client_wish, w->client_dir);
    assert_int_equal(tls_context_server(w->server_dir, judge, w, &w->server, &err), 0);
    assert_int_equal(tls_context_client(w->client_dir, &w->client, &err), 0);
    *state = w;
    return 0;
}

int teardown(void **state)
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

void start(struct pair *p, struct tls_context *client, struct tls_context *server, const char *host)
{
    struct err err = ERR_INIT;

    *p = (struct pair){.client = NULL};
    assert_int_equal(tls_create(client, host, &p->client, &err), 0);
    assert_int_equal(tls_create(server, NULL, &p->server, &err), 0);
}

void stop(struct pair *p)
{
    tls_destroy(p->client);
    tls_destroy(p->server);
}

/* Move what one has for the other in pieces; returns whether there was anything. */
static bool carry(struct tls *from, struct tls *to, size_t piece, int *result, struct err *err)
{
    size_t size, n;
    uint8_t *bytes = tls_output(from, &size);

    for (size_t at = 0; at < size && *result == 0; at += n) {
        n = size - at < piece ? size - at : piece;
        tls_feed(to, bytes + at, n);
        *result = tls_handshake(to, err);
        assert_true(*result == 1 || at + n == size || *result <= 0);
        if (*result == 1)
            assert_true(at + n == size || piece > 1); /* nothing left for tls_read() in these tests */
    }
    free(bytes);
    return bytes != NULL;
}

void shake(struct pair *p, size_t piece)
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

void client_refuses(struct world *w, struct tls_context *client, const char *host, const char *words)
{
    struct pair p;

    start(&p, client, w->server, host);
    shake(&p, SIZE_MAX);
    assert_int_equal(p.client_code, -EPROTO);
    if (!strstr(p.client_err.text, words))
        fail_msg("\"%s\" is not in: %s", words, p.client_err.text);
    assert_false(tls_ready(p.client));
    /* The server hears an alert and understands it. */
    assert_int_equal(p.server_code, -EPROTO);
    assert_non_null(strstr(p.server_err.text, "does not accept this queue host's certificate"));
    stop(&p);
}
