/* test_elmer_requeue.c - jobs that go back into the queue when a host is lost: leases on the way, in the store, and
 * over restarts of elmer. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/daemon/elmer_lab.h"
#include "lib/base/clock.h"

/* A lease of 5 s: the next attempt waits 6.5 s from the last contact. */
#define COMMON                                                                                                         \
    "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 2s\nsettle = 0\nallocator = v1\nlevels = 1\nlease = 5s\n"
#define TWO COMMON "hosts = ws1 ws2\n"

enum { WAIT_MS = 6500, EARLY_MS = 500 /* the last contact may be older than the link's end */ };

static struct lab lab;
static struct fake ws1, ws2;

static const struct wire_job_view *only(const struct wire_message *jobs)
{
    return &jobs->u.jobs.jobs.items[0];
}

/* Order, open, start; returns the lease that was granted. */
static uint64_t run_job(struct fake *host, uint64_t job, uint32_t attempt)
{
    struct wire_message order, open, start;
    uint64_t lease_ms;
    fake_expect(host, WIRE_open, &open);
    assert_int_equal(open.u.open.job, job);
    assert_int_equal(open.u.open.attempt, attempt);
    fake_expect(host, WIRE_order, &order);
    while (order.u.order.generation < open.u.open.generation) {
        wire_message_fini(&order);
        fake_expect(host, WIRE_order, &order);
    }
    host_ordered(host, order.u.order.generation);
    host_event(host, WIRE_opened, job, attempt);
    fake_expect(host, WIRE_start, &start);
    assert_int_equal(start.u.start.attempt, attempt);
    host_started(host, job, attempt, 0);
    lease_ms = open.u.open.lease_ms;
    wire_message_fini(&order);
    wire_message_fini(&open);
    wire_message_fini(&start);
    return lease_ms;
}

static void end_job(struct fake *host, uint64_t job, uint32_t attempt)
{
    struct wire_message end;
    fake_expect(host, WIRE_end, &end);
    assert_int_equal(end.u.end.job, job);
    assert_int_equal(end.u.end.attempt, attempt);
    host_empty(host, job, attempt, 1);
    wire_message_fini(&end);
}

static void expect_state(uint64_t job, const char *state, uint64_t attempt, const char *reason_code, const char *words)
{
    struct wire_message jobs;
    lab_query_until(&ws1, job, state, &jobs);
    assert_int_equal(only(&jobs)->attempt, attempt);
    assert_string_equal(only(&jobs)->reason_code, reason_code);
    if (!strstr(only(&jobs)->reason, words))
        fail_msg("\"%s\" does not say \"%s\"", only(&jobs)->reason, words);
    wire_message_fini(&jobs);
}

/* Job 1 keeps ws1 busy, job 2 runs on ws2. Returns the lease of that. */
static uint64_t begin(const char *config, unsigned minor_of_ws2)
{
    static const char *hosts[] = {"ws1"};
    struct wire_message first = lab_submission("t1", 1), second = lab_submission("t2", 1);
    uint64_t lease_ms;
    lab_create(&lab, config);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    lab.minor = minor_of_ws2;
    host_open(&ws2, &lab, "ws2", 1, NULL);
    lab.minor = WIRE_MINOR;
    first.u.submit.hosts = (struct wire_strs){hosts, 1};
    lab_submit(&ws1, &first, NULL, 0);
    assert_int_equal(run_job(&ws1, 1, 1), 0);
    second.u.submit.requeue = true;
    lab_submit(&ws1, &second, NULL, 0);
    lease_ms = run_job(&ws2, 2, 1);
    expect_state(2, "running", 1, "", "");
    return lease_ms;
}

static void finish(void)
{
    fake_close(&ws1);
    lab_destroy(&lab);
}

/* The host does not come back: the next attempt waits for its lease, though there is room, and then it runs. */
static void test_after_the_lease(void **state)
{
    struct wire_message jobs;
    int64_t lost_ms;
    (void)state;
    assert_int_equal(begin(TWO, WIRE_MINOR), 5000);
    lost_ms = mono_ms(mono_now());
    fake_close(&ws2);
    expect_state(2, "queued", 1, "lease", "attempt 1 may still run on ws2, until its lease is over");
    host_exited(&ws1, 1, 1, 0, "command", 0, 0);
    end_job(&ws1, 1, 1);
    expect_state(1, "done", 1, "exited", "");
    assert_int_equal(run_job(&ws1, 2, 2), 5000);
    if (mono_ms(mono_now()) < lost_ms + WAIT_MS - EARLY_MS)
        fail_msg("after %d ms", (int)(mono_ms(mono_now()) - lost_ms));
    host_exited(&ws1, 2, 2, 0, "command", 3, 0);
    end_job(&ws1, 2, 2);
    lab_query_until(&ws1, 2, "done", &jobs);
    assert_int_equal(only(&jobs)->attempt, 2);
    assert_int_equal(only(&jobs)->exit_status, 3);
    wire_message_fini(&jobs);
    finish();
}

