/* test_hosts.c - who may be a host, and which are up: hello, two links of one host, silence, cuts, stalls. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "elmer/engine/launchers.h"
#include "tests/unit/elmer/hosts/bed.h"

/* ---- hello ---- */

static const struct event *seen;
static void look_at_up(const struct event *event)
{
    assert_int_equal(event->type, EVENT_HOST_UP);
    assert_int_equal(event->host, WS1);
    assert_int_equal(event->u.up.ncpus, 3);
    assert_int_equal(event->u.up.cpus[2], 2);
    assert_int_equal(event->u.up.generation, 44);
    assert_int_equal(event->u.up.nholdings, 1);
    assert_int_equal(event->u.up.holdings[0].job, 7);
    assert_int_equal(event->u.up.holdings[0].attempt, 2);
    assert_false(event->u.up.rebooted);
    assert_false(event->u.up.closed);
    assert_false(event->u.up.no_lease);
    seen = event;
}

static void test_up(void **state)
{
    struct wire_holding holding = {7, 2};
    struct greeting greeting = {
        .host = "ws1", .serial = "CD", .ncpus = 3, .generation = 44, .holdings = &holding, .nholdings = 1};
    (void)state;
    assert_string_equal(bed_state_of(WS1), "never-seen");
    assert_int_equal(hosts_count_linked(bed.hosts), 0);
    fake_engine.on_event = look_at_up;
    seen = NULL;
    int link = bed_link(&greeting);
    fake_no_event(); /* not before it has said who it is */
    bed_hello(link, &greeting);
    assert_non_null(seen);
    fake_event(EVENT_HOST_UP);
    const struct wire_message *welcome = heard(link, WIRE_host_welcome);
    assert_int_equal(welcome->id, 9);
    assert_int_equal(welcome->u.host_welcome.report_ms, 2000);
    assert_int_equal(welcome->u.host_welcome.heartbeat_ms, BEAT_MS);
    bed_expect("shown CD; up ws1");
    heard_nothing();

    struct host_facts facts = hosts_facts(bed.hosts, WS1);
    assert_true(launchers_have(facts.launchers, LAUNCHER_PVM));
    assert_string_equal(facts.address, "10.0.0.9");
    assert_string_equal(bed_state_of(WS1), "up");
    assert_int_equal(hosts_count_linked(bed.hosts), 1);
    assert_int_equal(hosts_minor(bed.hosts, WS1), WIRE_MINOR);
    assert_int_equal(hosts_minor(bed.hosts, WS2), 0);
    int64_t linked_ms;
    assert_string_equal(hosts_serial(bed.hosts, WS1, &linked_ms), "CD");
    assert_int_equal(linked_ms, FAKE_WALL_MS);
    struct wire_host_view view;
    hosts_view(bed.hosts, WS1, &view);
    assert_string_equal(view.lacks.items[0], "no memory limit");
    assert_true(view.busy == -1 && view.memory_bytes == -1); /* it has not reported */
}

/* It is told why, its link is closed, and nothing else happens. */
static void refused(const struct greeting *greeting, const char *words)
{
    int link = bed_link(greeting);
    assert_true(link >= 0);
    bed_hello(link, greeting);
    assert_string_equal(heard_error(link, words), WIRE_CODE_REFUSED);
    assert_false(links_open((size_t)link));
    assert_int_equal(heard_count(link, WIRE_host_welcome), 0);
    fake_no_event();
    links_turn();
    bed_expect("");
}

static void test_refused(void **state)
{
    (void)state;
    refused(&(struct greeting){.host = "ws1", .certificate = "ws2"}, "its certificate is that of \"ws2\"");
    refused(&(struct greeting){.host = "ws1", .joiner = true}, "its certificate is that of \"nobody\"");
    refused(&(struct greeting){.host = "ws9"}, "not in the configuration");
    refused(&(struct greeting){.host = "ws1", .local = true, .uid = HOST_UID}, "unix socket is for the host");
    refused(&(struct greeting){.host = "ws1", .generation = INT64_MAX}, "generation");
}

