/* test_early.c - what a client says before it has heard who is there; an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/libelmer/client_bed.h"
#include "tests/unit/peer.h"

enum { CALL_MS = 30000, SILENCE_MS = 2000, BEFORE_TASKS = 7 }; /* the minor version in which kill had no tasks */

/* The next connection, which has said hello; nothing is said to it. */
static void accept_silently(void)
{
    struct wire_message hello;
    struct err err = ERR_INIT;
    assert_int_equal(channel_init(&channel, peer_accept_fd(listener), WIRE_FROM_CLIENT, 1 << 20), 0);
    assert_int_equal(channel_receive(&channel, &hello, peer_soon(), &err), 1);
    assert_int_equal(hello.type, WIRE_hello);
    wire_message_fini(&hello);
    channel.minor = WIRE_MINOR;
}

static void say_hello(unsigned minor)
{
    struct wire_message hello;
    wire_hello_fill(&hello, "peer");
    hello.u.hello.minor = minor;
    channel.minor = minor;
    peer_send(&channel, &hello);
}

static uint64_t asked(enum wire_type type)
{
    struct wire_message request = peer_expect(&channel, type);
    uint64_t id = request.id;
    wire_message_fini(&request);
    return id;
}

static void done(uint64_t id)
{
    struct wire_message message = {.type = WIRE_done, .id = id, .u.done.text = "on its way"};
    peer_send(&channel, &message);
}

static struct elmer_call *kill_begun(int timeout_ms)
{
    struct elmer_call *call;
    assert_int_equal(elmer_kill_begin(elmer, 7, NULL, timeout_ms, &call, NULL), ELMER_OK);
    return call;
}

static struct elmer_call *submit_begun(int timeout_ms)
{
    static const char *command[] = {"true", NULL};
    const struct elmer_submission job = {.nprocs = 1, .command = command, .dir = "/d", .umask = 022};
    struct elmer_call *call;
    assert_int_equal(elmer_submit_begin(elmer, &job, timeout_ms, &call, NULL), ELMER_OK);
    return call;
}

static enum elmer_result ended(struct elmer_call *call, struct elmer_error *error)
{
    struct elmer_call *first;
    int result;
    while (!(first = elmer_next_ended(elmer)))
        client_bed_step();
    assert_ptr_equal(first, call);
    result = elmer_call_result(call, error);
    elmer_call_free(call);
    return (enum elmer_result)result;
}

/* elmer goes before it has said hello, and stays away. */
static void ends_without_elmer(struct elmer_call *call, struct elmer_error *error)
{
    accept_silently();
    channel_fini(&channel);
    close(listener);
    listener = -1;
    assert_int_equal(ended(call, error), ELMER_UNREACHABLE);
    assert_non_null(strstr(error->text, "nobody answers at"));
}

static bool comes(int fd)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    return poll(&pollfd, 1, 0) == 1;
}

static void a_kill_waits_for_nobody(void **state)
{
    struct elmer_call *call = kill_begun(CALL_MS);
    uint64_t id;
    (void)state;
    accept_silently();
    id = asked(WIRE_kill);
    say_hello(WIRE_MINOR);
    done(id);
    assert_int_equal(ended(call, NULL), ELMER_OK);
}

static void a_submission_waits_for_the_hello(void **state)
{
    struct elmer_call *call = submit_begun(CALL_MS);
    struct wire_message submitted = {.type = WIRE_submitted, .u.submitted = {.job = 3, .state = "", .reason = ""}}, m;
    struct err err = ERR_INIT;
    (void)state;
    accept_silently();
    assert_int_equal(channel_next(&channel, &m, &err), 0);
    assert_false(comes(channel.fd));
    say_hello(WIRE_MINOR);
    client_bed_step();
    submitted.id = asked(WIRE_submit);
    peer_send(&channel, &submitted);
    assert_int_equal(ended(call, NULL), ELMER_OK);
}

/* What is begun behind a submission does not overtake it by that it need not wait for the hello. */
static void the_order_is_kept(void **state)
{
    struct wire_message m;
    struct err err = ERR_INIT;
    (void)state;
    submit_begun(CALL_MS);
    kill_begun(CALL_MS);
    accept_silently();
    assert_int_equal(channel_next(&channel, &m, &err), 0);
    assert_false(comes(channel.fd));
    say_hello(WIRE_MINOR);
    client_bed_step();
    asked(WIRE_submit);
    asked(WIRE_kill);
}

static void a_submission_is_signed_meanwhile(void **state)
{
    int desk = client_bed_desk();
    (void)state;
    submit_begun(CALL_MS);
    assert_true(comes(desk));
    close(desk);
}

