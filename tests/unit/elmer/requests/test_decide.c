/* test_decide.c - who has decided what, and from where; and who may read it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/fakes/fake_settings.h"
#include "tests/unit/elmer/requests/bed.h"

/* The owner, whose name needs no lookup: his own affair. */
static void test_own(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int link = bed_client(ALICE);
    bed_say(link, WIRE_kill, 7);
    const struct event *event = fake_event(EVENT_KILL);
    assert_string_equal(event->u.by.text, "ended by ekill of alice");
    bed_answer(event, ANSWER_OK, 7);
    heard(link, WIRE_done);
    const struct decision *d = &fake_engine.decision;
    assert_string_equal(d->what, "ended");
    assert_int_equal(d->job, 7);
    assert_string_equal(d->user, "alice");
    assert_string_equal(d->by, "alice");
    assert_string_equal(d->from, "queue");
    assert_false(d->admin);
}

/* An administrator, from another host: the owner reads who it was. */
static void test_other(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed.hosts[WS2].admin = true;
    struct wire_message kill = {.type = WIRE_kill, .id = 3, .u.kill = {.job = 7}};
    bed_relay_signed(WS2, 5, CAROL, "carol", &kill);
    const struct event *event = fake_event(EVENT_KILL);
    assert_string_equal(event->u.by.text, "ended by ekill of carol");
    bed_answer(event, ANSWER_OK, 7);
    const struct decision *d = &fake_engine.decision;
    assert_string_equal(d->user, "alice");
    assert_string_equal(d->by, "carol");
    assert_int_equal(d->uid, CAROL);
    assert_string_equal(d->from, "ws2");
    assert_true(d->admin);
}

/* Why, beside who: what the owner reads, and what is kept. */
static void test_reason(void **state)
{
    struct wire_message kill = {
        .type = WIRE_kill, .id = 3, .u.kill = {.job = 7, .reason = "host ws2 is drained: \"disk\"\n"}};
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int link = bed_client(CAROL);
    say(link, &kill);
    fake_work_run();
    const struct event *event = fake_event(EVENT_KILL);
    assert_string_equal(event->u.by.text, "ended by carol: host ws2 is drained: \"disk\"\\x0A");
    bed_answer(event, ANSWER_OK, 7);
    heard(link, WIRE_done);
    assert_string_equal(fake_engine.decision.text, "host ws2 is drained: \"disk\"\\x0A");
}

static const char *by_root(const char *capability)
{
    links_have(capability);
    int link = bed_client(0);
    bed_say(link, WIRE_kill, 7);
    fake_work_run();
    const struct event *event = fake_event(EVENT_KILL);
    bed_answer(event, ANSWER_OK, 7);
    heard(link, WIRE_done);
    assert_int_equal(fake_engine.decision.uid, 0);
    assert_string_equal(event->u.by.text + strlen("ended by ekill of "), fake_engine.decision.by);
    links_have("");
    return fake_engine.decision.by;
}

/* Root says itself who has called sudo; others may say what they like. */
static void test_sudo(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    assert_string_equal(by_root(""), "root");
    assert_string_equal(by_root("sudo=carol"), "root (carol)");
    assert_string_equal(by_root("su=carol"), "root");
    assert_string_equal(by_root("sudo=carol) by=(bob"), "root");
    assert_string_equal(by_root("sudo=a\nb"), "root");
    links_have("sudo=bob");
    int link = bed_client(CAROL);
    bed_say(link, WIRE_kill, 7);
    fake_work_run();
    assert_string_equal(fake_event(EVENT_KILL)->u.by.text, "ended by ekill of carol");
    struct wire_message kill = {.type = WIRE_kill, .id = 3, .u.kill = {.job = 7}};
    bed.hosts[WS2].admin = true;
    bed_relay_signed(WS2, 5, CAROL, "carol", &kill);
    assert_string_equal(fake_event(EVENT_KILL)->u.by.text, "ended by ekill of carol");
    links_have("");
}

static void test_words(void **state)
{
    static const struct {
        enum wire_type type;
        enum event_type event;
        const char *what, *told;
    } cases[] = {
        {WIRE_cancel, EVENT_CANCEL, "cancelled", "removed from the queue by ecancel of carol"},
        {WIRE_hold, EVENT_HOLD, "held", "held by carol: it stays in the queue until it is released"},
        {WIRE_release, EVENT_RELEASE, "released", NULL},
        {WIRE_top, EVENT_TOP, "moved", NULL},
    };
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_QUEUED);
    int link = bed_client(CAROL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bed_say(link, cases[i].type, 7);
        fake_work_run();
        const struct event *event = fake_event(cases[i].event);
        if (cases[i].told)
            assert_string_equal(event->u.by.text, cases[i].told);
        else
            assert_string_equal(event->u.by.text, "");
        bed_answer(event, ANSWER_OK, 7);
        heard(link, WIRE_done);
        assert_string_equal(fake_engine.decision.what, cases[i].what);
    }
}