static void test_nonsense_cpus(void **state)
{
    uint64_t twice[] = {1, 1}, large[] = {CORE_MAX_CPUS};
    struct wire_message message = {.type = WIRE_host_hello, .u.host_hello = {.host = "ws1", .boot = "b"}};
    const struct wire_uints lists[] = {{twice, 2}, {large, 1}, {NULL, 0}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        int link = bed_link(&(struct greeting){.host = "ws1"});
        message.u.host_hello.cpus = lists[i];
        say(link, &message);
        heard_error(link, "CPUs");
        assert_false(links_open((size_t)link));
        links_turn();
    }
}

static void test_first_message(void **state)
{
    struct wire_message ordered = {.type = WIRE_ordered};
    (void)state;
    int link = bed_link(&(struct greeting){.host = "ws1"});
    say(link, &ordered);
    assert_string_equal(heard_error(link, "first message must be host_hello"), WIRE_CODE_BAD_MESSAGE);
    assert_false(links_open((size_t)link));
    links_turn();

    link = bed_ws1_up();
    bed_hello(link, &(struct greeting){.host = "ws1"});
    heard_error(link, "a second host_hello");
    links_turn();
    fake_event(EVENT_HOST_SILENT);
    bed_expect("cut ws1");
}

static void test_no_hello(void **state)
{
    (void)state;
    int link = bed_link(&(struct greeting){.host = "ws1"});
    fake_time_pass(9999);
    assert_true(links_open((size_t)link));
    fake_time_pass(1);
    heard_error(link, "no host_hello in time");
    assert_false(links_open((size_t)link));
}

static void test_local(void **state)
{
    (void)state;
    assert_int_equal(links_accept(LISTENER_UNIX, 1001), -1); /* neither root nor host_user */
    bed_up(&(struct greeting){.host = "queue", .local = true, .uid = HOST_UID});
    assert_string_equal(bed_state_of(QUEUE), "up");
    bed_up(&(struct greeting){.host = "ws2", .local = true}); /* root: who has elmer can be whoever it believes */
    assert_string_equal(bed_state_of(WS2), "up");
    assert_string_equal(hosts_local_address(bed.hosts, QUEUE), "");
    bed_ws1_up();
    assert_string_equal(hosts_local_address(bed.hosts, WS1), "10.0.0.1");
}

/* One host shall not take everybody's room. */
static void test_too_many_links(void **state)
{
    struct greeting greeting = {.host = "ws1"};
    (void)state;
    for (int i = 0; i < 8; i++)
        assert_true(bed_link(&greeting) >= 0);
    assert_int_equal(bed_link(&greeting), -1);
    assert_true(bed_link(&(struct greeting){.host = "ws2"}) >= 0);
}

/* CPUs of the configuration that it does not have: it is linked, but gets no new jobs. */
static void look_at_closed(const struct event *event)
{
    seen = event;
    assert_true(event->u.up.closed);
    assert_int_equal(event->u.up.ncpus, 2);
}

static void test_unusable(void **state)
{
    int cpus[] = {1, 5};
    (void)state;
    bed.configured[WS1].cpus = cpus;
    bed.configured[WS1].ncpus = 2;
    fake_engine.on_event = look_at_closed;
    seen = NULL;
    bed_ws1_up();
    assert_non_null(seen);
    struct wire_host_view view;
    hosts_view(bed.hosts, WS1, &view);
    assert_non_null(strstr(view.reason, "CPU 5"));
    assert_string_equal(view.state, "unusable");
    fake_engine.on_event = NULL;
}

/* ---- two links of one host ---- */

/* Its rsd was restarted: the newer wins at once. */
static void test_same_boot(void **state)
{
    struct greeting greeting = {.host = "ws1"};
    (void)state;
    int old = bed_ws1_up(), link = bed_link(&greeting);
    bed_hello(link, &greeting);
    assert_false(links_open((size_t)old));
    assert_false(fake_event(EVENT_HOST_UP)->u.up.rebooted);
    bed_expect("cut ws1; shown AB; up ws1");
    links_turn(); /* the end of the old link is nothing to the host */
    fake_no_event();
    bed_expect("");
    assert_string_equal(bed_state_of(WS1), "up");
}

