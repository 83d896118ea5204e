/* test_membership.c - joining, renewing, and which certificates count. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/elmer/membership/bed.h"

/* ---- joining ---- */

static void test_join(void **state)
{
    (void)state;
    bed_create();
    const char *certificate = bed_certificate("ws1"), *serial = bed_serial(certificate);
    fake_engine.held = true;
    bed_join(0, "ws1");
    int signer = bed_signer();
    const struct wire_message *asked = heard(signer, WIRE_sign_join);
    assert_string_equal(asked->u.sign_join.host, "ws1");
    assert_string_equal(asked->u.sign_join.token, "0123456789abcdef");
    assert_string_equal(asked->u.sign_join.proof, "aa");
    assert_string_equal(asked->u.sign_join.request, "REQUEST");
    bed_issue(signer, certificate);
    assert_int_equal(fake_engine.ncertificates, 1);
    assert_string_equal(fake_engine.certificates[0].serial, serial);
    assert_string_equal(fake_engine.certificates[0].host, "ws1");
    assert_int_equal(fake_engine.certificates[0].issued_ms, FAKE_WALL_MS);
    assert_int_equal(fake_engine.certificates[0].end_ms, FAKE_WALL_MS + (int64_t)LIFE_S * 1000);
    assert_int_equal(fake_engine.certificates[0].revoked_ms, 0);
    heard_nothing(); /* it is not on disk */
    fake_engine_commit();
    const struct wire_message *joined = heard(TO_PEER(&bed.peers[0]), WIRE_joined);
    assert_int_equal(joined->id, 5);
    assert_string_equal(joined->u.joined.certificate, certificate);
    assert_true(bed.peers[0].closed && !bed.peers[0].refused); /* its next link has the certificate */
    assert_int_equal(bed_judge("ws1", serial, ""), 0);
    assert_string_equal(membership_newest(bed.membership, WS1)->serial, serial);
    assert_null(membership_newest(bed.membership, WS2));
    assert_int_equal(fake_hosts.cut_off, -1);
    const struct decision *decision = &fake_engine.decision;
    assert_string_equal(decision->what, "joined");
    assert_string_equal(decision->host, "ws1");
    assert_string_equal(decision->by, "(token 0123456789abcdef)");
    assert_string_equal(decision->from, hosts_peer_address(&bed.peers[0]));
    assert_string_equal(decision->text, "");
    assert_true(decision->admin && decision->uid == DECISION_NOBODY);
}

/* A host that has a ticket key gets both certificates at once; the signer is told whether its name is taken. */
static void test_join_with_ticket_key(void **state)
{
    (void)state;
    bed_create();
    const char *certificate = bed_certificate("ws1");
    for (int taken = 0; taken < 2; taken++) {
        bed.ticket_key = "0123";
        bed_join(taken, "ws1");
        int signer = bed_signer();
        const struct wire_message *asked = heard(signer, WIRE_sign_host);
        assert_string_equal(asked->u.sign_host.host, "ws1");
        assert_int_equal(asked->u.sign_host.taken, taken);
        assert_string_equal(asked->u.sign_host.token, "0123456789abcdef");
        assert_string_equal(asked->u.sign_host.proof, "aa");
        assert_string_equal(asked->u.sign_host.request, "REQUEST");
        assert_string_equal(asked->u.sign_host.ticket_key, "0123");
        bed_issue_host(signer, certificate, "cd");
        const struct wire_message *joined = heard(TO_PEER(&bed.peers[taken]), WIRE_joined);
        assert_string_equal(joined->u.joined.certificate, certificate);
        assert_string_equal(joined->u.joined.ticket_certificate, "cd");
        heard_forget();
        links_turn();
        certificate = bed_certificate("ws1");
    }
}

/* A host that has a certificate: the signer is told, and wants a token that names it. After its removal the
 * name is free. */
static void test_join_as_living(void **state)
{
    (void)state;
    bed_create();
    const char *certificate = bed_certificate("ws1");
    bed_join(0, "ws1");
    int signer = bed_signer();
    heard(signer, WIRE_sign_join);
    bed_issue(signer, certificate);
    heard_forget();
    links_turn();
    bed_join(1, "ws1");
    signer = bed_signer();
    const struct wire_message *asked = heard(signer, WIRE_sign_rejoin);
    assert_string_equal(asked->u.sign_rejoin.host, "ws1");
    assert_string_equal(asked->u.sign_rejoin.token, "0123456789abcdef");
    assert_string_equal(asked->u.sign_rejoin.request, "REQUEST");
    links_cut((size_t)signer);
    heard_forget();
    assert_int_equal(membership_revoke(bed.membership, "ws1"), 1);
    bed_join(2, "ws1");
    signer = bed_signer();
    heard(signer, WIRE_sign_join);
    links_cut((size_t)signer);
    heard_forget();
}

