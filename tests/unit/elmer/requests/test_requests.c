/* test_requests.c - who a client is, who may do what, limits, and clients that go away. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elmer/fakes/fake_settings.h"
#include "tests/unit/elmer/requests/bed.h"

/* ---- who may do what ---- */

/* An owner is not looked up, so that he can end his jobs whatever name services do. */
static void test_owner(void **state)
{
    static const struct {
        enum wire_type type;
        enum event_type event;
        const char *words;
    } verbs[] = {{WIRE_cancel, EVENT_CANCEL, "job 7 is cancelled"},
                 {WIRE_kill, EVENT_KILL, "job 7 is being ended"},
                 {WIRE_hold, EVENT_HOLD, "job 7 is held"},
                 {WIRE_release, EVENT_RELEASE, "job 7 is released"},
                 {WIRE_top, EVENT_TOP, "job 7 is before all other waiting jobs of its owner"}};
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int link = bed_client(ALICE);
    for (size_t i = 0; i < 5; i++) {
        bed_say(link, verbs[i].type, 7);
        assert_int_equal(fake_work_count(), 0);
        const struct event *event = fake_event(verbs[i].event);
        assert_int_equal(event->job, 7);
        assert_true(event->u.by.uid == ALICE && !event->u.by.admin);
        heard_nothing(); /* not before it is on disk */
        bed_answer(event, ANSWER_OK, 7);
        const struct wire_message *done = heard(link, WIRE_done);
        assert_int_equal(done->id, 3);
        assert_string_equal(done->u.done.text, verbs[i].words);
    }
}

static void test_others(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int bob = bed_client(BOB), carol = bed_client(CAROL), root = bed_client(ROOT);
    bed_say(bob, WIRE_kill, 7);
    fake_no_event();
    fake_work_run();
    const struct event *event = fake_event(EVENT_KILL);
    assert_int_equal(event->u.by.uid, BOB);
    assert_false(event->u.by.admin);
    bed_answer(event, ANSWER_NOT_PERMITTED, 7);
    assert_string_equal(heard_error(bob, "job 7 belongs to alice"), WIRE_CODE_NOT_PERMITTED);
    bed_say(carol, WIRE_kill, 7);
    fake_work_run();
    assert_true(fake_event(EVENT_KILL)->u.by.admin);
    bed_say(root, WIRE_kill, 7); /* of the queue host */
    assert_int_equal(fake_work_count(), 0);
    assert_true(fake_event(EVENT_KILL)->u.by.admin);
}

static void answer_is(int link, enum wire_type type, uint64_t job, enum answer answer, const char *code,
                      const char *words)
{
    bed_say(link, type, job);
    fake_work_run();
    fake_engine.last = fake_engine.events[0];
    fake_engine.nevents = 0;
    bed_answer(&fake_engine.last.event, answer, job);
    assert_string_equal(heard_error(link, words), code);
}

static void test_refusals(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    fake_engine_add_job(8, ALICE, JOB_QUEUED);
    fake_engine_add_job(9, ALICE, JOB_DONE);
    int link = bed_client(ALICE);
    answer_is(link, WIRE_cancel, 7, ANSWER_WRONG_STATE, WIRE_CODE_WRONG_STATE,
              "job 7 is running: it cannot be cancelled; end it with ekill");
    answer_is(link, WIRE_kill, 8, ANSWER_WRONG_STATE, WIRE_CODE_WRONG_STATE, "remove it with ecancel");
    answer_is(link, WIRE_hold, 9, ANSWER_WRONG_STATE, WIRE_CODE_WRONG_STATE, "job 9 has ended already");
    answer_is(link, WIRE_hold, 3, ANSWER_NO_SUCH_JOB, WIRE_CODE_WRONG_STATE, "job 3 has ended already");
    answer_is(link, WIRE_hold, 10, ANSWER_NO_SUCH_JOB, WIRE_CODE_NO_SUCH_JOB, "there is no job 10");
    answer_is(link, WIRE_hold, 0, ANSWER_NO_SUCH_JOB, WIRE_CODE_NO_SUCH_JOB, "there is no job 0");
}

static void drain(int link, const char *host, bool drained)
{
    struct wire_message message = {.type = WIRE_drain, .id = 3, .u.drain = {.host = host, .drained = drained}};
    say(link, &message);
    fake_work_run();
}