/* Another boot, and the old link lives: there are two machines of this name. */
static void test_second_machine(void **state)
{
    struct greeting other = {.host = "ws1", .boot = "b2"};
    (void)state;
    int old = bed_ws1_up(), link = bed_link(&other);
    bed_hello(link, &other);
    fake_no_event();
    int third = bed_link(&other);
    bed_hello(third, &other);
    heard_error(third, "another link of this host");
    bed_pong(old);
    assert_string_equal(heard_error(link, "two machines have the same name"), WIRE_CODE_REFUSED);
    assert_false(links_open((size_t)link));
    assert_true(links_open((size_t)old));
    links_turn();
    fake_time_pass(2000);
    fake_event(EVENT_HOST_SILENT); /* two beats without an answer */
    assert_int_equal(heard_count(link, WIRE_host_welcome), 0);
    bed_expect("");
}

/* Another boot, and the old link says nothing: it was rebooted behind a dead link. */
static void test_rebooted(void **state)
{
    struct greeting other = {.host = "ws1", .boot = "b2"};
    (void)state;
    int old = bed_ws1_up(), link = bed_link(&other);
    heard_forget();
    bed_hello(link, &other);
    assert_int_equal(heard_count(old, WIRE_ping), 1);
    fake_time_skip(1999);
    fake_no_event();
    fake_time_pass(1);
    assert_true(fake_event(EVENT_HOST_UP)->u.up.rebooted);
    assert_false(links_open((size_t)old));
    heard(link, WIRE_host_welcome);
    bed_expect("cut ws1; shown AB; up ws1");
}

/* The old link ends while it is looked at. */
static void test_challenger_of_cut(void **state)
{
    struct greeting other = {.host = "ws1", .boot = "b2"};
    (void)state;
    int old = bed_ws1_up(), link = bed_link(&other);
    bed_hello(link, &other);
    links_cut((size_t)old);
    fake_event(EVENT_HOST_SILENT);
    assert_true(fake_event(EVENT_HOST_UP)->u.up.rebooted);
    heard(link, WIRE_host_welcome);
}

static void test_challenger_goes(void **state)
{
    struct greeting other = {.host = "ws1", .boot = "b2"};
    (void)state;
    int old = bed_ws1_up(), link = bed_link(&other);
    bed_hello(link, &other);
    links_cut((size_t)link);
    fake_time_skip(2000);
    fake_time_fire();
    assert_true(links_open((size_t)old));
    fake_event(EVENT_HOST_SILENT);
}

/* ---- silence ---- */

static void test_heartbeat(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    for (int i = 0; i < 20; i++) {
        fake_time_pass(BEAT_MS);
        assert_int_equal(heard_count(link, WIRE_ping), 1);
        bed_pong(link);
    }
    fake_no_event();
}

static void test_suspect(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    fake_time_pass(2 * BEAT_MS - 1);
    fake_no_event();
    fake_time_pass(1);
    assert_int_equal(fake_event(EVENT_HOST_SILENT)->host, WS1);
    assert_string_equal(bed_state_of(WS1), "suspect");
    fake_time_pass(BEAT_MS);
    fake_no_event(); /* once */
    bed_pong(link);
    assert_int_equal(fake_event(EVENT_HOST_HEARD)->host, WS1);
    assert_string_equal(bed_state_of(WS1), "up");
    bed_pong(link);
    fake_no_event();
}

static void test_silent_for_too_long(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    fake_time_pass(TIMEOUT_MS - 1);
    fake_event(EVENT_HOST_SILENT);
    fake_no_event();
    fake_time_pass(1);
    assert_false(links_open((size_t)link));
    fake_event(EVENT_HOST_SILENT); /* its link is cut */
    assert_int_equal(fake_event(EVENT_HOST_DOWN)->u.down.silence_ms, TIMEOUT_MS);
    bed_expect("cut ws1");
    assert_string_equal(bed_state_of(WS1), "down");
    links_turn();
    fake_no_event();
    bed_up(&(struct greeting){.host = "ws1"});
}

static void test_cut(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    fake_time_skip(300);
    links_cut((size_t)link);
    fake_event(EVENT_HOST_SILENT);
    bed_expect("cut ws1");
    assert_string_equal(bed_state_of(WS1), "suspect");
    fake_time_pass(TIMEOUT_MS - 301); /* from its last sign of life */
    fake_no_event();
    fake_time_pass(1);
    assert_int_equal(fake_event(EVENT_HOST_DOWN)->u.down.silence_ms, TIMEOUT_MS);
    assert_string_equal(bed_state_of(WS1), "down");
}

