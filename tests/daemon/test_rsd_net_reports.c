/* test_rsd_net_reports.c - what the network half reports of the host, and how old it says that is. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/wire/channel.h"
#include "tests/daemon/rsd_net_lab.h"
#include "tests/unit/peer.h"

/* ---- tests ---- */

/* Reports until one shows a busy processor 0 (or a job on processor 1); its values. */
static struct wire_message report_with(struct world *w, bool job)
{
    for (int i = 0; i < 100; i++) {
        struct wire_message report = peer_expect(&w->elmer, WIRE_report);

        assert_int_equal(report.u.report.busy.count, 2);
        assert_int_equal(report.u.report.jobs.count, 2);
        if ((job ? report.u.report.jobs.items[1] : report.u.report.busy.items[0]) > 0)
            return report;
        wire_message_fini(&report);
    }
    fail_msg("no report shows it");
    abort();
}

static void test_reports(void **data)
{
    struct world *w = *data;
    uint64_t cpus[] = {1};
    struct wire_message open = {.type = WIRE_open, .u.open = {.job = 7, .attempt = 1, .user = "x", .cpus = {cpus, 1}}};
    struct wire_message empty = {.type = WIRE_empty,
                                 .u.empty = {.job = 7, .attempt = 1, .cpu_seconds = 0.05, .memory_peak_bytes = -1}};
    struct wire_message report;

    greet(w);
    peer_expect_gone(&w->elmer, WIRE_report);
    write_file(w, "stat", "cpu0 160 10 5 325 0 0 0 0 0 0\ncpu1 200 0 0 300 0 0 0 0 0 0\n");
    report = report_with(w, false);
    assert_true(fabs(report.u.report.busy.items[0] - 0.75) < 1e-6); /* 75 of 100 ticks */
    assert_true(report.u.report.busy.items[1] < 1e-6);
    assert_true(report.u.report.interval_ms >= REPORT_MS / 2);
    wire_message_fini(&report);
    peer_send(&w->elmer, &open);
    peer_expect_gone(&w->root, WIRE_open);
    write_file(w, "jobs/7.1/job/cpu.stat", "usage_usec 30000\nuser_usec 20000\n");
    report = report_with(w, true);
    assert_true(fabs(report.u.report.jobs.items[1] * (double)report.u.report.interval_ms - 30) < 1.5);
    assert_true(report.u.report.jobs.items[0] < 1e-6);
    wire_message_fini(&report);
    peer_send(&w->root, &empty); /* its last 20 ms */
    peer_expect_gone(&w->elmer, WIRE_empty);
    report = report_with(w, true);
    assert_true(fabs(report.u.report.jobs.items[1] * (double)report.u.report.interval_ms - 20) < 1.5);
    wire_message_fini(&report);
}

/* A report says which ping was heard last, and how long before the end of its interval. */
static void test_age_of_reports(void **data)
{
    struct world *w = *data;
    struct wire_message ping = {.type = WIRE_ping, .id = 4711}, report;
    int64_t welcome_ms, asked_ms = 0;
    int seen = 0;

    welcome_ms = mono_ms(mono_now());
    greet(w);
    for (int i = 0; i < 200 && seen < 2; i++) {
        int64_t now_ms, since_ms;

        report = peer_expect(&w->elmer, WIRE_report);
        now_ms = mono_ms(mono_now());
        since_ms = (int64_t)report.u.report.since_heard_ms;
        if (seen == 0) {
            assert_int_equal(report.u.report.heard, 0);
            assert_true(since_ms <= now_ms - welcome_ms);
            asked_ms = now_ms;
            peer_send(&w->elmer, &ping);
            peer_expect_gone(&w->elmer, WIRE_pong);
            seen++;
        } else if (report.u.report.heard == 4711) {
            assert_true(since_ms <= now_ms - asked_ms);
            seen++;
        }
        wire_message_fini(&report);
    }
    assert_int_equal(seen, 2);
}

/* What cannot be read for a moment must not keep the host from reporting for ever: v2 would never use it. */
static void test_reports_after_a_failed_look(void **data)
{
    struct world *w = *data;
    struct channel client;
    struct wire_message report;
    char path[108];

    path_in(w, "stat", path);
    assert_int_equal(unlink(path), 0);
    greet(w);
    client_connect(w, &client);
    client_kill(&client, 1, 1);
    (void)expect_relay(w, 1, 1); /* so it has taken the welcome, and looked */
    write_file(w, "stat", stat_text);
    report = peer_expect(&w->elmer, WIRE_report);
    assert_int_equal(report.u.report.busy.count, 2);
    wire_message_fini(&report);
    channel_fini(&client);
}

int main(void)
{
#define WITH_RSD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_RSD(test_reports),
        WITH_RSD(test_age_of_reports),
        WITH_RSD(test_reports_after_a_failed_look),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