static void refused_at_once(const char *host, const char *words)
{
    bed.peers[0] = (struct peer){0};
    bed_join(0, host);
    assert_int_equal(links_find(WIRE_FROM_SIGNER), -1);
    assert_string_equal(heard_error(TO_PEER(&bed.peers[0]), words), WIRE_CODE_REFUSED);
    assert_true(bed.peers[0].refused);
    fake_time_pass(1000);
}

static void on_add_host(const char *name, void *data)
{
    assert_string_equal(name, "ws9");
    ++*(int *)data;
    fake_engine_add_host(name);
    membership_configured(bed.membership);
}

/* Who is not configured becomes a host with a token that names it, which the signer is to look at, and not before. */
static void test_join_makes_a_host(void **state)
{
    int added = 0;
    (void)state;
    bed_create();
    membership_connect(bed.membership, on_add_host, &added);
    bed_join(0, "ws9");
    int signer = bed_signer();
    const struct wire_message *asked = heard(signer, WIRE_sign_rejoin);
    assert_string_equal(asked->u.sign_rejoin.host, "ws9");
    assert_int_equal(added, 0);
    bed_issue(signer, bed_certificate("ws9"));
    assert_int_equal(added, 1);
    heard(TO_PEER(&bed.peers[0]), WIRE_joined);
    assert_non_null(membership_newest(bed.membership, 3));
    assert_string_equal(fake_engine.decision.text, "a new host, which the configuration does not name");
}

/* The signer is not asked, and no token is used up. */
static void test_join_refused(void **state)
{
    (void)state;
    bed.settings.fixed = true;
    bed_create();
    refused_at_once("ws9", "not in the configuration");
    refused_at_once("queue", "is the queue host");
    refused_at_once("../etc", "is no name for a host");
    refused_at_once("", "is no name for a host");
    refused_at_once("a\x1b[2J", "is no name for a host");
}

static void test_signer_refuses(void **state)
{
    struct wire_message error = {
        .type = WIRE_error, .id = 1, .u.error = {.code = "refused", .text = "the token was used"}};
    (void)state;
    bed_create();
    bed_join(0, "ws1");
    int signer = bed_signer();
    heard(signer, WIRE_sign_join);
    say(signer, &error);
    links_turn();
    heard_error(TO_PEER(&bed.peers[0]), "the token was used");
    assert_int_equal(fake_engine.ncertificates, 0);
}

static void test_signer_away(void **state)
{
    (void)state;
    bed_create();
    bed_join(0, "ws1"); /* cannot be reached */
    links_cut((size_t)links_find(WIRE_FROM_SIGNER));
    heard_error(TO_PEER(&bed.peers[0]), "cannot sign certificates now");
    bed_join(1, "ws1"); /* ends before the answer */
    int signer = bed_signer();
    links_cut((size_t)signer);
    heard_error(TO_PEER(&bed.peers[1]), "cannot sign certificates now");
    bed_join(2, "ws1"); /* says nothing */
    signer = bed_signer();
    fake_time_pass(7999);
    links_turn();
    assert_false(bed.peers[2].closed);
    fake_time_pass(1);
    links_turn();
    heard_error(TO_PEER(&bed.peers[2]), "cannot sign certificates now");
    assert_false(links_open((size_t)signer));
    assert_int_equal(fake_engine.ncertificates, 0);
}

static void test_wrong_certificate(void **state)
{
    (void)state;
    bed_create();
    bed_join(0, "ws1");
    bed_issue(bed_signer(), bed_certificate("ws2"));
    heard_error(TO_PEER(&bed.peers[0]), "the signer made a certificate for \"ws2\"");
    bed_join(1, "ws1");
    bed_issue(bed_signer(), "rubbish");
    assert_true(bed.peers[1].refused);
    assert_int_equal(fake_engine.ncertificates, 0);
}