static void test_cut_and_back(void **state)
{
    (void)state;
    links_cut((size_t)bed_ws1_up());
    fake_event(EVENT_HOST_SILENT);
    fake_time_pass(TIMEOUT_MS - 1);
    int link = bed_ws1_up();
    fake_time_pass(1);
    fake_no_event();
    assert_true(links_open((size_t)link));
}

/* elmer itself did not run: nobody's silence is counted for that time. */
static void test_stall(void **state)
{
    (void)state;
    int link = bed_ws1_up(), cut = bed_up(&(struct greeting){.host = "ws2"});
    int nobody = bed_link(&(struct greeting){.host = "queue"});
    links_cut((size_t)cut);
    fake_event(EVENT_HOST_SILENT);
    fake_time_skip(60000);
    hosts_stalled(bed.hosts, 60000);
    fake_time_fire();
    assert_true(links_open((size_t)link));
    assert_true(links_open((size_t)nobody));
    fake_no_event();
    fake_time_pass(2 * BEAT_MS); /* it is asked now, and does not answer */
    assert_int_equal(fake_event(EVENT_HOST_SILENT)->host, WS1);
    bed_pong(link);
    fake_event(EVENT_HOST_HEARD);
    fake_time_pass(TIMEOUT_MS - 2 * BEAT_MS - 1);
    fake_event(EVENT_HOST_SILENT);
    fake_no_event();
    fake_time_pass(1); /* the one without a link had its own time, but longer by the stall */
    assert_int_equal(fake_event(EVENT_HOST_DOWN)->host, WS2);
}

/* ---- its life ---- */

static void again(bool awaited, int listeners_code, int expected)
{
    static const struct hosts_callbacks none = {0};
    struct err err = ERR_INIT;
    hosts_close(bed.hosts);
    hosts_destroy(bed.hosts);
    links_end();
    links_begin(WIRE_FROM_ELMER);
    links_refuse_listeners(listeners_code);
    fake_engine.hosts[WS1].state = awaited ? CORE_HOST_AWAITED : CORE_HOST_DOWN;
    assert_int_equal(hosts_create(&fake_engine.room, &bed.settings, &none, &bed, &bed.hosts, &err), expected);
}

/* After a restart those of before are given up if they do not come. */
static void test_awaited(void **state)
{
    (void)state;
    again(true, 0, 0);
    assert_string_equal(bed_state_of(WS1), "suspect");
    assert_string_equal(bed_state_of(WS2), "never-seen");
    fake_time_pass(TIMEOUT_MS - 1);
    fake_no_event();
    fake_time_pass(1);
    const struct event *down = fake_event(EVENT_HOST_DOWN);
    assert_int_equal(down->host, WS1);
    assert_int_equal(down->u.down.silence_ms, TIMEOUT_MS);
    fake_no_event();
}

static void test_create_fails(void **state)
{
    (void)state;
    again(true, -EADDRINUSE, -EADDRINUSE);
    hosts_close(NULL);
    hosts_destroy(NULL);
}

/* Links are closed, and nobody is told of it. */
static void test_close(void **state)
{
    (void)state;
    int link = bed_ws1_up();
    hosts_close(bed.hosts);
    assert_false(links_open((size_t)link));
    links_turn();
    fake_no_event();
    bed_expect("");
    hosts_destroy(bed.hosts);
    bed.hosts = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_up),
        TEST(test_refused),
        TEST(test_nonsense_cpus),
        TEST(test_first_message),
        TEST(test_no_hello),
        TEST(test_local),
        TEST(test_too_many_links),
        TEST(test_unusable),
        TEST(test_same_boot),
        TEST(test_second_machine),
        TEST(test_rebooted),
        TEST(test_challenger_of_cut),
        TEST(test_challenger_goes),
        TEST(test_heartbeat),
        TEST(test_suspect),
        TEST(test_silent_for_too_long),
        TEST(test_cut),
        TEST(test_cut_and_back),
        TEST(test_stall),
        TEST(test_awaited),
        TEST(test_create_fails),
        TEST(test_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
