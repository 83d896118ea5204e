/* test_loop.c - the functions for a foreign event loop, and an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "libelmer/elmer.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

enum { CALL_MS = 60000, AT_ONCE_MS = 10000, SILENCE_MS = 2000 }; /* at once: on a machine that stands still at times */

static char path[100], desk_path[100];
static int listener;
static struct elmer *elmer;

static int setup(void **state)
{
    char dir[64] = "/tmp/test_loop.XXXXXX";
    struct elmer_options options = {.socket = path};
    (void)state;
    assert_non_null(scratch_dir(dir));
    snprintf(path, sizeof(path), "%s/elmer.sock", dir);
    snprintf(desk_path, sizeof(desk_path), "%s/ticket.sock", dir);
    listener = peer_listen(path);
    assert_int_equal(elmer_open(&options, &elmer, NULL), ELMER_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(listener);
    return 0;
}

static struct elmer_call *begin_submit(int timeout_ms)
{
    static const char *command[] = {"true", NULL};
    const struct elmer_submission job = {.nprocs = 1, .command = command, .dir = "/d", .umask = 022};
    int64_t before = mono_ms(mono_now());
    struct elmer_call *call;
    struct elmer_error error;
    if (elmer_submit_begin(elmer, &job, timeout_ms, &call, &error) != ELMER_OK)
        fail_msg("%s", error.text);
    assert_true(mono_ms(mono_now()) - before < AT_ONCE_MS);
    return call;
}

/* Whether the descriptor says that there is something to do. */
static bool is_ready(int timeout_ms)
{
    struct pollfd pollfd = {.fd = elmer_fd(elmer), .events = POLLIN};
    assert_true(pollfd.fd >= 0);
    return poll(&pollfd, 1, timeout_ms) == 1;
}

static void step(void)
{
    int64_t before = mono_ms(mono_now());
    elmer_step(elmer);
    assert_true(mono_ms(mono_now()) - before < AT_ONCE_MS);
}

/* As a loop does it. */
static struct elmer_call *next_ended(void)
{
    int64_t end = peer_soon();
    struct elmer_call *call;
    while (!(call = elmer_next_ended(elmer))) {
        assert_true(mono_ms(mono_now()) < end);
        is_ready(elmer_timeout_ms(elmer));
        step();
    }
    return call;
}

static void answer(struct channel *channel, const struct wire_message *asked, uint64_t job)
{
    struct wire_message submitted = {.type = WIRE_submitted, .id = asked->id};
    submitted.u.submitted.job = job;
    submitted.u.submitted.state = "queued";
    submitted.u.submitted.reason = "";
    peer_send(channel, &submitted);
}

/* The connection breaks before the answer: the same token comes again, and one job is made. */
static void lost_and_sent_again(void **state)
{
    struct elmer_call *call = begin_submit(CALL_MS);
    struct channel channel;
    struct wire_message first, again;
    struct elmer_submitted *submitted;
    (void)state;
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    assert_true(is_ready(CALL_MS));
    step();
    first = peer_expect(&channel, WIRE_submit);
    channel_fini(&channel);
    assert_true(is_ready(CALL_MS));
    step();
    assert_int_equal(elmer_call_result(call, NULL), -1);
    assert_in_range(elmer_timeout_ms(elmer), 0, 50); /* the pause */
    assert_false(is_ready(0));
    while (is_ready(elmer_timeout_ms(elmer)), step(), elmer_timeout_ms(elmer) <= 50)
        assert_null(elmer_next_ended(elmer));
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    assert_true(is_ready(CALL_MS));
    step();
    again = peer_expect(&channel, WIRE_submit);
    assert_string_equal(again.u.submit.token, first.u.submit.token);
    answer(&channel, &again, 42);
    assert_ptr_equal(next_ended(), call);
    assert_null(elmer_next_ended(elmer));
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    submitted = elmer_call_submitted(call);
    assert_int_equal(submitted->job, 42);
    assert_null(elmer_call_submitted(call));
    assert_null(elmer_call_jobs(call));
    assert_int_equal(elmer_timeout_ms(elmer), -1);
    elmer_submitted_free(submitted);
    elmer_call_free(call);
    wire_message_fini(&first);
    wire_message_fini(&again);
    channel_fini(&channel);
    elmer_close(elmer);
}

/* A submission of zeros has the umask of its caller; who wants none says so. */
static void umask_of_the_caller(void **state)
{
    static const char *command[] = {"true", NULL};
    const int masks[][2] = {{0, 027}, {-1, 027}, {077, 077}, {ELMER_UMASK_SET, 0}, {ELMER_UMASK_SET | 022, 022}};
    mode_t own = umask(027);
    struct channel channel;
    (void)state;
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        const struct elmer_submission job = {.nprocs = 1, .command = command, .dir = "/d", .umask = masks[i][0]};
        struct elmer_call *call;
        struct wire_message asked;
        assert_int_equal(elmer_submit_begin(elmer, &job, CALL_MS, &call, NULL), ELMER_OK);
        if (i == 0)
            peer_accept(listener, &channel, WIRE_FROM_CLIENT);
        step();
        asked = peer_expect(&channel, WIRE_submit);
        assert_int_equal(asked.u.submit.umask, masks[i][1]);
        answer(&channel, &asked, i + 1);
        assert_ptr_equal(next_ended(), call);
        elmer_call_free(call);
        wire_message_fini(&asked);
    }
    umask(own);
    channel_fini(&channel);
    elmer_close(elmer);
}

