/* test_warrant.c - what an administrator asks, signed: read back as it was written, and refused when anything differs.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lib/ticket/keys.h"
#include "lib/ticket/pass.h"
#include "lib/ticket/warrant.h"

static uint8_t ca_secret[TICKET_KEY_BYTES], ca[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES], key[TICKET_KEY_BYTES];
static struct ticket_trust trust;

static struct warrant make(void)
{
    struct warrant w = {.host = "ws2", .uid = 1003, .user = "carol"};
    uint8_t bytes[TICKET_BYTES_MAX];
    memset(w.challenge, 7, sizeof(w.challenge));
    assert_true(ticket_digest_text("{\"type\": \"kill\"}", w.request));
    assert_true(ticket_sign_bytes(ca_secret, bytes, ticket_certified_bytes("ws2", key, bytes), w.certificate));
    assert_true(warrant_sign(&w, key, secret));
    return w;
}

static int setup(void **state)
{
    (void)state;
    if (!ticket_key_create(ca_secret, ca) || !ticket_key_create(secret, key))
        return -1;
    trust = (struct ticket_trust){.has_authority = true};
    memcpy(trust.authority, ca, sizeof(ca));
    return 0;
}

static void test_read_back(void **state)
{
    struct warrant w = make(), read;
    char text[WARRANT_TEXT_MAX + 1], again[WARRANT_TEXT_MAX + 1];
    (void)state;
    warrant_encode(&w, text);
    assert_true(warrant_decode(text, &read));
    assert_string_equal(read.host, "ws2");
    assert_string_equal(read.user, "carol");
    assert_int_equal(read.uid, 1003);
    assert_memory_equal(read.challenge, w.challenge, sizeof(w.challenge));
    assert_memory_equal(read.request, w.request, sizeof(w.request));
    warrant_encode(&read, again);
    assert_string_equal(text, again);
    assert_int_equal(warrant_check_chain(&read, &trust), TICKET_GOOD);
    assert_int_equal(warrant_check_chain(&read, &trust), TICKET_GOOD); /* its key is kept now */
}

static void test_longest(void **state)
{
    struct warrant w = make(), read;
    char text[WARRANT_TEXT_MAX + 1];
    (void)state;
    memset(w.host, 'h', TICKET_HOST_MAX);
    memset(w.user, 'u', TICKET_USER_MAX);
    warrant_encode(&w, text);
    assert_true(strlen(text) <= WARRANT_TEXT_MAX);
    assert_true(warrant_decode(text, &read));
}

/* No byte of it can be another one. */
static void test_every_byte_counts(void **state)
{
    struct warrant w = make(), read;
    char text[WARRANT_TEXT_MAX + 1];
    (void)state;
    warrant_encode(&w, text);
    for (size_t i = 0; text[i]; i++) {
        char was = text[i];
        text[i] = was == '0' ? '1' : '0';
        if (warrant_decode(text, &read))
            assert_int_not_equal(warrant_check_chain(&read, &trust), TICKET_GOOD);
        text[i] = was;
    }
}

static void test_cut_and_longer(void **state)
{
    struct warrant w = make(), read;
    char text[WARRANT_TEXT_MAX + 3];
    size_t length;
    (void)state;
    warrant_encode(&w, text);
    length = strlen(text);
    snprintf(text + length, 3, "00");
    assert_false(warrant_decode(text, &read));
    for (; length > 0; length--) {
        text[length - 1] = 0;
        assert_false(warrant_decode(text, &read));
    }
}

static void test_other_keys(void **state)
{
    struct warrant w = make();
    struct ticket_trust other = {.has_authority = true};
    uint8_t its_secret[TICKET_KEY_BYTES], its_key[TICKET_KEY_BYTES];
    (void)state;
    assert_true(ticket_key_create(its_secret, its_key));
    memcpy(other.authority, its_key, sizeof(its_key)); /* another cluster's CA */
    assert_int_equal(warrant_check_chain(&w, &other), TICKET_OTHER_CLUSTER);
    assert_true(warrant_sign(&w, its_key, its_secret)); /* a key that the CA does not know */
    assert_int_equal(warrant_check_chain(&w, &trust), TICKET_OTHER_CLUSTER);
    w = make();
    assert_true(warrant_sign(&w, key, its_secret));
    assert_int_equal(warrant_check_chain(&w, &trust), TICKET_FORGED);
    w = make();
    snprintf(w.host, sizeof(w.host), "ws3"); /* in the name of another host, whose key this is not */
    assert_true(warrant_sign(&w, key, secret));
    assert_int_equal(warrant_check_chain(&w, &trust), TICKET_OTHER_CLUSTER);
    trust.has_authority = false;
    w = make();
    assert_int_equal(warrant_check_chain(&w, &trust), TICKET_OTHER_CLUSTER);
}

/* A pass that was signed with the same key is no warrant. */
static void test_not_a_pass(void **state)
{
    struct pass pass = {.host = "ws2", .job = 7, .attempt = 1, .uid = 1003, .user = "carol"};
    char text[PASS_TEXT_MAX + 1];
    struct warrant read;
    (void)state;
    assert_true(pass_sign(&pass, key, secret));
    pass_encode(&pass, text);
    assert_false(warrant_decode(text, &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_read_back, setup),         cmocka_unit_test_setup(test_longest, setup),
        cmocka_unit_test_setup(test_every_byte_counts, setup), cmocka_unit_test_setup(test_cut_and_longer, setup),
        cmocka_unit_test_setup(test_other_keys, setup),        cmocka_unit_test_setup(test_not_a_pass, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
