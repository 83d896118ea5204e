/* test_verbs.c - who ends a job is named in its reason; signals, and who may send them. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/elmer/requests/bed.h"

/* The owner is known without asking anybody, an administrator when he has been looked up, root by his number. */
static void test_named(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed_say(bed_client(ALICE), WIRE_kill, 7);
    assert_int_equal(fake_work_count(), 0);
    assert_string_equal(fake_event(EVENT_KILL)->u.by.text, "ended by ekill of alice");
    bed_say(bed_client(CAROL), WIRE_kill, 7);
    fake_work_run();
    assert_string_equal(fake_event(EVENT_KILL)->u.by.text, "ended by ekill of carol");
    bed_say(bed_client(ROOT), WIRE_cancel, 7);
    assert_string_equal(fake_event(EVENT_CANCEL)->u.by.text, "removed from the queue by ecancel of root");
    bed_say(bed_client(ALICE), WIRE_hold, 7);
    assert_string_equal(fake_event(EVENT_HOLD)->u.by.text, "");
}

static void test_signal(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int link = bed_client(ALICE);
    fake_engine.signals = 2;
    bed_say(link, WIRE_signal_job, 7);
    assert_string_equal(heard(link, WIRE_done)->u.done.text, "signal 10 is sent to job 7");
    assert_int_equal(fake_engine.signalled, 10);
    assert_int_equal(fake_engine.signalled_job, 7);
    fake_engine.away = 1;
    bed_say(link, WIRE_signal_job, 7);
    assert_string_equal(heard(link, WIRE_done)->u.done.text,
                        "signal 10 is sent to job 7, but not to 1 of its hosts: no link");
    fake_engine.signals = 0;
    bed_say(link, WIRE_signal_job, 7);
    assert_string_equal(heard_error(link, "no host of job 7 has a link now"), WIRE_CODE_UNAVAILABLE);
    fake_engine.signals = -1;
    bed_say(link, WIRE_signal_job, 7);
    assert_string_equal(heard_error(link, "job 7 does not run"), WIRE_CODE_WRONG_STATE);
}

static void test_signal_of_others(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int bob = bed_client(BOB), carol = bed_client(CAROL);
    fake_engine.signals = 1;
    bed_say(bob, WIRE_signal_job, 7);
    fake_work_run();
    assert_string_equal(heard_error(bob, "job 7 belongs to alice"), WIRE_CODE_NOT_PERMITTED);
    assert_int_equal(fake_engine.signalled, 0);
    bed_say(carol, WIRE_signal_job, 7);
    fake_work_run();
    heard(carol, WIRE_done);
    bed_say(carol, WIRE_signal_job, 99);
    fake_work_run();
    assert_string_equal(heard_error(carol, "there is no job 99"), WIRE_CODE_NO_SUCH_JOB);
}

/* 57[1-3,900], of which 1 and 3 are jobs, 2 was cancelled while it waited, and 900 waits. */
static void add_array(enum job_state state, enum job_state first, enum job_state third)
{
    static const struct core_range gone = {1, 2};
    struct fake_job *array = fake_engine_add_job(57, ALICE, state);
    array->job.submission.u.submit.tasks = "1-3,900";
    array->state.ntasks = 4;
    array->state.next_task = 3;
    array->state.gone = &gone;
    array->state.ngone = 1;
    for (uint64_t id = 58; id <= 60; id += 2) {
        struct fake_job *task = fake_engine_add_job(id, ALICE, id == 58 ? first : third);
        task->job.array = task->state.array = 57;
        task->job.task = (uint32_t)id - 58;
        task->state.task = (uint32_t)id - 57;
        task->job.of = &array->job;
    }
    fake_engine_add_job(62, ALICE, JOB_RUNNING); /* no task of it */
}

static void test_signal_array(void **state)
{
    (void)state;
    add_array(JOB_QUEUED, JOB_RUNNING, JOB_RUNNING);
    int link = bed_client(ALICE);
    fake_engine.signals = 1;
    bed_say(link, WIRE_signal_job, 57);
    assert_string_equal(heard(link, WIRE_done)->u.done.text, "signal 10 is sent to 2 tasks of array 57");
    assert_int_equal(fake_engine.nsignalled, 2);
    assert_int_equal(fake_engine.signalled_job, 60);
    assert_int_equal(fake_engine.decision.job, 57);
    fake_engine.away = 3;
    bed_say(link, WIRE_signal_job, 57);
    assert_string_equal(heard(link, WIRE_done)->u.done.text,
                        "signal 10 is sent to 2 tasks of array 57, but not to all hosts of 2 of its tasks: no link");
    fake_engine.signals = 0;
    bed_say(link, WIRE_signal_job, 57);
    assert_string_equal(heard_error(link, "no host of array 57 has a link now"), WIRE_CODE_UNAVAILABLE);
    bed_say(bed_client(BOB), WIRE_signal_job, 57);
    fake_work_run();
    assert_int_equal(fake_engine.nsignalled, 6);
}

