/* test_top.c - what is said to those who move their jobs, and how often they may. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/elmer/requests/bed.h"

/* What is advised would help: held jobs are before it, too. */
static void test_refused(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_QUEUED);
    int link = bed_client(ALICE);
    bed_say(link, WIRE_top, 7);
    bed_answer(fake_event(EVENT_TOP), ANSWER_TOO_MANY, 7);
    assert_string_equal(heard_error(link, "job 7 is not moved: more than 4096 jobs of its owner are before it, held "
                                          "ones included. Cancel some of them, or move one that is further ahead"),
                        WIRE_CODE_REFUSED);
}

static int64_t takes_ms;

static void takes_long(const struct event *event)
{
    if (event->type == EVENT_TOP)
        fake_time_pass(takes_ms);
}

static void moved(int link)
{
    bed_say(link, WIRE_top, 7);
    bed_answer(fake_event(EVENT_TOP), ANSWER_OK, 7);
    heard(link, WIRE_done);
}

/* A tenth of elmer's time, whoever asks. */
static void test_share(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_HELD)->state.ahead = 100000;
    int link = bed_client(ALICE), other = bed_client(ALICE);
    fake_engine.on_event = takes_long;
    takes_ms = 20;
    moved(link);
    fake_time_pass(9 * takes_ms - 1);
    bed_say(other, WIRE_top, 7);
    fake_no_event();
    assert_string_equal(heard_error(other,
                                    "elmer has moved another job a moment ago, which takes long in such a queue: "
                                    "try again"),
                        WIRE_CODE_UNAVAILABLE);
    bed_say(other, WIRE_hold, 7);
    bed_answer(fake_event(EVENT_HOLD), ANSWER_OK, 7); /* all else goes on */
    heard(other, WIRE_done);
    fake_time_pass(1);
    moved(other);
}

/* Nobody is told to try again for a job that has few before it, however slow the machine. */
static void test_short_queue(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_QUEUED)->state.ahead = 999;
    int link = bed_client(ALICE);
    fake_engine.on_event = takes_long;
    takes_ms = 20;
    for (int i = 0; i < 3; i++)
        moved(link);
}

/* Tasks that leave arrays for it are jobs like any other; administrators have no limit. */
static void test_limits(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_QUEUED)->job.submission.u.submit.hosts.count = 1024;
    int link = bed_client(ALICE);
    fake_engine.queued = (uint32_t)bed.settings.user_queued - 1;
    fake_engine.splits = 1;
    moved(link);
    fake_engine.splits = 2;
    bed_say(link, WIRE_top, 7);
    fake_no_event();
    heard_error(link, "user alice has 2 jobs in the queue and may have 3 (user_queued in elmer.conf), and each task "
                      "that is moved, or leaves its array for what goes before it, becomes one more, here 2: wait");
    int carol = bed_client(CAROL);
    bed_say(carol, WIRE_top, 7);
    fake_work_run(); /* her groups */
    bed_answer(fake_event(EVENT_TOP), ANSWER_OK, 7);
    heard(carol, WIRE_done);
    fake_engine.queued = 0;
    fake_engine.bytes = (size_t)bed.settings.user_memory << 20;
    bed_say(link, WIRE_top, 7);
    fake_no_event();
    heard_error(link, "the jobs of user alice would take");
    fake_engine.splits = 0;
    moved(link);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_refused), TEST(test_share), TEST(test_short_queue), TEST(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
