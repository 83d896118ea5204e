/* test_renewals.c - which hosts are asked to renew, and elmer's own certificate. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/memory/mem.h"
#include "lib/pki/renewal.h"
#include "tests/unit/elmer/membership/bed.h"

enum { CHECK_MS = 2000, DAY_S = 86400 };

/* ---- in place of lib/pki/renewal.h: no file ---- */

static struct own {
    int64_t begin_s, end_s;
    int recover_code, prepare_code, save_code;
    unsigned prepared;
    char saved[9000];
} own;

int __wrap_pki_renewal_recover(const char *dir, struct pki_certificate *facts, struct err *err);
int __wrap_pki_renewal_recover(const char *dir, struct pki_certificate *facts, struct err *err)
{
    assert_string_equal(dir, "/pki");
    *facts = (struct pki_certificate){.name = "queue", .begin_s = own.begin_s - PKI_BACKDATE_S, .end_s = own.end_s};
    return own.recover_code ? err_set(err, own.recover_code, "no pair") : 0;
}

int __wrap_pki_renewal_prepare(const char *dir, struct pki_renewal *renewal, struct err *err);
int __wrap_pki_renewal_prepare(const char *dir, struct pki_renewal *renewal, struct err *err)
{
    assert_string_equal(dir, "/pki");
    own.prepared++;
    if (own.prepare_code)
        return err_set(err, own.prepare_code, "cannot be read");
    renewal->old = mem_strdup("OLD");
    renewal->request = mem_strdup("REQUEST");
    snprintf(renewal->proof, sizeof(renewal->proof), "cc");
    return 0;
}

int __wrap_pki_renewal_save(const char *dir, const struct pki_renewal *renewal, const char *certificate,
                            struct err *err);
int __wrap_pki_renewal_save(const char *dir, const struct pki_renewal *renewal, const char *certificate,
                            struct err *err)
{
    assert_string_equal(dir, "/pki");
    assert_string_equal(renewal->old, "OLD");
    snprintf(own.saved, sizeof(own.saved), "%s", certificate);
    return own.save_code ? err_set(err, own.save_code, "disk full") : 0;
}

/* Elmer's own is fresh, so that it does not come between. */
static int setup(void **state)
{
    bed_setup(state);
    bed.settings.pki = "/pki";
    own = (struct own){.begin_s = FAKE_WALL_MS / 1000, .end_s = FAKE_WALL_MS / 1000 + LIFE_S};
    return 0;
}

/* ---- hosts ---- */

static void linked(int host, const char *serial)
{
    fake_hosts.hosts[host].linked = true;
    fake_hosts.hosts[host].serial = serial;
    fake_hosts.hosts[host].linked_ms = FAKE_WALL_MS;
}

static size_t asked(int host)
{
    size_t count = heard_count(TO_HOST(host), WIRE_renew_wanted);
    heard_forget();
    return count;
}

static void test_due(void **state)
{
    (void)state;
    bed_stored("AA01", "ws1", 60 * DAY_S - 3); /* three seconds before two thirds are over */
    bed_stored("AA02", "ws2", 60 * DAY_S);
    bed_create();
    linked(WS1, "AA01"); /* ws2 has no link */
    fake_time_pass(CHECK_MS);
    heard_nothing();
    fake_time_pass(CHECK_MS);
    assert_int_equal(asked(WS1), 1);
    fake_time_pass(CHECK_MS);
    heard_nothing(); /* again after a while, an hour at most */
    fake_time_pass(3600000);
    assert_int_equal(asked(WS1), 1);
}

/* Until a newer one has been passed on. */
static void test_not_due_any_more(void **state)
{
    (void)state;
    bed_stored("AA01", "ws1", 60 * DAY_S);
    bed_stored("AA02", "ws1", 1);
    bed_create();
    linked(WS1, "AA01");
    fake_hosts.hosts[WS1].linked_ms = FAKE_WALL_MS - 5000; /* before it got the newest */
    fake_time_pass(2 * CHECK_MS);
    heard_nothing();
    linked(WS1, "AA01"); /* it has linked with the older since: a crash has cost it the newest */
    fake_time_pass(CHECK_MS);
    assert_int_equal(asked(WS1), 1);
}

static void test_unknown_certificate(void **state)
{
    (void)state;
    bed_stored("AA01", "ws1", 60 * DAY_S);
    bed_create();
    linked(WS1, "AA77");
    linked(WS2, NULL);
    fake_time_pass(2 * CHECK_MS);
    heard_nothing();
}

