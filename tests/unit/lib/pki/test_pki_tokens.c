/* test_pki_tokens.c - tokens: their spelling, that each works once, and for whom. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/pki/ca.h"
#include "lib/pki/pair.h"
#include "lib/pki/token.h"
#include "lib/pki/x509.h"
#include "tests/unit/lib/pki/pki_bed.h"

/* ---- tokens ---- */

static void a_token_is_one_word_that_shows_typing_errors(void **state)
{
    struct token token = {.id = {1, 2}, .secret = {3, 255}, .pin = {9}}, back;
    char text[TOKEN_TEXT_SIZE], wrong[TOKEN_TEXT_SIZE + 1];
    struct err err = ERR_INIT;

    (void)state;
    token_encode(&token, text);
    assert_int_equal(strlen(text), TOKEN_TEXT_SIZE - 1);
    assert_int_equal(strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789"), strlen(text));
    assert_int_equal(token_decode(text, strlen(text), &back, &err), 0);
    assert_memory_equal(&back, &token, sizeof(token));
    for (size_t at = 0; at < strlen(text); at++) {
        memcpy(wrong, text, sizeof(text));
        wrong[at] = wrong[at] == 'x' ? 'y' : 'x';
        assert_int_equal(token_decode(wrong, strlen(wrong), &back, NULL), -EINVAL);
        assert_int_equal(token_decode(text, at, &back, NULL), -EINVAL);
    }
    memcpy(wrong, text, sizeof(text));
    wrong[20] = text[21], wrong[21] = text[20];
    if (text[20] != text[21])
        assert_int_equal(token_decode(wrong, strlen(wrong), &back, NULL), -EINVAL);
    snprintf(wrong, sizeof(wrong), "%sa", text);
    assert_int_equal(token_decode(wrong, strlen(wrong), &back, &err), -EINVAL);
    assert_says(&err, "has 103 characters, not 102");
    err_clear(&err);
    assert_int_equal(token_decode("hello", 5, &back, &err), -EINVAL);
    assert_says(&err, "begins with elmer1");
    err_clear(&err);
    assert_int_equal(token_decode("elmer2abc", 9, &back, &err), -EINVAL);
    assert_says(&err, "another version");
}

static void a_token_works_once(void **state)
{
    struct rig *rig = *state;
    struct token token = new_token(rig, NULL, 0);
    struct pki_certificate facts;
    struct err err = ERR_INIT;
    char *certificate;

    assert_int_equal(join(rig, &token, "ws2", NOW + 1000, &certificate, &err), 0);
    assert_int_equal(pki_inspect(certificate, &facts, &err), 0);
    assert_string_equal(facts.name, "ws2");
    assert_true(facts.client && !facts.server);
    assert_int_equal(facts.end_s, NOW / 1000 + 1 + YEAR_S);
    assert_int_equal(facts.begin_s, NOW / 1000 + 1 - PKI_BACKDATE_S);
    free(certificate);
    assert_int_equal(join(rig, &token, "ws3", NOW + 2000, &certificate, &err), -EACCES);
    assert_null(certificate);
    assert_says(&err, "was used by ws2 at 2027-01-15T08:00:01.000Z");
}

static struct token token_of_uses(struct rig *rig, int uses)
{
    char text[TOKEN_TEXT_SIZE];
    struct token token;
    struct err err = ERR_INIT;

    assert_int_equal(ca_token(&rig->ca, NULL, 0, uses, NOW, HOUR_MS, text, &err), 0);
    assert_int_equal(token_decode(text, strlen(text), &token, &err), 0);
    return token;
}

static void a_token_is_good_for_as_many_as_it_says(void **state)
{
    static const char *const hosts[] = {"ws2", "ws3"};
    struct rig *rig = *state;
    struct token token = token_of_uses(rig, 2);
    struct err err = ERR_INIT;
    char *certificate;

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(join(rig, &token, hosts[i], NOW + 1000, &certificate, &err), 0);
        free(certificate);
    }
    assert_int_equal(join(rig, &token, "ws4", NOW + 2000, &certificate, &err), -EACCES);
    assert_says(&err, "good for 2 hosts, and so many have used it by ws2, ws3");
    /* nothing of it is left after a month, its uses neither */
    assert_int_equal(
        ca_token(&rig->ca, NULL, 0, 1, NOW + INT64_C(31) * 86400000, HOUR_MS, (char[TOKEN_TEXT_SIZE]){0}, &err), 0);
    int used = openat(rig->ca.dir, "used", O_RDONLY | O_DIRECTORY);
    DIR *list = fdopendir(used);
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list));)
        assert_int_equal(entry->d_name[0], '.');
    closedir(list);
}