static void test_drain(void **state)
{
    (void)state;
    int bob = bed_client(BOB), carol = bed_client(CAROL);
    drain(bob, "ws1", true);
    assert_string_equal(heard_error(bob, "only administrators (group admins)"), WIRE_CODE_NOT_PERMITTED);
    drain(carol, "ws9", true);
    heard_error(carol, "there is no host ws9");
    drain(carol, "ws1", true);
    const struct event *event = fake_event(EVENT_DRAIN);
    assert_int_equal(event->host, WS1);
    bed_answer(event, ANSWER_OK, 0);
    assert_string_equal(heard(carol, WIRE_done)->u.done.text, "host ws1 takes no new jobs");
    drain(carol, "ws1", false);
    bed_answer(fake_event(EVENT_UNDRAIN), ANSWER_OK, 0);
    assert_string_equal(heard(carol, WIRE_done)->u.done.text, "host ws1 takes jobs again");
}

static void set(int link, const char *setting, const char *value)
{
    struct wire_message message = {.type = WIRE_set, .id = 3, .u.set = {.setting = setting, .value = value}};
    say(link, &message);
    fake_work_run();
}

static void test_set(void **state)
{
    (void)state;
    fake_settings_begin();
    int bob = bed_client(BOB), carol = bed_client(CAROL);
    set(bob, "allocator", "first");
    assert_string_equal(heard_error(bob, "only administrators (group admins)"), WIRE_CODE_NOT_PERMITTED);
    set(carol, "levels", "4");
    assert_string_equal(heard_error(carol, "'levels' cannot be set; what can be is: allocator policy"),
                        WIRE_CODE_REFUSED);
    set(carol, "allocator", "third");
    heard_error(carol, "there is no allocator 'third'; known are: first second, and default");
    fake_settings.impossible = 1;
    set(carol, "allocator", "second");
    heard_error(carol, "it needs topology = cube");
    set(carol, "allocator", "first");
    const struct event *event = fake_event(EVENT_SET);
    assert_int_equal(event->u.set.setting, SETTING_ALLOCATOR);
    assert_int_equal(event->u.set.value, 0);
    fake_settings.set[SETTING_ALLOCATOR] = 0;
    bed_answer(event, ANSWER_OK, 0);
    assert_string_equal(heard(carol, WIRE_done)->u.done.text, "the allocator is first, until it is set to default");

    say(bob, &(struct wire_message){.type = WIRE_query_settings, .id = 4}); /* everybody may look */
    const struct wire_settings *settings = &heard(bob, WIRE_settings)->u.settings;
    assert_int_equal(settings->settings.count, SETTING_COUNT);
    assert_string_equal(settings->settings.items[0].setting, "allocator");
    assert_string_equal(settings->settings.items[0].value, "first");
    assert_string_equal(settings->settings.items[0].configured, "second");
    assert_true(settings->settings.items[0].set);
    assert_int_equal(settings->settings.items[0].known.count, 1);
    assert_string_equal(settings->settings.items[1].value, "only");
    assert_false(settings->settings.items[1].set);

    set(carol, "allocator", "default");
    event = fake_event(EVENT_SET);
    assert_int_equal(event->u.set.value, SETTING_UNSET);
    fake_settings.set[SETTING_ALLOCATOR] = SETTING_UNSET;
    bed_answer(event, ANSWER_OK, 0);
    assert_string_equal(heard(carol, WIRE_done)->u.done.text, "the allocator is second, as configured");
}

static void remove_host(int link, const char *host)
{
    struct wire_message message = {.type = WIRE_remove_host, .id = 3, .u.remove_host = {.host = host}};
    say(link, &message);
    fake_work_run();
}

static void test_remove_host(void **state)
{
    (void)state;
    snprintf(fake_membership.newest[WS1].serial, sizeof(fake_membership.newest[WS1].serial), "AA");
    snprintf(fake_membership.newest[WS1].host, sizeof(fake_membership.newest[WS1].host), "ws1");
    int bob = bed_client(BOB), carol = bed_client(CAROL);
    remove_host(bob, "ws1");
    heard_error(bob, "only administrators");
    remove_host(carol, "queue");
    heard_error(carol, "is the queue host");
    assert_string_equal(fake_membership.revoked, "");
    remove_host(carol, "ws9");
    heard_error(carol, "is no host of the cluster");
    remove_host(carol, "ws2");
    heard_error(carol, "has no certificate");
    assert_int_equal(fake_hosts.cut_off, -1);
    fake_engine.held = true;
    remove_host(carol, "ws1");
    assert_int_equal(fake_hosts.cut_off, WS1);
    assert_string_equal(fake_hosts.lost,
                        "was removed from the cluster by carol"); /* which the users of its jobs read */
    heard_nothing();                                              /* that is not on disk yet */
    fake_engine_commit();
    assert_non_null(strstr(heard(carol, WIRE_done)->u.done.text, "host ws1 is removed"));
}

