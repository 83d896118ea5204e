/* test_output.c - what a job has left, read by a job of its own, from an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "libelmer/elmer.h"
#include "tests/unit/libelmer/client_bed.h"
#include "tests/unit/peer.h"

enum { CALL_MS = 60000, READER = 6, TOKEN_BYTES = 33 };

static const struct elmer_processor processors[] = {{"ws1", 0}, {"ws2", 1}};

static struct elmer_job job_of_two(void)
{
    return (struct elmer_job){.id = 57,
                              .user = "alice",
                              .state = "done",
                              .nprocs = 2,
                              .each = true,
                              .dir = "/home/alice",
                              .output = "100%%.%r",
                              .errors = "",
                              .processors = processors,
                              .nprocessors = 2};
}

static struct elmer_output *open_it(void)
{
    struct elmer_job job = job_of_two();
    struct elmer_output *output;
    struct elmer_error error;
    if (elmer_output_open(elmer, &job, 1, false, &output, &error) != ELMER_OK)
        fail_msg("%s", error.text);
    assert_int_equal(elmer_output_reader(output), 0);
    return output;
}

static struct elmer_call *read_it(struct elmer_output *output, int64_t offset)
{
    struct elmer_call *call;
    struct elmer_error error;
    if (elmer_output_read_begin(output, offset, CALL_MS, &call, &error) != ELMER_OK)
        fail_msg("%s", error.text);
    return call;
}

/* ---- what elmer hears and says ---- */

static void connect_first(void)
{
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    client_bed_step();
}

static void answer(const struct wire_message *message)
{
    peer_send(&channel, message);
    client_bed_step();
}

static void answer_error(uint64_t id, const char *code, const char *text)
{
    answer(&(struct wire_message){.type = WIRE_error, .id = id, .u.error = {.code = code, .text = text}});
}

/* Returns its id. */
static uint64_t expect_submit(bool notice, char token[TOKEN_BYTES])
{
    struct wire_message m = peer_expect(&channel, WIRE_submit);
    const struct wire_submit *s = &m.u.submit;
    uint64_t id = m.id;
    assert_int_equal(s->nprocs, 1);
    assert_int_equal(s->notice, notice);
    assert_int_equal(s->time_limit_ms, 60000);
    assert_int_equal(s->hosts.count, 1);
    assert_string_equal(s->hosts.items[0], "ws2");
    assert_string_equal(s->output, "/home/alice/100%%.1"); /* as a pattern */
    assert_string_equal(s->name, "output-of-57");
    assert_int_equal(s->command.count, 2);
    assert_string_equal(s->command.items[0], "/bin/sleep");
    assert_string_equal(s->command.items[1], "60");
    assert_int_equal(s->environment.count, 0);
    assert_int_equal(strlen(s->token), TOKEN_BYTES - 1);
    snprintf(token, TOKEN_BYTES, "%s", s->token);
    wire_message_fini(&m);
    return id;
}

static void accept_submit(uint64_t id)
{
    answer(&(struct wire_message){
        .type = WIRE_submitted, .id = id, .u.submitted = {.job = READER, .state = "starting", .reason = ""}});
}

static void say_state(const char *state, const char *reason_code, const char *reason)
{
    struct wire_message query = peer_expect(&channel, WIRE_query);
    struct wire_job_view view = {.job = READER,
                                 .nprocs = 1,
                                 .name = "output-of-57",
                                 .user = "alice",
                                 .dir = "/",
                                 .state = state,
                                 .level = -1,
                                 .reason_code = reason_code,
                                 .reason = reason};
    struct wire_message jobs = {.type = WIRE_jobs, .id = query.id, .u.jobs.jobs = {.items = &view, .count = 1}};
    assert_int_equal(query.u.query.jobs.count, 1);
    assert_int_equal(query.u.query.jobs.items[0], READER);
    wire_message_fini(&query);
    answer(&jobs);
}

/* Returns its id. */
static uint64_t expect_read(int64_t offset)
{
    struct wire_message m = peer_expect(&channel, WIRE_read_output);
    uint64_t id = m.id;
    assert_int_equal(m.u.read_output.job, READER);
    assert_int_equal(m.u.read_output.rank, 0);
    assert_int_equal(m.u.read_output.offset, offset);
    wire_message_fini(&m);
    return id;
}

static void say_part(int64_t offset)
{
    answer(&(struct wire_message){.type = WIRE_output_part,
                                  .id = expect_read(offset),
                                  .u.output_part = {.offset = 3, .size = 5, .data = "610a"}});
}

/* ---- how calls end ---- */

static void ends_with(struct elmer_call *call, int result, const char *text)
{
    struct elmer_error error = {""};
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, &error), result);
    assert_null(elmer_call_part(call));
    if (!strstr(error.text, text))
        fail_msg("%s", error.text);
    elmer_call_free(call);
}

