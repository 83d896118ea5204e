/* test_crowd.c - one user with very many uids, of which each has its own limits. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_socket, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