/* Who joins again is another machine, or has lost its key: what it had counts no more. */
static void test_join_again(void **state)
{
    (void)state;
    bed_stored("AA01", "ws1", 100);
    bed_stored("AA02", "ws2", 100);
    bed_create();
    const char *certificate = bed_certificate("ws1");
    fake_engine.held = true;
    bed_join(0, "ws1");
    bed_issue(bed_signer(), certificate);
    assert_int_not_equal(bed_judge("ws1", "AA01", "was revoked at"), 0);
    assert_int_equal(bed_judge("ws2", "AA02", ""), 0);
    assert_int_equal(bed_judge("ws1", bed_serial(certificate), ""), 0);
    assert_int_equal(fake_hosts.cut_off, WS1);
    assert_string_equal(fake_hosts.lost, ""); /* its jobs go on: it comes back with the new one */
    assert_int_equal(fake_engine.ncertificates, 2);
    assert_string_equal(fake_engine.certificates[1].serial, "AA01");
    assert_int_equal(fake_engine.certificates[1].revoked_ms, FAKE_WALL_MS);
    assert_string_equal(fake_engine.decision.text, "again: its older certificates are revoked");
    fake_engine_commit();
    assert_string_equal(membership_newest(bed.membership, WS1)->serial, bed_serial(certificate));
}

/* A peer that goes away while it is being signed: what was signed is recorded all the same. */
static void test_peer_gone(void **state)
{
    (void)state;
    bed_create();
    const char *certificate = bed_certificate("ws1");
    bed_join(0, "ws1");
    int signer = bed_signer();
    membership_peer_gone(bed.membership, &bed.peers[0]);
    heard_forget();
    bed_issue(signer, certificate);
    assert_int_equal(fake_engine.ncertificates, 1);
    assert_int_equal(bed_judge("ws1", bed_serial(certificate), ""), 0);
    heard_nothing();
}

/* ---- renewing ---- */

static void test_renew(void **state)
{
    const char *old = bed_certificate("ws1"), *certificate = bed_certificate("ws1"), *serial = bed_serial(old);
    (void)state;
    bed_stored(serial, "ws1", 60 * 86400);
    bed_create();
    bed.peers[0].serial = serial;
    fake_engine.held = true;
    bed_renew(0, WS1, old);
    int signer = bed_signer();
    const struct wire_message *asked = heard(signer, WIRE_sign_renew);
    assert_string_equal(asked->u.sign_renew.certificate, old);
    assert_string_equal(asked->u.sign_renew.proof, "bb");
    bed_issue(signer, certificate);
    heard_nothing();
    fake_engine_commit();
    const struct wire_message *renewed = heard(TO_PEER(&bed.peers[0]), WIRE_renewed);
    assert_int_equal(renewed->id, 6);
    assert_string_equal(renewed->u.renewed.certificate, certificate);
    assert_false(bed.peers[0].closed);
    assert_int_equal(fake_hosts.cut_off, -1);
    assert_int_equal(bed_judge("ws1", serial, ""), 0); /* both count, until the new one was shown */
    assert_string_equal(membership_newest(bed.membership, WS1)->serial, bed_serial(certificate));
    fake_time_skip(5);
    membership_shown(bed.membership, bed_serial(certificate));
    assert_int_not_equal(bed_judge("ws1", serial, "was revoked"), 0);
    assert_int_equal(fake_engine.certificates[1].revoked_ms, FAKE_WALL_MS + 5);
}

static void not_renewed(int peer, int host, const char *old, const char *words)
{
    bed_renew(peer, host, old);
    assert_int_equal(links_find(WIRE_FROM_SIGNER), -1);
    heard_error(TO_PEER(&bed.peers[peer]), words);
    assert_false(bed.peers[peer].closed); /* its link is good */
    fake_time_pass(1000);
}

static void test_renew_refused(void **state)
{
    const char *known = bed_certificate("ws1"), *revoked = bed_certificate("ws1"), *unknown = bed_certificate("ws1"),
               *others = bed_certificate("ws2");
    (void)state;
    bed_stored(bed_serial(known), "ws1", 1);
    bed_stored(bed_serial(others), "ws2", 1);
    bed_stored(bed_serial(revoked), "ws1", 2);
    fake_store.certificates[2].revoked_ms = FAKE_WALL_MS;
    bed_create();
    not_renewed(0, WS1, known, "without certificate has nothing to renew");
    bed.peers[0].serial = bed_serial(known);
    not_renewed(0, WS1, unknown, "not one that this elmer has passed on");
    not_renewed(0, WS1, revoked, "was revoked");
    not_renewed(0, WS1, others, "not one that this elmer has passed on");
    not_renewed(0, WS1, "rubbish", "");
    assert_int_equal(fake_engine.ncertificates, 0);
}

/* ---- which count ---- */

