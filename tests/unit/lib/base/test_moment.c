/* test_moment.c - times as people write them, where the clock was put back an hour some weeks before. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "lib/base/moment.h"

#define NOW_S INT64_C(1795511045) /* 2026-11-24 09:04:05 UTC, an hour later in Berlin */

static void test_moments(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } table[] = {
        {"2026-11-24", 1795474800000},
        {"2026-11-24 08:00", 1795503600000},
        {"2026-11-24 08:00:07", 1795503607000},
        {"2026-11-24T08:00:07", 1795503607000},
        {"2026-11-24T08:00", 1795503600000},
        {"2026-10-24", 1792792800000},
        {"2026-03-29 02:30", 1774747800000}, /* which no clock has shown, on a day that there was */
        {"2028-02-29", 1835391600000},
        {"08:00", 1795503600000},
        {"08:00:07", 1795503607000},
        {"today", 1795474800000},
        {"yesterday", 1795388400000},
        {"@1234567890", 1234567890000},
        {"@1234567890.25", 1234567890250},
        {"1s", (NOW_S - 1) * 1000},
        {"2h30m", (NOW_S - 9000) * 1000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wall moment = {0};
        if (!moment_parse(table[i].text, (struct wall){NOW_S * 1000}, &moment) || moment.ms != table[i].ms)
            fail_msg("%s: %lld, not %lld", table[i].text, (long long)moment.ms, (long long)table[i].ms);
    }
}

static void test_none(void **state)
{
    static const char *const table[] = {"",
                                        "lately",
                                        "2026-11-24 08",
                                        "2026-13-01",
                                        "08",
                                        "25:00",
                                        "today ",
                                        "0s",
                                        "367d",
                                        "30m2h",
                                        "1m1m",
                                        "2h30",
                                        "-1h",
                                        "@",
                                        "@x",
                                        "@12.",
                                        "@1e5",
                                        "@-1",
                                        "@1 ",
                                        "@1234567890123",
                                        "tomorrow",
                                        "2026-02-31",
                                        "2026-02-29 08:00"};
    struct wall moment;
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (moment_parse(table[i], (struct wall){NOW_S * 1000}, &moment))
            fail_msg("\"%s\" is taken for %lld", table[i], (long long)moment.ms);
}

static void test_spans(void **state)
{
    (void)state;
    assert_int_equal(moment_span_s("366d"), 366 * 86400);
    assert_int_equal(moment_span_s("1d2h3m4s"), 93784);
    assert_int_equal(moment_span_s("365d25h"), 0);
    assert_int_equal(moment_span_s("999999999s"), 0);
    assert_int_equal(moment_span_s("h"), 0);
    assert_int_equal(moment_span_s(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_spans),
    };
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1); /* Berlin, without its file */
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
