/* fuzz_signer.c - what elmer, or who has taken its place, asks of elmer-signer: joins with right and wrong tokens,
 * proofs and requests, renewals of certificates that are ours, are over, or were changed. A certificate is signed only
 * for who has shown a token or an old key, and says only what it may. Tokens are in memory: this file stands in for
 * tokens.c. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/pki/token.h"
#include "lib/pki/tokens.h"
#include "lib/pki/x509.h"
#include "signer/sign.h"
#include "tests/fuzz/pem.h"

#define NOW_MS INT64_C(1700000000000)
#define DAY_MS INT64_C(86400000)

enum { HOSTS = 3 };

static const char *const hosts[HOSTS] = {"ws1", "ws2", "ws3"}; /* ws1 is the queue host */
static const uint8_t secret[TOKEN_SECRET_BYTES] = "sixteen secrets";
static const char token[] = "00112233445566ff";

static struct {
    struct ca ca;
    char *key, *requests[HOSTS], *certificates[HOSTS]; /* one key for all */
    char proofs[HOSTS][PKI_PROOF_SIZE], joins[HOSTS][PKI_PROOF_SIZE];
} ours;

static bool token_used;

/* ---- in place of tokens.c ---- */

int tokens_put(int ca_dir, const struct token *new_token, const char *const *names, size_t count, int uses,
               int64_t now_ms, int64_t end_ms, struct err *err)
{
    (void)ca_dir, (void)new_token, (void)names, (void)count, (void)uses, (void)now_ms, (void)end_ms;
    return err_set(err, -EROFS, "no tokens are made here");
}

void tokens_tidy(int ca_dir, int64_t now_ms)
{
    (void)ca_dir, (void)now_ms;
}

int tokens_use(int ca_dir, const char *id, const char *host, bool taken, const char *request, const char *proof,
               int64_t now_ms, struct err *err)
{
    (void)ca_dir, (void)taken, (void)now_ms;
    FUZZ_CHECK(str_valid_hostname(host), "host %s", host);
    if (strcmp(id, token) != 0 || token_used || !pki_join_proof_check(secret, sizeof(secret), host, request, proof))
        return err_set(err, -EACCES, "this token is no good");
    token_used = true;
    return 0;
}

/* ---- the cluster ---- */

static void make_host(size_t i, struct err *err)
{
    const struct pki_terms terms = {.server = i == 0,
                                    .names = &hosts[i],
                                    .count = 1,
                                    .begin_s = NOW_MS / 1000 - 1000,
                                    .end_s = NOW_MS / 1000 + 1000};

    FUZZ_CHECK(pki_request_create(ours.key, hosts[i], &ours.requests[i], err) == 0, "%s", err->text);
    FUZZ_CHECK(pki_issue(ours.ca.key, ours.ca.certificate, ours.requests[i], &terms, &ours.certificates[i], err) == 0,
               "%s", err->text);
    FUZZ_CHECK(pki_prove(ours.key, ours.requests[i], ours.proofs[i], err) == 0, "%s", err->text);
    FUZZ_CHECK(pki_join_proof(secret, sizeof(secret), hosts[i], ours.requests[i], ours.joins[i], err) == 0, "%s",
               err->text);
}

