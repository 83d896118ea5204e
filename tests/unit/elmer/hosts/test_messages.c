/* test_messages.c - what goes to hosts (orders, paced) and what they say (reports, jobs, users, certificates). */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/hosts/bed.h"

/* ---- orders ---- */

static void order(int host, uint64_t generation)
{
    int cpus[] = {1};
    struct order_entry entry = {.job = 7, .attempt = 2, .level = 1, .lowest = true, .cpus = cpus, .ncpus = 1};
    struct action action = {
        .type = ACTION_ORDER, .host = host, .generation = generation, .entries = &entry, .nentries = 1};
    fake_engine.orders.order(&action, fake_engine.orders_data);
}

static void end(int host, uint64_t job)
{
    struct action action = {.type = ACTION_END, .host = host, .job = job, .attempt = 1};
    fake_engine.orders.end(&action, fake_engine.orders_data);
}

static void open_there(int host, struct fake_job *job)
{
    fake_engine.orders.open(host, &job->job, &job->state, 33, fake_engine.orders_data);
}

static void test_orders(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    order(WS1, 12);
    const struct wire_order *said = &heard(link, WIRE_order)->u.order;
    assert_int_equal(said->generation, 12);
    assert_int_equal(said->entries.count, 1);
    assert_int_equal(said->entries.items[0].job, 7);
    assert_int_equal(said->entries.items[0].level, 1);
    assert_true(said->entries.items[0].lowest);
    assert_int_equal(said->entries.items[0].cpus.items[0], 1);
    end(WS1, 7);
    const struct wire_message *message = heard(link, WIRE_end);
    assert_int_equal(message->u.end.job, 7);
    assert_int_equal(message->u.end.grace_ms, 700);
    fake_engine.orders.acknowledge(WS1, 7, 2, 5, fake_engine.orders_data);
    message = heard(link, WIRE_taken);
    assert_int_equal(message->u.taken.attempt, 2);
    assert_int_equal(message->u.taken.process, 5);
    order(WS2, 1); /* no link: nothing, it is sent again later */
    heard_nothing();
}

static void test_open(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    struct fake_job *job = job_on_both();
    job->job.submission.u.submit.pvm = true;
    job->job.submission.u.submit.submit_host = "ws2";
    job->state.lease_ms = 120000;
    open_there(WS1, job);
    const struct wire_open *said = &heard(link, WIRE_open)->u.open;
    assert_int_equal(said->job, 7);
    assert_int_equal(said->attempt, 2);
    assert_int_equal(said->generation, 33);
    assert_int_equal(said->uid, 5);
    assert_string_equal(said->user, "alice");
    assert_int_equal(said->cpus.count, 2); /* those on this host */
    assert_true(said->pvm);
    assert_int_equal(said->lease_ms, 120000);
    assert_string_equal(said->submit_host, "ws2");
}

/* Its rsd is older than leases, and has come back since that was decided. */
static void test_lease_refused(void **state)
{
    (void)state;
    int link = bed_up(&(struct greeting){.host = "ws1", .minor = WIRE_LEASE_MINOR - 1});
    struct fake_job *job = job_on_both();
    open_there(WS1, job); /* without a lease it may */
    assert_int_equal(heard(link, WIRE_open)->u.open.lease_ms, 0);
    job->state.lease_ms = 120000;
    open_there(WS1, job);
    const struct event *failed = fake_event(EVENT_OPEN_FAILED);
    assert_int_equal(failed->host, WS1);
    assert_int_equal(failed->job, 7);
    assert_int_equal(failed->attempt, 2);
    assert_int_equal(failed->u.failed.reason, REASON_START_FAILED);
    assert_non_null(strstr(failed->u.failed.text, "ws1: its rsd speaks version 1.1"));
    assert_non_null(strstr(failed->u.failed.text, "upgrade"));
    heard_nothing();
}

static void look_at_no_lease(const struct event *event)
{
    assert_true(event->type != EVENT_HOST_UP || event->u.up.no_lease);
}

static void test_old_rsd(void **state)
{
    (void)state;
    fake_engine.on_event = look_at_no_lease;
    bed_up(&(struct greeting){.host = "ws1", .minor = WIRE_LEASE_MINOR - 1});
    assert_int_equal(hosts_minor(bed.hosts, WS1), WIRE_LEASE_MINOR - 1);
}

/* ---- pace ---- */

