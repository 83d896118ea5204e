/* test_warrant.c - administrators on hosts of admin_hosts: what is signed there counts once, soon, and for what it
 * says; what the host alone says does not. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ticket/warrant.h"
#include "tests/unit/elmer/requests/bed.h"

static struct wire_message kill7 = {.type = WIRE_kill, .id = 3, .u.kill = {.job = 7}};
static struct wire_message drain = {.type = WIRE_drain, .id = 3, .u.drain = {.host = "ws2", .drained = true}};
static struct wire_message ask = {.type = WIRE_challenge_ask, .id = 4};

static int setup(void **state)
{
    int result = bed_setup(state);
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed.hosts[WS1].admin = true;
    bed_again(fake_engine.nhosts); /* clients that come from now on */
    return result;
}

static void is_refused(const char *why)
{
    const char *answer = bed_relayed(WS1, 1);
    fake_no_event();
    assert_non_null(strstr(answer, WIRE_CODE_NOT_PERMITTED));
    if (!strstr(answer, why))
        fail_msg("%s, not: %s", answer, why);
}

/* The host alone says so: nothing is done, and it is said what to do. */
static void test_unsigned(void **state)
{
    struct wire_message set = {.type = WIRE_set, .id = 3, .u.set = {.setting = "allocator", .value = "v1"}};
    (void)state;
    bed_relay(WS1, 1, CAROL, "carol", &drain);
    fake_work_run();
    is_refused(
        "only the rsd of ws1 says so: it has to be signed there, which commands and rsd do from protocol 1.10 on: "
        "upgrade both there, or do it on queue");
    bed_relay(WS1, 1, CAROL, "carol", &set);
    is_refused("it has to be signed there");
    bed_relay(WS1, 1, CAROL, "carol", &kill7);
    const struct event *event = fake_event(EVENT_KILL);
    assert_false(event->u.by.admin);
    bed_answer(event, ANSWER_NOT_PERMITTED, 7);
    is_refused("it has to be signed there");
}

static void test_signed(void **state)
{
    (void)state;
    bed_relay_signed(WS1, 1, CAROL, "carol", &kill7);
    const struct event *event = fake_event(EVENT_KILL);
    assert_true(event->u.by.admin);
    assert_int_equal(event->u.by.uid, CAROL);
    assert_int_equal(event->job, 7);
    bed_answer(event, ANSWER_OK, 7);
    assert_non_null(strstr(bed_relayed(WS1, 1), "job 7 is being ended"));
    bed_relay_signed(WS1, 1, CAROL, "carol", &drain);
    event = fake_event(EVENT_DRAIN);
    assert_int_equal(event->host, WS2);
    assert_string_equal(fake_engine.decision.by, "carol");
    assert_string_equal(fake_engine.decision.from, "ws1");
}

/* A client that is there already, after a reload of the configuration. */
static void test_host_taken_out(void **state)
{
    const struct event *event;
    (void)state;
    bed_relay_signed(WS1, 1, CAROL, "carol", &kill7);
    event = fake_event(EVENT_KILL);
    assert_true(event->u.by.admin);
    bed_answer(event, ANSWER_OK, 7);
    (void)bed_relayed(WS1, 1);
    bed.hosts[WS1].admin = false;
    bed_relay(WS1, 1, CAROL, "carol", &(struct wire_message){.type = WIRE_challenge_ask, .id = 9});
    is_refused("there is nothing to sign");
}

static struct wire_message as_before(void)
{
    struct wire_message again = {.type = WIRE_decide, .id = 3};
    again.u.decide.request = bed_signing.request;
    again.u.decide.minor = WIRE_MINOR;
    again.u.decide.warrant = bed_signing.warrant;
    return again;
}

/* The network half repeats it: at once, after another challenge, for another client. */
static void test_replayed(void **state)
{
    (void)state;
    bed_relay_signed(WS1, 1, CAROL, "carol", &drain);
    bed_answer(fake_event(EVENT_DRAIN), ANSWER_OK, 0);
    bed_relayed(WS1, 1);
    struct wire_message again = as_before();
    bed_relay(WS1, 1, CAROL, "carol", &again);
    is_refused("used-challenge");
    bed_relay(WS1, 1, CAROL, "carol", &ask);
    bed_relayed(WS1, 1);
    bed_relay(WS1, 1, CAROL, "carol", &again);
    is_refused("used-challenge");
    bed_relay(WS1, 1, CAROL, "carol", &again);
    is_refused("used-challenge"); /* the refused try has used it up */
}

static void spoil_challenge(struct warrant *w)
{
    w->challenge[0] ^= 1;
}

static void spoil_user(struct warrant *w)
{
    memcpy(w->user, "bob", 4);
}

static void spoil_uid(struct warrant *w)
{
    w->uid = BOB;
}