static void ends_with_part(struct elmer_call *call)
{
    struct elmer_part *part;
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    part = elmer_call_part(call);
    assert_non_null(part);
    assert_null(elmer_call_part(call)); /* once */
    assert_int_equal(part->offset, 3);
    assert_int_equal(part->size, 5);
    assert_int_equal(part->count, 2);
    assert_memory_equal(part->bytes, "a\n", 2);
    elmer_part_free(part);
    elmer_call_free(call);
}

/* The reader runs, and has read once. */
static struct elmer_output *read_once(void)
{
    char token[TOKEN_BYTES];
    struct elmer_output *output = open_it();
    struct elmer_call *call = read_it(output, -2);
    connect_first();
    accept_submit(expect_submit(true, token));
    say_state("running", "", "");
    say_part(-2);
    ends_with_part(call);
    assert_int_equal(elmer_output_reader(output), READER);
    return output;
}

static struct elmer_call *close_it(struct elmer_output *output)
{
    struct elmer_call *call;
    assert_int_equal(elmer_output_close_begin(output, CALL_MS, &call, NULL), ELMER_OK);
    return call;
}

static void close_unread(struct elmer_output *output)
{
    assert_null(close_it(output));
}

/* Returns its id. */
static uint64_t expect_end(enum wire_type type)
{
    struct wire_message m = peer_expect(&channel, type);
    uint64_t id = m.id;
    assert_int_equal(type == WIRE_kill ? m.u.kill.job : m.u.cancel.job, READER);
    wire_message_fini(&m);
    return id;
}

static void say_done(uint64_t id)
{
    answer(&(struct wire_message){.type = WIRE_done, .id = id, .u.done = {.text = ""}});
}

static void close_read(struct elmer_output *output)
{
    struct elmer_call *call = close_it(output);
    say_done(expect_end(WIRE_kill));
    ends_with(call, ELMER_OK, "");
}

/* ---- the tests ---- */

static void refused(const struct elmer_job *job, uint32_t rank, int result, const char *text)
{
    struct elmer_output *output = (struct elmer_output *)1;
    struct elmer_error error;
    assert_int_equal(elmer_output_open(elmer, job, rank, false, &output, &error), result);
    assert_null(output);
    if (!strstr(error.text, text))
        fail_msg("%s", error.text);
}

static void what_is_not_opened(void **state)
{
    struct elmer_job job = job_of_two();
    (void)state;
    refused(&job, 2, ELMER_REFUSED, "job 57 has no rank 2; its last is 1");
    job.each = false;
    refused(&job, 1, ELMER_REFUSED, "job 57 has no rank 1; its last is 0");
    job.output = "";
    refused(&job, 0, ELMER_REFUSED, "it is not known where job 57 writes to");
    job.state = "queued";
    job.nprocessors = 0;
    refused(&job, 0, ELMER_WRONG_STATE, "job 57 has written nothing: it is queued");
    job.hidden = true;
    refused(&job, 0, ELMER_NOT_PERMITTED, "belongs to alice");
}

static void parts_of_what_is_left(void **state)
{
    struct elmer_output *output = read_once();
    struct elmer_call *call = read_it(output, 3);
    (void)state;
    say_part(3); /* nothing is submitted, and nothing asked for any more */
    ends_with_part(call);
    close_read(output);
}

static void while_it_has_not_begun(void **state)
{
    char token[TOKEN_BYTES];
    struct elmer_output *output = open_it();
    struct elmer_call *call = read_it(output, -2);
    (void)state;
    connect_first();
    accept_submit(expect_submit(true, token));
    say_state("starting", "", "");
    ends_with(call, ELMER_UNAVAILABLE, "it is in /home/alice/100%.1 there");
    assert_int_equal(elmer_output_reader(output), READER);
    call = read_it(output, -2);
    say_state("running", "", "");
    answer_error(expect_read(-2), WIRE_CODE_UNAVAILABLE, "another part is being read: try again");
    ends_with(call, ELMER_UNAVAILABLE, "another part");
    call = read_it(output, -2);
    say_part(-2);
    ends_with_part(call);
    close_read(output);
}

static void one_that_cannot_begin(void **state)
{
    char first[TOKEN_BYTES], second[TOKEN_BYTES];
    struct elmer_output *output = open_it();
    struct elmer_call *call = read_it(output, 0);
    (void)state;
    connect_first();
    accept_submit(expect_submit(true, first));
    say_state("done", "start-failed", "ws2: no such place");
    ends_with(call, ELMER_REFUSED, "ws2: the job that reads the output there has ended: ws2: no such place");
    assert_int_equal(elmer_output_reader(output), 0);
    call = read_it(output, 0); /* by another one */
    expect_submit(true, second);
    assert_string_not_equal(first, second);
    elmer_call_free(call);
    close_unread(output);
}