static void test_query_hosts(void **state)
{
    struct wire_message message = {.type = WIRE_query_hosts, .id = 3};
    (void)state;
    snprintf(fake_membership.newest[WS1].serial, sizeof(fake_membership.newest[WS1].serial), "AA");
    fake_membership.newest[WS1].end_ms = 12345;
    bed_again(300);
    int link = bed_client(BOB);
    say(link, &message);
    const struct wire_hosts *page = &heard(link, WIRE_hosts)->u.hosts;
    assert_int_equal(page->hosts.count, 256);
    assert_true(page->more);
    assert_string_equal(page->hosts.items[WS1].host, "ws1");
    assert_true(page->hosts.items[WS1].certificate);
    assert_int_equal(page->hosts.items[WS1].valid_until_ms, 12345);
    assert_false(page->hosts.items[WS2].certificate);
    page = &heard(link, WIRE_hosts)->u.hosts;
    assert_int_equal(page->hosts.count, 44);
    assert_false(page->more);
}

/* ---- relayed clients ---- */

static void test_relayed(void **state)
{
    struct wire_message kill = {.type = WIRE_kill, .id = 3, .u.kill = {.job = 7}};
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed_relay(WS1, 1, ALICE, "alice", &kill);
    const struct event *event = fake_event(EVENT_KILL);
    assert_int_equal(event->u.by.uid, ALICE);
    bed_answer(event, ANSWER_OK, 7);
    assert_non_null(strstr(bed_relayed(WS1, 1), "job 7 is being ended"));
    bed_relay(WS1, 2, ROOT, "root", &kill); /* root of another host is nobody special */
    assert_int_equal(fake_work_count(), 1);
    fake_work_run();
    assert_false(fake_event(EVENT_KILL)->u.by.admin);
    bed_relay(QUEUE, 3, ROOT, "root", &kill); /* nor one whom the rsd of this host calls root */
    assert_false(fake_event(EVENT_KILL)->u.by.admin);
}

/* A host that says "carol" is believed as far as carol herself goes, unless the configuration trusts it further. */
static void test_relayed_admin(void **state)
{
    struct wire_message kill = {.type = WIRE_kill, .id = 3, .u.kill = {.job = 7}},
                        drain = {.type = WIRE_drain, .id = 4, .u.drain = {.host = "ws2", .drained = true}},
                        removal = {.type = WIRE_remove_host, .id = 5, .u.remove_host = {.host = "ws2"}},
                        set = {.type = WIRE_set, .id = 6, .u.set = {.setting = "allocator", .value = "v1"}};
    const struct wire_message *all[] = {&drain, &removal, &set};
    static const int hosts[] = {WS1, QUEUE};
    static const char *const advice[] = {"do it on queue, or add ws1 to", "ELMER_SOCKET=/socket"};
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed_say(bed_client(CAROL), WIRE_kill, 7); /* here she is one, and elmer knows it */
    fake_work_run();
    assert_true(fake_event(EVENT_KILL)->u.by.admin);
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < 3; j++) {
            bed_relay(hosts[i], 1, CAROL, "carol", all[j]);
            const char *answer = bed_relayed(hosts[i], 1);
            assert_non_null(strstr(answer, WIRE_CODE_NOT_PERMITTED));
            assert_non_null(strstr(answer, "only administrators (group admins) may "));
            assert_non_null(strstr(answer, advice[i]));
        }
        bed_relay(hosts[i], 1, CAROL, "carol", &kill);
        const struct event *event = fake_event(EVENT_KILL);
        assert_false(event->u.by.admin);
        bed_answer(event, ANSWER_NOT_PERMITTED, 7);
        assert_non_null(strstr(bed_relayed(hosts[i], 1), advice[i]));
        bed_relay(hosts[i], 2, ROOT, "root", &drain);
        fake_work_run();
        assert_non_null(strstr(bed_relayed(hosts[i], 2), WIRE_CODE_NOT_PERMITTED));
        fake_no_event();
    }
    bed_relay(WS1, 3, BOB, "bob", &drain);
    fake_work_run();
    assert_null(strstr(bed_relayed(WS1, 3), "admin_hosts")); /* it would not help him */
    bed.hosts[WS1].admin = true;
    bed_relay(WS1, 4, CAROL, "carol", &drain); /* it has to be signed there: test_warrant */
    assert_non_null(strstr(bed_relayed(WS1, 4), "only the rsd of ws1 says so: it has to be signed there"));
    fake_no_event();
    bed_relay(WS1, 6, ROOT, "root", &drain); /* of that host */
    assert_non_null(strstr(bed_relayed(WS1, 6), WIRE_CODE_NOT_PERMITTED));
}