static void spoil_certificate(struct warrant *w)
{
    w->certificate[5] ^= 1;
}

static void spoil_request(struct warrant *w)
{
    assert_true(ticket_digest_text("{\"type\": \"kill\", \"id\": 3, \"job\": 8, \"tasks\": \"\"}", w->request));
}

static void spoil_signature(struct warrant *w)
{
    w->signature[9] ^= 1;
}

static void test_each_check(void **state)
{
    static const struct {
        void (*spoil)(struct warrant *warrant), (*forge)(struct warrant *warrant);
        const char *host, *why;
    } cases[] = {
        {spoil_challenge, NULL, NULL, "used-challenge"}, {NULL, NULL, "ws2", "other-host"},
        {spoil_user, NULL, NULL, "other-user"},          {spoil_uid, NULL, NULL, "other-user"},
        {spoil_request, NULL, NULL, "other-request"},    {spoil_certificate, NULL, NULL, "other-cluster"},
        {NULL, spoil_signature, NULL, "forged"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bed_signing.spoil = cases[i].spoil;
        bed_signing.forge = cases[i].forge;
        bed_signing.host = cases[i].host;
        bed_relay_signed(WS1, 1, CAROL, "carol", &drain);
        is_refused(cases[i].why);
    }
}

/* Signed long ago, kept back since. */
static void test_late(void **state)
{
    (void)state;
    bed_signing.keep_ms = 60001;
    bed_relay_signed(WS1, 1, CAROL, "carol", &drain);
    is_refused("used-challenge");
    bed_signing.keep_ms = 60000;
    bed_relay_signed(WS1, 1, CAROL, "carol", &drain);
    fake_event(EVENT_DRAIN);
}

/* Who is no administrator gets no challenge, from wherever he asks; nor does one on a host that is not named. */
static void test_no_challenge(void **state)
{
    struct wire_message decide = {.type = WIRE_decide, .id = 3, .u.decide = {.request = "{}", .warrant = ""}};
    int link;
    (void)state;
    bed_relay(WS1, 1, BOB, "bob", &ask);
    fake_work_run();
    is_refused("there is nothing to sign");
    bed_relay(WS1, 1, BOB, "bob", &decide);
    is_refused("no-administrator");
    bed_relay(WS2, 1, CAROL, "carol", &ask);
    fake_work_run();
    assert_non_null(strstr(bed_relayed(WS2, 1), "there is nothing to sign"));
    bed_relay(WS1, 2, ROOT, "root", &ask);
    fake_work_run();
    assert_non_null(strstr(bed_relayed(WS1, 2), "there is nothing to sign"));
    link = bed_client(CAROL); /* elmer's own socket: the kernel says who asks */
    say(link, &ask);
    assert_string_equal(heard_error(link, "elmer knows who asks"), WIRE_CODE_NOT_PERMITTED);
    fake_hosts.has_authority = false;
    bed_relay(WS1, 3, CAROL, "carol", &ask);
    assert_non_null(strstr(bed_relayed(WS1, 3), "elmer has no CA"));
}

/* Not what reads, submits, or is signed itself. */
static void test_other_messages(void **state)
{
    struct wire_message query = {.type = WIRE_query, .id = 3, .u.query = {.running = true}};
    struct wire_message newer;
    (void)state;
    bed_relay_signed(WS1, 1, CAROL, "carol", &query);
    is_refused("unknown-request");
    bed_relay_signed(WS1, 1, CAROL, "carol", &ask);
    is_refused("unknown-request");
    bed_relay_signed(WS1, 1, CAROL, "carol", &drain);
    fake_event(EVENT_DRAIN);
    newer = as_before();
    newer.u.decide.warrant = "00ff";
    bed_relay(WS1, 1, CAROL, "carol", &newer);
    is_refused("garbled");
}

/* What he reads needs no signature: who holds the network half there reads what he may. */
static void test_reads(void **state)
{
    struct wire_message log = {.type = WIRE_query_log, .id = 3};
    (void)state;
    bed_relay(WS1, 1, CAROL, "carol", &log);
    fake_work_run();
    assert_int_equal(fake_store.nreads, 1);
    fake_store_answer_decisions(NULL, 0, NULL);
    assert_non_null(strstr(bed_relayed(WS1, 1), "\"log\""));
    bed_relay(WS1, 2, BOB, "bob", &log);
    fake_work_run();
    assert_non_null(strstr(bed_relayed(WS1, 2), WIRE_CODE_NOT_PERMITTED));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_unsigned),     TEST(test_signed),         TEST(test_host_taken_out),
        TEST(test_replayed),     TEST(test_each_check),     TEST(test_late),
        TEST(test_no_challenge), TEST(test_other_messages), TEST(test_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
