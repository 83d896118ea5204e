/* test_desk_passes.c - what the desk signs beside tickets: passes of jobs, passes to look, warrants of administrators.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/ticket/pass.h"
#include "lib/ticket/warrant.h"
#include "libelmer/client.h"
#include "rsd/tickets/desk.h"
#include "tests/unit/rsd/tickets/desk_bed.h"

/* This test is in no job, whatever it says. */
static void no_pass_outside_of_jobs(void **state)
{
    struct wire_message question = {.type = WIRE_pass_ask, .id = 1};
    char key[2 * PASS_KEY_BYTES + 1], text[400];
    (void)state;
    memset(key, 'a', sizeof(key) - 1);
    key[sizeof(key) - 1] = 0;
    question.u.pass_ask.key = key;
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_true(strstr(text, "it is no process of a job: its control group is /"));
    question.u.pass_ask.key = "abc";
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_string_equal(text, "its key is none");
}

static void passes_are_looked_at(void **state)
{
    struct wire_message question = {.type = WIRE_pass_check, .id = 1};
    struct pass pass = {.host = "ws1", .job = 7, .attempt = 1, .uid = 1, .user = "a"};
    char pass_text[PASS_TEXT_MAX + 1], text[400];
    uint8_t stranger[TICKET_KEY_BYTES], stranger_secret[TICKET_KEY_BYTES];
    (void)state;
    question.u.pass_check.pass = pass_text;
    assert_true(pass_sign(&pass, desk_keys.key, desk_keys.secret));
    pass_encode(&pass, pass_text);
    assert_int_equal(ask(&question, text), WIRE_done);
    pass_text[strlen(pass_text) - 1] ^= 1;
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_true(strstr(text, "ws1 does not believe the pass for job 7 of a process on ws1 (forged)") ||
                strstr(text, "(garbled)"));
    assert_true(ticket_key_create(stranger_secret, stranger) && pass_sign(&pass, stranger, stranger_secret));
    pass_encode(&pass, pass_text);
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_true(strstr(text, "(other-cluster)"));
    snprintf(pass_text, sizeof(pass_text), "00");
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_true(strstr(text, "(garbled)"));
}

static uint8_t ca_secret[TICKET_KEY_BYTES];

static void certify_key(void)
{
    uint8_t ca[TICKET_KEY_BYTES], bytes[TICKET_BYTES_MAX], signature[TICKET_SIGNATURE_BYTES];
    struct ticket_keys keys;
    struct err err = ERR_INIT;
    char dir[64];
    assert_true(ticket_key_create(ca_secret, ca));
    assert_true(ticket_sign_bytes(ca_secret, bytes, ticket_certified_bytes("ws1", desk_keys.key, bytes), signature));
    snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(socket_path, '/') - socket_path), socket_path);
    assert_int_equal(ticket_keys_open(&keys, dir, "ws1", &err), 0);
    assert_int_equal(ticket_keys_certify(&keys, ca, signature, &err), 0);
    ticket_keys_close(&keys);
}

static const char *own_name(void)
{
    const struct passwd *entry = getpwuid(getuid());
    assert_non_null(entry);
    return entry->pw_name;
}

/* Passes of another host, which the CA has certified as it has ws1. */
static void sign_as(const char *host, struct pass *pass, char text[PASS_TEXT_MAX + 1])
{
    uint8_t key[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES];
    uint8_t bytes[TICKET_BYTES_MAX];
    snprintf(pass->host, sizeof(pass->host), "%s", host);
    assert_true(ticket_key_create(secret, key));
    assert_true(ticket_sign_bytes(ca_secret, bytes, ticket_certified_bytes(host, key, bytes), pass->certificate));
    assert_true(pass_sign(pass, key, secret));
    pass_encode(pass, text);
}

/* Nobody has anything done here by the word of another host whose jobs of there would be refused: neither by a pass of
 * a process of a job, whatever hosts the job has, nor by one to look. He may himself ask for something there. */
static void who_is_denied_has_nothing_done_here(void **state)
{
    struct wire_message question = {.type = WIRE_pass_check, .id = 1};
    struct pass pass = {.job = 7, .attempt = 1, .uid = getuid()};
    char pass_text[PASS_TEXT_MAX + 1], text[400];
    (void)state;
    snprintf(pass.user, sizeof(pass.user), "%s", own_name());
    certify_key();
    sign_as("ws2", &pass, pass_text);
    question.u.pass_check.pass = pass_text;
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_non_null(strstr(text, "from other hosts are refused (deny_users in rsd.conf)"));
    question.type = WIRE_pass_trust;
    assert_int_equal(ask(&question, text), WIRE_done);
    question.type = WIRE_pass_check;
    pass.looks = true;
    pass.attempt = 0;
    sign_as("ws2", &pass, pass_text);
    assert_int_equal(ask(&question, text), WIRE_error);
    sign_as("ws1", &pass, pass_text); /* before it was installed anew */
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_true(pass_sign(&pass, desk_keys.key, desk_keys.secret));
    pass_encode(&pass, pass_text);
    assert_int_equal(ask(&question, text), WIRE_done); /* he could do it without */
}

