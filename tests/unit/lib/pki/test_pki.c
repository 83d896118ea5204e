/* test_pki.c - requests, certificates, renewals, and the files of a CA and of a pair. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/pki/ca.h"
#include "lib/pki/pair.h"
#include "lib/pki/token.h"
#include "lib/pki/x509.h"
#include "tests/unit/lib/pki/pki_bed.h"

/* ---- requests and certificates ---- */

enum { NAMES_SIZE = 200 };

static void append(const char *name, void *data)
{
    char *names = data;
    size_t used = strlen(names);
    snprintf(names + used, NAMES_SIZE - used, "%s ", name);
}

static void a_certificate_says_what_we_decide(void **state)
{
    struct rig *rig = *state;
    const char *host[] = {"ws2"}, *elmer[] = {"ws2", "ws2.example.org", "10.0.0.2", "fd00::2"};
    struct pki_terms terms = {.names = host, .count = 1, .begin_s = 1000, .end_s = 2000 + PKI_BACKDATE_S};
    struct pki_certificate facts;
    struct err err = ERR_INIT;
    char *certificate, all[NAMES_SIZE] = "";

    assert_int_equal(pki_issue(rig->ca.key, rig->ca.certificate, rig->request, &terms, &certificate, &err), 0);
    assert_int_equal(pki_inspect(certificate, &facts, &err), 0);
    assert_string_equal(facts.name, "ws2");
    assert_int_equal(strlen(facts.serial), 32);
    assert_int_equal(facts.begin_s, 1000);
    assert_int_equal(facts.end_s, 2000 + PKI_BACKDATE_S);
    assert_true(facts.client && !facts.server && !facts.ca);
    assert_int_equal(pki_renewal_s(&facts), facts.end_s - 1000 / 3);
    assert_int_equal(pki_verify(certificate, rig->ca.certificate, &err), 0);
    assert_int_equal(pki_key_fits(rig->key, certificate, &err), 0);
    assert_int_equal(pki_key_fits(rig->ca.key, certificate, &err), -EACCES);
    free(certificate);

    terms = (struct pki_terms){.server = true, .names = elmer, .count = 4, .begin_s = 1000, .end_s = 2000};
    assert_int_equal(pki_issue(rig->ca.key, rig->ca.certificate, rig->request, &terms, &certificate, &err), 0);
    assert_int_equal(pki_inspect(certificate, &facts, &err), 0);
    assert_true(!facts.client && facts.server && !facts.ca);
    pki_each_name(certificate, append, all);
    assert_string_equal(all, "ws2 ws2.example.org 10.0.0.2 fd00::2 ");
    pki_each_name(rig->ca.certificate, append, all);
    pki_each_name("no certificate", append, all);
    assert_string_equal(all, "ws2 ws2.example.org 10.0.0.2 fd00::2 ");
    free(certificate);
    assert_int_equal(pki_inspect(rig->ca.certificate, &facts, &err), 0);
    assert_true(facts.ca && !facts.client && !facts.server);
    assert_true(facts.end_s - NOW / 1000 > 24 * YEAR_S);
}

static void names_of_a_certificate_are_names(void **state)
{
    static const char *const wrong[][2] = {
        {"ws2,DNS:ws1", NULL}, {"", NULL}, {"ws2", "a b"}, {"ws2", "ws3,IP:1.2.3.4"}, {"ws2", "*.org"}};
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct pki_terms terms = {.names = wrong[i], .count = wrong[i][1] ? 2 : 1, .begin_s = 1, .end_s = 2};
        struct err err = ERR_INIT;
        char *certificate = NULL;

        assert_true(pki_issue(rig->ca.key, rig->ca.certificate, rig->request, &terms, &certificate, &err) < 0);
        assert_null(certificate);
    }
}

