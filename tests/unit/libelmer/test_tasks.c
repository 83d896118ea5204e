/* test_tasks.c - the ids of an array's tasks, and signals to them, with an elmer that the test plays. */
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

enum { CALL_MS = 30000, SIGNAL = 10 };

static bool connected;

static int begin(void **state)
{
    connected = false;
    return client_bed_setup(state);
}

static struct wire_message asked(enum wire_type type)
{
    if (!connected) {
        peer_accept(listener, &channel, WIRE_FROM_CLIENT);
        client_bed_step();
    }
    connected = true;
    return peer_expect(&channel, type);
}

/* Array 57 with the indices 2, 4, 6, 8 and 10. ntasks 0: it is one job; negative: there is none. */
static void answer_array(int ntasks)
{
    struct wire_message query = asked(WIRE_query), m = {.type = WIRE_jobs, .id = query.id};
    struct wire_job_view view = {.job = 57,
                                 .name = "",
                                 .user = "",
                                 .state = "running",
                                 .dir = "",
                                 .reason_code = "",
                                 .reason = "",
                                 .tasks = ntasks > 0 ? "2-10:2%2" : ""};
    assert_int_equal(query.u.query.jobs.count, 1);
    assert_int_equal(query.u.query.jobs.items[0], 57);
    view.ntasks = ntasks > 0 ? (uint64_t)ntasks : 0;
    m.u.jobs.jobs.items = &view;
    m.u.jobs.jobs.count = ntasks >= 0;
    peer_send(&channel, &m);
    client_bed_step();
    wire_message_fini(&query);
}

/* code NULL: it is sent. */
static void answer_signal(uint64_t job, const char *code)
{
    struct wire_message m = peer_expect(&channel, WIRE_signal_job),
                        error = {.type = WIRE_error, .id = m.id, .u.error = {.code = code, .text = "not to this one"}},
                        done = {.type = WIRE_done, .id = m.id, .u.done.text = "sent"};
    assert_int_equal(m.u.signal_job.job, job);
    assert_int_equal(m.u.signal_job.number, SIGNAL);
    peer_send(&channel, code ? &error : &done);
    client_bed_step();
    wire_message_fini(&m);
}

static struct elmer_call *ids_begun(const char *tasks)
{
    char copy[40];
    struct elmer_call *call;
    if (tasks)
        (void)snprintf(copy, sizeof(copy), "%s", tasks);
    copy[sizeof(copy) - 1] = '\0';
    assert_int_equal(elmer_task_ids_begin(elmer, 57, tasks ? copy : NULL, CALL_MS, &call, NULL), ELMER_OK);
    memset(copy, 'x', sizeof(copy) - 1); /* the arguments may go */
    return call;
}

static struct elmer_call *signals_begun(const char *tasks)
{
    struct elmer_call *call;
    assert_int_equal(elmer_signal_tasks_begin(elmer, 57, tasks, SIGNAL, CALL_MS, &call, NULL), ELMER_OK);
    return call;
}

static void ended(struct elmer_call *call, int result, const char *text)
{
    struct elmer_error error = {{0}};
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, &error), result);
    if (result == ELMER_OK)
        assert_string_equal(elmer_call_text(call), text);
    else
        assert_string_equal(error.text, text);
    if (result != ELMER_OK)
        assert_null(elmer_call_ids(call));
    elmer_call_free(call);
}

static void ids_of_some_and_of_all(void **state)
{
    struct elmer_call *call = ids_begun("4,8-10:2");
    struct elmer_ids *ids;
    (void)state;
    answer_array(5);
    assert_ptr_equal(elmer_next_ended(elmer), call);
    ids = elmer_call_ids(call);
    assert_int_equal(ids->count, 3);
    assert_int_equal(ids->items[0], 59);
    assert_int_equal(ids->items[1], 61);
    assert_int_equal(ids->items[2], 62);
    elmer_ids_free(ids);
    elmer_call_free(call);
    call = ids_begun(NULL);
    answer_array(5);
    assert_ptr_equal(elmer_next_ended(elmer), call);
    ids = elmer_call_ids(call);
    assert_int_equal(ids->count, 5);
    assert_int_equal(ids->items[0], 58);
    assert_int_equal(ids->items[4], 62);
    elmer_ids_free(ids);
    elmer_ids_free(NULL);
    elmer_call_free(call);
}