static int joins_at_once(struct rig *rig, const struct token *token, bool of_one)
{
    enum { MANY = 12 };
    int succeeded = 0, status;

    for (int i = 0; i < MANY; i++) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            struct err err = ERR_INIT;
            char *certificate, host[16];

            snprintf(host, sizeof(host), "ws%d", of_one ? 2 : i);
            _exit(join(rig, token, host, NOW, &certificate, &err) == 0 ? 0 : 1);
        }
    }
    for (int i = 0; i < MANY; i++) {
        assert_true(wait(&status) > 0 && WIFEXITED(status));
        succeeded += WEXITSTATUS(status) == 0;
    }
    return succeeded;
}

static void of_many_joins_at_once_one_succeeds(void **state)
{
    struct token token = new_token(*state, NULL, 0);

    assert_int_equal(joins_at_once(*state, &token, true), 1);
}

/* Whoever has it knows the others' names, too. */
static void no_host_uses_a_token_twice(void **state)
{
    static const char *const hosts[] = {"ws2", "ws3"};
    struct rig *rig = *state;
    struct token token, any = token_of_uses(rig, 3);
    char text[TOKEN_TEXT_SIZE], *certificate;
    struct err err = ERR_INIT;

    assert_int_equal(ca_token(&rig->ca, hosts, 2, 3, NOW, HOUR_MS, text, &err), 0);
    assert_int_equal(token_decode(text, strlen(text), &token, &err), 0);
    assert_int_equal(join(rig, &token, "ws2", NOW + 1000, &certificate, &err), 0);
    free(certificate);
    assert_int_equal(join(rig, &token, "ws2", NOW + 2000, &certificate, &err), -EACCES);
    assert_null(certificate);
    assert_says(&err, "was used by ws2 at 2027-01-15T08:00:01.000Z, and is good for each host once");
    assert_int_equal(join(rig, &token, "ws3", NOW + 3000, &certificate, &err), 0); /* that has cost nothing */
    free(certificate);
    assert_int_equal(join(rig, &token, "ws3", NOW + 4000, &certificate, &err), -EACCES);
    assert_int_equal(join(rig, &any, "ws2", NOW + 1000, &certificate, &err), 0); /* another one */
    free(certificate);
    assert_int_equal(join(rig, &any, "ws2", NOW + 2000, &certificate, &err), -EACCES);
}