static void a_request_asks_for_one_name(void **state)
{
    struct rig *rig = *state;
    struct err err = ERR_INIT;
    char *changed;

    assert_int_equal(pki_request_check(rig->request, "ws2", &err), 0);
    assert_int_equal(pki_request_check(rig->request, "ws3", &err), -EINVAL);
    assert_says(&err, "not for the name ws3");
    err_clear(&err);
    assert_int_equal(pki_request_check("", "ws2", &err), -EINVAL);
    err_clear(&err);
    assert_int_equal(pki_request_check(rig->ca.certificate, "ws2", &err), -EINVAL);

    for (size_t at = 0; at < strlen(rig->request); at += 7) { /* no byte of it can be changed */
        changed = strdup(rig->request);
        changed[at] = changed[at] == 'A' ? 'B' : 'A';
        if (strcmp(changed, rig->request) != 0)
            assert_true(pki_request_check(changed, "ws2", NULL) < 0);
        free(changed);
    }
    changed = malloc(strlen(rig->request) + 2);
    snprintf(changed, strlen(rig->request) + 2, "%s\n", rig->request);
    assert_true(pki_request_check(changed, "ws2", NULL) < 0);
    free(changed);
}

/* Made by `openssl req -new`: with a subjectAltName of ws1, and with a key of RSA. */
static const char *openssl_request(struct rig *rig, const char *arguments, char *text, size_t size)
{
    char command[600];
    FILE *out;
    size_t n;

    snprintf(command, sizeof(command), "openssl req -new -nodes -keyout %s/foreign.key -subj /CN=ws2 %s 2>/dev/null",
             rig->dir, arguments);
    out = popen(command, "r");
    n = out ? fread(text, 1, size - 1, out) : 0;
    text[n] = 0;
    return out && pclose(out) == 0 ? text : NULL;
}

static void a_request_that_asks_for_more_is_refused(void **state)
{
    struct rig *rig = *state;
    struct err err = ERR_INIT;
    char text[8000];

    if (!openssl_request(rig, "-newkey ed25519", text, sizeof(text))) {
        print_message("no openssl(1) here: only our own requests are looked at\n");
        return;
    }
    assert_int_equal(pki_request_check(text, "ws2", &err), 0);
    assert_non_null(openssl_request(rig, "-newkey ed25519 -addext subjectAltName=DNS:ws1", text, sizeof(text)));
    assert_int_equal(pki_request_check(text, "ws2", &err), -EINVAL);
    assert_says(&err, "more than its name");
    err_clear(&err);
    assert_non_null(openssl_request(rig, "-newkey rsa:2048", text, sizeof(text)));
    assert_int_equal(pki_request_check(text, "ws2", &err), -EINVAL);
    assert_says(&err, "Ed25519");
    err_clear(&err);
    assert_non_null(openssl_request(rig, "-newkey ed25519 -subj /CN=ws2/CN=ws1", text, sizeof(text)));
    assert_int_equal(pki_request_check(text, "ws2", &err), -EINVAL);
}

/* ---- renewal ---- */

static void renewal_needs_the_old_key(void **state)
{
    struct rig *rig = *state;
    struct token token = new_token(rig, NULL, 0);
    struct pki_certificate old, renewed;
    char proof[PKI_PROOF_SIZE], *first, *key, *request, *other, *next = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(join(rig, &token, "ws2", NOW, &first, &err), 0);
    assert_int_equal(pki_inspect(first, &old, &err), 0);
    assert_int_equal(pki_key_create(&key, &err), 0);
    assert_int_equal(pki_request_create(key, "ws2", &request, &err), 0);
    assert_int_equal(pki_request_create(key, "ws1", &other, &err), 0);
    assert_int_equal(pki_prove(key, request, proof, &err), 0); /* by the new one */
    assert_int_equal(ca_sign_renew(&rig->ca, first, proof, request, NOW, &next, &err), -EACCES);
    err_clear(&err);
    assert_int_equal(pki_prove(rig->key, other, proof, &err), 0); /* for another name */
    assert_int_equal(ca_sign_renew(&rig->ca, first, proof, other, NOW, &next, &err), -EINVAL);
    err_clear(&err);
    assert_int_equal(pki_prove(rig->key, request, proof, &err), 0);
    assert_int_equal(ca_sign_renew(&rig->ca, first, proof, other, NOW, &next, &err), -EACCES); /* for another request */
    err_clear(&err);
    assert_int_equal(ca_sign_renew(&rig->ca, first, proof, request, old.end_s * 1000, &next, &err), -EACCES);
    assert_says(&err, "ended at 2028-01-15T08:00:00.000Z");
    err_clear(&err);
    assert_int_equal(ca_sign_renew(&rig->ca, rig->ca.certificate, proof, request, NOW, &next, &err), -EACCES);
    err_clear(&err);
    assert_null(next);
    assert_int_equal(ca_sign_renew(&rig->ca, first, proof, request, old.end_s * 1000 - 1, &next, &err), 0);
    assert_int_equal(pki_inspect(next, &renewed, &err), 0);
    assert_string_equal(renewed.name, "ws2");
    assert_true(renewed.client && !renewed.server);
    assert_string_not_equal(renewed.serial, old.serial);
    assert_int_equal(renewed.end_s, old.end_s - 1 + YEAR_S);
    assert_int_equal(pki_key_fits(key, next, &err), 0);
    free(first);
    free(next);
    free(request);
    free(other);
    pki_key_free(key);
}