/* By the read, or where it has not been seen to run, by the look before. */
static void when_its_minute_is_over(void **state)
{
    char first[TOKEN_BYTES], second[TOKEN_BYTES];
    struct elmer_output *output = open_it();
    struct elmer_call *call = read_it(output, 3);
    (void)state;
    connect_first();
    accept_submit(expect_submit(true, first));
    say_state("starting", "", "");
    ends_with(call, ELMER_UNAVAILABLE, "try again");
    call = read_it(output, 3);
    say_state("done", "time-limit", "its time was over");
    accept_submit(expect_submit(true, second));
    assert_string_not_equal(first, second);
    say_state("running", "", "");
    say_part(3);
    ends_with_part(call);
    call = read_it(output, 3);
    answer_error(expect_read(3), WIRE_CODE_WRONG_STATE, "job 6 has ended");
    accept_submit(expect_submit(true, first));
    assert_string_not_equal(first, second);
    say_state("running", "", "");
    answer_error(expect_read(3), WIRE_CODE_WRONG_STATE, "job 6 has ended"); /* one in a call is enough */
    ends_with(call, ELMER_WRONG_STATE, "the job that reads the output has been ended");
    close_unread(output);
}

static void by_an_elmer_without_notices(void **state)
{
    enum { BEFORE_NOTICES = 8 };
    char token[TOKEN_BYTES];
    struct wire_message hello;
    struct elmer_output *output = open_it();
    struct elmer_call *call = read_it(output, 0);
    (void)state;
    assert_int_equal(channel_init(&channel, peer_accept_fd(listener), WIRE_FROM_CLIENT, 1 << 24), 0);
    wire_hello_fill(&hello, "peer");
    hello.u.hello.minor = BEFORE_NOTICES;
    peer_send(&channel, &hello);
    peer_expect_gone(&channel, WIRE_hello);
    channel.minor = BEFORE_NOTICES;
    client_bed_step();
    accept_submit(expect_submit(false, token));
    say_state("running", "", "");
    say_part(0);
    ends_with_part(call);
    close_read(output);
}

static void by_an_elmer_of_before(void **state)
{
    char token[TOKEN_BYTES];
    struct elmer_output *output = open_it();
    struct elmer_call *call = read_it(output, 0);
    (void)state;
    connect_first();
    answer_error(expect_submit(true, token), WIRE_CODE_REFUSED, "a notice runs where it was submitted");
    accept_submit(expect_submit(false, token));
    say_state("running", "", "");
    say_part(0);
    ends_with_part(call);
    close_read(output);
}

/* A call that is given up may have submitted one: the next call finds it, by the same token. */
static void after_an_answer_that_was_lost(void **state)
{
    char first[TOKEN_BYTES], second[TOKEN_BYTES];
    struct elmer_output *output = open_it();
    struct elmer_call *call = read_it(output, 0);
    (void)state;
    connect_first();
    expect_submit(true, first);
    elmer_call_free(call);
    channel_fini(&channel);
    call = read_it(output, 0);
    connect_first();
    accept_submit(expect_submit(true, second));
    assert_string_equal(first, second);
    say_state("running", "", "");
    say_part(0);
    ends_with_part(call);
    close_read(output);
}

static void closed_while_it_waits(void **state)
{
    struct elmer_output *output = read_once();
    struct elmer_call *call = close_it(output);
    (void)state;
    answer_error(expect_end(WIRE_kill), WIRE_CODE_WRONG_STATE, "job 6 does not run");
    say_done(expect_end(WIRE_cancel));
    ends_with(call, ELMER_OK, "");
}

static void closed_when_it_has_ended(void **state)
{
    struct elmer_output *output = read_once();
    struct elmer_call *call = close_it(output);
    (void)state;
    answer_error(expect_end(WIRE_kill), WIRE_CODE_WRONG_STATE, "job 6 has ended");
    answer_error(expect_end(WIRE_cancel), WIRE_CODE_WRONG_STATE, "job 6 has ended");
    ends_with(call, ELMER_OK, "");
    elmer_output_close(NULL, CALL_MS);
}

#define WITH_CLIENT(test) cmocka_unit_test_setup_teardown(test, client_bed_setup, client_bed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CLIENT(what_is_not_opened),          WITH_CLIENT(parts_of_what_is_left),
        WITH_CLIENT(while_it_has_not_begun),      WITH_CLIENT(one_that_cannot_begin),
        WITH_CLIENT(when_its_minute_is_over),     WITH_CLIENT(by_an_elmer_of_before),
        WITH_CLIENT(by_an_elmer_without_notices), WITH_CLIENT(after_an_answer_that_was_lost),
        WITH_CLIENT(closed_while_it_waits),       WITH_CLIENT(closed_when_it_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
