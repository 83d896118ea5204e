/* outside_name.c - a queue host whose name does not resolve when the hosts start.
 *
 * The only case with TLS, because only internet addresses have names. Nobody joins: the certificates are made here, and
 * elmer's memory of having passed them on is written into its store. */
#include "config.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/pki/ca.h"
#include "lib/pki/pair.h"
#include "lib/pki/x509.h"
#include "tests/faults/outside.h"
#include "tests/faults/world_internal.h"

#define QUEUE "queue.elmer.test"
#define CA    WORLD "/ca"

enum { YEAR_S = 365 * 86400 };

static void must(int result, const struct err *err)
{
    if (result < 0) {
        printf("# %s\n", err->text);
        exit(99);
    }
}

/* Key, certificate and CA in a directory of the user. */
static void furnish(const struct ca *ca, const char *name, bool server, const char *path, uid_t uid,
                    struct pki_certificate *facts)
{
    static const char *const files[] = {"ca.crt", "host.key", "host.crt"};
    char *key = NULL, *request = NULL, *certificate = NULL;
    struct err err = ERR_INIT;
    int64_t now_s = time(NULL);
    struct pki_terms terms = {
        .server = server, .names = &name, .count = 1, .begin_s = now_s - PKI_BACKDATE_S, .end_s = now_s + YEAR_S};
    int dir = file_dir(path, 0700, &err);
    must(dir, &err);
    must(pki_key_create(&key, &err), &err);
    must(pki_request_create(key, name, &request, &err), &err);
    must(pki_issue(ca->key, ca->certificate, request, &terms, &certificate, &err), &err);
    must(pki_inspect(certificate, facts, &err), &err);
    must(file_write(dir, "ca.crt", ca->certificate, 0644, &err), &err);
    must(pair_write(dir, key, certificate, &err), &err);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        MUST(fchownat(dir, files[i], uid, uid, AT_SYMLINK_NOFOLLOW));
    MUST(fchown(dir, uid, uid));
    close(dir);
    pki_key_free(key);
    free(request);
    free(certificate);
}

static bool remember(const struct pki_certificate *facts)
{
    char sql[300];
    sqlite3 *db = NULL;
    snprintf(sql, sizeof(sql), "INSERT INTO certificate VALUES('%s', '%s', %lld, %lld, NULL)", facts->serial,
             facts->name, (long long)facts->begin_s * 1000, (long long)facts->end_s * 1000);
    bool done = sqlite3_open(WORLD_STORE, &db) == SQLITE_OK && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(db);
    return done;
}

/* Before the first start of the hosts; elmer makes its store. */
static int make_certificates(struct world *world)
{
    struct pki_certificate facts;
    struct err err = ERR_INIT;
    struct ca ca;
    world_configure(world);
    world_start_elmer(world);
    CHECK(world_answers(world, WAIT_MS), "%s", world->err.text);
    world_stop_elmer(world, SIGTERM);
    world->elmer_starts = 0; /* of what is tested */
    must(ca_create(CA, "faults", (int64_t)time(NULL) * 1000, &err), &err);
    must(ca_open(CA, &ca, &err), &err);
    furnish(&ca, QUEUE, true, WORLD "/pki", WORLD_ELMER_USER, &facts);
    for (int i = 0; i < HOSTS; i++) {
        const struct passwd *user = getpwnam(world_host_users[i]);
        char name[] = "a", path[] = WORLD "/pki-a";
        name[0] = path[sizeof(path) - 2] = (char)('a' + i);
        CHECK(user, "no user %s", world_host_users[i]);
        furnish(&ca, name, false, path, user->pw_uid, &facts);
        CHECK(remember(&facts), "the store");
    }
    ca_close(&ca);
    return 0;
}

int outside_late_name(struct world *world, void *data)
{
    (void)data;
    if (make_certificates(world) != 0)
        return 1;
    world_write(WORLD "/hosts", "127.0.0.1 localhost\n");
    if (mount(WORLD "/hosts", "/etc/hosts", NULL, MS_BIND, NULL) < 0)
        return 1;
    world->settings = "levels = 1\nlisten = 127.0.0.1:7110\npki = " WORLD "/pki";
    world->elmer_address = QUEUE ":7110";
    CHECK(world_start(world), "%s", world->err.text);
    CHECK(world_await_log(world, "rsd-a", QUEUE, WAIT_MS), "%s", world->err.text);
    const char *argv[] = {"equery", NULL};
    int status = world_command(world, false, out, sizeof(out), argv);
    CHECK(status == UNREACHABLE, "status %d: %s", status, out);
    CHECK(strstr(out, QUEUE), "%s", out);
    world_write(WORLD "/hosts", "127.0.0.1 localhost " QUEUE "\n");
    CHECK(world_await_log(world, "rsd-a", "linked", WAIT_MS) && world_await_log(world, "rsd-b", "linked", WAIT_MS),
          "%s", world->err.text);
    CHECK(outside_submit(world, "exec sleep 600") == 0 && outside_submit(world, "exit 7") == 0, "%s", out);
    CHECK(outside_await_state(world, 1, "running"), "not running");
    return outside_goes_on(world);
}