static void elmers_renewal_keeps_its_names(void **state)
{
    static const char *const names[] = {"ws1", "ws1.example.org", "10.0.0.1"};
    struct rig *rig = *state;
    struct pki_certificate facts;
    char proof[PKI_PROOF_SIZE], *request, *first, *next;
    struct err err = ERR_INIT;

    assert_int_equal(pki_request_create(rig->key, "ws1", &request, &err), 0);
    assert_int_equal(ca_issue_elmer(&rig->ca, request, names, 3, NOW, &first, &err), 0);
    assert_int_equal(pki_prove(rig->key, request, proof, &err), 0);
    assert_int_equal(ca_sign_renew(&rig->ca, first, proof, request, NOW, &next, &err), 0);
    assert_int_equal(pki_inspect(next, &facts, &err), 0);
    assert_true(facts.server && !facts.client);
    assert_string_equal(facts.name, "ws1");
    free(request);
    free(first);
    free(next);
}

/* Its name and key stay: what was signed before and after is good by either certificate, and elmer's counter goes on.
 */
static void the_ca_is_renewed(void **state)
{
    static const char *const names[] = {"ws1"};
    const int64_t later = NOW + 17 * YEAR_S * 1000;
    struct rig *rig = *state;
    struct token token = new_token(rig, NULL, 0);
    struct pki_certificate facts;
    struct ca again;
    struct err err = ERR_INIT;
    char proof[PKI_PROOF_SIZE], *old = strdup(rig->ca.certificate), *before, *after, *elmers, *request;
    uint64_t counter, kept;

    assert_int_equal(join(rig, &token, "ws2", NOW, &before, &err), 0);
    assert_int_equal(pki_request_create(rig->key, "ws1", &request, &err), 0);
    assert_int_equal(ca_issue_elmer(&rig->ca, request, names, 1, NOW, &elmers, &err), 0);
    assert_int_equal(ca_counter(&rig->ca, &counter, &err), 0);
    assert_int_equal(ca_renew(&rig->ca, NOW, &err), 1);
    assert_int_equal(ca_renew(&rig->ca, later, &err), 0);
    assert_int_equal(ca_renew(&rig->ca, later, &err), 1);
    assert_string_not_equal(rig->ca.certificate, old);
    assert_int_equal(ca_open(rig->dir, &again, &err), 0); /* and on disk */
    assert_string_equal(again.certificate, rig->ca.certificate);
    assert_int_equal(ca_counter(&again, &kept, &err), 0);
    assert_int_equal(kept, counter);
    ca_close(&again);
    assert_int_equal(pki_inspect(rig->ca.certificate, &facts, &err), 0);
    assert_true(facts.ca && facts.end_s > later / 1000 + 24 * YEAR_S);
    assert_int_equal(pki_verify(before, rig->ca.certificate, &err), 0);
    assert_int_equal(pki_prove(rig->key, request, proof, &err), 0);
    assert_int_equal(ca_sign_renew(&rig->ca, elmers, proof, request, NOW, &after, &err), 0);
    assert_int_equal(pki_verify(after, old, &err), 0);
    assert_int_equal(pki_verify(after, rig->ca.certificate, &err), 0);
    free(old);
    free(before);
    free(after);
    free(elmers);
    free(request);
}

