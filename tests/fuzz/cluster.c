#include "config.h"

#include "tests/fuzz/cluster.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/pki/x509.h"
#include "tests/fuzz/fuzz.h"

static const char *const files[] = {"ca.crt", "host.crt", "host.key"};

static void issue(int dir, const char *ca_key, const char *ca, const char *name, bool server)
{
    const int64_t now_s = wall_now().ms / 1000;
    const struct pki_terms terms = {
        .server = server, .names = &name, .count = 1, .begin_s = now_s - 1000, .end_s = now_s + 10000000};
    struct err err = ERR_INIT;
    char *key, *request, *certificate;

    FUZZ_CHECK(pki_key_create(&key, &err) == 0, "%s", err.text);
    FUZZ_CHECK(pki_request_create(key, name, &request, &err) == 0, "%s", err.text);
    FUZZ_CHECK(pki_issue(ca_key, ca, request, &terms, &certificate, &err) == 0, "%s", err.text);
    FUZZ_CHECK(file_write(dir, files[0], ca, 0644, &err) == 0 &&
                   file_write(dir, files[1], certificate, 0644, &err) == 0 &&
                   file_write(dir, files[2], key, 0600, &err) == 0,
               "%s", err.text);
    free(key);
    free(request);
    free(certificate);
}

static void make(struct cluster *cluster, const char *path, int dir)
{
    const int64_t now_s = wall_now().ms / 1000;
    struct err err = ERR_INIT;
    uint8_t pin[PKI_SHA256_BYTES];
    char *key, *ca;

    FUZZ_CHECK(pki_ca_create("Elmer CA", now_s - 1000, now_s + 20000000, &key, &ca, &err) == 0, "%s", err.text);
    issue(dir, key, ca, "ws2", false);
    FUZZ_CHECK(tls_context_client(path, &cluster->client, &err) == 0, "%s", err.text);
    issue(dir, key, ca, "ws1", true);
    FUZZ_CHECK(tls_context_server(path, NULL, NULL, &cluster->server, &err) == 0, "%s", err.text);
    FUZZ_CHECK(pki_sha256(ca, pin, &err) == 0 && tls_context_joiner(pin, &cluster->joiner, &err) == 0, "%s", err.text);
    free(key);
    free(ca);
}

const struct cluster *cluster_get(void)
{
    static struct cluster cluster;
    char path[] = "/tmp/fuzz.XXXXXX";
    int dir;

    if (cluster.server)
        return &cluster;
    if (!mkdtemp(path) || (dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        perror(path);
        exit(1);
    }
    make(&cluster, path, dir);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        (void)unlinkat(dir, files[i], 0);
    (void)close(dir);
    (void)rmdir(path);
    return &cluster;
}