static void test_pace(void **state)
{
    (void)state;
    int first = bed_ws1_up(), second = bed_up(&(struct greeting){.host = "ws2"});
    *bed.log = 0;
    fake_time_skip(1); /* another turn of the loop */
    for (uint64_t i = 1; i <= 300; i++)
        order(WS1, i);
    order(WS2, 1);
    assert_int_equal(heard_count(first, WIRE_order), 256);
    assert_int_equal(heard_count(second, WIRE_order), 0);
    assert_true(hosts_congested(bed.hosts, WS1));
    fake_time_skip(1);
    end(WS1, 7); /* the turn has room, but what is said to one host stays in order */
    assert_int_equal(heard_count(first, WIRE_end), 0);
    fake_time_pass(1);
    assert_int_equal(heard_count(first, WIRE_order), 300);
    for (uint64_t i = 1; i <= 300; i++)
        assert_int_equal(heard(first, WIRE_order)->u.order.generation, i);
    heard(first, WIRE_end);
    heard(second, WIRE_order);
    assert_false(hosts_congested(bed.hosts, WS1));
    /* Who has waited for that goes on: the link, which took all at once, says nothing. */
    bed_expect("room ws1; room ws2");
    fake_time_skip(1);
    order(WS1, 301);
    heard(first, WIRE_order);
}

/* A link that is cut takes along what waits for it. */
static void test_pace_cut(void **state)
{
    (void)state;
    int first = bed_ws1_up();
    fake_time_skip(1);
    for (uint64_t i = 1; i <= 300; i++)
        order(WS1, i);
    links_cut((size_t)first);
    fake_event(EVENT_HOST_SILENT);
    int link = bed_ws1_up();
    heard_forget();
    fake_time_pass(1);
    assert_int_equal(heard_count(link, WIRE_order), 0);
    order(WS1, 301);
    assert_int_equal(heard(link, WIRE_order)->u.order.generation, 301);
}

static void test_congested(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    links_set_unsent((size_t)link, 256 << 10);
    assert_false(hosts_congested(bed.hosts, WS1));
    links_set_unsent((size_t)link, (256 << 10) + 1);
    assert_true(hosts_congested(bed.hosts, WS1));
    assert_false(hosts_congested(bed.hosts, WS2));
}

/* ---- reports ---- */

static double busy[8], ours[8];
static void look_at_report(const struct event *event)
{
    if (event->type != EVENT_REPORT)
        return;
    for (int i = 0; i < event->u.report.ncpus; i++) {
        busy[i] = event->u.report.busy[i];
        ours[i] = event->u.report.jobs[i];
    }
}

static void report(int link, uint64_t id, uint64_t since_ms, size_t ncpus)
{
    double all[] = {0.5, 1.5, -1, 0.25}, jobs[] = {0.75, 1.25, 0.5, 0.125};
    struct wire_message message = {
        .type = WIRE_report,
        .u.report = {
            .interval_ms = 2000, .busy = {all, ncpus}, .jobs = {jobs, ncpus}, .heard = id, .since_heard_ms = since_ms}};
    say(link, &message);
}

/* However long the ping or the report was under way, the report is no newer than it is taken for. */
static void test_report_age(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    fake_time_skip(900);
    report(link, 0, 700, 2); /* 700 ms after the welcome, which was sent 900 ms ago */
    const struct event *event = fake_event(EVENT_REPORT);
    assert_int_equal(event->host, WS1);
    assert_int_equal(event->u.report.end_ms, fake_now_ms() - 200);
    assert_int_equal(event->u.report.begin_ms, fake_now_ms() - 2200);
    fake_time_pass(100);
    uint64_t ping = heard(link, WIRE_ping)->id;
    fake_time_skip(50);
    report(link, ping, 10, 2);
    assert_int_equal(fake_event(EVENT_REPORT)->u.report.end_ms, fake_now_ms() - 40);
    report(link, ping, 90, 2); /* a clock that runs fast: not of the future */
    assert_int_equal(fake_event(EVENT_REPORT)->u.report.end_ms, fake_now_ms());
    report(link, ping + 1, 0, 2); /* nobody knows */
    fake_no_event();
    for (int i = 0; i < 16; i++) { /* too long ago to be remembered */
        fake_time_pass(BEAT_MS);
        bed_pong(link);
    }
    report(link, ping, 0, 2);
    fake_no_event();
}

static void test_report_of_old_rsd(void **state)
{
    (void)state;
    int link = bed_up(&(struct greeting){.host = "ws1", .minor = WIRE_AGE_MINOR - 1});
    fake_time_skip(900);
    report(link, 99, 0, 2);
    assert_int_equal(fake_event(EVENT_REPORT)->u.report.end_ms, fake_now_ms());
}