/* ---- files ---- */

static void a_ca_is_made_once_and_for_us_alone(void **state)
{
    struct rig *rig = *state;
    struct ca again;
    struct stat st;
    struct err err = ERR_INIT;
    char path[100];

    assert_int_equal(ca_create(rig->dir, "ws1", NOW, &err), 1);
    assert_int_equal(ca_open(rig->dir, &again, &err), 0);
    assert_string_equal(again.key, rig->ca.key);
    ca_close(&again);
    snprintf(path, sizeof(path), "%s/ca.key", rig->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(rig->dir, 0711), 0);
    assert_int_equal(ca_open(rig->dir, &again, &err), -EPERM);
    assert_int_equal(chmod(rig->dir, 0700), 0);
    assert_int_equal(ca_open("/nonexistent/ca", &again, &err), -ENOENT);
    ca_close(&again);
    ca_close(&again);
}

/* Another CA in the place of half a CA would be one that no host knows. */
static void half_a_ca_is_neither_made_anew_nor_none(void **state)
{
    struct rig *rig = *state;
    const char *const names[] = {"ws2"};
    int dir = file_dir(rig->dir, 0, NULL);
    struct err err = ERR_INIT;
    struct ca again;
    char *certificate;

    assert_int_equal(ca_look(rig->dir, &err), 0);
    assert_int_equal(unlinkat(dir, "ca.crt", 0), 0); /* nothing was signed: its making was interrupted */
    assert_int_equal(ca_look(rig->dir, &err), -ENOENT);
    assert_int_equal(ca_create(rig->dir, "ws1", NOW, &err), 0);
    ca_close(&rig->ca);
    assert_int_equal(ca_open(rig->dir, &rig->ca, &err), 0);
    assert_int_equal(ca_issue_elmer(&rig->ca, rig->request, names, 1, NOW, &certificate, &err), 0);
    free(certificate);

    assert_int_equal(unlinkat(dir, "ca.crt", 0), 0);
    assert_int_equal(ca_create(rig->dir, "ws1", NOW, &err), -EUCLEAN);
    assert_says(&err, rig->dir);
    assert_says(&err, "ca.crt, the CA's certificate, is gone");
    assert_says(&err, "put it back from /var/lib/elmer/pki/ca.crt here");
    err_clear(&err);
    assert_int_equal(ca_look(rig->dir, &err), -EUCLEAN);
    assert_int_equal(ca_open(rig->dir, &again, NULL), -EUCLEAN);
    assert_int_equal(file_write(dir, "ca.crt", "", 0644, NULL), 0);
    err_clear(&err);
    assert_int_equal(ca_open(rig->dir, &again, &err), -EUCLEAN);
    assert_says(&err, "ca.crt, the CA's certificate, is damaged");
    assert_int_equal(file_write(dir, "ca.crt", rig->ca.certificate, 0644, NULL), 0);

    assert_int_equal(file_write(dir, "ca.key", "", 0600, NULL), 0);
    err_clear(&err);
    assert_int_equal(ca_open(rig->dir, &again, &err), -EUCLEAN);
    assert_says(&err, rig->dir);
    assert_says(&err, "ca.key, the CA's key, is damaged, or not that of ca.crt");
    assert_says(&err, "put it back from a backup, where it is elmer-backup/ca/ca.key");
    assert_int_equal(unlinkat(dir, "ca.key", 0), 0);
    err_clear(&err);
    assert_int_equal(ca_open(rig->dir, &again, &err), -EUCLEAN);
    assert_says(&err, "ca.key, the CA's key, is gone, and without it nothing can be signed");
    err_clear(&err);
    assert_int_equal(ca_create(rig->dir, "ws1", NOW, &err), -EUCLEAN);
    assert_int_equal(faccessat(dir, "ca.key", F_OK, 0), -1);
    assert_int_equal(file_write(dir, "ca.key", rig->ca.key, 0600, NULL), 0);
    assert_int_equal(ca_open(rig->dir, &again, &err), 0); /* what is put back is good */
    ca_close(&again);
    close(dir);
}