static void what_is_no_task(void **state)
{
    struct elmer_call *call = ids_begun("4-5");
    struct elmer_error error;
    struct elmer_ids *ids;
    (void)state;
    answer_array(5);
    ended(call, ELMER_REFUSED, "array 57 has no task 5");
    call = ids_begun("4");
    answer_array(0);
    ended(call, ELMER_WRONG_STATE, "job 57 is no array: it has no tasks");
    call = ids_begun("4");
    answer_array(-1);
    ended(call, ELMER_NO_SUCH_JOB, "there is no job 57");
    assert_int_equal(elmer_task_ids(elmer, 57, "9-3", CALL_MS, &ids, &error), ELMER_USAGE);
    assert_null(ids);
    assert_non_null(strstr(error.text, "the tasks of an array: "));
    assert_int_equal(elmer_task_ids_begin(elmer, 57, "1%2", CALL_MS, &call, &error), ELMER_USAGE);
    assert_null(call);
}

/* Those that wait or have ended are left out. */
static void signals_to_some(void **state)
{
    struct elmer_call *call = signals_begun("2-6:2");
    (void)state;
    answer_array(5);
    answer_signal(58, NULL);
    answer_signal(59, WIRE_CODE_WRONG_STATE);
    answer_signal(60, NULL);
    ended(call, ELMER_OK, "signal 10 is sent to 2 of 3 tasks of array 57");
    call = signals_begun("2,4");
    answer_array(5);
    answer_signal(58, WIRE_CODE_WRONG_STATE);
    answer_signal(59, WIRE_CODE_WRONG_STATE);
    ended(call, ELMER_WRONG_STATE, "none of the 2 tasks of array 57 that are named runs: no process can get a signal");
}

/* For all of them elmer has a request. */
static void signals_to_all(void **state)
{
    struct elmer_call *call = signals_begun(NULL);
    struct wire_message m = asked(WIRE_signal_job), done = {.type = WIRE_done, .id = m.id, .u.done.text = "sent"};
    (void)state;
    assert_int_equal(m.u.signal_job.job, 57);
    peer_send(&channel, &done);
    client_bed_step();
    wire_message_fini(&m);
    ended(call, ELMER_OK, "sent");
}

static void signals_that_are_refused(void **state)
{
    struct elmer_call *call = signals_begun("2-10:2");
    struct elmer_error text, error;
    (void)state;
    answer_array(5);
    answer_signal(58, NULL);
    answer_signal(59, WIRE_CODE_REFUSED);
    ended(call, ELMER_REFUSED, "not to this one");
    call = signals_begun("3");
    answer_array(5);
    ended(call, ELMER_REFUSED, "array 57 has no task 3");
    for (int number = 0; number <= 65; number += 65)
        assert_int_equal(elmer_signal_tasks(elmer, 57, "2", number, CALL_MS, &text, &error), ELMER_USAGE);
    assert_string_equal(error.text, "65 is no signal");
    assert_string_equal(text.text, "");
    text.text[0] = 'x';
    assert_int_equal(elmer_signal(elmer, 57, 0, CALL_MS, &text, &error), ELMER_USAGE);
    assert_string_equal(text.text, "");
}

/* The connection breaks at the second one: that is sent again, the first is not. */
static void signals_over_a_break(void **state)
{
    struct elmer_call *call = signals_begun("2-4:2");
    struct wire_message m;
    (void)state;
    answer_array(5);
    answer_signal(58, NULL);
    m = peer_expect(&channel, WIRE_signal_job);
    wire_message_fini(&m);
    channel_fini(&channel);
    client_bed_step();
    client_bed_step(); /* after the pause */
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    client_bed_step();
    answer_signal(59, NULL);
    ended(call, ELMER_OK, "signal 10 is sent to 2 of 2 tasks of array 57");
}

static void given_up_between_them(void **state)
{
    struct elmer_call *call = signals_begun("2-4:2");
    (void)state;
    answer_array(5);
    elmer_call_free(call);
}

int main(void)
{
#define IN_BED(name) cmocka_unit_test_setup_teardown(name, begin, client_bed_teardown)
    const struct CMUnitTest tests[] = {IN_BED(ids_of_some_and_of_all),   IN_BED(what_is_no_task),
                                       IN_BED(signals_to_some),          IN_BED(signals_to_all),
                                       IN_BED(signals_that_are_refused), IN_BED(signals_over_a_break),
                                       IN_BED(given_up_between_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