/* elmer dies while the next attempt waits. It still waits, and not when the host comes back and has nothing. */
static void test_restart_while_it_waits(void **state)
{
    struct wire_holding one = {1, 1};
    struct host_options options = {.generation = 9, .holdings = &one, .nholdings = 1};
    (void)state;
    begin(TWO, WIRE_MINOR);
    fake_close(&ws2);
    expect_state(2, "queued", 1, "lease", "ws2");
    lab_stop(&lab, SIGKILL);
    fake_close(&ws1);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, &options);
    expect_state(2, "queued", 1, "lease", "attempt 1 may still run on ws2, until its lease is over");
    host_open(&ws2, &lab, "ws2", 1, NULL);
    assert_int_equal(run_job(&ws2, 2, 2), 5000);
    fake_close(&ws2);
    finish();
}

/* ... and has it: the next one waits until that has ended there. */
static void test_host_comes_back_with_it(void **state)
{
    struct wire_holding two = {2, 1};
    struct host_options options = {.generation = 9, .holdings = &two, .nholdings = 1};
    (void)state;
    begin(TWO, WIRE_MINOR);
    fake_close(&ws2);
    expect_state(2, "queued", 1, "lease", "ws2");
    host_open(&ws2, &lab, "ws2", 1, &options);
    expect_state(2, "queued", 1, "lease", "attempt 1 may still run on ws2, where it is being ended");
    fake_expect_none(&ws2, WIRE_open, 300);
    end_job(&ws2, 2, 1);
    assert_int_equal(run_job(&ws2, 2, 2), 5000);
    fake_close(&ws2);
    finish();
}

/* elmer ends while it runs, and its lease is still that of its attempt; the host says that it has ended it. */
static void test_restart_while_it_runs(void **state)
{
    struct wire_holding one = {1, 1}, two = {2, 1};
    struct host_options first = {.generation = 9, .holdings = &one, .nholdings = 1},
                        second = {.generation = 9, .holdings = &two, .nholdings = 1};
    struct wire_message lost = {.type = WIRE_lost, .u.lost = {.job = 2, .attempt = 1, .text = "no contact"}};
    (void)state;
    begin(TWO, WIRE_MINOR);
    lab_stop(&lab, SIGTERM); /* writes what waits */
    fake_close(&ws1);
    fake_close(&ws2);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, &first);
    host_open(&ws2, &lab, "ws2", 1, &second);
    expect_state(2, "running", 1, "", "");
    fake_send(&ws2, &lost);
    end_job(&ws2, 2, 1);
    run_job(&ws2, 2, 2);
    expect_state(2, "running", 2, "", "");
    fake_close(&ws2);
    finish();
}

/* elmer is started without the host. Without requeue this ends a job; here the next attempt waits for the lease. */
static void test_host_taken_out(void **state)
{
    int64_t begin_ms;
    (void)state;
    begin(TWO, WIRE_MINOR);
    lab_stop(&lab, SIGTERM);
    fake_close(&ws1);
    fake_close(&ws2);
    snprintf(lab.config, sizeof(lab.config), "%s", COMMON "hosts = ws1\n");
    lab_configure(&lab);
    begin_ms = mono_ms(mono_now());
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, &(struct host_options){.generation = 9}); /* and job 1 is lost */
    expect_state(2, "queued", 1, "lease", "on ws2, until its lease is over");
    end_job(&ws1, 1, 1);
    expect_state(1, "done", 1, "lost", "");
    lab_stop(&lab, SIGKILL); /* that is in the store, too */
    fake_close(&ws1);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, &(struct host_options){.generation = 20});
    assert_int_equal(run_job(&ws1, 2, 2), 5000);
    assert_true(mono_ms(mono_now()) >= begin_ms + WAIT_MS);
    finish();
}

/* An rsd that cannot hold a lease runs the job, and that is its last attempt. */
static void test_older_rsd(void **state)
{
    (void)state;
    assert_int_equal(begin(TWO, WIRE_LEASE_MINOR - 1), 0);
    fake_close(&ws2);
    expect_state(2, "done", 1, "host-lost", "ws2");
    finish();
}

/* A kill is a kill: it does not go again. */
static void test_killed(void **state)
{
    struct wire_message kill = {.type = WIRE_kill, .u.kill.job = 2}, answer;
    (void)state;
    begin(TWO, WIRE_MINOR);
    host_relay(&ws1, 7, 2001, "alice", &kill);
    host_expect_relayed(&ws1, 7, WIRE_done, &answer);
    wire_message_fini(&answer);
    fake_close(&ws2);
    expect_state(2, "done", 1, "killed", "");
    finish();
}

/* What a host counts its leases from is given on its link only when that is its link: nobody counts others. */
static void test_contacts(void **state)
{
    struct wire_message ping = {.type = WIRE_ping}, pong;
    (void)state;
    lab_create(&lab, TWO);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    fake_open(&ws2, &lab, "host.sock"); /* and no host_hello */
    fake_send(&ws1, &ping);
    fake_expect(&ws1, WIRE_pong, &pong);
    assert_int_equal(pong.id, ping.id);
    wire_message_fini(&pong);
    fake_send(&ws2, &ping);
    fake_expect(&ws2, WIRE_pong, &pong);
    assert_int_equal(pong.id, 0);
    wire_message_fini(&pong);
    fake_close(&ws2);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_after_the_lease),
        cmocka_unit_test(test_restart_while_it_waits),
        cmocka_unit_test(test_host_comes_back_with_it),
        cmocka_unit_test(test_restart_while_it_runs),
        cmocka_unit_test(test_host_taken_out),
        cmocka_unit_test(test_older_rsd),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_contacts),
    };
    return cmocka_run_group_tests_name("requeue", tests, NULL, NULL);
}
