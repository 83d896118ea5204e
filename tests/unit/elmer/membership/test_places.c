/* test_places.c - how many join and renew at a time, and that neither keeps the other out. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/membership/bed.h"

static size_t signers(void)
{
    size_t count = 0;
    for (size_t i = 0; i < LINKS; i++)
        count += links_open(i);
    return count;
}

static void answer_all(void)
{
    for (size_t i = 0; i < LINKS; i++)
        links_answer(i);
}

static void cut_all(void)
{
    for (size_t i = 0; i < LINKS; i++)
        links_cut(i);
}

/* Five begin in a second, eight are there at once. */
static void test_limits(void **state)
{
    (void)state;
    bed_create();
    for (int i = 0; i < 8; i++)
        bed_join(i, "ws1");
    bed_join(8, "ws1");
    heard_error(TO_PEER(&bed.peers[8]), "too many hosts join at once");
    assert_int_equal(signers(), 5);
    answer_all();
    membership_peer_gone(bed.membership, &bed.peers[7]); /* while it waits: it never was */
    fake_time_pass(1000);
    assert_int_equal(signers(), 7);
    cut_all();
    for (int i = 0; i < 7; i++)
        assert_true(bed.peers[i].refused);
    assert_false(bed.peers[7].refused);
}

/* Who has no certificate and no token can ask to join all the same, as often as he likes. */
static void test_strangers_keep_no_renewal_out(void **state)
{
    const char *old = bed_certificate("ws1");
    (void)state;
    bed_stored(bed_serial(old), "ws1", 60 * 86400);
    bed_create();
    for (int i = 0; i < 9; i++)
        bed_join(i, "ws2");
    heard_error(TO_PEER(&bed.peers[8]), "too many hosts join at once");
    assert_int_equal(signers(), 5);
    bed.peers[9].serial = bed_serial(old);
    bed_renew(9, WS1, old);
    assert_int_equal(signers(), 6); /* it does not wait behind them either */
    answer_all();
    bed_renew(9, WS1, old);
    heard_error(TO_PEER(&bed.peers[9]), "another renewal of this host is under way");
    assert_false(bed.peers[9].closed);
    fake_time_pass(1000);
    cut_all();
}

/* Five begin in a second, six are there at once, one of each host. */
static void test_renewals_are_limited(void **state)
{
    static char names[8][8];
    (void)state;
    const char *old[8];
    for (int i = 0; i < 8; i++) {
        memcpy(names[i], "many0", 6);
        names[i][4] = (char)('0' + i);
        old[i] = bed_certificate(names[i]);
        bed_stored(bed_serial(old[i]), names[i], 60 * 86400);
        bed.peers[i].serial = bed_serial(old[i]);
    }
    int first = fake_engine_add_host(names[0]);
    for (int i = 1; i < 8; i++)
        fake_engine_add_host(names[i]);
    bed_create();
    for (int i = 0; i < 7; i++)
        bed_renew(i, first + i, old[i]);
    heard_error(TO_PEER(&bed.peers[6]), "too many hosts renew at once");
    assert_int_equal(signers(), 5);
    answer_all();
    fake_time_pass(1000);
    assert_int_equal(signers(), 6);
    cut_all();
    heard_forget();
    fake_time_pass(1000);
    bed_renew(7, first + 7, old[7]);
    assert_int_equal(signers(), 1);
    cut_all();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_limits),
        TEST(test_strangers_keep_no_renewal_out),
        TEST(test_renewals_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
