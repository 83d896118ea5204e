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
#include "tests/unit/elmer/hosts/warned.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_not_kept, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