/* The queue host's disk is full: an empty file can be made there, and no more. */
static void a_use_that_cannot_be_noted_is_none(void **state)
{
    struct rig *rig = *state;
    struct token token = token_of_uses(rig, 2);
    struct rlimit before, full;
    struct err err = ERR_INIT;
    char *certificate = NULL;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    full = (struct rlimit){0, before.rlim_max};
    for (int i = 0; i < 3; i++) {
        int result;

        assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
        result = join(rig, &token, "ws2", NOW, &certificate, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(result, -EIO);
        assert_null(certificate);
        assert_says(&err, "it cannot be noted who has used the token");
    }
    assert_int_equal(join(rig, &token, "ws2", NOW, &certificate, &err), 0);
    free(certificate);
    assert_int_equal(join(rig, &token, "ws3", NOW, &certificate, &err), 0);
    free(certificate);
    assert_int_equal(join(rig, &token, "ws4", NOW, &certificate, &err), -EACCES);
    assert_says(&err, "by ws2, ws3");
}

static void of_many_joins_at_once_as_many_succeed_as_it_has_uses(void **state)
{
    struct token token = token_of_uses(*state, 5);

    assert_int_equal(joins_at_once(*state, &token, false), 5);
}

static void of_many_joins_at_once_of_a_host_one_succeeds(void **state)
{
    struct token token = token_of_uses(*state, 5);

    assert_int_equal(joins_at_once(*state, &token, true), 1);
}

static void bad_tokens_are_told_apart(void **state)
{
    static const char *const hosts[] = {"ws2", "ws22"};
    struct rig *rig = *state;
    struct token token = new_token(rig, hosts, 2), foreign = token;
    struct err err = ERR_INIT;
    char *certificate;

    assert_int_equal(join(rig, &token, "ws3", NOW, &certificate, &err), -EACCES);
    assert_says(&err, "is for ws2,ws22, not for ws3");
    assert_int_equal(join(rig, &token, "ws", NOW, &certificate, &err), -EACCES);
    assert_int_equal(join(rig, &token, "ws2", NOW + HOUR_MS, &certificate, &err), -EACCES);
    assert_says(&err, "expired at 2027-01-15T09:00:00.000Z");
    foreign.secret[0] ^= 1;
    assert_int_equal(join(rig, &foreign, "ws2", NOW, &certificate, &err), -EACCES);
    assert_says(&err, "not known here");
    foreign.id[0] ^= 1;
    assert_int_equal(join(rig, &foreign, "ws2", NOW, &certificate, &err), -EACCES);
    assert_says(&err, "not known here");
    assert_int_equal(join(rig, &token, "ws22", NOW + HOUR_MS - 1, &certificate, &err),
                     0); /* none of these has used it up */
    free(certificate);
}

static void a_proof_is_good_for_its_request_alone(void **state)
{
    struct rig *rig = *state;
    struct token token = new_token(rig, NULL, 0);
    char id[TOKEN_ID_SIZE], proof[PKI_PROOF_SIZE], *key, *request, *certificate = NULL;
    struct err err = ERR_INIT;

    token_id(&token, id);
    assert_int_equal(pki_key_create(&key, &err), 0);
    assert_int_equal(pki_request_create(key, "ws2", &request, &err), 0);
    assert_int_equal(pki_join_proof(token.secret, sizeof(token.secret), "ws2", rig->request, proof, &err), 0);
    assert_int_equal(ca_sign_join(&rig->ca, "ws2", id, proof, request, NOW, &certificate, &err), -EACCES);
    err_clear(&err);
    assert_int_equal(ca_sign_join(&rig->ca, "ws3", id, proof, rig->request, NOW, &certificate, &err), -EINVAL);
    err_clear(&err);
    assert_int_equal(ca_sign_join(&rig->ca, "ws2", "../../ca.key", proof, rig->request, NOW, &certificate, &err),
                     -EACCES);
    err_clear(&err);
    assert_int_equal(ca_sign_join(&rig->ca, "ws2", id, "", rig->request, NOW, &certificate, &err), -EACCES);
    assert_null(certificate);
    err_clear(&err);
    assert_int_equal(ca_sign_join(&rig->ca, "ws2", id, proof, rig->request, NOW, &certificate, &err), 0);
    free(certificate);
    free(request);
    pki_key_free(key);
}

static void old_tokens_are_forgotten(void **state)
{
    struct rig *rig = *state;
    struct token token = new_token(rig, NULL, 0);
    char text[TOKEN_TEXT_SIZE], *certificate;
    struct err err = ERR_INIT;

    assert_int_equal(ca_token(&rig->ca, NULL, 0, 1, NOW + INT64_C(29) * 86400000, HOUR_MS, text, &err), 0);
    assert_int_equal(join(rig, &token, "ws2", NOW + INT64_C(29) * 86400000, &certificate, &err), -EACCES);
    assert_says(&err, "expired");
    assert_int_equal(ca_token(&rig->ca, NULL, 0, 1, NOW + INT64_C(31) * 86400000, HOUR_MS, text, &err), 0);
    assert_int_equal(join(rig, &token, "ws2", NOW, &certificate, &err), -EACCES);
    assert_says(&err, "not known");
}

/* The cluster has a host of this name: a token for any does not help, and stays good for others. */
static void a_token_for_any_takes_no_name(void **state)
{
    static const char *const named[] = {"ws2"};
    struct rig *rig = *state;
    char id[TOKEN_ID_SIZE], proof[PKI_PROOF_SIZE], *certificate = NULL;
    struct err err = ERR_INIT;

    for (size_t count = 0; count < 2; count++) {
        struct token token = new_token(rig, named, count);
        int result;

        token_id(&token, id);
        assert_int_equal(pki_join_proof(token.secret, sizeof(token.secret), "ws2", rig->request, proof, &err), 0);
        result = ca_sign_rejoin(&rig->ca, "ws2", id, proof, rig->request, NOW, &certificate, &err);
        assert_int_equal(result, count == 0 ? -EACCES : 0);
        if (count == 0) {
            assert_non_null(strstr(err.text, "there is a host ws2 in the cluster already"));
            assert_non_null(strstr(err.text, "eadmin remove ws2"));
            err_clear(&err);
            assert_int_equal(ca_sign_join(&rig->ca, "ws2", id, proof, rig->request, NOW, &certificate, &err), 0);
        }
        free(certificate);
        certificate = NULL;
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_one_word_that_shows_typing_errors),
        TEST(a_token_works_once),
        TEST(of_many_joins_at_once_one_succeeds),
        TEST(a_token_is_good_for_as_many_as_it_says),
        TEST(of_many_joins_at_once_as_many_succeed_as_it_has_uses),
        TEST(of_many_joins_at_once_of_a_host_one_succeeds),
        TEST(no_host_uses_a_token_twice),
        TEST(a_use_that_cannot_be_noted_is_none),
        TEST(bad_tokens_are_told_apart),
        TEST(a_proof_is_good_for_its_request_alone),
        TEST(old_tokens_are_forgotten),
        TEST(a_token_for_any_takes_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
