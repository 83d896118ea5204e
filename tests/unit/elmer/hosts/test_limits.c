/* test_limits.c - a host that cannot do its part for the limits of the jobs that it has. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elmer/hosts/bed.h"
#include "tests/unit/elmer/fakes/warned.h"

/* Its rsd was replaced by an older one, which cannot do what the jobs there need. */
static void test_not_kept(void **state)
{
    static const struct wire_holding holdings[] = {{7, 2}, {8, 1}, {9, 1}, {10, 2}, {11, 1}};
    struct greeting greeting = {.host = "ws1", .holdings = holdings, .nholdings = 5, .minor = WIRE_LIMIT_MINOR - 1};
    (void)state;
    for (size_t i = 0; i < 4; i++) { /* nothing is known of 11 any more */
        struct fake_job *job = fake_engine_add_job(holdings[i].job, 5, JOB_RUNNING);
        job->state.attempt = i == 0 ? 2 : 1; /* of 10 there is another attempt */
        job->job.submission.u.submit.time_limit_ms = 60000;
        job->job.submission.u.submit.cpu_limit_ms = i == 0 || i == 3 ? 60000 : 0;
        job->job.submission.u.submit.warning_signal = i == 2 ? 10 : 0;
    }
    bed_up(&greeting);
    assert_non_null(strstr(warned, "host=ws1 job=7 has --cpu-time or --signal"));
    assert_null(strstr(warned, "job=8"));
    assert_non_null(strstr(warned, "job=9 has --cpu-time or --signal, for which its rsd is too old (version 1.5)"));
    assert_null(strstr(warned, "job=10"));
    assert_null(strstr(warned, "job=11"));
    *warned = 0;
    greeting.minor = WIRE_LIMIT_MINOR;
    bed_up(&greeting);
    assert_string_equal(warned, "");
}

static void open_there(int host, struct fake_job *job)
{
    fake_engine.orders.open(host, &job->job, &job->state, 33, fake_engine.orders_data);
}

/* What was asked for goes with it, and to nobody who would not hold the job to it without a word. */
static void test_memory(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    struct fake_job *job = job_on_both();
    job->job.submission.u.submit.memory_bytes = job->state.memory_bytes = (uint64_t)2 << 30;
    open_there(WS1, job);
    assert_true(heard(link, WIRE_open)->u.open.memory_bytes == (uint64_t)2 << 30);
    links_cut((size_t)link);
    fake_event(EVENT_HOST_SILENT);
    link = bed_up(&(struct greeting){.host = "ws1", .minor = WIRE_MEMORY_MINOR - 1});
    open_there(WS1, job);
    assert_non_null(strstr(fake_event(EVENT_OPEN_FAILED)->u.failed.text, "cannot do its part for -m"));
    heard_nothing();
}

/* The kernel of a host has ended it: the job ends with that reason; the exits that follow are told as any. */
static void test_memory_limit(void **state)
{
    struct wire_message struck = {.type = WIRE_memory_struck,
                                  .u.memory_struck = {.job = 7, .attempt = 2, .bytes = ((uint64_t)4 << 30) - 4096}};
    (void)state;
    int link = bed_ws1_up();
    say(link, &struck); /* nothing is known of such a job */
    struct fake_job *job = job_on_both();
    say(link, &struck); /* it has asked for none */
    fake_no_event();
    job->state.memory_bytes = (uint64_t)2 << 30;
    say(link, &struck);
    const struct event *event = fake_event(EVENT_ABORT);
    assert_int_equal(event->job, 7);
    assert_int_equal(event->attempt, 2);
    assert_int_equal(event->host, WS1);
    assert_int_equal(event->u.failed.reason, REASON_MEMORY_LIMIT);
    assert_string_equal(event->u.failed.text, "ws1: its processes there used 3.9 GiB, and 4 GiB was asked for (2 "
                                              "processors, 2 GiB each)");
    bed_expect("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_not_kept, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_memory, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_memory_limit, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
