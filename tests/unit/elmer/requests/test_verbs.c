/* test_verbs.c - who ends a job is named in its reason; signals, and who may send them. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/elmer/requests/bed.h"

/* The owner is known without asking anybody, an administrator when he has been looked up, root by his number. */
static void test_named(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed_say(bed_client(ALICE), WIRE_kill, 7);
    assert_int_equal(fake_work_count(), 0);
    assert_string_equal(fake_event(EVENT_KILL)->u.by.text, "ended by ekill of alice");
    bed_say(bed_client(CAROL), WIRE_kill, 7);
    fake_work_run();
    assert_string_equal(fake_event(EVENT_KILL)->u.by.text, "ended by ekill of carol");
    bed_say(bed_client(ROOT), WIRE_cancel, 7);
    assert_string_equal(fake_event(EVENT_CANCEL)->u.by.text, "removed from the queue by ecancel of root");
    bed_say(bed_client(ALICE), WIRE_hold, 7);
    assert_string_equal(fake_event(EVENT_HOLD)->u.by.text, "");
}

static void test_signal(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int link = bed_client(ALICE);
    fake_engine.signals = 2;
    bed_say(link, WIRE_signal_job, 7);
    assert_string_equal(heard(link, WIRE_done)->u.done.text, "signal 10 is sent to job 7");
    assert_int_equal(fake_engine.signalled, 10);
    assert_int_equal(fake_engine.signalled_job, 7);
    fake_engine.away = 1;
    bed_say(link, WIRE_signal_job, 7);
    assert_string_equal(heard(link, WIRE_done)->u.done.text,
                        "signal 10 is sent to job 7, but not to 1 of its hosts: no link");
    fake_engine.signals = 0;
    bed_say(link, WIRE_signal_job, 7);
    assert_string_equal(heard_error(link, "no host of job 7 has a link now"), WIRE_CODE_UNAVAILABLE);
    fake_engine.signals = -1;
    bed_say(link, WIRE_signal_job, 7);
    assert_string_equal(heard_error(link, "job 7 does not run"), WIRE_CODE_WRONG_STATE);
}

static void test_signal_of_others(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int bob = bed_client(BOB), carol = bed_client(CAROL);
    fake_engine.signals = 1;
    bed_say(bob, WIRE_signal_job, 7);
    fake_work_run();
    assert_string_equal(heard_error(bob, "job 7 belongs to alice"), WIRE_CODE_NOT_PERMITTED);
    assert_int_equal(fake_engine.signalled, 0);
    bed_say(carol, WIRE_signal_job, 7);
    fake_work_run();
    heard(carol, WIRE_done);
    bed_say(carol, WIRE_signal_job, 99);
    fake_work_run();
    assert_string_equal(heard_error(carol, "there is no job 99"), WIRE_CODE_NO_SUCH_JOB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_named, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_signal, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_signal_of_others, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