/* Each renewal starts a program: only four in one look. */
static void test_few_at_once(void **state)
{
    static char serials[10][8];
    static char names[10][8];
    (void)state;
    for (int i = 0; i < 10; i++) {
        memcpy(serials[i], "BB00", 5);
        memcpy(names[i], "many0", 6);
        serials[i][3] = names[i][4] = (char)('0' + i);
        bed_stored(serials[i], names[i], 61 * DAY_S);
        linked(fake_engine_add_host(names[i]), serials[i]);
    }
    bed_create();
    size_t total = 0;
    static const size_t expected[] = {4, 8, 10, 10};
    for (size_t look = 0; look < 4; look++) {
        fake_time_pass(CHECK_MS);
        for (int host = 0; host < fake_engine.nhosts; host++)
            total += heard_count(TO_HOST(host), WIRE_renew_wanted);
        heard_forget();
        assert_int_equal(total, expected[look]);
    }
}

/* Nobody has a certificate where no TLS is served. */
static void test_without_tls(void **state)
{
    (void)state;
    bed.settings.pki = NULL;
    bed_create();
    assert_int_equal(fake_time_next(), -1);
}

/* ---- its own ---- */

static void test_own(void **state)
{
    (void)state;
    own.begin_s -= 60 * DAY_S - 3;
    own.end_s -= 60 * DAY_S - 3;
    bed_create();
    fake_time_pass(CHECK_MS);
    assert_int_equal(fake_work_count(), 0);
    fake_time_pass(CHECK_MS);
    assert_int_equal(fake_work_count(), 1);
    fake_work_run();
    assert_int_equal(own.prepared, 1);
    int signer = bed_signer();
    const struct wire_message *wanted = heard(signer, WIRE_sign_renew);
    assert_string_equal(wanted->u.sign_renew.certificate, "OLD");
    assert_string_equal(wanted->u.sign_renew.request, "REQUEST");
    assert_string_equal(wanted->u.sign_renew.proof, "cc");
    const char *certificate = bed_certificate("queue");
    bed_issue(signer, certificate);
    assert_int_equal(fake_work_count(), 1);
    fake_work_run();
    assert_string_equal(own.saved, certificate);
    assert_int_equal(fake_hosts.reloads, 1);
    fake_time_pass(10 * CHECK_MS); /* it is a new one */
    assert_int_equal(fake_work_count(), 0);
    assert_int_equal(own.prepared, 1);
}

/* Each step may fail: it is tried again, and later. */
static void test_own_fails(void **state)
{
    (void)state;
    own.begin_s -= 80 * DAY_S;
    own.end_s -= 80 * DAY_S;
    own.prepare_code = -EIO;
    bed_create();
    fake_time_pass(CHECK_MS);
    fake_work_run();
    assert_int_equal(links_find(WIRE_FROM_SIGNER), -1);
    fake_time_pass(CHECK_MS);
    assert_int_equal(fake_work_count(), 0); /* not at once */
    own.prepare_code = 0;
    fake_time_pass(3600000);
    fake_work_run();
    links_cut((size_t)links_find(WIRE_FROM_SIGNER)); /* nobody signs */
    own.save_code = -ENOSPC;
    fake_time_pass(3600000);
    fake_work_run();
    bed_issue(bed_signer(), bed_certificate("queue"));
    fake_work_run();
    assert_int_equal(fake_hosts.reloads, 0);
    own.save_code = 0;
    fake_time_pass(3600000);
    fake_work_run();
    bed_issue(bed_signer(), bed_certificate("queue"));
    fake_work_run();
    assert_int_equal(fake_hosts.reloads, 1);
    assert_int_equal(own.prepared, 4);
}

static void test_no_own(void **state)
{
    (void)state;
    own.recover_code = -ENOENT;
    bed_create();
    fake_time_pass(10 * CHECK_MS);
    assert_int_equal(fake_work_count(), 0);
}

/* Work in another thread ends after the room is closed: nothing follows from it. */
static void test_close_while_working(void **state)
{
    (void)state;
    own.begin_s -= 80 * DAY_S;
    own.end_s -= 80 * DAY_S;
    bed_create();
    fake_time_pass(CHECK_MS);
    membership_close(bed.membership);
    fake_work_run();
    assert_int_equal(links_find(WIRE_FROM_SIGNER), -1);
}

static void test_close_while_signing(void **state)
{
    (void)state;
    own.begin_s -= 80 * DAY_S;
    own.end_s -= 80 * DAY_S;
    bed_create();
    fake_time_pass(CHECK_MS);
    fake_work_run();
    int signer = bed_signer();
    assert_true(signer >= 0);
    membership_close(bed.membership);
    links_turn();
    assert_false(links_open((size_t)signer));
    assert_int_equal(fake_work_count(), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_due),
        TEST(test_not_due_any_more),
        TEST(test_unknown_certificate),
        TEST(test_few_at_once),
        TEST(test_without_tls),
        TEST(test_own),
        TEST(test_own_fails),
        TEST(test_no_own),
        TEST(test_close_while_working),
        TEST(test_close_while_signing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
