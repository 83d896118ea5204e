/* test_tls_counter.c - a stolen key of elmer is taken back: a workstation that has seen a later certificate takes none
 * of before, without any clock. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/net/tls.h"
#include "tests/unit/lib/net/certs.h"
#include "tests/unit/scratch.h"

static char root[100], client_dir[120], server_dirs[4][120];
static struct certs_ca ca, other;

/* elmer's certificates with the counters 0 (none), 1, 2, and 1 of another CA, which is another cluster. */
static int setup(void **state)
{
    static const uint64_t counters[] = {0, 1, 2, 1};
    (void)state;
    snprintf(root, sizeof(root), "/tmp/elmer-counter-XXXXXX");
    assert_non_null(scratch_dir(root));
    certs_make_ca(&ca, "Elmer CA");
    certs_make_ca(&other, "Elmer CA");
    for (size_t i = 0; i < 4; i++) {
        struct certs_wish wish = {.names = "DNS:ws1", .use = "serverAuth", .counter = counters[i]};

        snprintf(server_dirs[i], sizeof(server_dirs[i]), "%s/server%zu", root, i);
        certs_issue(i < 3 ? &ca : &other, &wish, server_dirs[i]);
    }
    snprintf(client_dir, sizeof(client_dir), "%s/client", root);
    certs_issue(&ca, &(struct certs_wish){.names = "DNS:ws2", .use = "clientAuth"}, client_dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++)
        certs_remove(server_dirs[i]);
    certs_remove(client_dir);
    certs_free_ca(&ca);
    certs_free_ca(&other);
    assert_int_equal(rmdir(root), 0);
    return 0;
}

static void carry(struct tls *from, struct tls *to, int *result, struct err *err)
{
    size_t size;
    uint8_t *bytes = tls_output(from, &size);

    if (bytes && *result == 0) {
        tls_feed(to, bytes, size);
        *result = tls_handshake(to, err);
    }
    free(bytes);
}

/* A link from a workstation that has just started to the elmer of this directory: 1, or negative. */
static int dial(const char *server_dir, struct err *err)
{
    struct tls_context *client = NULL, *server = NULL;
    struct tls *there = NULL, *here = NULL;
    struct err none = ERR_INIT;
    int there_code = 0, result = tls_context_client(client_dir, &client, err);

    assert_int_equal(tls_context_server(server_dir, NULL, NULL, &server, &none), 0);
    if (result == 0) {
        assert_int_equal(tls_create(client, "ws1", &here, &none), 0);
        assert_int_equal(tls_create(server, NULL, &there, &none), 0);
        result = tls_handshake(here, err);
        for (int i = 0; i < 10 && result == 0; i++) {
            carry(here, there, &there_code, &none);
            carry(there, here, &result, err);
        }
        assert_int_equal(tls_ready(here), result == 1);
        if (result == 1) {
            carry(here, there, &there_code, &none);
            assert_int_equal(there_code, 1);
        }
    }
    tls_destroy(here);
    tls_destroy(there);
    tls_context_unref(client);
    tls_context_unref(server);
    return result;
}

static void taken(const char *server_dir)
{
    struct err err = ERR_INIT;

    if (dial(server_dir, &err) != 1)
        fail_msg("refused: %s", err.text);
}

static void refused(const char *server_dir, const char *words)
{
    struct err err = ERR_INIT;

    assert_true(dial(server_dir, &err) < 0);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" is not in: %s", words, err.text);
}

static void put(const char *text, mode_t mode)
{
    char path[160];
    int fd;

    snprintf(path, sizeof(path), "%s/elmer.counter", client_dir);
    (void)unlink(path);
    if (!text)
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static void older_ones_are_refused(void **state)
{
    (void)state;
    taken(server_dirs[0]); /* of before there were counters */
    taken(server_dirs[1]);
    refused(server_dirs[0], "was replaced");
    taken(server_dirs[1]);
    taken(server_dirs[2]);
    refused(server_dirs[1], "eadmin init");
    refused(server_dirs[0], "was replaced");
    taken(server_dirs[2]);
}

/* Nobody who shows a certificate without its key moves the counter: it is noted after the handshake. */
static void only_a_whole_handshake_counts(void **state)
{
    struct tls_context *client, *server;
    struct tls *here, *there;
    struct err err = ERR_INIT;
    int result = 0;

    (void)state;
    assert_int_equal(tls_context_client(client_dir, &client, &err), 0);
    assert_int_equal(tls_context_server(server_dirs[2], NULL, NULL, &server, &err), 0);
    assert_int_equal(tls_create(client, "ws1", &here, &err), 0);
    assert_int_equal(tls_create(server, NULL, &there, &err), 0);
    assert_int_equal(tls_handshake(here, &err), 0);
    carry(here, there, &result, &err);
    size_t size;
    uint8_t *bytes = tls_output(there, &size);
    tls_feed(here, bytes, size - 40); /* its last message, Finished, is cut */
    assert_int_equal(tls_handshake(here, &err), 0);
    free(bytes);
    tls_destroy(here);
    tls_destroy(there);
    tls_context_unref(client);
    tls_context_unref(server);
    taken(server_dirs[1]);
}

/* A host that goes to another cluster begins anew. */
static void each_ca_has_its_own(void **state)
{
    (void)state;
    taken(server_dirs[2]);
    certs_issue(&other, &(struct certs_wish){.names = "DNS:ws2", .use = "clientAuth"}, client_dir);
    taken(server_dirs[3]);
}

static void what_cannot_be_noted_is_not_taken(void **state)
{
    char path[160];

    (void)state;
    put("nonsense\n", 0600);
    refused(server_dirs[1], "is damaged");
    put(NULL, 0);
    snprintf(path, sizeof(path), "%s/elmer.counter", client_dir);
    assert_int_equal(mkdir(path, 0700), 0); /* nothing can be put in its place */
    refused(server_dirs[1], "elmer.counter");
    assert_int_equal(rmdir(path), 0);
    taken(server_dirs[1]);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(older_ones_are_refused),
        T(only_a_whole_handshake_counts),
        T(each_ca_has_its_own),
        T(what_cannot_be_noted_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
