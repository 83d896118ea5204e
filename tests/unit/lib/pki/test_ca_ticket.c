/* test_ca_ticket.c - a host's ticket key is certified together with its links, for one token, and by nobody on the way.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/ticket/keys.h"
#include "tests/unit/lib/pki/pki_bed.h"

struct asked {
    char id[TOKEN_ID_SIZE], proof[PKI_PROOF_SIZE], key[TICKET_HEX_KEY];
    uint8_t raw[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES];
};

static void ask(struct rig *rig, const struct token *token, struct asked *asked)
{
    struct err err = ERR_INIT;
    char *proven;

    assert_true(ticket_key_create(asked->secret, asked->raw));
    hex_write(asked->raw, sizeof(asked->raw), asked->key);
    token_id(token, asked->id);
    proven = str_format("%s%s", rig->request, asked->key);
    assert_int_equal(pki_join_proof(token->secret, sizeof(token->secret), "ws2", proven, asked->proof, &err), 0);
    free(proven);
}

static void a_ticket_key_is_certified_with_the_host(void **state)
{
    struct rig *rig = *state;
    struct token token = new_token(rig, NULL, 0);
    struct asked asked;
    struct err err = ERR_INIT;
    char *certificate = NULL, ticket[PKI_PROOF_SIZE];
    uint8_t authority[TICKET_KEY_BYTES], signature[TICKET_SIGNATURE_BYTES], bytes[TICKET_BYTES_MAX];

    ask(rig, &token, &asked);
    assert_int_equal(ca_sign_host(&rig->ca, "ws2", false, asked.id, asked.proof, rig->request, asked.key, NOW,
                                  &certificate, ticket, &err),
                     0);
    assert_int_equal(pki_verify(certificate, rig->ca.certificate, &err), 0);
    assert_int_equal(pki_public_key(rig->ca.certificate, authority, &err), 0);
    assert_true(hex_read(ticket, signature, sizeof(signature)));
    assert_true(ticket_signature_holds(authority, bytes, ticket_certified_bytes("ws2", asked.raw, bytes), signature));
    assert_false(ticket_signature_holds(authority, bytes, ticket_certified_bytes("ws3", asked.raw, bytes), signature));
    free(certificate);
}

/* elmer, or who is between, puts its own key in, or takes the host's out. The token is not used up by that. */
static void another_key_on_the_way_is_refused(void **state)
{
    struct rig *rig = *state;
    struct token token = new_token(rig, NULL, 0);
    struct asked asked, other;
    struct err err = ERR_INIT;
    char *certificate = NULL, ticket[PKI_PROOF_SIZE];

    ask(rig, &token, &asked);
    ask(rig, &token, &other);
    assert_int_equal(ca_sign_host(&rig->ca, "ws2", false, asked.id, asked.proof, rig->request, other.key, NOW,
                                  &certificate, ticket, &err),
                     -EACCES);
    assert_int_equal(ca_sign_join(&rig->ca, "ws2", asked.id, asked.proof, rig->request, NOW, &certificate, &err),
                     -EACCES);
    assert_int_equal(ca_sign_host(&rig->ca, "ws2", false, asked.id, asked.proof, rig->request, "00", NOW, &certificate,
                                  ticket, &err),
                     -EINVAL);
    err_clear(&err);
    assert_int_equal(ca_sign_host(&rig->ca, "ws2", false, asked.id, asked.proof, rig->request, asked.key, NOW,
                                  &certificate, ticket, &err),
                     0);
    free(certificate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_ticket_key_is_certified_with_the_host, setup, teardown),
        cmocka_unit_test_setup_teardown(another_key_on_the_way_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