/* The limits for a user are not lifted either for whom a host calls an administrator. */
static void test_relayed_admin_is_limited(void **state)
{
    struct wire_message ping = {.type = WIRE_ping, .id = 3};
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed_say(bed_client(CAROL), WIRE_kill, 7);
    fake_work_run();
    fake_event(EVENT_KILL);
    for (int i = 0; i < 400; i++) {
        bed_relay(WS1, 1, CAROL, "carol", &ping);
        bed_relayed(WS1, 1);
    }
    bed_relay(WS1, 1, CAROL, "carol", &ping);
    assert_non_null(strstr(bed_relayed(WS1, 1), "too many requests"));
}

/* The name and the uid must belong together on both hosts, where that matters. */
static void test_conflict(void **state)
{
    struct wire_message submission = bed_submission("t");
    (void)state;
    bed_relay(WS1, 1, ALICE, "bob", &submission);
    fake_work_run();
    const char *frame = bed_relayed(WS1, 1);
    assert_non_null(strstr(frame, WIRE_CODE_NOT_PERMITTED));
    assert_non_null(strstr(frame, "uid 1001 on ws1, which is the uid of alice"));
    bed_relay(WS1, 2, NOBODY, "bob", &submission);
    fake_work_run();
    assert_non_null(strstr(bed_relayed(WS1, 2), "and another one on the queue host"));
    fake_no_event();
    assert_int_equal(fake_store.nreads, 0);
}

static void test_bad_relay(void **state)
{
    struct wire_message relay = {.type = WIRE_relay,
                                 .u.relay = {.client = 1, .uid = ALICE, .user = "al ice", .frame = "{}"}};
    struct wire_message order = {.type = WIRE_order};
    (void)state;
    requests_relay(bed.requests, WS1, false, &relay);
    assert_non_null(strstr(bed_relayed(WS1, 1), "a user name that cannot be used"));
    relay.u.relay.user = "alice";
    requests_relay(bed.requests, WS1, false, &relay);
    assert_non_null(strstr(bed_relayed(WS1, 1), WIRE_CODE_BAD_MESSAGE));
    bed_relay(WS1, 1, ALICE, "alice", &order);
    assert_non_null(strstr(bed_relayed(WS1, 1), "a client may not send this message"));
}

/* Its host says that it is gone, or the host's link is; the number may be another's then. */
static void test_relayed_gone(void **state)
{
    struct wire_message kill = {.type = WIRE_kill, .id = 3, .u.kill = {.job = 7}},
                        closed = {.type = WIRE_relay_closed, .u.relay_closed = {.client = 1}};
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed_relay(WS1, 1, ALICE, "alice", &kill);
    requests_relay(bed.requests, WS1, false, &closed);
    bed_answer(fake_event(EVENT_KILL), ANSWER_OK, 7);
    heard_nothing();
    bed_relay(WS1, 1, ALICE, "alice", &kill);
    requests_host_cut(bed.requests, WS1);
    bed_answer(fake_event(EVENT_KILL), ANSWER_OK, 7);
    heard_nothing();
    bed_relay(WS1, 1, ALICE, "alice", &kill);
    bed_relay(WS1, 1, BOB, "bob", &kill);
    bed_answer(fake_event(EVENT_KILL), ANSWER_OK, 7);
    heard_nothing(); /* not to bob */
}

/* ---- limits ---- */

static void test_connections(void **state)
{
    struct wire_message ping = {.type = WIRE_ping, .id = 4};
    (void)state;
    int links[4];
    for (int i = 0; i < 4; i++)
        links[i] = bed_client(ALICE);
    int refused = bed_client(ALICE);
    assert_int_equal(refused, -1);
    assert_true(bed_client(BOB) >= 0);
    bed_relay(WS1, 1, ALICE, "alice", &ping); /* over all hosts */
    assert_non_null(strstr(bed_relayed(WS1, 1), "too many connections"));
    links_cut((size_t)links[0]);
    assert_true(bed_client(ALICE) >= 0);
    for (int i = 0; i < 5; i++)
        assert_true(bed_client(ROOT) >= 0); /* must be able to help */
}