/* A request is many messages, and costs their user that. */
static void test_signal_array_too_often(void **state)
{
    (void)state;
    add_array(JOB_QUEUED, JOB_RUNNING, JOB_RUNNING);
    int link = bed_client(ALICE);
    fake_engine.signals = 40000; /* hosts of each of the two tasks */
    bed_say(link, WIRE_signal_job, 57);
    assert_string_equal(heard(link, WIRE_done)->u.done.text, "signal 10 is sent to 2 tasks of array 57");
    bed_say(link, WIRE_signal_job, 57);
    assert_string_equal(heard_error(link, "too many signals and lists"), WIRE_CODE_REFUSED);
    assert_int_equal(fake_engine.nsignalled, 2);
    bed_say(link, WIRE_signal_job, 62); /* one message, as other requests */
    assert_string_equal(heard(link, WIRE_done)->u.done.text, "signal 10 is sent to job 62");
}

/* No task that starts, or has ended. */
static void test_signal_array_that_runs_not(void **state)
{
    (void)state;
    add_array(JOB_STARTED, JOB_DONE, JOB_STARTING);
    int link = bed_client(ALICE);
    fake_engine.signals = 1;
    bed_say(link, WIRE_signal_job, 57);
    assert_string_equal(heard_error(link, "no task of array 57 runs"), WIRE_CODE_WRONG_STATE);
    assert_int_equal(fake_engine.nsignalled, 0);
    fake_engine_find(60)->state.state = JOB_RUNNING;
    bed_say(link, WIRE_signal_job, 57);
    assert_string_equal(heard(link, WIRE_done)->u.done.text, "signal 10 is sent to 1 task of array 57");
}

/* By its own id. */
static void test_signal_task(void **state)
{
    (void)state;
    add_array(JOB_QUEUED, JOB_RUNNING, JOB_STARTING);
    int alice = bed_client(ALICE), bob = bed_client(BOB);
    fake_engine.signals = 1;
    bed_say(alice, WIRE_signal_job, 58);
    assert_string_equal(heard(alice, WIRE_done)->u.done.text, "signal 10 is sent to task 57[1]");
    bed_say(alice, WIRE_signal_job, 60);
    assert_string_equal(heard_error(alice, "task 57[3] does not run"), WIRE_CODE_WRONG_STATE);
    bed_say(alice, WIRE_signal_job, 61);
    fake_work_run();
    assert_string_equal(heard_error(alice, "task 57[900] waits: no process"), WIRE_CODE_WRONG_STATE);
    bed_say(alice, WIRE_signal_job, 59);
    assert_string_equal(heard_error(alice, "job 59 has ended already"), WIRE_CODE_WRONG_STATE);
    bed_say(bob, WIRE_signal_job, 61);
    fake_work_run();
    assert_string_equal(heard_error(bob, "job 61 belongs to alice"), WIRE_CODE_NOT_PERMITTED);
    assert_int_equal(fake_engine.nsignalled, 1);
}

/* Of a job that is not there the tasks are not either; of one that is no array they are what is wrong. */
static void test_tasks_of_none(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    int link = bed_client(ALICE);
    struct wire_message message = {.type = WIRE_kill, .id = 3, .u.kill = {.job = 99, .tasks = "3", .reason = ""}};
    say(link, &message);
    fake_work_run();
    assert_string_equal(heard_error(link, "there is no job 99"), WIRE_CODE_NO_SUCH_JOB);
    message.u.kill.job = 5;
    say(link, &message);
    fake_work_run();
    assert_string_equal(heard_error(link, "job 5 has ended"), WIRE_CODE_WRONG_STATE);
    message.u.kill.job = 7;
    say(link, &message);
    assert_string_equal(heard_error(link, "job 7 is no array: leave out [3]"), WIRE_CODE_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_named, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_signal, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_signal_of_others, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_signal_array, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_signal_array_too_often, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_signal_array_that_runs_not, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_signal_task, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_tasks_of_none, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
