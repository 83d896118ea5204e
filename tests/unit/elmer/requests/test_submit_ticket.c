/* test_submit_ticket.c - the ticket of a submission is of the host that the submission has come from. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "lib/ticket/ticket.h"
#include "tests/unit/elmer/requests/bed.h"

/* As the host signs it; nothing but its name matters here. */
static const char *ticket_of(const char *host)
{
    static char text[TICKET_TEXT_MAX + 1];
    static struct ticket t;
    t = (struct ticket){.uid = ALICE, .user = "alice", .nprocs = 1};
    snprintf(t.host, sizeof(t.host), "%s", host);
    ticket_encode(&t, text);
    return text;
}

static struct wire_message submission(const char *token, const char *ticket)
{
    struct wire_message message = bed_submission(token);
    message.u.submit.ticket = ticket;
    return message;
}

static void relay(int host, const struct wire_message *message)
{
    bed_relay(host, 9, ALICE, "alice", message);
    fake_work_run();
}

static void expect_refusal(int host, const char *words)
{
    const char *answer = bed_relayed(host, 9);
    assert_non_null(strstr(answer, WIRE_CODE_REFUSED));
    if (!strstr(answer, words))
        fail_msg("%s, not: %s", answer, words);
    assert_int_equal(fake_store.nreads, 0);
    fake_no_event();
}

static void expect_submission(const char *host)
{
    fake_store_answer(NULL, 0, NULL);
    bed_answer(fake_event(EVENT_SUBMIT), ANSWER_OK, 1);
    assert_string_equal(job_submit(&fake_engine_find(1)->job)->submit_host, host);
    assert_string_equal(job_submit(&fake_engine_find(1)->job)->ticket, ticket_of(host));
}

static void test_relayed(void **state)
{
    struct wire_message message = submission("t1", ticket_of("ws1"));
    (void)state;
    relay(WS1, &message);
    expect_submission("ws1");
    bed_relayed(WS1, 9);
}

static void test_own_socket(void **state)
{
    struct wire_message message = submission("t1", ticket_of("queue"));
    int alice = bed_client(ALICE);
    (void)state;
    say(alice, &message);
    fake_work_run();
    expect_submission("queue");
    heard(alice, WIRE_submitted);
}

/* By any other host that is linked, and on the queue host itself, whoever has the key of one has nothing of it; whether
 * it is still a host of the cluster does not matter. What the submission says of its host neither. */
static void test_of_another_host(void **state)
{
    static const char *const others[] = {"ws2", "ws9", "queue"};
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct wire_message message = submission("t1", ticket_of(others[i]));
        message.u.submit.submit_host = others[i];
        char words[64];
        snprintf(words, sizeof(words), "its ticket was signed by %s, and it comes from ws1", others[i]);
        relay(WS1, &message);
        expect_refusal(WS1, words);
    }
    struct wire_message message = submission("t1", ticket_of("ws1"));
    int alice = bed_client(ALICE);
    say(alice, &message);
    fake_work_run();
    heard_error(alice, "its ticket was signed by ws1, and it comes from queue");
    fake_no_event();
}

static void test_unreadable(void **state)
{
    struct wire_message message = submission("t1", "abc");
    (void)state;
    relay(WS1, &message);
    expect_refusal(WS1, "its ticket cannot be read");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_relayed), TEST(test_own_socket), TEST(test_of_another_host),
                                       TEST(test_unreadable)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
