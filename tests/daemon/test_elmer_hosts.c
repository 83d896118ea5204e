/* test_elmer_hosts.c - what elmer knows of its hosts over a restart and through silence: who waits keeps his turn, a
 * drain stays, the time at a level goes on, and so does what an administrator has set. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/daemon/elmer_lab.h"
#include "lib/base/clock.h"

/* A scripted host answers pings only while the test waits for something of it, which with two of them can be long: so
 * nobody's silence is judged here but where it is the subject. */
#define TWO                                                                                                            \
    "name = ws1\nresend = 1s\nheartbeat = 20s\nhost_timeout = 60s\nsettle = 0\nallocator = v1\nlevels = 1\nhosts = "   \
    "ws1 "                                                                                                             \
    "ws2\n"

static const struct wire_job_view *only(const struct wire_message *jobs)
{
    return &jobs->u.jobs.jobs.items[0];
}

static uint64_t submit(struct fake *host, const char *token, uint64_t nprocs, const char *on)
{
    struct wire_message submission = lab_submission(token, nprocs);
    submission.u.submit.hosts = (struct wire_strs){&on, on ? 1 : 0};
    return lab_submit(host, &submission, NULL, 0);
}

/* Until the job is opened here, under an order. */
static void open_on(struct fake *host, uint64_t job)
{
    struct wire_message order, open;
    uint64_t generation = 0;
    fake_expect(host, WIRE_open, &open);
    assert_int_equal(open.u.open.job, job);
    while (generation < open.u.open.generation) {
        fake_expect(host, WIRE_order, &order);
        generation = order.u.order.generation;
        wire_message_fini(&order);
    }
    host_ordered(host, generation);
    host_event(host, WIRE_opened, job, (uint32_t)open.u.open.attempt);
    wire_message_fini(&open);
}

static void run_on(struct fake *host, uint64_t job)
{
    struct wire_message start, jobs;
    open_on(host, job);
    fake_expect(host, WIRE_start, &start);
    wire_message_fini(&start);
    host_started(host, job, 1, 0);
    lab_query_until(host, job, "running", &jobs);
    wire_message_fini(&jobs);
}

static void end_on(struct fake *host, uint64_t job, bool exited_here)
{
    struct wire_message end;
    if (exited_here)
        host_exited(host, job, 1, 0, "command", 0, 0);
    fake_expect(host, WIRE_end, &end);
    assert_int_equal(end.u.end.job, job);
    host_empty(host, job, 1, 0.1);
    wire_message_fini(&end);
}

static void expect_reason(struct fake *host, uint64_t job, const char *code, const char *words)
{
    struct wire_message jobs;
    lab_query(host, job, &jobs);
    assert_string_equal(only(&jobs)->state, "queued");
    assert_string_equal(only(&jobs)->reason_code, code);
    if (!strstr(only(&jobs)->reason, words))
        fail_msg("\"%s\" does not contain \"%s\"", only(&jobs)->reason, words);
    wire_message_fini(&jobs);
}

static void drain(const struct lab *lab, const char *name, bool drained)
{
    struct wire_message m = {.type = WIRE_drain, .u.drain = {.host = name, .drained = drained, .reason = ""}}, answer;
    lab_ask_as_root(lab, &m, WIRE_done, &answer);
    wire_message_fini(&answer);
}

/* elmer is killed while a job waits for both hosts and a later one for one of them. */
static void test_restart_keeps_the_order(void **state)
{
    struct lab lab;
    struct fake ws1, ws2;
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.generation = 3, .holdings = &holding, .nholdings = 1};
    (void)state;
    lab_create(&lab, TWO);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    submit(&ws1, "a", 1, "ws1");
    run_on(&ws1, 1);
    submit(&ws1, "wide", 2, NULL);
    submit(&ws1, "narrow", 1, NULL);
    lab_stop(&lab, SIGKILL);
    fake_close(&ws1);
    fake_close(&ws2);
    lab_start(&lab);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    fake_expect_none(&ws2, WIRE_open, 300);
    expect_reason(&ws2, 2, "awaiting-hosts", "hosts that were up before the restart");
    expect_reason(&ws2, 3, "awaiting-hosts", "hosts that were up before the restart");
    host_open(&ws1, &lab, "ws1", 1, &holds);
    fake_expect_none(&ws2, WIRE_open, 300);
    expect_reason(&ws1, 3, "waiting", "1 ahead");
    end_on(&ws1, 1, true);
    open_on(&ws2, 2);
    open_on(&ws1, 2);
    fake_close(&ws1);
    fake_close(&ws2);
    lab_destroy(&lab);
}

