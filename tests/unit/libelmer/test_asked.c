/* test_asked.c - what was asked for when a job was submitted, from an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "libelmer/elmer.h"
#include "tests/unit/libelmer/client_bed.h"
#include "tests/unit/peer.h"

enum { CALL_MS = 30000 };

static const char *words[] = {"./solve", "-x"}, *hosts[] = {"ws1"}, *after[] = {"ok:41"};

static struct elmer_call *begin(void)
{
    struct elmer_call *call;
    assert_int_equal(elmer_asked_begin(elmer, 57, CALL_MS, &call, NULL), ELMER_OK);
    return call;
}

/* Of a request, on a new connection or on that which is there. */
static uint64_t asked_for(bool is_new)
{
    struct wire_message request;
    uint64_t id;
    if (is_new) {
        peer_accept(listener, &channel, WIRE_FROM_CLIENT);
        client_bed_step();
    }
    request = peer_expect(&channel, WIRE_query_asked);
    assert_int_equal(request.u.query_asked.job, 57);
    id = request.id;
    wire_message_fini(&request);
    return id;
}

static void answer(const struct wire_message *message)
{
    peer_send(&channel, message);
    client_bed_step();
}

static struct elmer_submission *ended(struct elmer_call *call)
{
    struct elmer_submission *asked;
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    assert_null(elmer_call_submitted(call));
    asked = elmer_call_asked(call);
    assert_non_null(asked);
    assert_null(elmer_call_asked(call)); /* once */
    elmer_call_free(call);
    return asked;
}

static void all_that_was_said(void **state)
{
    struct elmer_call *call = begin();
    struct wire_message m = {.type = WIRE_asked,
                             .id = asked_for(true),
                             .u.asked = {.name = "solve",
                                         .nprocs = 4,
                                         .each = true,
                                         .command = {words, 2},
                                         .dir = "/home/alice",
                                         .comment = "a comment",
                                         .output = "o.%A.%a",
                                         .errors = "e",
                                         .hosts = {hosts, 1},
                                         .after = {after, 1},
                                         .umask = 0,
                                         .requeue = true,
                                         .time_limit_ms = 60000,
                                         .tasks = "1-3",
                                         .lines = "a\nb\nc\n",
                                         .mail_at = "end",
                                         .notify = "x",
                                         .memory_bytes = 1 << 20}};
    struct elmer_submission *asked;
    (void)state;
    answer(&m);
    asked = ended(call);
    assert_string_equal(asked->name, "solve");
    assert_int_equal(asked->nprocs, 4);
    assert_true(asked->each && asked->requeue && !asked->pvm);
    assert_string_equal(asked->command[1], "-x");
    assert_null(asked->command[2]);
    assert_string_equal(asked->hosts[0], "ws1");
    assert_null(asked->hosts[1]);
    assert_string_equal(asked->after[0], "ok:41");
    assert_null(asked->after[1]);
    assert_string_equal(asked->dir, "/home/alice");
    assert_string_equal(asked->comment, "a comment");
    assert_string_equal(asked->output, "o.%A.%a");
    assert_string_equal(asked->errors, "e");
    assert_int_equal(asked->umask, ELMER_UMASK_SET); /* none, which is not that of the caller */
    assert_int_equal(asked->time_limit_ms, 60000);
    assert_int_equal(asked->memory_bytes, 1 << 20);
    assert_string_equal(asked->tasks, "1-3");
    assert_string_equal(asked->lines, "a\nb\nc\n");
    assert_string_equal(asked->mail_at, "end");
    assert_string_equal(asked->notify, "x");
    assert_null(asked->environment);
    assert_null(asked->token);
    elmer_asked_free(asked);
    elmer_asked_free(NULL);
}

/* What was not said is NULL, as in a submission of zeros. */
static void nothing_else(void **state)
{
    struct elmer_call *call = begin();
    struct wire_message m = {
        .type = WIRE_asked,
        .id = asked_for(true),
        .u.asked = {.name = "solve", .nprocs = 1, .command = {words, 1}, .dir = "/d", .output = "o", .umask = 022}};
    struct elmer_submission *asked;
    (void)state;
    answer(&m);
    asked = ended(call);
    assert_int_equal(asked->umask, ELMER_UMASK_SET | 022);
    assert_null(asked->errors);
    assert_null(asked->comment);
    assert_null(asked->hosts);
    assert_null(asked->after);
    assert_null(asked->tasks);
    assert_null(asked->lines);
    assert_null(asked->terminal);
    assert_null(asked->mail_at);
    assert_null(asked->notify);
    elmer_asked_free(asked);
}

static void without_an_answer(void **state)
{
    struct elmer_call *call = begin();
    struct wire_message m = {.type = WIRE_error,
                             .id = asked_for(true),
                             .u.error = {.code = WIRE_CODE_NOT_PERMITTED, .text = "job 57 belongs to bob"}};
    struct elmer_error error;
    (void)state;
    answer(&m);
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, &error), ELMER_NOT_PERMITTED);
    assert_string_equal(error.text, "job 57 belongs to bob");
    assert_null(elmer_call_asked(call));
    elmer_call_free(call);
    call = begin();
    m = (struct wire_message){.type = WIRE_done, .id = asked_for(false), .u.done.text = ""};
    answer(&m);
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_FAILED);
    elmer_call_free(call);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, client_bed_setup, client_bed_teardown)
    const struct CMUnitTest tests[] = {TEST(all_that_was_said), TEST(nothing_else), TEST(without_an_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
