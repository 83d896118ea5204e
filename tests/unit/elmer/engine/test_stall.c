/* test_stall.c - starts while the store cannot be written, or hangs: no host was asked, so none has failed. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"

enum { TIMEOUT_MS = 30000, HOUR_MS = 3600000 };

/* Job 1 runs, job 2 is queued, and both are on disk. */
static void begin(void)
{
    bed.settings.core.levels = 1;
    assert_int_equal(bed.settings.core.start_timeout_ms, TIMEOUT_MS);
    bed_begin(1);
    bed_running(1);
    bed_submit(2, 1, false);
    fake_store_commit();
    assert_int_equal(bed_state(2), JOB_QUEUED);
}

/* The processor is job 2's. */
static void end_first(void)
{
    bed_exited(1, 0);
    bed_event(EVENT_EMPTY, 0, 1, 1, 0);
    assert_int_equal(bed_state(2), JOB_STARTING);
    assert_false(bed_told("open ws1 2.1"));
}

/* It is written at last, and the host has the whole time. */
static void begin_at_last(void)
{
    bed_forget_log();
    fake_store_commit();
    bed_expect("ack ws1 1.1 rank 0; ended 1; open ws1 2.1"); /* once, though it was to be sent again and again */
    fake_time_pass(TIMEOUT_MS - 1000);
    assert_int_equal(bed_state(2), JOB_STARTING);
    bed_event(EVENT_OPENED, 0, 2, 1, 0);
    fake_store_commit();
    assert_true(bed_told("launch 2"));
}

static void test_disk_full(void **state)
{
    (void)state;
    begin();
    fake_store_fail("disk full");
    end_first();
    for (int i = 0; i < HOUR_MS / 1000; i++) {
        fake_time_pass(1000);
        fake_store_fail("disk full");
        bed_forget_log(); /* its orders are said again and again */
    }
    assert_int_equal(bed_state(2), JOB_STARTING);
    fake_store_fail(NULL);
    begin_at_last();
}

/* It never says that it fails. */
static void test_disk_hangs(void **state)
{
    (void)state;
    begin();
    end_first();
    for (int i = 0; i < HOUR_MS / TIMEOUT_MS; i++) {
        fake_time_pass(TIMEOUT_MS);
        bed_forget_log();
    }
    assert_int_equal(bed_state(2), JOB_STARTING);
    begin_at_last();
}

/* It goes on just before the time would be over. */
static void test_disk_hangs_briefly(void **state)
{
    (void)state;
    begin();
    end_first();
    fake_time_pass(TIMEOUT_MS - 100);
    begin_at_last();
}

/* What a commit takes is a part of the start. */
static void test_host_that_says_nothing(void **state)
{
    (void)state;
    begin();
    end_first();
    fake_time_pass(500);
    fake_store_commit();
    assert_true(bed_told("open ws1 2.1"));
    fake_time_pass(TIMEOUT_MS - 501);
    assert_int_equal(bed_state(2), JOB_STARTING);
    fake_time_pass(1);
    assert_int_equal(bed_state(2), JOB_ENDING);
    fake_store_commit();
    assert_true(bed_told("end ws1 2.1"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_disk_full),
        TEST(test_disk_hangs),
        TEST(test_disk_hangs_briefly),
        TEST(test_host_that_says_nothing),
    };
    return cmocka_run_group_tests_name("stall", tests, NULL, NULL);
}