static void test_drain(void **state)
{
    (void)state;
    int link = bed_client(CAROL);
    struct wire_message drain = {
        .type = WIRE_drain, .id = 3, .u.drain = {.host = "ws1", .drained = true, .reason = "disk\nfull"}};
    say(link, &drain);
    fake_work_run();
    bed_answer(fake_event(EVENT_DRAIN), ANSWER_OK, 0);
    assert_string_equal(heard(link, WIRE_done)->u.done.text, "host ws1 takes no new jobs");
    assert_string_equal(fake_engine.decision.what, "drained");
    assert_string_equal(fake_engine.decision.host, "ws1");
    assert_string_equal(fake_engine.decision.text, "disk\\x0Afull"); /* a line stays a line */
}

static void test_set(void **state)
{
    struct wire_message set = {.type = WIRE_set, .id = 3, .u.set = {.setting = "allocator", .value = "first"}};
    (void)state;
    fake_settings_begin();
    int link = bed_client(CAROL);
    say(link, &set);
    fake_work_run();
    assert_int_equal(fake_event(EVENT_SET)->u.set.value, 0);
    assert_string_equal(fake_engine.decision.what, "set");
    assert_string_equal(fake_engine.decision.text, "allocator first, it was second");
}

/* What eadmin does itself. */
static void test_note(void **state)
{
    struct wire_message note = {.type = WIRE_note, .id = 3, .u.note = {.what = "backed-up", .text = "/root/b\n"}};
    (void)state;
    int link = bed_client(BOB);
    say(link, &note);
    fake_work_run();
    assert_string_equal(heard_error(link, "only administrators (group admins) may write"), WIRE_CODE_NOT_PERMITTED);
    link = bed_client(CAROL);
    say(link, &note);
    fake_work_run();
    assert_string_equal(heard(link, WIRE_done)->u.done.text, "noted");
    assert_string_equal(fake_engine.decision.what, "backed-up");
    assert_string_equal(fake_engine.decision.by, "carol");
    assert_string_equal(fake_engine.decision.text, "/root/b\\x0A");
    static const char *const others[] = {"token-made", "initialised", "restored"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        note.u.note.what = others[i];
        say(link, &note);
        fake_work_run();
        heard(link, WIRE_done);
        assert_string_equal(fake_engine.decision.what, others[i]);
    }
    note.u.note.what = "rebooted";
    note.u.note.host = "ws1";
    note.u.note.text = "";
    say(link, &note);
    fake_work_run();
    heard(link, WIRE_done);
    assert_string_equal(fake_engine.decision.host, "ws1");
    note.u.note.host = "ws9";
    say(link, &note);
    fake_work_run();
    heard_error(link, "there is no host ws9");
    note.u.note.what = "drained"; /* only what elmer has done is said so */
    say(link, &note);
    fake_work_run();
    heard_error(link, "does not note 'drained'");
}

/* ---- reading them ---- */

static void test_log(void **state)
{
    const struct decision rows[] = {{.id = 8, .at_ms = 5, .what = "held", .job = 7, .user = "alice", .by = "carol"},
                                    {.id = 9, .at_ms = 6, .what = "drained", .host = "ws1", .text = "disk"}};
    struct wire_message ask = {.type = WIRE_query_log, .id = 3, .u.query_log = {.since_ms = 4, .after = 7}};
    (void)state;
    int link = bed_client(BOB);
    say(link, &ask);
    fake_work_run();
    assert_string_equal(heard_error(link, "only administrators (group admins) may read"), WIRE_CODE_NOT_PERMITTED);
    link = bed_client(CAROL);
    say(link, &ask);
    fake_work_run();
    assert_int_equal(fake_store.nreads, 1);
    assert_int_equal(fake_store.reads[0].since_ms, 4);
    assert_int_equal(fake_store.reads[0].after, 7);
    fake_store_answer_decisions(rows, 2, NULL);
    const struct wire_log *log = &heard(link, WIRE_log)->u.log;
    assert_int_equal(log->decisions.count, 2);
    assert_false(log->more);
    assert_string_equal(log->decisions.items[0].user, "alice");
    assert_string_equal(log->decisions.items[1].text, "disk");
    say(link, &ask);
    fake_work_run();
    fake_store_answer_decisions(NULL, 0, "the disk is broken");
    assert_string_equal(heard_error(link, "the log cannot be read: the disk is broken"), WIRE_CODE_UNAVAILABLE);
}

/* A host that has joined, and whose certificate a crash or a restored store has cost, can be removed all the same. */
static void test_removed(void **state)
{
    struct wire_message remove = {.type = WIRE_remove_host, .id = 3, .u.remove_host = {.host = "ws2"}};
    (void)state;
    fake_engine.hosts[WS2].joined = true;
    int root = bed_client(ROOT);
    say(root, &remove);
    assert_int_equal(fake_event(EVENT_HOST_RETIRE)->host, WS2);
    assert_non_null(strstr(heard(root, WIRE_done)->u.done.text, "host ws2 is removed"));
    assert_string_equal(fake_engine.decision.what, "removed");
    assert_int_equal(fake_hosts.cut_off, WS2);
    fake_engine.hosts[WS2].retired = true;
    say(root, &remove);
    heard_error(root, "ws2 has no certificate");
    fake_no_event();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_own),     TEST(test_other),  TEST(test_words), TEST(test_drain),
                                       TEST(test_sudo),    TEST(test_reason), TEST(test_set),   TEST(test_note),
                                       TEST(test_removed), TEST(test_log)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
