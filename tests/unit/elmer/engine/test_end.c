/* test_end.c - when hosts are told that a job ends: what has exited or is killed at once, for every other reason when
 * that is on disk, or cannot be. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"

/* The process would be gone, and nobody knew why, if elmer were killed before the commit. */
static void test_end_waits(void **state)
{
    (void)state;
    bed_begin(1);
    bed_running(1);
    bed_event(EVENT_EMPTY, 0, 1, 1, 0); /* its supervisor was killed */
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_false(bed_told("end"));
    fake_store_commit();
    assert_true(bed_told("end ws1 1.1"));
}

/* The host keeps that it has exited. */
static void test_end_of_exited(void **state)
{
    (void)state;
    bed_begin(1);
    bed_running(1);
    bed_exited(1, 3);
    assert_true(bed_told("end ws1 1.1"));
}

/* A kill goes on, and is told when it is on disk; its job was accepted and is nobody's submission. */
static void test_kill_waits(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_running(1);
    bed_event(EVENT_KILL, 2, 1, 0, 0);
    assert_true(bed_told("end ws1 1.1"));
    bed_forget_log();
    bed.submission = false; /* what requests.c says of a kill */
    fake_store_fail("disk full");
    bed_expect("failed 2 accepted");
    assert_false(job->refused);
    bed.submission = true; /* even if it were taken for one: an accepted job is never undone */
    fake_store_fail("disk full");
    assert_false(job->refused);
    bed.submission = false;
    fake_store_fail(NULL);
    fake_store_commit();
    assert_true(bed_told("answer 2 ok 1"));
    assert_false(fake_store_last(1)->dropped);
}

/* Nobody waits for a store that cannot be written, or is known to fail. */
static void test_end_while_failing(void **state)
{
    (void)state;
    bed_begin(2);
    bed_running(1);
    bed_running(2);
    bed_forget_log();
    bed_event(EVENT_EMPTY, 0, 1, 1, 0);
    assert_false(bed_told("end"));
    fake_store_fail("disk full");
    assert_true(bed_told("end ws1 1.1"));
    bed_event(EVENT_EMPTY, 0, 2, 1, 0);
    assert_true(bed_told("end ws1 2.1"));
}

/* Of a job that was never accepted a kill may wait as well: it does not undo it, the submission does. */
static void test_kill_and_submission(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_submit(1, 1, false);
    bed.submission = false;
    bed_event(EVENT_KILL, 2, 1, 0, 0);
    fake_store_fail("disk full");
    assert_false(job->refused);
    bed.submission = true;
    fake_store_fail("disk full");
    assert_true(job->refused);
}

/* While the store fails ends go on, so that an attempt can be over, and the next one placed, before the first was
 * launched: that is launched when its own hosts have opened. */
static void test_launch_of_before(void **state)
{
    (void)state;
    bed_begin(1);
    bed_submit(1, 1, true);
    fake_store_commit();
    assert_true(bed_told("open ws1 1.1"));
    bed_event(EVENT_OPENED, 0, 1, 1, 0);
    fake_store_fail("disk full");
    bed_event(EVENT_EMPTY, 0, 1, 1, 0); /* its supervisor was killed */
    assert_true(bed_told("end ws1 1.1"));
    bed_event(EVENT_EMPTY, 0, 1, 1, 0); /* as it was asked to */
    assert_int_equal(bed_state(1), JOB_STARTING);
    bed_forget_log();
    fake_store_fail(NULL);
    fake_store_commit();
    assert_true(bed_told("open ws1 1.2"));
    assert_false(bed_told("launch"));
    bed_event(EVENT_OPENED, 0, 1, 2, 0);
    fake_store_commit();
    assert_true(bed_told("launch 1"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_end_waits),         TEST(test_end_of_exited),       TEST(test_kill_waits),
        TEST(test_end_while_failing), TEST(test_kill_and_submission), TEST(test_launch_of_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