/* All others have. What is forged, or of a host of another cluster, neither of the two questions believes. */
static void others_have(void **state)
{
    struct wire_message question = {.type = WIRE_pass_check, .id = 1};
    struct pass pass = {.job = 7, .attempt = 1, .uid = getuid()};
    char pass_text[PASS_TEXT_MAX + 1], text[400], *last;
    (void)state;
    snprintf(pass.user, sizeof(pass.user), "%s", own_name());
    certify_key();
    sign_as("ws2", &pass, pass_text);
    question.u.pass_check.pass = pass_text;
    assert_int_equal(ask(&question, text), WIRE_done);
    question.type = WIRE_pass_trust;
    assert_int_equal(ask(&question, text), WIRE_done);
    last = &pass_text[strlen(pass_text) - 1];
    *last = *last == '0' ? '1' : '0';
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_string_equal(text, "ws1 does not believe the pass for job 7 of a process on ws2 (forged)");
}

/* For whoever asks, about a job of which the desk knows nothing: whose it is, is seen by what holds the terminal. */
static void passes_to_look(void **state)
{
    struct wire_message question = {.type = WIRE_pass_look, .id = 1, .u.pass_look = {.job = 7}};
    char key[2 * PASS_KEY_BYTES + 1], text[PASS_TEXT_MAX + 1];
    uint8_t bytes[PASS_KEY_BYTES] = {1, 2, 3};
    struct pass pass;
    struct wire_message answer;
    struct channel channel;
    (void)state;
    hex_write(bytes, sizeof(bytes), key);
    question.u.pass_look.key = key;
    assert_int_equal(channel_init(&channel, connect_in_silence(), WIRE_FROM_ROOT, 1 << 16), 0);
    channel.minor = WIRE_TICKET_MINOR;
    assert_int_equal(channel_send_all(&channel, &question, mono_ms(mono_now()) + WAIT_MS, NULL), 0);
    assert_int_equal(channel_receive(&channel, &answer, mono_ms(mono_now()) + WAIT_MS, NULL), 1);
    assert_int_equal(answer.type, WIRE_pass);
    assert_true(pass_decode(answer.u.pass.pass, &pass));
    wire_message_fini(&answer);
    channel_fini(&channel);
    assert_true(pass.looks && pass.job == 7 && pass.attempt == 0 && pass.uid == getuid());
    assert_string_equal(pass.host, "ws1");
    assert_memory_equal(pass.public_key, bytes, sizeof(bytes));
    question.u.pass_look.job = 0;
    assert_int_equal(ask(&question, text), WIRE_error);
    question.u.pass_look.job = 7;
    question.u.pass_look.key = "abc";
    assert_int_equal(ask(&question, text), WIRE_error);
}

/* ---- warrants ---- */

/* Who asks is who the kernel says, and what is signed is what he asks, with elmer's challenge. */
static void warrants_say_who_and_what(void **state)
{
    char challenge[2 * WARRANT_CHALLENGE_BYTES + 1], text[400];
    struct wire_message kill7 = {.type = WIRE_kill, .u.kill = {.job = 7}}, decide;
    struct client_signing signing = {.state = SIGNING_NONE};
    struct wire_message question = {.type = WIRE_warrant_ask, .id = 1};
    struct client_desk user = {.beside = named};
    struct elmer_error error = {{0}};
    struct warrant warrant;
    uint8_t digest[TICKET_DIGEST_BYTES];
    (void)state;
    memset(challenge, 'a', sizeof(challenge) - 1);
    challenge[sizeof(challenge) - 1] = 0;
    question.u.warrant_ask.challenge = challenge;
    question.u.warrant_ask.request = "{}";
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_non_null(strstr(text, "the key of this host's tickets is not certified"));
    certify_key();
    question.u.warrant_ask.challenge = "abc";
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_string_equal(text, "elmer's challenge is none");
    assert_int_equal(
        client_warrant_begin(&user, &signing, &kill7, WIRE_MINOR, challenge, mono_ms(mono_now()) + WAIT_MS, &error),
        ELMER_OK);
    until_signed(&user, &signing);
    assert_int_equal(client_warrant_take(&signing, WIRE_MINOR, &decide, &error), ELMER_OK);
    assert_true(warrant_decode(decide.u.decide.warrant, &warrant));
    assert_string_equal(warrant.host, "ws1");
    assert_int_equal(warrant.uid, getuid());
    assert_int_equal(warrant.challenge[0], 0xaa);
    assert_true(ticket_digest_text(decide.u.decide.request, digest));
    assert_memory_equal(digest, warrant.request, sizeof(digest));
    client_signing_drop(&user, &signing);
    client_desk_close(&user);
}

static int setup_accepts(void **state)
{
    int result;
    accepts = true;
    result = setup(state);
    accepts = false;
    return result;
}

static int setup_denies(void **state)
{
    int result;
    denied = own_name();
    result = setup(state);
    denied = "";
    return result;
}

/* There the network half makes processes of any user. */
static void no_warrants_where_no_ticket_is_required(void **state)
{
    char challenge[2 * WARRANT_CHALLENGE_BYTES + 1], text[400];
    struct wire_message question = {.type = WIRE_warrant_ask, .id = 1};
    (void)state;
    memset(challenge, 'a', sizeof(challenge) - 1);
    challenge[sizeof(challenge) - 1] = 0;
    certify_key();
    question.u.warrant_ask.challenge = challenge;
    question.u.warrant_ask.request = "{}";
    assert_int_equal(ask(&question, text), WIRE_error);
    assert_non_null(strstr(text, "tickets = require"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_pass_outside_of_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(passes_to_look, setup, teardown),
        cmocka_unit_test_setup_teardown(passes_are_looked_at, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_denied_has_nothing_done_here, setup_denies, teardown),
        cmocka_unit_test_setup_teardown(others_have, setup, teardown),
        cmocka_unit_test_setup_teardown(warrants_say_who_and_what, setup, teardown),
        cmocka_unit_test_setup_teardown(no_warrants_where_no_ticket_is_required, setup_accepts, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
