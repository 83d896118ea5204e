/* test_output.c - output that is read for its owner: who is asked, whose answer counts, and when it is given up. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/elmer/requests/bed.h"

static const struct core_processor processors[] = {{WS1, 0}, {WS2, 1}};

/* Of alice's, on ws1 and ws2, with a process on each. */
static void running(void)
{
    struct fake_job *job = fake_engine_add_job(7, ALICE, JOB_RUNNING);
    job->state.attempt = 2;
    job->state.nprocs = 2;
    job->state.processors = processors;
    job->job.submission.u.submit.nprocs = 2;
    job->job.submission.u.submit.each = true;
    fake_hosts.hosts[WS1].linked = fake_hosts.hosts[WS2].linked = true;
}

static void ask(int link, uint64_t rank)
{
    struct wire_message message = {
        .type = WIRE_read_output, .id = 3, .u.read_output = {.job = 7, .rank = rank, .errors = true, .offset = -5}};
    say(link, &message);
}

static uint64_t asked(int host, uint64_t process)
{
    const struct wire_message *message = heard(TO_HOST(host), WIRE_read_file);
    assert_int_equal(message->u.read_file.job, 7);
    assert_int_equal(message->u.read_file.attempt, 2);
    assert_int_equal(message->u.read_file.process, process);
    assert_int_equal(message->u.read_file.offset, -5);
    assert_true(message->u.read_file.errors);
    return message->id;
}

static void part(int host, uint64_t id, uint64_t job, const char *text)
{
    struct wire_message message = {
        .type = WIRE_file_part,
        .id = id,
        .u.file_part = {.job = job, .attempt = 2, .offset = 5, .size = 10, .data = "6869", .text = text}};
    requests_file_part(bed.requests, host, &message);
}

static void test_read(void **state)
{
    (void)state;
    running();
    int link = bed_client(ALICE);
    ask(link, 1);
    uint64_t id = asked(WS2, 1);
    part(WS1, id, 7, ""); /* another host, another job, another request: nobody has asked them */
    part(WS2, id, 8, "");
    part(WS2, id + 1, 7, "");
    heard_nothing();
    part(WS2, id, 7, "");
    const struct wire_message *answer = heard(link, WIRE_output_part);
    assert_int_equal(answer->id, 3);
    assert_string_equal(answer->u.output_part.data, "6869");
    assert_int_equal(answer->u.output_part.offset, 5);
    assert_int_equal(answer->u.output_part.size, 10);
    part(WS2, id, 7, ""); /* once */
    heard_nothing();
}

static void test_not_read(void **state)
{
    (void)state;
    running();
    int link = bed_client(ALICE);
    ask(link, 0);
    part(WS1, asked(WS1, 0), 7, "its output cannot be read by alice: Permission denied\033");
    assert_string_equal(heard_error(link, "ws1: its output cannot be read by alice: Permission denied\\x1B"),
                        WIRE_CODE_REFUSED);
    ask(link, 0);
    uint64_t id = asked(WS1, 0);
    fake_time_pass(4999);
    heard_nothing();
    fake_time_pass(1);
    assert_string_equal(heard_error(link, "has not answered in time"), WIRE_CODE_UNAVAILABLE);
    part(WS1, id, 7, ""); /* too late */
    heard_nothing();
    fake_hosts.hosts[WS1].linked = false;
    ask(link, 0);
    assert_string_equal(heard_error(link, "ws1, where the output is, has no link now"), WIRE_CODE_UNAVAILABLE);
    fake_hosts.hosts[WS1].linked = true;
    fake_hosts.hosts[WS1].minor = 6;
    ask(link, 0);
    assert_string_equal(heard_error(link, "the rsd of ws1 is too old (version 1.6)"), WIRE_CODE_REFUSED);
}

/* The files are the owner's, whoever else may end his job. */
static void test_refused(void **state)
{
    (void)state;
    running();
    static const uint32_t others[] = {BOB, CAROL, ROOT};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        int link = bed_client(others[i]);
        ask(link, 0);
        if (fake_work_count())
            fake_work_run();
        assert_string_equal(heard_error(link, "job 7 belongs to alice: only its owner reads its output"),
                            WIRE_CODE_NOT_PERMITTED);
    }
    int link = bed_client(ALICE);
    ask(link, 2);
    assert_string_equal(heard_error(link, "job 7 has no rank 2: its ranks are 0 to 1"), WIRE_CODE_REFUSED);
    fake_engine_add_job(8, ALICE, JOB_QUEUED);
    bed_say(link, WIRE_read_output, 8);
    assert_string_equal(heard_error(link, "job 8 is queued"), WIRE_CODE_WRONG_STATE);
    fake_engine.next_id = 20;
    bed_say(link, WIRE_read_output, 9);
    fake_work_run();
    assert_string_equal(heard_error(link, "job 9 has ended"), WIRE_CODE_WRONG_STATE);
    bed_say(link, WIRE_read_output, 20);
    assert_string_equal(heard_error(link, "there is no job 20"), WIRE_CODE_NO_SUCH_JOB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_not_read, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_refused, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