/* An rsd that stops takes its sockets away one by one: what is told does not depend on which one was met. */
static void rsd_stops_while_it_is_signed(void **state)
{
    struct elmer_call *call;
    struct elmer_error error;
    (void)state;
    close(client_bed_desk());
    call = submit_begun(SILENCE_MS);
    ends_without_elmer(call, &error);
}

/* The peer speaks another version than was presumed, and writes the request otherwise: it refuses it, and the client
 * says it once more in that version, on another connection; also when it has got older, or younger, since. */
static void another_version_is_spoken(void **state)
{
    static const unsigned minors[] = {BEFORE_TASKS, WIRE_MINOR, BEFORE_TASKS};
    (void)state;
    for (size_t i = 0; i < sizeof(minors) / sizeof(minors[0]); i++) {
        struct elmer_call *call = kill_begun(CALL_MS);
        struct wire_message unread;
        struct err err = ERR_INIT;
        uint64_t id;
        accept_silently();
        say_hello(minors[i]);
        assert_int_equal(channel_receive(&channel, &unread, peer_soon(), &err), -EBADMSG);
        client_bed_step();
        channel_fini(&channel);
        accept_silently();
        channel.minor = minors[i];
        id = asked(WIRE_kill);
        say_hello(minors[i]);
        done(id);
        assert_int_equal(ended(call, NULL), ELMER_OK);
        channel_fini(&channel);
        client_bed_step(); /* it sees that */
    }
}

/* The other way round: the first connection stays. */
static void a_request_that_is_the_same_in_both_stays(void **state)
{
    const uint64_t job = 7;
    struct wire_message jobs = {.type = WIRE_jobs};
    struct wire_job_view view = {
        .job = 7, .name = "", .user = "", .state = "done", .dir = "", .reason_code = "", .reason = ""};
    struct elmer_call *call;
    (void)state;
    assert_int_equal(elmer_wait_any_begin(elmer, &job, 1, CALL_MS, &call, NULL), ELMER_OK);
    accept_silently();
    jobs.id = asked(WIRE_wait);
    say_hello(BEFORE_TASKS);
    jobs.u.jobs.jobs.items = &view;
    jobs.u.jobs.jobs.count = 1;
    peer_send(&channel, &jobs);
    assert_int_equal(ended(call, NULL), ELMER_OK);
    assert_false(comes(listener));
}

static void silence_says_what_is_not_known(void **state)
{
    struct elmer_error error;
    (void)state;
    assert_int_equal(ended(kill_begun(100), &error), ELMER_UNREACHABLE);
    assert_non_null(strstr(error.text, "accepts connections but does not answer"));
    assert_non_null(strstr(error.text, "whether the request was carried out is not known"));
}

static void what_only_asks_is_not_in_doubt(void **state)
{
    struct elmer_error error;
    struct elmer_call *call;
    (void)state;
    assert_int_equal(elmer_query_hosts_begin(elmer, 100, &call, NULL), ELMER_OK);
    assert_int_equal(ended(call, &error), ELMER_UNREACHABLE);
    assert_non_null(strstr(error.text, "accepts connections but does not answer"));
    assert_null(strstr(error.text, "carried out"));
}

/* Read once, and never answered: that nobody was there when it was to be said again does not make it undone. */
static void a_request_that_was_lost_is_in_doubt(void **state)
{
    struct elmer_error error;
    struct elmer_call *call;
    (void)state;
    client_bed_patience(200);
    call = kill_begun(CALL_MS);
    accept_silently();
    asked(WIRE_kill);
    say_hello(WIRE_MINOR);
    client_bed_step();
    channel_fini(&channel);
    close(listener);
    listener = -1;
    assert_int_equal(ended(call, &error), ELMER_UNREACHABLE);
    assert_non_null(strstr(error.text, "nobody answers at"));
    assert_non_null(strstr(error.text, "; whether the request was carried out is not known: see equery"));
}

/* A submission waits for the hello: what was never said was not done. */
static void what_was_not_said_is_not_in_doubt(void **state)
{
    struct elmer_error error;
    struct elmer_call *call;
    (void)state;
    client_bed_patience(200);
    call = submit_begun(CALL_MS);
    ends_without_elmer(call, &error);
    assert_null(strstr(error.text, "carried out"));
}

/* One deed at most is said then: what is behind it is not, so that nothing that was done is done again because the peer
 * could not read another one. */
static void one_deed_at_a_time(void **state)
{
    struct wire_message m;
    struct err err = ERR_INIT;
    uint64_t id;
    (void)state;
    kill_begun(CALL_MS);
    kill_begun(CALL_MS);
    accept_silently();
    id = asked(WIRE_kill);
    assert_int_equal(channel_next(&channel, &m, &err), 0);
    assert_false(comes(channel.fd));
    say_hello(WIRE_MINOR);
    client_bed_step();
    assert_int_not_equal(asked(WIRE_kill), id);
}

