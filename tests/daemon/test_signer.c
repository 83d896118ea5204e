/* test_signer.c - the program elmer-signer, as elmer meets it. */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/pki/ca.h"
#include "lib/pki/token.h"
#include "lib/pki/x509.h"
#include "lib/wire/channel.h"
#include "tests/unit/scratch.h"

enum { DEADLINE_MS = 20000, HOUR_MS = 3600000 };

struct rig {
    char dir[64], config[96];
    char *key, *request;
    char text[TOKEN_TEXT_SIZE];
    struct token token;
    char id[TOKEN_ID_SIZE], proof[PKI_PROOF_SIZE];
};

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct err err = ERR_INIT;
    struct ca ca;

    snprintf(rig->dir, sizeof(rig->dir), "/tmp/test_signer.XXXXXX");
    assert_non_null(scratch_dir(rig->dir));
    snprintf(rig->config, sizeof(rig->config), "%s/ca.conf", rig->dir);
    assert_int_equal(ca_create(rig->dir, "ws1", wall_now().ms, &err), 0);
    assert_int_equal(ca_open(rig->dir, &ca, &err), 0);
    assert_int_equal(ca_token(&ca, NULL, 0, 1, wall_now().ms, HOUR_MS, rig->text, &err), 0);
    ca_close(&ca);
    assert_int_equal(token_decode(rig->text, strlen(rig->text), &rig->token, &err), 0);
    assert_int_equal(pki_key_create(&rig->key, &err), 0);
    assert_int_equal(pki_request_create(rig->key, "ws2", &rig->request, &err), 0);
    token_id(&rig->token, rig->id);
    assert_int_equal(
        pki_join_proof(rig->token.secret, sizeof(rig->token.secret), "ws2", rig->request, rig->proof, &err), 0);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;

    pki_key_free(rig->key);
    free(rig->request);
    free(rig);
    return 0;
}

static void write_config(struct rig *rig, const char *text)
{
    FILE *file = fopen(rig->config, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* One run of the program; the answer is the caller's. Returns the exit status. */
static int run(struct rig *rig, const struct wire_message *request, struct wire_message *answer)
{
    struct channel channel;
    struct err err = ERR_INIT;
    int pair[2], status;
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(pair[1], 0);
        close(pair[0]);
        close(pair[1]);
        execl("signer/elmer-signer", "elmer-signer", "--ca", rig->dir, "-c", rig->config, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    assert_int_equal(channel_init(&channel, pair[0], WIRE_FROM_SIGNER, 1 << 20), 0);
    assert_int_equal(channel_send_all(&channel, request, mono_ms(mono_now()) + DEADLINE_MS, &err), 0);
    if (channel_receive(&channel, answer, mono_ms(mono_now()) + DEADLINE_MS, &err) != 1)
        fail_msg("no answer: %s", err.text);
    channel_fini(&channel);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static struct wire_message join_request(struct rig *rig)
{
    struct wire_message message = {.type = WIRE_sign_join, .id = 7};

    message.u.sign_join.host = "ws2";
    message.u.sign_join.token = rig->id;
    message.u.sign_join.proof = rig->proof;
    message.u.sign_join.request = rig->request;
    return message;
}

static void a_join_is_signed_once(void **state)
{
    struct rig *rig = *state;
    struct wire_message request = join_request(rig), answer = {0};
    struct pki_certificate facts;
    struct err err = ERR_INIT;

    write_config(rig, "[ca]\ncertificate_valid = 90s\n");
    assert_int_equal(run(rig, &request, &answer), 0);
    assert_int_equal(answer.type, WIRE_issued);
    assert_int_equal(answer.id, 7);
    assert_int_equal(pki_inspect(answer.u.issued.certificate, &facts, &err), 0);
    assert_string_equal(facts.name, "ws2");
    assert_in_range(facts.end_s, wall_now().ms / 1000 + 60, wall_now().ms / 1000 + 90);
    wire_message_fini(&answer);
    assert_int_equal(run(rig, &request, &answer), 0);
    assert_int_equal(answer.type, WIRE_error);
    assert_string_equal(answer.u.error.code, WIRE_CODE_NOT_PERMITTED);
    assert_non_null(strstr(answer.u.error.text, "was used by ws2"));
    wire_message_fini(&answer);
}

static void a_certificate_is_renewed(void **state)
{
    struct rig *rig = *state;
    struct wire_message request = join_request(rig), first = {0}, answer = {0};
    struct err err = ERR_INIT;
    char proof[PKI_PROOF_SIZE];

    assert_int_equal(run(rig, &request, &first), 0);
    assert_int_equal(pki_prove(rig->key, rig->request, proof, &err), 0);
    request = (struct wire_message){.type = WIRE_sign_renew};
    request.u.sign_renew.certificate = first.u.issued.certificate;
    request.u.sign_renew.request = rig->request;
    request.u.sign_renew.proof = rig->proof;
    assert_int_equal(run(rig, &request, &answer), 0);
    assert_int_equal(answer.type, WIRE_error);
    wire_message_fini(&answer);
    request.u.sign_renew.proof = proof;
    assert_int_equal(run(rig, &request, &answer), 0);
    assert_int_equal(answer.type, WIRE_issued);
    assert_string_not_equal(answer.u.issued.certificate, first.u.issued.certificate);
    wire_message_fini(&answer);
    wire_message_fini(&first);
}

static void what_else_comes_is_refused(void **state)
{
    struct rig *rig = *state;
    struct wire_message request = {.type = WIRE_ping, .id = 3}, answer = {0};

    assert_int_equal(run(rig, &request, &answer), 0);
    assert_int_equal(answer.type, WIRE_error);
    assert_string_equal(answer.u.error.text, "ping is no request to sign");
    wire_message_fini(&answer);
    request = join_request(rig);
    write_config(rig, "[ca]\ncertificate_valid = soon\n");
    assert_int_equal(run(rig, &request, &answer), 1);
    assert_int_equal(answer.type, WIRE_error);
    assert_non_null(strstr(answer.u.error.text, "cannot be used"));
    wire_message_fini(&answer);
    write_config(rig, "");
    assert_int_equal(run(rig, &request, &answer), 0); /* the token was not used up by that */
    assert_int_equal(answer.type, WIRE_issued);
    wire_message_fini(&answer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_join_is_signed_once),
        TEST(a_certificate_is_renewed),
        TEST(what_else_comes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
