/* pki_bed.c - see pki_bed.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/pki/ca.h"
#include "lib/pki/pair.h"
#include "lib/pki/token.h"
#include "lib/pki/x509.h"
#include "tests/unit/lib/pki/pki_bed.h"
#include "tests/unit/scratch.h"

int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct err err = ERR_INIT;

    snprintf(rig->dir, sizeof(rig->dir), "/tmp/test_pki.XXXXXX");
    assert_non_null(scratch_dir(rig->dir));
    assert_int_equal(ca_create(rig->dir, "ws1", NOW, &err), 0);
    assert_int_equal(ca_open(rig->dir, &rig->ca, &err), 0);
    assert_int_equal(pki_key_create(&rig->key, &err), 0);
    assert_int_equal(pki_request_create(rig->key, "ws2", &rig->request, &err), 0);
    *state = rig;
    return 0;
}

int teardown(void **state)
{
    struct rig *rig = *state;

    ca_close(&rig->ca);
    pki_key_free(rig->key);
    free(rig->request);
    free(rig);
    return 0;
}

void assert_says(const struct err *err, const char *part)
{
    if (!strstr(err->text, part))
        fail_msg("\"%s\" does not say \"%s\"", err->text, part);
}

struct token new_token(struct rig *rig, const char *const *hosts, size_t count)
{
    char text[TOKEN_TEXT_SIZE];
    struct token token;
    struct err err = ERR_INIT;

    assert_int_equal(ca_token(&rig->ca, hosts, count, 1, NOW, HOUR_MS, text, &err), 0);
    assert_int_equal(token_decode(text, strlen(text), &token, &err), 0);
    return token;
}

int join(struct rig *rig, const struct token *token, const char *host, int64_t now_ms, char **certificate,
         struct err *err)
{
    char id[TOKEN_ID_SIZE], proof[PKI_PROOF_SIZE], *request = NULL;
    int result;

    *certificate = NULL;
    err_clear(err);
    token_id(token, id);
    assert_int_equal(pki_request_create(rig->key, host, &request, err), 0);
    assert_int_equal(pki_join_proof(token->secret, sizeof(token->secret), host, request, proof, err), 0);
    result = ca_sign_join(&rig->ca, host, id, proof, request, now_ms, certificate, err);
    free(request);
    return result;
}