/* The rsd of one of its hosts is restarted. */
static void test_cut_link_keeps_the_order(void **state)
{
    struct lab lab;
    struct fake ws1, ws2;
    (void)state;
    lab_create(&lab, TWO);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    submit(&ws1, "a", 1, "ws2");
    run_on(&ws2, 1);
    submit(&ws1, "wide", 2, NULL);
    fake_close(&ws2);
    submit(&ws1, "narrow", 1, NULL);
    fake_expect_none(&ws1, WIRE_open, 300);
    expect_reason(&ws1, 2, "waiting", "1 on hosts that are not heard now");
    expect_reason(&ws1, 3, "waiting", "");
    fake_close(&ws1);
    lab_destroy(&lab);
}

/* A host whose only one is back has nothing to wait for. */
static void test_one_host(void **state)
{
    struct lab lab;
    struct fake ws1;
    (void)state;
    lab_create(&lab, "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 60s\nallocator = v1\nlevels = 1\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    fake_close(&ws1);
    lab_stop(&lab, SIGTERM);
    lab_start(&lab);
    int64_t begin = mono_now_ms();
    host_open(&ws1, &lab, "ws1", 1, NULL);
    submit(&ws1, "a", 1, NULL);
    open_on(&ws1, 1);
    assert_true(mono_now_ms() - begin < 9000); /* else it has been waited for, 10 s */
    fake_close(&ws1);
    lab_destroy(&lab);
}

static const struct wire_host_view *host_view(struct fake *host, const char *name, struct wire_message *answer)
{
    struct wire_message m = {.type = WIRE_query_hosts};
    host_relay(host, 1, 0, "root", &m);
    host_expect_relayed(host, 1, WIRE_hosts, answer);
    for (size_t i = 0; i < answer->u.hosts.hosts.count; i++)
        if (strcmp(answer->u.hosts.hosts.items[i].host, name) == 0)
            return &answer->u.hosts.hosts.items[i];
    fail_msg("%s is not shown", name);
    return NULL;
}

static void expect_drained(struct fake *host, const char *name, const char *state)
{
    struct wire_message answer;
    const struct wire_host_view *view = host_view(host, name, &answer);
    assert_string_equal(view->state, state);
    assert_non_null(strstr(view->reason, "drained"));
    wire_message_fini(&answer);
}

/* What an administrator has decided stays: of a host that is up, of one that has never been, of one that leaves the
 * configuration and comes back. */
static void test_drain_stays(void **state)
{
    struct lab lab;
    struct fake ws1, ws2;
    (void)state;
    lab_create(&lab, TWO);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    drain(&lab, "ws1", true);
    drain(&lab, "ws2", true);
    lab_stop(&lab, SIGKILL);
    fake_close(&ws1);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    expect_drained(&ws1, "ws1", "drained");
    expect_drained(&ws1, "ws2", "drained");
    submit(&ws1, "a", 1, NULL);
    expect_reason(&ws1, 1, "too-few-up", "not drained");
    drain(&lab, "ws1", false);
    open_on(&ws1, 1);
    char *without = strstr(lab.config, " ws2");
    assert_non_null(without);
    *without = '\n';
    without[1] = '\0';
    lab_configure(&lab);
    fake_close(&ws1);
    fake_close(&ws2);
    lab_stop(&lab, SIGTERM);
    lab_start(&lab);
    lab_stop(&lab, SIGTERM);
    snprintf(without, 10, " ws2\n");
    lab_configure(&lab);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    struct wire_message answer;
    assert_string_equal(host_view(&ws1, "ws1", &answer)->state, "up");
    wire_message_fini(&answer);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    expect_drained(&ws1, "ws2", "drained");
    fake_close(&ws2);
    fake_close(&ws1);
    lab_destroy(&lab);
}

static double level_seconds(struct fake *host, uint64_t job, const char *state)
{
    struct wire_message jobs;
    double sum = 0;
    lab_query_until(host, job, state, &jobs);
    for (size_t i = 0; i < only(&jobs)->level_seconds.count; i++)
        sum += only(&jobs)->level_seconds.items[i];
    wire_message_fini(&jobs);
    return sum;
}

/* The time at a level: killed and started again elmer knows as much as one that went on. */
static void test_level_time_goes_on(void **state)
{
    struct lab lab;
    struct fake ws1;
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.generation = 9, .holdings = &holding, .nholdings = 1};
    double shown = 0;
    (void)state;
    lab_create(&lab, "name = ws1\nresend = 1s\nheartbeat = 100ms\nhost_timeout = 60s\nallocator = v1\nlevels = "
                     "2\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    int64_t before = mono_now_ms();
    submit(&ws1, "a", 1, NULL);
    int64_t after = mono_now_ms();
    run_on(&ws1, 1);
    for (int i = 0; i < 2; i++) {
        while (level_seconds(&ws1, 1, "running") < shown + 0.5) /* it counts to the last step, so make some */
            host_ordered(&ws1, 1);
        shown = level_seconds(&ws1, 1, "running");
        drain(&lab, "ws1", i == 0); /* answered when it is stored, and so all that was before it: the job runs */
        lab_stop(&lab, SIGKILL);
        fake_close(&ws1);
        lab_start(&lab);
        host_open(&ws1, &lab, "ws1", 1, &holds);
        double now = level_seconds(&ws1, 1, "running");
        if (now < shown)
            fail_msg("it fell from %.3f s to %.3f s", shown, now);
    }
    int64_t least = mono_now_ms() - after;
    end_on(&ws1, 1, true);
    double all = level_seconds(&ws1, 1, "done");
    int64_t most = mono_now_ms() - before;
    if (all < (double)least / 1000 - 0.002 || all > (double)most / 1000 + 0.002)
        fail_msg("%.3f s, lived between %.3f and %.3f s", all, (double)least / 1000, (double)most / 1000);
    fake_close(&ws1);
    lab_destroy(&lab);
}

static void nap_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Idle, of an interval that ended at_ms after the welcome. */
static void report(struct fake *host, int64_t at_ms)
{
    double share = 0;
    struct wire_message m = {.type = WIRE_report};
    m.u.report = (struct wire_report){
        .interval_ms = 100, .busy = {&share, 1}, .jobs = {&share, 1}, .since_heard_ms = (uint64_t)at_ms};
    fake_send(host, &m);
}

/* A report that was under way for longer than settle is as old as it is: it has not seen the job that was started
 * meanwhile. */
static void test_late_report(void **state)
{
    struct lab lab;
    struct fake ws1;
    (void)state;
    lab_create(
        &lab,
        "name = ws1\nresend = 1s\nheartbeat = 30s\nhost_timeout = 60s\nsettle = 1s\nallocator = v2\nlevels = 2\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    int64_t welcome = mono_now_ms();
    submit(&ws1, "a", 1, NULL);
    report(&ws1, mono_now_ms() - welcome);
    run_on(&ws1, 1);
    submit(&ws1, "b", 1, NULL);
    int64_t measured = mono_now_ms() - welcome;
    nap_ms(1500); /* this is the delay */
    report(&ws1, measured);
    fake_expect_none(&ws1, WIRE_open, 200);
    expect_reason(&ws1, 2, "waiting", "not measured since the last change");
    report(&ws1, mono_now_ms() - welcome);
    open_on(&ws1, 2);
    fake_close(&ws1);
    lab_destroy(&lab);
}

/* elmer is stopped for longer than host_timeout. One host has said something meanwhile, one says nothing before it is
 * asked, the link of one was cut and comes back: none of them is down, and no job has lost its host. */
static void test_own_stall(void **state)
{
    struct lab lab;
    struct fake hosts[3];
    static const char *const names[] = {"ws1", "ws2", "ws3"};
    struct wire_holding holding = {3, 1};
    struct host_options holds = {.generation = 9, .holdings = &holding, .nholdings = 1};
    struct wire_message jobs;
    (void)state;
    lab_create(
        &lab,
        "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 2s\nsettle = 0\nallocator = v1\nlevels = 1\nhosts = "
        "ws1 ws2 ws3\n");
    lab_start(&lab);
    for (size_t i = 0; i < 3; i++) {
        host_open(&hosts[i], &lab, names[i], 1, NULL);
        submit(&hosts[i], names[i], 1, names[i]);
        run_on(&hosts[i], i + 1);
    }
    assert_int_equal(kill(lab.pid, SIGSTOP), 0);
    fake_close(&hosts[2]);
    nap_ms(3500); /* this is the stall */
    host_ordered(&hosts[0], 1);
    assert_int_equal(kill(lab.pid, SIGCONT), 0);
    host_open(&hosts[2], &lab, "ws3", 1, &holds);
    for (size_t i = 0; i < 3; i++)
        fake_await_ping(&hosts[i]);
    for (uint64_t job = 1; job <= 3; job++) {
        lab_query(&hosts[0], job, &jobs);
        assert_string_equal(only(&jobs)->state, "running");
        wire_message_fini(&jobs);
    }
    for (size_t i = 0; i < 3; i++)
        fake_close(&hosts[i]);
    lab_destroy(&lab);
}

static void set(const struct lab *lab, const char *setting, const char *value, enum wire_type answer, const char *words)
{
    struct wire_message m = {.type = WIRE_set, .u.set = {.setting = setting, .value = value}}, got;
    lab_ask_as_root(lab, &m, answer, &got);
    const char *text = answer == WIRE_done ? got.u.done.text : got.u.error.text;
    if (!strstr(text, words))
        fail_msg("\"%s\" does not contain \"%s\"", text, words);
    wire_message_fini(&got);
}

static void expect_setting(struct fake *host, const char *value, const char *configured, bool is_set)
{
    struct wire_message m = {.type = WIRE_query_settings}, answer;
    host_relay(host, 1, 2002, "bob", &m);
    host_expect_relayed(host, 1, WIRE_settings, &answer);
    const struct wire_settings *settings = &answer.u.settings;
    assert_int_equal(settings->settings.count, 2);
    assert_string_equal(settings->settings.items[0].setting, "allocator");
    assert_string_equal(settings->settings.items[0].value, value);
    assert_string_equal(settings->settings.items[0].configured, configured);
    assert_int_equal(settings->settings.items[0].set, is_set);
    assert_int_equal(settings->settings.items[0].known.count, 4);
    assert_string_equal(settings->settings.items[1].setting, "policy");
    assert_string_equal(settings->settings.items[1].value, "fcfs");
    wire_message_fini(&answer);
}

/* Another allocator decides at once, and after a kill of elmer, until it is taken back; elmer.conf may change
 * meanwhile. */
static void test_set(void **state)
{
    struct lab lab;
    struct fake ws1, ws2;
    (void)state;
    lab_create(&lab,
               "name = ws1\nresend = 1s\nheartbeat = 20s\nhost_timeout = 60s\nsettle = 0\nallocator = v2\nlevels = "
               "2\nhosts = ws1 ws2\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    expect_setting(&ws1, "v2", "v2", false);
    submit(&ws1, "a", 1, "ws1"); /* v2 waits for a report, and none comes */
    expect_reason(&ws1, 1, "waiting", "");
    struct wire_message m = {.type = WIRE_set, .u.set = {.setting = "allocator", .value = "v1"}}, got;
    host_relay(&ws1, 1, 2002, "bob", &m);
    host_expect_relayed(&ws1, 1, WIRE_error, &got);
    assert_non_null(strstr(got.u.error.text, "only administrators"));
    wire_message_fini(&got);
    set(&lab, "allocator", "v3", WIRE_error, "known are: v1 v2 spread pack");
    set(&lab, "allocators", "v1", WIRE_error, "allocator policy");
    set(&lab, "policy", "", WIRE_error, "known are: fcfs");
    expect_setting(&ws1, "v2", "v2", false);
    expect_reason(&ws1, 1, "waiting", "");
    set(&lab, "allocator", "v1", WIRE_done, "the allocator is v1");
    run_on(&ws1, 1);
    set(&lab, "allocator", "spread", WIRE_done, "the allocator is spread");
    set(&lab, "policy", "fcfs", WIRE_done, "the policy is fcfs");
    lab_stop(&lab, SIGKILL);
    fake_close(&ws1);
    fake_close(&ws2);

    char *configured = strstr(lab.config, "allocator = v2");
    assert_non_null(configured);
    memcpy(configured, "allocator = v1", 14);
    lab_configure(&lab);
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.generation = 30, .holdings = &holding, .nholdings = 1};
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, &holds);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    expect_setting(&ws1, "spread", "v1", true);
    submit(&ws1, "b", 1, NULL); /* by chance it could be on either */
    open_on(&ws2, 2);
    set(&lab, "allocator", "default", WIRE_done, "the allocator is v1, as configured");
    expect_setting(&ws1, "v1", "v1", false);
    lab_stop(&lab, SIGTERM);
    fake_close(&ws1);
    fake_close(&ws2);
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, &holds);
    expect_setting(&ws1, "v1", "v1", false);
    fake_close(&ws1);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart_keeps_the_order),
        cmocka_unit_test(test_cut_link_keeps_the_order),
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_drain_stays),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_level_time_goes_on),
        cmocka_unit_test(test_own_stall),
        cmocka_unit_test(test_late_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