/* It accepts, and says nothing: the deadline strikes, and not before. */
static void silence_ends_in_time(void **state)
{
    struct elmer_call *call = begin_submit(SILENCE_MS);
    int64_t begun = mono_ms(mono_now());
    struct elmer_error error;
    (void)state;
    assert_false(is_ready(0));
    assert_in_range(elmer_timeout_ms(elmer), 1, SILENCE_MS);
    assert_ptr_equal(next_ended(), call);
    assert_in_range(mono_ms(mono_now()) - begun, SILENCE_MS - 10, SILENCE_MS + AT_ONCE_MS);
    assert_int_equal(elmer_call_result(call, &error), ELMER_UNREACHABLE);
    assert_non_null(strstr(error.text, "accepts connections but does not answer"));
    elmer_close(elmer); /* frees the call */
}

/* It reads nothing of a request that is larger than what the kernel keeps, then all of it. */
static void reads_slowly(void **state)
{
    enum { BYTES = 600 << 10 };
    static char large[BYTES];
    const char *command[] = {"true", NULL}, *environment[] = {large, NULL};
    const struct elmer_submission job = {
        .nprocs = 1, .command = command, .dir = "/d", .umask = 022, .environment = environment};
    struct elmer_call *call;
    struct channel channel;
    struct wire_message asked;
    struct err err = ERR_INIT;
    int result;
    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    memcpy(large, "A=", 2);
    assert_int_equal(elmer_submit_begin(elmer, &job, CALL_MS, &call, NULL), ELMER_OK);
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    assert_true(is_ready(CALL_MS));
    step();
    step();
    assert_false(is_ready(0)); /* the kernel has no room */
    while ((result = channel_next(&channel, &asked, &err)) == 0) {
        struct pollfd pollfd = {.fd = channel.fd, .events = POLLIN};
        assert_int_equal(poll(&pollfd, 1, CALL_MS), 1);
        assert_int_equal(channel_fill(&channel, &err), 0);
        step();
    }
    assert_int_equal(result, 1);
    assert_int_equal(asked.type, WIRE_submit);
    answer(&channel, &asked, 3);
    assert_ptr_equal(next_ended(), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    wire_message_fini(&asked);
    channel_fini(&channel);
    elmer_close(elmer);
}

/* The desk accepts, and signs nothing. */
static void desk_that_hangs(void **state)
{
    int desk = peer_listen(desk_path);
    struct elmer_call *call = begin_submit(SILENCE_MS);
    struct channel channel;
    struct elmer_error error;
    (void)state;
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    assert_ptr_equal(next_ended(), call);
    assert_int_equal(elmer_call_result(call, &error), ELMER_UNAVAILABLE);
    assert_non_null(strstr(error.text, "nobody had the time to sign"));
    elmer_call_free(call);
    begin_submit(CALL_MS);
    elmer_close(elmer); /* while it is at the desk */
    channel_fini(&channel);
    close(desk);
}

static bool is_called(int socket)
{
    struct pollfd pollfd = {.fd = socket, .events = POLLIN};
    return poll(&pollfd, 1, 0) == 1;
}

/* The first at the desk is given up: the loop is told that there is something to do, and the next one is asked for. */
static void next_at_the_desk(void **state)
{
    int desk = peer_listen(desk_path), taken;
    struct elmer_call *call = begin_submit(CALL_MS);
    struct channel channel;
    int64_t end = peer_soon();
    (void)state;
    begin_submit(CALL_MS);
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    while (!is_called(desk)) {
        assert_true(mono_ms(mono_now()) < end);
        is_ready(10);
        step();
    }
    taken = accept(desk, NULL, NULL);
    assert_true(taken >= 0);
    elmer_call_free(call);
    assert_int_equal(elmer_timeout_ms(elmer), 0);
    step();
    assert_true(is_called(desk));
    assert_int_not_equal(elmer_timeout_ms(elmer), 0);
    elmer_close(elmer);
    channel_fini(&channel);
    close(taken);
    close(desk);
}

/* Several at once, on one connection; answered in any order; one is given up, and its answer disturbs nobody. */
static void many_on_one_connection(void **state)
{
    struct elmer_call *calls[3], *killed;
    struct wire_message asked[3], kill;
    struct wire_message done = {.type = WIRE_done, .u.done.text = "on its way"};
    struct channel channel;
    (void)state;
    for (int i = 0; i < 3; i++)
        calls[i] = begin_submit(CALL_MS);
    assert_int_equal(elmer_kill_begin(elmer, 7, NULL, CALL_MS, &killed, NULL), ELMER_OK);
    elmer_call_set_data(killed, &done);
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    assert_true(is_ready(CALL_MS));
    step();
    for (int i = 0; i < 3; i++)
        asked[i] = peer_expect(&channel, WIRE_submit);
    kill = peer_expect(&channel, WIRE_kill);
    assert_int_equal(kill.u.kill.job, 7);
    elmer_call_free(calls[1]);
    for (int i = 2; i >= 0; i--)
        answer(&channel, &asked[i], (uint64_t)i + 1);
    done.id = kill.id;
    peer_send(&channel, &done);
    assert_ptr_equal(next_ended(), calls[2]);
    assert_ptr_equal(next_ended(), calls[0]);
    assert_ptr_equal(next_ended(), killed);
    assert_string_equal(elmer_call_text(killed), "on its way");
    assert_ptr_equal(elmer_call_data(killed), &done);
    assert_int_equal(elmer_timeout_ms(elmer), -1);
    elmer_close(elmer);
    for (int i = 0; i < 3; i++)
        wire_message_fini(&asked[i]);
    wire_message_fini(&kill);
    channel_fini(&channel);
}

/* Closed while it waits for the hello, for the answer, and for the next try; what it has is freed (ASan sees it). */
static void closed_in_each_state(void **state)
{
    const struct elmer_options options = {.socket = path};
    (void)state;
    for (int at = 0; at < 3; at++) {
        struct channel channel;
        if (at > 0)
            assert_int_equal(elmer_open(&options, &elmer, NULL), ELMER_OK);
        assert_true(elmer_fd(elmer) >= 0);
        begin_submit(CALL_MS);
        if (at > 0) {
            peer_accept(listener, &channel, WIRE_FROM_CLIENT);
            assert_true(is_ready(CALL_MS));
            step();
            peer_expect_gone(&channel, WIRE_submit);
            assert_false(is_ready(0));
            if (at == 2) {
                channel_fini(&channel);
                step();
                assert_in_range(elmer_timeout_ms(elmer), 0, 50);
            }
        } else {
            close(peer_accept_fd(listener)); /* whose end nobody has read yet */
        }
        elmer_close(elmer);
        if (at == 1) {
            peer_expect_end(&channel);
            channel_fini(&channel);
        }
    }
}

/* The answer to a kill is lost; the second finds that there is nothing to kill: the job is asked for, and was killed.
 */
static void done_by_the_first_try(void **state)
{
    struct wire_message again, query;
    struct wire_message wrong = {.type = WIRE_error,
                                 .u.error = {.code = WIRE_CODE_WRONG_STATE, .text = "job 7 has ended"}};
    struct wire_job_view view = {
        .job = 7, .name = "", .user = "", .state = "done", .dir = "", .reason_code = "killed", .reason = ""};
    struct wire_message jobs = {.type = WIRE_jobs};
    struct elmer_call *call;
    struct channel channel;
    (void)state;
    jobs.u.jobs.jobs.items = &view;
    jobs.u.jobs.jobs.count = 1;
    assert_int_equal(elmer_kill_begin(elmer, 7, NULL, CALL_MS, &call, NULL), ELMER_OK);
    for (int try = 0; try < 2; try++) {
        peer_accept(listener, &channel, WIRE_FROM_CLIENT);
        assert_true(is_ready(CALL_MS));
        step();
        again = peer_expect(&channel, WIRE_kill);
        if (try == 0) {
            wire_message_fini(&again);
            channel_fini(&channel);
            step();
            assert_false(is_ready(elmer_timeout_ms(elmer))); /* the pause */
            step();
        }
    }
    wrong.id = again.id;
    peer_send(&channel, &wrong);
    assert_true(is_ready(CALL_MS));
    step();
    assert_null(elmer_next_ended(elmer));
    query = peer_expect(&channel, WIRE_query);
    jobs.id = query.id;
    peer_send(&channel, &jobs);
    assert_ptr_equal(next_ended(), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    wire_message_fini(&again);
    wire_message_fini(&query);
    channel_fini(&channel);
    elmer_close(elmer);
}

static struct wire_message next_wait(struct channel *channel)
{
    peer_accept(listener, channel, WIRE_FROM_CLIENT);
    assert_true(is_ready(CALL_MS));
    step();
    return peer_expect(channel, WIRE_wait);
}

/* elmer waits for most of the time, after a connection that broke for most of what is left; and if it answers before
 * that it is not asked again at once. */
static void waits_for_most_of_the_time(void **state)
{
    const int waits[][3] = {{1000, 650, 750}, {30000, 27000, 28000}, {3600000, 60000, 60000}};
    struct wire_job_view view = {
        .job = 7, .name = "", .user = "", .state = "running", .dir = "", .reason_code = "", .reason = ""};
    struct wire_message jobs = {.type = WIRE_jobs}, asked, again;
    const uint64_t id = 7;
    struct elmer_call *call;
    struct channel channel;
    (void)state;
    jobs.u.jobs.jobs.items = &view;
    jobs.u.jobs.jobs.count = 1;
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        assert_int_equal(elmer_wait_any_begin(elmer, &id, 1, waits[i][0], &call, NULL), ELMER_OK);
        asked = next_wait(&channel);
        assert_in_range(asked.u.wait.timeout_ms, waits[i][1], waits[i][2]);
        elmer_call_free(call);
        peer_expect_end(&channel);
        channel_fini(&channel);
        wire_message_fini(&asked);
    }
    assert_int_equal(elmer_wait_any_begin(elmer, &id, 1, 50000, &call, NULL), ELMER_OK);
    asked = next_wait(&channel);
    for (int64_t begun = mono_ms(mono_now()); mono_ms(mono_now()) <= begun + 1;)
        continue;
    channel_fini(&channel);
    step();
    assert_false(is_ready(elmer_timeout_ms(elmer))); /* the pause */
    step();
    again = next_wait(&channel);
    assert_in_range(again.u.wait.timeout_ms, 1, asked.u.wait.timeout_ms - 1);
    jobs.id = again.id;
    peer_send(&channel, &jobs);
    assert_ptr_equal(next_ended(), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    wire_message_fini(&asked);
    wire_message_fini(&again);
    channel_fini(&channel);
    elmer_close(elmer);
}

/* Two decisions that are to be signed: elmer gives a connection one challenge at a time. */
static void one_challenge_at_a_time(void **state)
{
    struct elmer_call *calls[2];
    struct channel channel;
    struct wire_message asked[2], refused = {.type = WIRE_error};
    refused.u.error.code = WIRE_CODE_NOT_PERMITTED;
    refused.u.error.text = "not yours";
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(elmer_kill_begin(elmer, (uint64_t)i + 7, NULL, CALL_MS, &calls[i], NULL), ELMER_OK);
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    assert_true(is_ready(CALL_MS));
    step();
    for (int i = 0; i < 2; i++) {
        asked[i] = peer_expect(&channel, WIRE_kill);
        refused.id = asked[i].id;
        peer_send(&channel, &refused);
    }
    for (int i = 0; i < 2; i++) { /* each has its answer before the next one asks */
        struct wire_message challenge, more = {0};
        struct err err = ERR_INIT;
        assert_true(is_ready(CALL_MS));
        step();
        challenge = peer_expect(&channel, WIRE_challenge_ask);
        step();
        assert_false(is_called(channel.fd));
        assert_int_equal(channel_next(&channel, &more, &err), 0);
        refused.id = challenge.id;
        peer_send(&channel, &refused);
        wire_message_fini(&challenge);
    }
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(next_ended(), calls[i]);
        assert_int_equal(elmer_call_result(calls[i], NULL), ELMER_NOT_PERMITTED);
        wire_message_fini(&asked[i]);
    }
    elmer_close(elmer);
    channel_fini(&channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lost_and_sent_again, setup, teardown),
        cmocka_unit_test_setup_teardown(umask_of_the_caller, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_ends_in_time, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_slowly, setup, teardown),
        cmocka_unit_test_setup_teardown(desk_that_hangs, setup, teardown),
        cmocka_unit_test_setup_teardown(next_at_the_desk, setup, teardown),
        cmocka_unit_test_setup_teardown(closed_in_each_state, setup, teardown),
        cmocka_unit_test_setup_teardown(done_by_the_first_try, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_for_most_of_the_time, setup, teardown),
        cmocka_unit_test_setup_teardown(many_on_one_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(one_challenge_at_a_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
