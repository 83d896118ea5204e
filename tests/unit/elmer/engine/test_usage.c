/* test_usage.c - what a host says that a job has used, as far as it can know, and as far as that can be. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"

/* Only a host of the attempt can know, and its processors can have computed since they were given only. */
static void test_judged(void **state)
{
    (void)state;
    assert_int_equal(bed_create(), 0);
    engine_begin(bed.engine);
    bed_up(0, 2, NULL, 0);
    bed_up(1, 1, NULL, 0);
    const struct engine_job *job = bed_submit(1, 3, true);
    bed_up(2, 1, NULL, 0); /* too late to get some of it */
    bed_event(EVENT_OPENED, 0, 1, 1, 0);
    bed_event(EVENT_OPENED, 0, 1, 1, 1);
    bed_event(EVENT_LAUNCHED, 0, 1, 1, 0);
    fake_time_skip(10000);
    bed_event(EVENT_KILL, 2, 1, 0, 0);
    fake_time_skip(10000);
    size_t before = fake_store.nputs;
    assert_true(engine_emptied(bed.engine, 2, 1, 1, 1, 4096));
    assert_int_equal(job->nusage, 0);
    assert_int_equal(fake_store.nputs, before); /* nothing is written */
    engine_emptied(bed.engine, 0, 1, 1, 1e9, -5);
    assert_int_equal(job->nusage, 1);
    assert_true(job->usage[0].cpu_seconds > 40 && job->usage[0].cpu_seconds < 43); /* 20 s on 2 processors */
    assert_int_equal(job->usage[0].memory_peak_bytes, -1);
    engine_emptied(bed.engine, 1, 1, 1, 20, 4096);
    assert_true(job->usage[1].cpu_seconds > 19.9 && job->usage[1].cpu_seconds < 20.1);
    assert_int_equal(bed_state(1), JOB_DONE);
    fake_time_skip(1000000);
    engine_emptied(bed.engine, 0, 1, 1, 1e9, 1); /* it ended long ago */
    assert_true(job->usage[0].cpu_seconds < 43);
}

/* A lost host comes back after the job was cancelled. */
static void test_late(void **state)
{
    (void)state;
    assert_int_equal(bed_create(), 0);
    engine_begin(bed.engine);
    bed_up(0, 1, NULL, 0);
    const struct engine_job *job = bed_submit(1, 1, true);
    bed_up(1, 1, NULL, 0);
    fake_time_skip(5000);
    bed_event(EVENT_HOST_DOWN, 0, 0, 0, 0);
    bed_event(EVENT_HOLD, 0, 1, 0, 0);
    bed_event(EVENT_CANCEL, 0, 1, 0, 0);
    assert_int_equal(bed_state(1), JOB_CANCELLED);
    bed_up(0, 1, &(struct core_holding){1, 1}, 1);
    engine_emptied(bed.engine, 1, 1, 1, 2, 1);
    assert_int_equal(job->nusage, 0);
    engine_emptied(bed.engine, 0, 1, 1, 2, 1);
    assert_int_equal(job->nusage, 1);
}

static const char *polls(const struct engine_job *job, uint32_t attempt)
{
    static char text[1100];
    struct arena memory = {0};
    snprintf(text, sizeof(text), "%s", polls_text(job, attempt, &memory));
    arena_fini(&memory);
    return text;
}

/* Who polls, as its hosts have said last; what is no list of ranks is none. */
static void test_polls(void **state)
{
    static const char *const wrong[] = {"0-",  "-1",   "1,",         ",1",       "1-0", "x",
                                        "1 2", "1--2", "4294967296", "99999999", "1;2"};
    (void)state;
    assert_int_equal(bed_create(), 0);
    engine_begin(bed.engine);
    bed_up(0, 2, NULL, 0);
    bed_up(1, 1, NULL, 0);
    const struct engine_job *job = bed_submit(1, 3, true);
    bed_up(2, 1, NULL, 0); /* it has no part of it */
    bed_event(EVENT_OPENED, 0, 1, 1, 0);
    bed_event(EVENT_OPENED, 0, 1, 1, 1);
    bed_event(EVENT_LAUNCHED, 0, 1, 1, 0);
    assert_string_equal(polls(job, 1), "");
    engine_used(bed.engine, 0, 1, 1, 0, "5,1-2,8");
    engine_used(bed.engine, 2, 1, 1, 0, "9");
    engine_used(bed.engine, 0, 1, 2, 0, "9"); /* no such attempt */
    assert_string_equal(polls(job, 1), "1-2,5,8");
    engine_used(bed.engine, 1, 1, 1, 0, "0,3-4,6-7");
    assert_string_equal(polls(job, 1), "0-8");
    assert_string_equal(polls(job, 2), "");
    engine_used(bed.engine, 0, 1, 1, 0, "");
    assert_string_equal(polls(job, 1), "0,3-4,6-7");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        engine_used(bed.engine, 1, 1, 1, 0, "3");
        assert_string_equal(polls(job, 1), "3");
        engine_used(bed.engine, 1, 1, 1, 0, wrong[i]);
        assert_string_equal(polls(job, 1), "");
    }
    engine_used(bed.engine, 1, 1, 1, 0, "3");
    bed_event(EVENT_KILL, 2, 1, 0, 0);
    engine_emptied(bed.engine, 0, 1, 1, 1, 1);
    engine_emptied(bed.engine, 1, 1, 1, 1, 1);
    assert_int_equal(bed_state(1), JOB_DONE);
    assert_string_equal(polls(job, 1), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_judged, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_late, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_polls, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