static char *content(int dir, const char *name)
{
    char *text = NULL;

    return file_read(dir, name, PKI_PEM_MAX, &text, NULL) == 0 ? text : NULL;
}

static void assert_pair(int dir, const char *key, const char *certificate)
{
    char *k = content(dir, "host.key"), *c = content(dir, "host.crt");

    assert_string_equal(k, key);
    assert_string_equal(c, certificate);
    free(k);
    free(c);
}

static void key_and_certificate_change_together(void **state)
{
    struct rig *rig = *state;
    struct err err = ERR_INIT;
    int dir = file_dir(rig->dir, 0, &err);

    assert_int_equal(pair_write(dir, "k1", "c1", &err), 0);
    assert_pair(dir, "k1", "c1");
    /* ended before both were written */
    assert_int_equal(file_write(dir, "host.key.new", "k2", 0600, &err), 0);
    assert_int_equal(pair_recover(dir, &err), 0);
    assert_pair(dir, "k1", "c1");
    /* before the first was moved */
    assert_int_equal(file_write(dir, "host.crt.new", "c2", 0600, &err), 0);
    assert_int_equal(pair_recover(dir, &err), 0);
    assert_pair(dir, "k1", "c1");
    assert_int_equal(faccessat(dir, "host.crt.new", F_OK, 0), -1);
    /* between the two */
    assert_int_equal(file_write(dir, "host.key", "k3", 0600, &err), 0);
    assert_int_equal(file_write(dir, "host.crt.new", "c3", 0644, &err), 0);
    assert_int_equal(pair_recover(dir, &err), 0);
    assert_pair(dir, "k3", "c3");
    assert_int_equal(pair_recover(dir, &err), 0);
    assert_pair(dir, "k3", "c3");
    close(dir);
}

static void files_are_not_followed(void **state)
{
    struct rig *rig = *state;
    struct err err = ERR_INIT;
    char *text, path[100];
    int dir = file_dir(rig->dir, 0, &err);

    assert_int_equal(symlinkat("ca.key", dir, "link"), 0);
    assert_int_equal(file_read(dir, "link", PKI_PEM_MAX, &text, &err), -ELOOP);
    assert_int_equal(mkfifoat(dir, "pipe", 0600), 0);
    assert_true(file_read(dir, "pipe", PKI_PEM_MAX, &text, &err) < 0);
    assert_true(file_read(dir, "host.key", 1, &text, &err) < 0);     /* longer than that, or not there */
    assert_int_equal(file_write(dir, "link", "own", 0600, &err), 0); /* takes the place of the link */
    text = content(dir, "ca.key");
    assert_string_equal(text, rig->ca.key);
    free(text);
    snprintf(path, sizeof(path), "%s/dir", rig->dir);
    assert_int_equal(symlinkat(".", dir, "dir"), 0);
    assert_true(file_dir(path, 0700, &err) < 0);
    close(dir);
}

static void who_has_the_key_is_undumpable(void **state)
{
    struct rig *rig = *state;
    char path[sizeof(rig->dir) + 8];
    struct err err = ERR_INIT;
    struct ca again;

    assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0); /* setup has opened it */
    assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    assert_int_equal(ca_open(rig->dir, &again, &err), 0);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
    ca_close(&again);
    assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    snprintf(path, sizeof(path), "%s/other", rig->dir);
    assert_int_equal(ca_create(path, "ws1", NOW, &err), 0);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(who_has_the_key_is_undumpable),           TEST(a_certificate_says_what_we_decide),
        TEST(names_of_a_certificate_are_names),        TEST(a_request_asks_for_one_name),
        TEST(a_request_that_asks_for_more_is_refused), TEST(renewal_needs_the_old_key),
        TEST(elmers_renewal_keeps_its_names),          TEST(the_ca_is_renewed),
        TEST(a_ca_is_made_once_and_for_us_alone),      TEST(half_a_ca_is_neither_made_anew_nor_none),
        TEST(key_and_certificate_change_together),     TEST(files_are_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