/* Of the CPUs that the configuration gives, shares between 0 and 1, and no more of ours than of all. */
static void test_report_shares(void **state)
{
    int cpus[] = {1, 3};
    (void)state;
    bed.configured[WS1].cpus = cpus;
    bed.configured[WS1].ncpus = 2;
    fake_engine.on_event = look_at_report;
    int link = bed_up(&(struct greeting){.host = "ws1", .ncpus = 4});
    report(link, 0, 0, 4);
    assert_int_equal(fake_event(EVENT_REPORT)->u.report.ncpus, 2);
    assert_true(busy[0] >= 1 && busy[0] <= 1);
    assert_true(ours[0] >= 1 && ours[0] <= 1);
    assert_true(busy[1] >= 0.25 && busy[1] <= 0.25);
    report(link, 0, 0, 3); /* not as many as it has */
    fake_no_event();
    int other = bed_up(&(struct greeting){.host = "ws2", .ncpus = 3});
    report(other, 0, 0, 3);
    fake_event(EVENT_REPORT);
    assert_true(ours[0] >= 0.5 && ours[0] <= 0.5);
    assert_true(busy[2] >= 0 && busy[2] <= 0);
    assert_true(ours[2] >= 0 && ours[2] <= 0);
}

/* ---- jobs ---- */

static void test_jobs(void **state)
{
    struct wire_message ordered = {.type = WIRE_ordered, .u.ordered = {.generation = 4}},
                        opened = {.type = WIRE_opened, .u.opened = {.job = 7, .attempt = 2}},
                        open_failed = {.type = WIRE_open_failed,
                                       .u.open_failed = {.job = 7, .attempt = 2, .text = "no\ngroup"}},
                        lost = {.type = WIRE_lost, .u.lost = {.job = 7, .attempt = 2, .text = "killed"}},
                        started = {.type = WIRE_started, .u.started = {.job = 7}};
    (void)state;
    int link = bed_ws1_up();
    say(link, &ordered);
    assert_int_equal(fake_event(EVENT_ORDERED)->u.generation, 4);
    say(link, &opened);
    const struct event *event = fake_event(EVENT_OPENED);
    assert_int_equal(event->job, 7);
    assert_int_equal(event->attempt, 2);
    assert_int_equal(event->host, WS1);
    say(link, &open_failed);
    event = fake_event(EVENT_OPEN_FAILED);
    assert_int_equal(event->u.failed.reason, REASON_START_FAILED);
    assert_string_equal(event->u.failed.text, "ws1: no\\x0Agroup");
    say(link, &lost);
    event = fake_event(EVENT_ABORT);
    assert_int_equal(event->u.failed.reason, REASON_LOST);
    assert_string_equal(event->u.failed.text, "ws1: killed");
    say(link, &started);
    bed_expect("ws1 started");
}

static void test_empty(void **state)
{
    struct wire_message empty = {.type = WIRE_empty, .u.empty = {.job = 7, .attempt = 2, .cpu_seconds = 1}};
    (void)state;
    int link = bed_ws1_up();
    fake_engine.held = true;
    say(link, &empty);
    fake_event(EVENT_EMPTY);
    bed_expect("ws1 empty");
    heard_nothing(); /* it is not on disk */
    fake_engine_commit();
    assert_int_equal(heard(link, WIRE_forget)->u.forget.attempt, 2);
    fake_engine.may_forget = false;
    say(link, &empty);
    fake_event(EVENT_EMPTY);
    fake_engine_commit();
    heard_nothing(); /* it is told END again */
    fake_engine.may_forget = true;
    say(link, &empty);
    fake_event(EVENT_EMPTY);
    links_cut((size_t)link);
    fake_event(EVENT_HOST_SILENT);
    fake_engine_commit(); /* to nobody: it says it again */
    heard_nothing();
}

/* ---- users, certificates, pings ---- */

static void test_relay(void **state)
{
    struct wire_message relay = {.type = WIRE_relay, .u.relay = {.client = 1, .uid = 5, .user = "a", .frame = "{}"}},
                        closed = {.type = WIRE_relay_closed, .u.relay_closed = {.client = 1}};
    (void)state;
    int link = bed_ws1_up(), here = bed_up(&(struct greeting){.host = "queue", .local = true});
    say(link, &relay);
    bed_expect("relay ws1");
    say(here, &closed);
    bed_expect("relay queue here");
}