static void test_judge(void **state)
{
    (void)state;
    bed_stored("AA01", "ws1", 20);
    bed_stored("AA02", "ws1", 10);
    bed_stored("AA03", "gone", 10);
    bed_create();
    assert_int_equal(bed_judge("ws1", "AA01", ""), 0);
    assert_int_equal(bed_judge("ws2", "AA01", "not one that this elmer has passed on"), -EACCES);
    assert_int_equal(bed_judge("ws1", "AA09", "eadmin token"), -EACCES);
    assert_string_equal(membership_newest(bed.membership, WS1)->serial, "AA02");
    membership_shown(bed.membership, "AA01"); /* the older: the newer is still good */
    assert_int_equal(bed_judge("ws1", "AA02", ""), 0);
    membership_shown(bed.membership, "AA02");
    assert_int_equal(bed_judge("ws1", "AA01", "was revoked at 2023-11-14T22:13:20.000Z"), -EACCES);
    membership_shown(bed.membership, "AA09"); /* nothing */
    assert_int_equal(fake_engine.ncertificates, 1);
}

static void test_revoke(void **state)
{
    (void)state;
    bed_stored("AA01", "ws1", 20);
    bed_stored("AA02", "ws1", 10);
    bed_stored("AA03", "ws2", 10);
    bed_stored("AA04", "gone", 10);
    bed_create();
    assert_int_equal(membership_revoke(bed.membership, "ws1"), 2);
    assert_int_equal(fake_engine.ncertificates, 2); /* on disk, too */
    assert_null(membership_newest(bed.membership, WS1));
    assert_int_equal(bed_judge("ws1", "AA02", "was revoked"), -EACCES);
    assert_int_equal(membership_revoke(bed.membership, "ws1"), 0);
    assert_int_equal(membership_revoke(bed.membership, "ws9"), 0);
    assert_int_equal(bed_judge("ws2", "AA03", ""), 0);
    assert_int_equal(membership_revoke(bed.membership, "gone"), 1); /* not in the configuration any more */
}

/* Revoked in an earlier life. */
static void test_revoked_before(void **state)
{
    (void)state;
    bed_stored("AA01", "ws1", 20);
    bed_stored("AA02", "ws1", 10);
    fake_store.certificates[1].revoked_ms = FAKE_WALL_MS - 5;
    bed_create();
    assert_string_equal(membership_newest(bed.membership, WS1)->serial, "AA01");
    assert_int_equal(bed_judge("ws1", "AA02", "was revoked"), -EACCES);
}

/* Out of the configuration, a restart, and back by a reload: its certificate counts as before, so its name is taken. */
static void test_host_put_back(void **state)
{
    (void)state;
    bed_stored("AA01", "ws3", 20);
    bed_stored("AA02", "ws3", 10);
    bed_stored("AA03", "ws3", 5);
    bed_stored("AA04", "ws4", 5);
    fake_store.certificates[2].revoked_ms = fake_store.certificates[3].revoked_ms = FAKE_WALL_MS - 5;
    bed_create();
    int ws3 = fake_engine_add_host("ws3"), ws4 = fake_engine_add_host("ws4");
    membership_configured(bed.membership);
    assert_int_equal(bed_judge("ws3", "AA02", ""), 0);
    assert_non_null(membership_newest(bed.membership, ws3));
    assert_string_equal(membership_newest(bed.membership, ws3)->serial, "AA02");
    assert_null(membership_newest(bed.membership, ws4)); /* it was removed */
    bed_join(0, "ws3");
    int signer = bed_signer();
    assert_string_equal(heard(signer, WIRE_sign_rejoin)->u.sign_rejoin.host, "ws3");
    links_cut((size_t)signer);
    heard_forget();
}

/* ---- its life ---- */

static void test_create_fails(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    bed_stored("AA01", "ws1", 20);
    fake_store.load_certificates_code = -EIO;
    assert_int_equal(membership_create(&fake_engine.room, &bed.settings, &bed.membership, &err), -EIO);
    membership_close(NULL);
    membership_destroy(NULL);
}

/* Nothing is answered any more. */
static void test_close(void **state)
{
    (void)state;
    bed_create();
    for (int i = 0; i < 7; i++)
        bed_join(i, "ws1");
    membership_close(bed.membership);
    links_turn();
    heard_nothing();
    assert_int_equal(links_find(WIRE_FROM_SIGNER), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_join),
        TEST(test_join_with_ticket_key),
        TEST(test_join_as_living),
        TEST(test_join_refused),
        TEST(test_join_makes_a_host),
        TEST(test_signer_refuses),
        TEST(test_signer_away),
        TEST(test_wrong_certificate),
        TEST(test_join_again),
        TEST(test_peer_gone),
        TEST(test_renew),
        TEST(test_renew_refused),
        TEST(test_judge),
        TEST(test_revoke),
        TEST(test_revoked_before),
        TEST(test_host_put_back),
        TEST(test_create_fails),
        TEST(test_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
