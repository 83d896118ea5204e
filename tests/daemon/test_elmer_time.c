/* test_elmer_time.c - limits of jobs on the wire: the signal before, the end, and hosts that are too old for them. */
#include "config.h"

#include "tests/daemon/elmer_lab.h"

#include <stdlib.h>
#include <string.h>

#include "tests/daemon/elmer_steps.h"

#define TWO LOCAL "hosts = ws1 ws2\n"

static const char *second[] = {"ws2"};

/* USR1 a second after the start, the end after another one; the host is told both. */
static void test_time(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message submission = lab_submission("t", 1), message;

    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submission.u.submit.time_limit_ms = 2000;
    submission.u.submit.warning_signal = 10;
    submission.u.submit.warning_ms = 1000;
    lab_submit(&host, &submission, NULL, 0);
    run_job(&host, &host, 1, 1);
    fake_expect(&host, WIRE_signal, &message);
    assert_int_equal(message.u.signal.job, 1);
    assert_int_equal(message.u.signal.attempt, 1);
    assert_int_equal(message.u.signal.number, 10);
    wire_message_fini(&message);
    fake_expect(&host, WIRE_end, &message);
    wire_message_fini(&message);
    host_empty(&host, 1, 1, 0.5);
    lab_query_until(&host, 1, "done", &message);
    assert_string_equal(only(&message)->reason_code, "time-limit");
    assert_string_equal(only(&message)->reason, "it has run for its time limit of 2s");
    assert_int_equal(only(&message)->time_limit_ms, 2000);
    wire_message_fini(&message);
    fake_close(&host);
    lab_destroy(&lab);
}

/* What the host's reports say. */
static void test_cpu(void **state)
{
    static double busy[] = {0.5}, jobs[] = {0.5};
    static struct wire_used used[] = {{7, 1, 9000000, ""}, {1, 1, 0, ""}};
    struct lab lab;
    struct fake host;
    struct wire_message submission = lab_submission("t", 1), message;

    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    submission.u.submit.cpu_limit_ms = 1000;
    lab_submit(&host, &submission, NULL, 0);
    run_job(&host, &host, 1, 1);
    for (used[1].cpu_ms = 400; used[1].cpu_ms <= 1200; used[1].cpu_ms += 400) {
        struct wire_message report = {.type = WIRE_report};

        report.u.report.interval_ms = 100;
        report.u.report.busy = (struct wire_doubles){busy, 1};
        report.u.report.jobs = (struct wire_doubles){jobs, 1};
        report.u.report.used.items = used;
        report.u.report.used.count = 2;
        fake_send(&host, &report);
    }
    fake_expect(&host, WIRE_end, &message);
    wire_message_fini(&message);
    host_empty(&host, 1, 1, 1.2);
    lab_query_until(&host, 1, "done", &message);
    assert_string_equal(only(&message)->reason_code, "cpu-limit");
    wire_message_fini(&message);
    fake_close(&host);
    lab_destroy(&lab);
}

/* A host from before can end a job, but neither signal it nor say what it uses. */
static void test_older_host(void **state)
{
    struct lab lab;
    struct fake host, older;
    struct wire_message submission = lab_submission("a", 1), message;

    (void)state;
    lab_create(&lab, TWO);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    lab.minor = WIRE_LIMIT_MINOR - 1;
    host_open(&older, &lab, "ws2", 1, NULL);
    submission.u.submit.hosts = (struct wire_strs){second, 1};
    submission.u.submit.cpu_limit_ms = 1000;
    lab_submit(&host, &submission, NULL, 0);
    lab_query_until(&host, 1, "ending", &message);
    assert_string_equal(only(&message)->reason_code, "start-failed");
    assert_non_null(
        strstr(only(&message)->reason, "ws2: its rsd speaks version 1.5 and cannot do its part for --cpu-time"));
    wire_message_fini(&message);
    host_empty(&older, 1, 1, 0);
    submission = lab_submission("b", 1);
    submission.u.submit.hosts = (struct wire_strs){second, 1};
    submission.u.submit.time_limit_ms = 1000;
    lab_submit(&host, &submission, NULL, 0);
    run_job(&older, &host, 2, 1);
    fake_expect(&older, WIRE_end, &message);
    assert_int_equal(message.u.end.job, 1); /* said again, or once */
    wire_message_fini(&message);
    fake_close(&host);
    fake_close(&older);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_older_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
