/* test_clock.c - certificates whose time is not now, by a clock of elmer's host that may be wrong. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/net/tls.h"
#include "tests/unit/elmer/hosts/bed.h"
#include "tests/unit/elmer/fakes/warned.h"

#define DAY_MS INT64_C(86400000)

/* Of ws1, as TLS shows it. */
static int judge(int64_t begin_ms, int64_t end_ms, char *text, size_t size)
{
    int64_t now = FAKE_WALL_MS + fake_time.passed_ms + fake_time.wall_ms;
    struct tls_peer peer = {.name = "ws1", .serial = "AB", .not_before = {begin_ms}, .not_after = {end_ms}};
    struct err err = ERR_INIT;
    peer.untimely = now < begin_ms ? "it begins later" : now > end_ms ? "it ended before" : NULL;
    int result = links_judge(&peer, &err);
    snprintf(text, size, "%s", err.text);
    return result;
}

static const char *reason_of(int host)
{
    static struct wire_host_view view;
    hosts_view(bed.hosts, host, &view);
    return view.reason;
}

/* The battery of its clock is empty: elmer lives in the year of the mainboard, and knows that certificate. */
static void test_behind(void **state)
{
    char text[1200];
    (void)state;
    *warned = 0;
    assert_int_equal(judge(FAKE_WALL_MS + DAY_MS, FAKE_WALL_MS + 90 * DAY_MS, text, sizeof(text)), 0);
    assert_string_equal(warned, "host=ws1 is let in although it begins later");
    bed_expect("judge ws1");
    *warned = 0;
    fake_time.wall_ms = 2 * DAY_MS; /* the clock is set: not a word more */
    assert_int_equal(judge(FAKE_WALL_MS + DAY_MS, FAKE_WALL_MS + 90 * DAY_MS, text, sizeof(text)), 0);
    assert_string_equal(warned, "");
    bed_expect("judge ws1");
}

/* Ahead: refused, but as long as the host tries its jobs do not end. */
static void test_ahead(void **state)
{
    char text[1200];
    (void)state;
    links_cut((size_t)bed_ws1_up());
    fake_event(EVENT_HOST_SILENT);
    bed_expect("cut ws1");
    for (int i = 0; i < 10; i++) {
        fake_time_pass(TIMEOUT_MS - 1);
        assert_int_equal(judge(FAKE_WALL_MS - DAY_MS, FAKE_WALL_MS - 1, text, sizeof(text)), -EPERM);
        assert_string_equal(text, "it ended before");
        fake_no_event();
    }
    assert_non_null(strstr(reason_of(WS1), "it ended before"));
    fake_time_pass(TIMEOUT_MS); /* it has stopped trying */
    assert_int_equal(fake_event(EVENT_HOST_DOWN)->host, WS1);
    *bed.log = 0;
}

/* A clock that is wrong for a day is right. */
static void test_ended(void **state)
{
    char text[1200];
    (void)state;
    links_cut((size_t)bed_ws1_up());
    fake_event(EVENT_HOST_SILENT);
    for (int64_t passed = 0; passed <= DAY_MS; passed += TIMEOUT_MS - 1) {
        assert_int_equal(judge(FAKE_WALL_MS - DAY_MS, FAKE_WALL_MS - 1, text, sizeof(text)), -EPERM);
        *bed.log = 0;
        fake_time_pass(TIMEOUT_MS - 1);
    }
    fake_no_event();
    judge(FAKE_WALL_MS - DAY_MS, FAKE_WALL_MS - 1, text, sizeof(text));
    fake_time_pass(TIMEOUT_MS);
    assert_int_equal(fake_event(EVENT_HOST_DOWN)->host, WS1);
    *bed.log = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_behind, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_ahead, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_ended, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