static void test_certificates(void **state)
{
    struct wire_message join = {.type = WIRE_join, .id = 3, .u.join = {.host = "ws2"}},
                        renew = {.type = WIRE_renew, .id = 4};
    (void)state;
    int joiner = bed_link(&(struct greeting){.joiner = true});
    say(joiner, &join);
    bed_expect("join");
    struct wire_message joined = {.type = WIRE_joined, .id = 3, .u.joined = {.certificate = "PEM"}};
    assert_null(hosts_peer_serial(bed.peer));
    assert_string_equal(hosts_peer_address(bed.peer), "10.0.0.2");
    hosts_peer_send(bed.peer, &joined);
    assert_string_equal(heard(joiner, WIRE_joined)->u.joined.certificate, "PEM");
    hosts_peer_close(bed.peer);
    hosts_peer_send(bed.peer, &joined);
    heard_nothing();
    links_turn();
    bed_expect("gone");

    int link = bed_ws1_up();
    say(link, &renew);
    bed_expect("renew ws1");
    hosts_peer_refuse(bed.peer, 4, "was revoked");
    assert_string_equal(heard_error(link, "was revoked"), WIRE_CODE_REFUSED);
    assert_false(links_open((size_t)link));
    links_turn();
    fake_event(EVENT_HOST_SILENT);
    bed_expect("gone; cut ws1");
}

/* With a certificate nobody joins. */
static void test_join_with_certificate(void **state)
{
    struct wire_message join = {.type = WIRE_join, .id = 3, .u.join = {.host = "ws2"}};
    (void)state;
    int link = bed_link(&(struct greeting){.host = "ws1"});
    say(link, &join);
    heard_error(link, "first message must be host_hello");
    bed_expect("");
}

/* A pong with the id of the ping is a contact, from which leases count: only for a host that is up. */
static void test_pong(void **state)
{
    struct wire_message ping = {.type = WIRE_ping, .id = 42};
    (void)state;
    int link = bed_link(&(struct greeting){.host = "ws1"});
    say(link, &ping);
    assert_int_equal(heard(link, WIRE_pong)->id, 0);
    bed_hello(link, &(struct greeting){.host = "ws1"});
    fake_event(EVENT_HOST_UP);
    say(link, &ping);
    assert_int_equal(heard(link, WIRE_pong)->id, 42);
}

/* ---- cutting off ---- */

static void test_cut_off(void **state)
{
    (void)state;
    int link = bed_ws1_up(), unnamed = bed_link(&(struct greeting){.host = "ws1"}),
        other = bed_up(&(struct greeting){.host = "ws2"});
    struct fake_job *job = job_on_both();
    job->state.state = JOB_RUNNING;
    fake_engine_add_job(8, 5, JOB_QUEUED);
    hosts_cut_off(bed.hosts, WS1, "was removed by carol", "removed by an administrator");
    assert_int_equal(heard(link, WIRE_end)->u.end.job, 7); /* before it notices that it is cut off */
    assert_int_equal(heard_count(link, WIRE_end), 0);
    heard_error(link, "removed by an administrator");
    heard_error(unnamed, "removed by an administrator");
    assert_false(links_open((size_t)link) || links_open((size_t)unnamed));
    assert_true(links_open((size_t)other));
    fake_event(EVENT_HOST_SILENT);
    const struct event *down = fake_event(EVENT_HOST_DOWN);
    assert_int_equal(down->host, WS1);
    assert_string_equal(down->u.down.what, "was removed by carol");
    bed_expect("cut ws1");
    assert_string_equal(bed_state_of(WS1), "down");
    links_turn();
    fake_no_event();
}

/* It has joined again: it may come back with the new certificate, and its jobs go on. */
static void test_cut_off_for_a_while(void **state)
{
    struct greeting other = {.host = "ws1", .boot = "b2"};
    (void)state;
    int link = bed_ws1_up(), challenger = bed_link(&other);
    bed_hello(challenger, &other);
    struct fake_job *job = job_on_both();
    job->state.state = JOB_RUNNING;
    heard_forget();
    hosts_cut_off(bed.hosts, WS1, NULL, "another has joined");
    assert_int_equal(heard_count(link, WIRE_end), 0);
    heard_error(link, "another has joined");
    heard_error(challenger, "another has joined");
    fake_event(EVENT_HOST_SILENT);
    fake_no_event();
    links_turn();
    bed_ws1_up();
}

static void test_reload(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(hosts_reload_tls(bed.hosts, &err), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_orders),        TEST(test_open),         TEST(test_lease_refused),
        TEST(test_old_rsd),       TEST(test_pace),         TEST(test_pace_cut),
        TEST(test_congested),     TEST(test_report_age),   TEST(test_report_of_old_rsd),
        TEST(test_report_shares), TEST(test_jobs),         TEST(test_empty),
        TEST(test_relay),         TEST(test_certificates), TEST(test_join_with_certificate),
        TEST(test_pong),          TEST(test_cut_off),      TEST(test_cut_off_for_a_while),
        TEST(test_reload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