/* Dropped before the peer is known, which then speaks another version: the others go once more, it does not. */
static void dropped_before_the_hello(void **state)
{
    struct elmer_call *dropped = kill_begun(CALL_MS), *call = kill_begun(CALL_MS);
    uint64_t id;
    (void)state;
    accept_silently();
    asked(WIRE_kill);
    elmer_call_free(dropped);
    say_hello(BEFORE_TASKS);
    client_bed_step();
    channel_fini(&channel);
    accept_silently();
    channel.minor = BEFORE_TASKS;
    id = asked(WIRE_kill);
    say_hello(BEFORE_TASKS);
    done(id);
    assert_int_equal(ended(call, NULL), ELMER_OK);
}

/* What is said about the connection as a whole ends the calls on it, and is what they are told; no challenge is asked
 * for on a connection that goes. */
static void refused_as_a_whole(void **state)
{
    struct wire_message refusal = {.type = WIRE_error,
                                   .u.error = {.code = WIRE_CODE_NOT_PERMITTED, .text = "your user id has no name"}};
    struct elmer_call *call = kill_begun(CALL_MS);
    struct elmer_error error;
    (void)state;
    accept_silently();
    asked(WIRE_kill);
    say_hello(WIRE_MINOR);
    peer_send(&channel, &refusal);
    channel_fini(&channel);
    assert_int_equal(ended(call, &error), ELMER_NOT_PERMITTED);
    assert_non_null(strstr(error.text, "your user id has no name"));
    assert_false(comes(listener));
}

/* Who refuses the connection has carried out nothing: that the job had been ended before is no success of ours. */
static void refused_in_place_of_the_hello(void **state)
{
    struct wire_message busy = {.type = WIRE_error, .u.error = {.code = WIRE_CODE_REFUSED, .text = "too many"}};
    struct wire_message wrong = {.type = WIRE_error,
                                 .u.error = {.code = WIRE_CODE_WRONG_STATE, .text = "job 7 has ended"}};
    struct elmer_call *call = kill_begun(CALL_MS);
    (void)state;
    accept_silently();
    peer_send(&channel, &busy);
    channel_fini(&channel);
    do
        client_bed_step();
    while (!comes(listener));
    accept_silently();
    wrong.id = asked(WIRE_kill);
    say_hello(WIRE_MINOR);
    peer_send(&channel, &wrong);
    assert_int_equal(ended(call, NULL), ELMER_WRONG_STATE);
}

/* Who closes before its hello is as good as not there: that lasts as long as the patience, not as the call. */
static void nobody_who_says_hello(void **state)
{
    struct elmer_call *call, *over;
    int64_t begun = mono_ms(mono_now());
    struct elmer_error error;
    (void)state;
    client_bed_patience(200);
    call = kill_begun(CALL_MS);
    while (!(over = elmer_next_ended(elmer))) {
        if (comes(listener))
            close(peer_accept_fd(listener));
        client_bed_step();
    }
    assert_ptr_equal(over, call);
    assert_int_equal(elmer_call_result(call, &error), ELMER_UNREACHABLE);
    assert_in_range(mono_ms(mono_now()) - begun, 0, CALL_MS - 1);
    assert_non_null(strstr(error.text, "whether the request was carried out is not known"));
}

int main(void)
{
#define IN_BED(test) cmocka_unit_test_setup_teardown(test, client_bed_setup, client_bed_teardown)
    const struct CMUnitTest tests[] = {
        IN_BED(a_kill_waits_for_nobody),
        IN_BED(a_submission_waits_for_the_hello),
        IN_BED(the_order_is_kept),
        IN_BED(a_submission_is_signed_meanwhile),
        IN_BED(rsd_stops_while_it_is_signed),
        IN_BED(another_version_is_spoken),
        IN_BED(a_request_that_is_the_same_in_both_stays),
        IN_BED(silence_says_what_is_not_known),
        IN_BED(what_only_asks_is_not_in_doubt),
        IN_BED(a_request_that_was_lost_is_in_doubt),
        IN_BED(what_was_not_said_is_not_in_doubt),
        IN_BED(one_deed_at_a_time),
        IN_BED(dropped_before_the_hello),
        IN_BED(refused_as_a_whole),
        IN_BED(refused_in_place_of_the_hello),
        IN_BED(nobody_who_says_hello),
    };

    return cmocka_run_group_tests_name("before the hello", tests, NULL, NULL);
}