static void make_cluster(void)
{
    struct err err = ERR_INIT;

    if (ours.key)
        return;
    ours.ca = (struct ca){.dir = -1, .valid_ms = DAY_MS};
    FUZZ_CHECK(pki_ca_create("Elmer CA", NOW_MS / 1000 - 1000, NOW_MS / 1000 + 100000, &ours.ca.key,
                             &ours.ca.certificate, &err) == 0,
               "%s", err.text);
    FUZZ_CHECK(pki_key_create(&ours.key, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < HOSTS; i++)
        make_host(i, &err);
}

/* ---- a request, its texts malloc'd ---- */

struct asked {
    struct wire_message message;
    char *host, *token, *proof, *request, *old;
    size_t of; /* whose proof it is */
    bool changed;
};

static char *copy(const char *text)
{
    char *made = strdup(text);

    FUZZ_CHECK(made != NULL, "no memory");
    return made;
}

/* A text that is right, changed, or anything. */
static char *text_or(struct input *input, const char *right, const char *kind, bool *changed)
{
    uint8_t how = input_byte(input);

    if (how < 0xA0)
        return copy(right);
    *changed = true;
    return how < 0xE0 && kind ? pem_change(input, kind, right) : input_line(input);
}

static void make_request(struct input *input, struct asked *asked)
{
    bool join = input_byte(input) & 1;
    size_t host = input_below(input, HOSTS), of = input_below(input, HOSTS);

    *asked = (struct asked){.of = of, .message = {.type = join ? WIRE_sign_join : WIRE_sign_renew, .id = 7}};
    asked->host = text_or(input, hosts[host], NULL, &asked->changed);
    asked->token = text_or(input, token, NULL, &asked->changed);
    asked->request = text_or(input, ours.requests[of], "CERTIFICATE REQUEST", &asked->changed);
    asked->old = text_or(input, ours.certificates[host], "CERTIFICATE", &asked->changed);
    asked->proof = text_or(input, join ? ours.joins[of] : ours.proofs[of], NULL, &asked->changed);
    if (join && input_byte(input) & 1) { /* whoever has the token can prove it for anything */
        char proof[PKI_PROOF_SIZE];

        (void)pki_join_proof(secret, sizeof(secret), asked->host, asked->request, proof, NULL);
        free(asked->proof);
        asked->proof = copy(proof);
    }
    if (join) {
        struct wire_sign_join body = {
            .host = asked->host, .token = asked->token, .proof = asked->proof, .request = asked->request};

        asked->message.u.sign_join = body;
    } else {
        struct wire_sign_renew body = {.certificate = asked->old, .proof = asked->proof, .request = asked->request};

        asked->message.u.sign_renew = body;
    }
}

static void free_request(struct asked *asked)
{
    free(asked->host);
    free(asked->token);
    free(asked->proof);
    free(asked->request);
    free(asked->old);
}

/* ---- what comes of it ---- */

static void check_issued(const struct asked *asked, const char *certificate, bool held, int64_t now_ms)
{
    struct pki_certificate facts, old;
    struct err err = ERR_INIT;

    FUZZ_CHECK(pki_inspect(certificate, &facts, &err) == 0, "%s", err.text);
    FUZZ_CHECK(!facts.ca && facts.client != facts.server, "another use");
    FUZZ_CHECK(facts.end_s == (now_ms + DAY_MS) / 1000, "other dates");
    if (asked->message.type == WIRE_sign_join) {
        FUZZ_CHECK(token_used, "without a token");
        FUZZ_CHECK(facts.client && strcmp(facts.name, asked->host) == 0, "%s for %s", facts.name, asked->host);
    } else {
        FUZZ_CHECK(pki_inspect(asked->old, &old, &err) == 0, "%s", err.text);
        FUZZ_CHECK(strcmp(facts.name, old.name) == 0 && facts.server == old.server, "%s became %s", old.name,
                   facts.name);
        FUZZ_CHECK(old.end_s > now_ms / 1000, "an old one that was over");
    }
    pem_signatures_hold(false);
    FUZZ_CHECK(pki_verify(certificate, ours.ca.certificate, &err) == 0, "%s", err.text);
    if (held || !asked->changed)
        return;
    /* What was changed and is signed all the same was changed where nobody looks: tokens and hosts of a renewal. */
    FUZZ_CHECK(strcmp(asked->request, ours.requests[asked->of]) == 0, "a changed request was signed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    uint8_t how = input_byte(&input);
    int64_t now_ms = how & 2 ? NOW_MS + DAY_MS : NOW_MS;
    struct sign_answer answer;
    struct asked asked;

    make_cluster();
    token_used = false;
    make_request(&input, &asked);
    pem_signatures_hold(how & 1);
    sign(&ours.ca, &asked.message, now_ms, &answer);
    FUZZ_CHECK(answer.message.id == 7, "another id");
    if (answer.message.type == WIRE_issued)
        check_issued(&asked, answer.certificate, how & 1, now_ms);
    else
        FUZZ_CHECK(answer.message.type == WIRE_error && answer.message.u.error.text[0] != '\0', "no reason");
    sign_answer_fini(&answer);
    free_request(&asked);
    pem_signatures_hold(false);
    return 0;
}
