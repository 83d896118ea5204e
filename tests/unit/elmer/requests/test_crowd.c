/* test_crowd.c - one user with very many uids, of which each has its own limits. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/requests/bed.h"

enum { SUBORDINATE = 100000, PLACES = 8192, KEPT = 64 };

/* An administrator is known once he has asked for something that needs it. */
static void let_be_known(void)
{
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    const int link = bed_client(CAROL);
    bed_say(link, WIRE_kill, 7);
    fake_work_run();
    bed_answer(fake_event(EVENT_KILL), ANSWER_OK, 7);
    links_cut((size_t)link);
    heard_forget();
}

/* All places are taken but those for who must be able to help. */
static void test_own_socket(void **state)
{
    (void)state;
    let_be_known();
    for (uint32_t i = 0; i < PLACES; i++)
        assert_true(bed_client(SUBORDINATE + i) >= 0);
    assert_int_equal(bed_client(SUBORDINATE + PLACES), -1);
    assert_int_equal(bed_client(BOB), -1);
    assert_true(bed_client(CAROL) >= 0);
    for (int i = 1; i < KEPT; i++)
        assert_true(bed_client(ROOT) >= 0);
    assert_int_equal(bed_client(ROOT), -1);
    links_cut(0);
    assert_int_equal(bed_client(BOB), -1); /* those that help have places of others now */
    heard_forget();
}

/* A host that names one uid after the other is told so, whatever name services do; others are not held up by it. */
static void test_of_a_host(void **state)
{
    enum { LOOKUPS = 64 };
    struct wire_message kill = {.type = WIRE_kill, .id = 3, .u.kill = {.job = 7}};
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    for (uint32_t i = 0; i < LOOKUPS; i++)
        bed_relay(WS1, i, SUBORDINATE + i, "x", &kill);
    heard_nothing();
    bed_relay(WS1, LOOKUPS, SUBORDINATE + LOOKUPS, "x", &kill);
    assert_non_null(strstr(bed_relayed(WS1, LOOKUPS), "too many users of this host at once"));
    bed_relay(WS2, 1, BOB, "bob", &kill);
    heard_nothing();
    heard_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_socket, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_of_a_host, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
