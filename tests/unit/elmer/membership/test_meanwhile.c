/* test_meanwhile.c - what changes between a request and its answer: while the signer works, or the store writes. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/membership/bed.h"

static void on_add_host(const char *name, void *data)
{
    (void)name;
    ++*(int *)data;
}

/* What was signed counts nowhere. */
static void refused_unrecorded(int peer, const char *certificate, const char *words)
{
    heard_error(TO_PEER(&bed.peers[peer]), words);
    for (size_t i = 0; i < fake_engine.ncertificates; i++)
        assert_string_not_equal(fake_engine.certificates[i].serial, bed_serial(certificate));
}

/* Who is no host any more does not become one with a token that names nobody. */
static void test_taken_out(void **state)
{
    int added = 0, ws9 = fake_engine_add_host("ws9");
    const char *certificate = bed_certificate("ws9");
    (void)state;
    bed_create();
    membership_connect(bed.membership, on_add_host, &added);
    bed_join(0, "ws9");
    int signer = bed_signer();
    heard(signer, WIRE_sign_join);
    fake_engine.hosts[ws9].retired = true;
    bed_issue(signer, certificate);
    refused_unrecorded(0, certificate, "join again, with a token that names it");
    assert_true(bed.peers[0].refused);
    assert_int_equal(added, 0);
    assert_int_not_equal(bed_judge("ws9", bed_serial(certificate), "not one that this elmer has passed on"), 0);
    assert_string_equal(fake_engine.decision.what, "");
}

/* Two with tokens that name nobody: the second does not take the name of the first. */
static void test_two_at_once(void **state)
{
    const char *first = bed_certificate("ws1"), *second = bed_certificate("ws1");
    (void)state;
    bed_create();
    bed_join(0, "ws1");
    bed_join(1, "ws1");
    bed_issue(bed_signer(), first);
    bed_issue(bed_signer(), second);
    heard(TO_PEER(&bed.peers[0]), WIRE_joined);
    refused_unrecorded(1, second, "join again, with a token that names it");
    assert_int_equal(bed_judge("ws1", bed_serial(first), ""), 0);
    assert_int_equal(fake_hosts.cut_off, -1);
}

static void test_removed_while_it_is_signed(void **state)
{
    const char *certificate = bed_certificate("ws1");
    (void)state;
    bed_create();
    bed_join(0, "ws1");
    int signer = bed_signer();
    heard(signer, WIRE_sign_join);
    assert_int_equal(membership_revoke(bed.membership, "ws1"), 0);
    assert_int_equal(membership_revoke(bed.membership, "ws2"), 0);
    bed_issue(signer, certificate);
    refused_unrecorded(0, certificate, "was removed meanwhile");
    assert_null(membership_newest(bed.membership, WS1));
}

static void test_removed_while_it_is_written(void **state)
{
    const char *certificate = bed_certificate("ws1");
    (void)state;
    bed_create();
    fake_engine.held = true;
    bed_join(0, "ws1");
    bed_issue(bed_signer(), certificate);
    heard_forget();
    assert_int_equal(membership_revoke(bed.membership, "ws1"), 1);
    fake_engine_commit();
    heard_error(TO_PEER(&bed.peers[0]), "was removed meanwhile");
    assert_int_not_equal(bed_judge("ws1", bed_serial(certificate), "was revoked"), 0);
}

/* One that has not been asked for yet is as one that comes later. */
static void test_removed_while_it_waits(void **state)
{
    (void)state;
    bed_create();
    for (int i = 0; i < 5; i++)
        bed_join(i, "ws2");
    bed_join(5, "ws1");
    membership_revoke(bed.membership, "ws1");
    for (size_t i = 0; i < LINKS; i++)
        links_cut(i);
    heard_forget();
    fake_time_pass(1000);
    bed_issue(bed_signer(), bed_certificate("ws1"));
    assert_false(bed.peers[5].refused);
    assert_non_null(membership_newest(bed.membership, WS1));
    heard_forget();
}

static int renewing(const char *old)
{
    bed_stored(bed_serial(old), "ws1", 60 * 86400);
    bed_create();
    bed.peers[0].serial = bed_serial(old);
    bed_renew(0, WS1, old);
    int signer = bed_signer();
    heard(signer, WIRE_sign_renew);
    return signer;
}

static void test_removed_while_it_renews(void **state)
{
    const char *certificate = bed_certificate("ws1");
    (void)state;
    int signer = renewing(bed_certificate("ws1"));
    assert_int_equal(membership_revoke(bed.membership, "ws1"), 1);
    bed_issue(signer, certificate);
    refused_unrecorded(0, certificate, "was removed meanwhile");
    assert_null(membership_newest(bed.membership, WS1));
}

/* Another machine has its name then. */
static void test_joined_while_it_renews(void **state)
{
    const char *renewed = bed_certificate("ws1"), *joined = bed_certificate("ws1");
    (void)state;
    int signer = renewing(bed_certificate("ws1"));
    bed_join(1, "ws1");
    links_answer((size_t)signer + 1);
    heard(signer + 1, WIRE_sign_rejoin);
    bed_issue(signer + 1, joined);
    heard(TO_PEER(&bed.peers[1]), WIRE_joined);
    bed_issue(signer, renewed);
    refused_unrecorded(0, renewed, "was removed meanwhile");
    assert_string_equal(membership_newest(bed.membership, WS1)->serial, bed_serial(joined));
}

/* The answer to a join waits for the store, and a rsd that gets none has used up its token: so it is not begun. What is
 * known when the certificate comes leaves the host what it has. */
static void test_store_fails(void **state)
{
    const char *certificate = bed_certificate("ws1");
    (void)state;
    bed_stored("AA01", "ws1", 100);
    bed_create();
    fake_engine.failure = "elmer's store cannot be written: no space left";
    bed_join(0, "ws1");
    heard_error(TO_PEER(&bed.peers[0]), "no space left");
    assert_int_equal(links_find(WIRE_FROM_SIGNER), -1);
    fake_engine.failure = NULL;
    bed_join(1, "ws1");
    int signer = bed_signer();
    heard(signer, WIRE_sign_rejoin);
    fake_engine.failure = "elmer's store cannot be written: no space left";
    bed_issue(signer, certificate);
    refused_unrecorded(1, certificate, "no space left");
    assert_int_equal(bed_judge("ws1", "AA01", ""), 0);
    assert_int_equal(fake_hosts.cut_off, -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_taken_out),
        TEST(test_two_at_once),
        TEST(test_removed_while_it_is_signed),
        TEST(test_removed_while_it_is_written),
        TEST(test_removed_while_it_waits),
        TEST(test_removed_while_it_renews),
        TEST(test_joined_while_it_renews),
        TEST(test_store_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
