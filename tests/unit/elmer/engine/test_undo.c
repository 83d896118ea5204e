/* test_undo.c - submissions that are refused because the store cannot be written leave nothing behind. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"

/* Request number, of a job or a notice that waits for this job. */
static const struct engine_job *submit_after(uint64_t number, bool notice, enum after_kind kind, uint64_t job)
{
    static const char *command[] = {"/bin/true"};
    static const int here[] = {0};
    const struct core_after after = {.job = job, .kind = kind};
    char item[30], token[30];
    const char *items[] = {item};
    struct wire_message message = {.type = WIRE_submit,
                                   .u.submit = {.nprocs = 1,
                                                .notice = notice,
                                                .name = "x",
                                                .dir = "/d",
                                                .token = token,
                                                .after = {items, 1},
                                                .command = {command, 1}}};
    struct event event = {.type = EVENT_SUBMIT,
                          .request = number,
                          .u.submit = {.uid = 5,
                                       .nprocs = 1,
                                       .notice = notice,
                                       .hosts = notice ? here : NULL,
                                       .nhosts = notice,
                                       .after = &after,
                                       .nafter = 1}};
    struct wire_message taken;
    char *json;
    size_t size;
    snprintf(item, sizeof(item), "%s:%" PRIu64, kind == AFTER_START ? "start" : kind == AFTER_OK ? "ok" : "any", job);
    snprintf(token, sizeof(token), "t%" PRIu64, number);
    assert_int_equal(wire_encode(&message, WIRE_MINOR, &json, &size, &bed.err), 0);
    assert_int_equal(wire_decode(json, size, WIRE_MINOR, &taken, &bed.err), 0);
    free(json);
    const struct engine_job *submitted = engine_submit(bed.engine, &event, "alice", &taken);
    assert_non_null(submitted);
    return submitted;
}

/* The job that it tells about could never have another one. */
static void test_notice(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_running(1);
    submit_after(2, true, AFTER_START, job->id);
    assert_int_equal(job->begin_notice, 2);
    fake_store_commit();
    const struct engine_job *refused = submit_after(3, true, AFTER_ANY, job->id);
    assert_int_equal(job->end_notice, refused->id);
    assert_true(fake_store_last(refused->id)->notice);
    assert_false(fake_store_last(1)->notice);
    assert_int_equal(fake_store_last(1)->end_notice, refused->id);
    size_t held = fake_store.held;
    fake_store_fail("disk full");
    assert_true(refused->refused);
    assert_true(fake_store_last(refused->id)->dropped);
    assert_int_equal(job->end_notice, 0);
    assert_int_equal(fake_store_last(1)->end_notice, 0);
    assert_int_equal(fake_store_last(1)->begin_notice, 2); /* was accepted */
    assert_int_equal(fake_store.held, held + 2);           /* no crash comes between them */
}

/* One that is not accepted either is none to be written for it. */
static void test_notice_of_refused(void **state)
{
    (void)state;
    bed_begin(1);
    bed_submit(1, 1, false);
    submit_after(2, true, AFTER_ANY, 1);
    fake_store_fail("disk full");
    assert_true(fake_store_last(1)->dropped);
    assert_true(fake_store_last(2)->dropped);
}

/* Nothing comes of it any more that would replace its row. */
static void test_cancelled_at_once(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *failed = bed_running(1);
    bed_exited(failed->id, 3);
    engine_emptied(bed.engine, 0, failed->id, 1, 1, 1);
    fake_store_commit();
    const struct engine_job *job = submit_after(2, false, AFTER_OK, failed->id);
    assert_int_equal(bed_state(job->id), JOB_CANCELLED);
    fake_store_fail("disk full");
    assert_true(job->refused);
    assert_true(fake_store_last(job->id)->dropped);
    assert_int_equal(bed_state(job->id), JOB_CANCELLED);
    assert_false(fake_store_last(failed->id)->dropped);
}

/* The same of one that was killed while it waited for its commit. */
static void test_killed(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_submit(1, 1, false);
    bed_event(EVENT_KILL, 0, job->id, 0, 0);
    fake_store_fail("disk full");
    assert_true(fake_store_last(job->id)->dropped);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_notice), TEST(test_notice_of_refused), TEST(test_cancelled_at_once),
                                       TEST(test_killed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