static void test_rate(void **state)
{
    struct wire_message ping = {.type = WIRE_ping, .id = 4};
    (void)state;
    bed.settings.user_requests_burst = 20;
    bed_again(0);
    int alice = bed_client(ALICE), bob = bed_client(BOB);
    for (int i = 0; i < 20; i++) {
        say(alice, &ping);
        assert_int_equal(heard(alice, WIRE_pong)->id, 4);
    }
    say(alice, &ping);
    assert_string_equal(heard_error(alice, "too many requests"), WIRE_CODE_REFUSED);
    say(bob, &ping);
    heard(bob, WIRE_pong);
    fake_time_skip(1000);
    say(alice, &ping);
    heard(alice, WIRE_pong);
    for (int i = 0; i < 60 && links_open((size_t)alice); i++)
        say(alice, &ping);
    assert_false(links_open((size_t)alice)); /* refusals have not helped */
    links_turn();
    assert_int_equal(bed_client(ALICE), -1);
}

static void test_large_request(void **state)
{
    static char large[150 << 10];
    (void)state;
    bed.settings.user_request_bytes = 1000;
    bed_again(0);
    int link = bed_client(ALICE);
    struct wire_message submission = bed_submission("t");
    const char *command[] = {large};
    memset(large, 'a', sizeof(large) - 1);
    submission.u.submit.command = (struct wire_strs){command, 1};
    submission.bytes = 0;
    say(link, &submission);
    heard_error(link, "the request is too large");
    assert_int_equal(fake_work_count(), 0);
}

static void test_outstanding(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int link = bed_client(ALICE);
    for (int i = 0; i < 256; i++)
        bed_say(link, WIRE_kill, 7);
    heard_nothing();
    bed_say(link, WIRE_kill, 7);
    heard_error(link, "too many requests without answer");
    for (int i = 0; i < 256; i++)
        bed_answer(fake_event(EVENT_KILL), ANSWER_OK, 7);
    assert_int_equal(heard_count(link, WIRE_done), 256);
}

/* ---- clients that go away ---- */

static void test_gone(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int bob = bed_client(BOB);
    bed_say(bob, WIRE_kill, 7);
    links_cut((size_t)bob); /* while name services are asked */
    fake_work_run();
    fake_no_event();
    int alice = bed_client(ALICE);
    bed_say(alice, WIRE_kill, 7);
    links_cut((size_t)alice); /* it goes on, its answer is dropped */
    bed_answer(fake_event(EVENT_KILL), ANSWER_OK, 7);
    heard_nothing();
}

static void test_close(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int alice = bed_client(ALICE), bob = bed_client(BOB);
    bed_say(alice, WIRE_wait, 7);
    bed_say(alice, WIRE_kill, 7);
    fake_event(EVENT_KILL);
    bed_say(bob, WIRE_kill, 7);
    requests_close(bed.requests);
    assert_false(links_open((size_t)alice));
    links_turn();
    fake_work_run();
    fake_no_event();
    heard_nothing();
    requests_destroy(bed.requests);
    bed.requests = NULL;
}

static void test_create_fails(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    requests_close(bed.requests);
    requests_destroy(bed.requests);
    links_refuse_listeners(-EADDRINUSE);
    assert_int_equal(requests_create(&fake_engine.room, &bed.settings, FAKE_HOSTS_ROOM, FAKE_MEMBERSHIP_ROOM,
                                     FAKE_LAUNCH_ROOM, &bed.requests, &err),
                     -EADDRINUSE);
    requests_close(NULL);
    requests_destroy(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_owner),         TEST(test_others),
        TEST(test_refusals),      TEST(test_drain),
        TEST(test_set),           TEST(test_remove_host),
        TEST(test_query_hosts),   TEST(test_relayed),
        TEST(test_relayed_admin), TEST(test_relayed_admin_is_limited),
        TEST(test_conflict),      TEST(test_bad_relay),
        TEST(test_relayed_gone),  TEST(test_connections),
        TEST(test_rate),          TEST(test_large_request),
        TEST(test_outstanding),   TEST(test_gone),
        TEST(test_close),         TEST(test_create_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
