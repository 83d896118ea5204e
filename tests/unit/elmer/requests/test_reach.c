/* test_reach.c - where a courier listens: who may ask, what he is told. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/elmer/requests/bed.h"

static void ask(int link, uint64_t id, uint64_t job, const char *host)
{
    struct wire_message message = {.type = WIRE_reach, .id = id, .u.reach = {.job = job, .host = host, .gone = 4711}};
    say(link, &message);
}

static struct launches_reached there(int host)
{
    return (struct launches_reached){.place = host, .attempt = 2, .address = "10.0.0.2", .port = 40001};
}

static int setup(void **state)
{
    bed_setup(state);
    fake_launch.asked = 0;
    fake_launch.refusal = NULL;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    return 0;
}

static void test_reached(void **state)
{
    struct launches_reached reached = there(WS2);
    int link = bed_client(ALICE);
    (void)state;
    ask(link, 3, 7, "ws2");
    assert_int_equal(fake_launch.job, 7);
    assert_int_equal(fake_launch.host, WS2);
    assert_int_equal(fake_launch.gone, 4711);
    assert_int_equal(fake_launch.from, QUEUE);
    heard_nothing(); /* until it is there */
    fake_launch.on_reached(fake_launch.number, &reached, fake_launch.data);
    const struct wire_message *answer = heard(link, WIRE_reached);
    assert_int_equal(answer->id, 3);
    assert_int_equal(answer->u.reached.attempt, 2);
    assert_int_equal(answer->u.reached.port, 40001);
    assert_string_equal(answer->u.reached.address, "10.0.0.2");
    fake_launch.on_reached(fake_launch.number, &reached, fake_launch.data); /* it has its answer */
    heard_nothing();
}

/* The queue host's rsd has no link with an address; from another host it is where that one sees elmer. */
static void test_queue_host(void **state)
{
    struct launches_reached reached = there(QUEUE);
    struct wire_message message = {.type = WIRE_reach, .id = 3, .u.reach = {.job = 7, .host = "queue", .gone = 4711}};
    const char *answer;
    (void)state;
    reached.address = "";
    bed_relay(WS1, 9, ALICE, "alice", &message);
    fake_work_run();
    assert_int_equal(fake_launch.from, WS1); /* of the link, not of what is asked */
    fake_launch.on_reached(fake_launch.number, &reached, fake_launch.data);
    answer = bed_relayed(WS1, 9);
    assert_non_null(strstr(answer, "\"reached\""));
    assert_non_null(strstr(answer, "\"10.0.0.1\""));
}

/* On one host they need no network; an address that elmer does not know is none. */
static void test_addresses(void **state)
{
    struct launches_reached reached = there(QUEUE);
    int link = bed_client(ALICE);
    (void)state;
    ask(link, 3, 7, "queue");
    fake_launch.on_reached(fake_launch.number, &reached, fake_launch.data);
    assert_string_equal(heard(link, WIRE_reached)->u.reached.address, "");
    ask(link, 4, 7, "ws2");
    reached = there(WS2);
    reached.address = "";
    fake_launch.on_reached(fake_launch.number, &reached, fake_launch.data);
    assert_string_equal(heard_error(link, "nothing of job 7 can be started on ws2: elmer does not know its address; "
                                          "give it in elmer.conf"),
                        WIRE_CODE_UNAVAILABLE);
}

static void test_failures(void **state)
{
    struct launches_reached reached = there(WS2);
    int link = bed_client(ALICE);
    (void)state;
    fake_launch.refusal = "it is no host of this job";
    ask(link, 3, 7, "ws1");
    assert_string_equal(heard_error(link, "nothing of job 7 can be started on ws1: it is no host of this job"),
                        WIRE_CODE_UNAVAILABLE);
    fake_launch.refusal = NULL;
    ask(link, 4, 7, "ws2");
    reached.failure = "it has ended";
    fake_launch.on_reached(fake_launch.number, &reached, fake_launch.data);
    assert_string_equal(heard_error(link, "nothing of job 7 can be started on ws2: it has ended"),
                        WIRE_CODE_UNAVAILABLE);
    ask(link, 5, 8, "ws2");
    fake_work_run(); /* who asks is looked up where it may be another's */
    assert_string_equal(heard_error(link, "there is no job 8 that runs"), WIRE_CODE_NO_SUCH_JOB);
    assert_int_equal(fake_launch.asked, 2);
}

/* Nobody else, administrators neither: nothing of another's is started. */
static void test_others(void **state)
{
    static const uint32_t others[] = {BOB, CAROL, ROOT};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        int link = bed_client(others[i]);
        ask(link, 3, 7, "ws2");
        fake_work_run();
        assert_string_equal(heard_error(link, "job 7 belongs to alice: only its own processes may do this"),
                            WIRE_CODE_NOT_PERMITTED);
    }
    assert_int_equal(fake_launch.asked, 0);
}

static void test_terminal(void **state)
{
    static const uint32_t others[] = {BOB, CAROL, ROOT};
    struct wire_message message = {.type = WIRE_reach, .id = 3, .u.reach = {.job = 7, .host = "", .terminal = true}};
    struct launches_reached reached = there(WS2);
    struct engine_job *job = &fake_engine_find(7)->job;
    int link = bed_client(ALICE);
    (void)state;
    job->submission.u.submit.terminal = "";
    say(link, &message);
    assert_string_equal(
        heard_error(link, "job 7 has no terminal: it was submitted without --pty; etail shows its output"),
        WIRE_CODE_REFUSED);
    job->submission.u.submit.terminal = "keep";
    fake_launch.refusal = "the job does not run now";
    say(link, &message);
    assert_string_equal(heard_error(link, "the terminal of job 7 cannot be seen: the job does not run now"),
                        WIRE_CODE_WRONG_STATE);
    fake_launch.refusal = NULL;
    say(link, &message);
    assert_int_equal(fake_launch.host, -2);
    fake_launch.on_reached(fake_launch.number, &reached, fake_launch.data);
    const struct wire_message *answer = heard(link, WIRE_reached);
    assert_string_equal(answer->u.reached.host, "ws2");
    assert_int_equal(answer->u.reached.port, 40001);
    say(link, &message);
    reached.failure = "the job is ending";
    fake_launch.on_reached(fake_launch.number, &reached, fake_launch.data);
    assert_string_equal(heard_error(link, "the terminal of job 7 cannot be reached: the job is ending"),
                        WIRE_CODE_UNAVAILABLE);
    for (size_t i = 0; i < 3; i++) { /* nor do administrators see it */
        link = bed_client(others[i]);
        say(link, &message);
        fake_work_run();
        assert_string_equal(heard_error(link, "job 7 belongs to alice: only he may see its terminal"),
                            WIRE_CODE_NOT_PERMITTED);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_terminal),  CASE(test_reached),  CASE(test_queue_host),
        CASE(test_addresses), CASE(test_failures), CASE(test_others),
    };
    return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
