/* test_elmer_array_tasks.c - arrays in a whole elmer: tasks that wait or are taken out alone, and what they cost. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/daemon/array_steps.h"

#define ONE_LEVEL LOCAL "levels = 1\n"

/* Who waits for a task, or wants to read what it writes, hears what became of that one. */
enum { ONE_ROW_MS = 10000 };

static void of_tasks_that_wait(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message answer, m = {.type = WIRE_wait};
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 2, NULL);
    uint64_t array = array_submit(&host, "a", "1-4%1", "queued");
    array_run_task(&host, array, 1, "1");
    m.u.wait.job = array + 3;
    m.u.wait.timeout_ms = 60000;
    host_relay(&host, 2, 2001, "alice", &m);
    m.u.wait.job = array + 4;
    host_relay(&host, 3, 2001, "alice", &m);
    m = (struct wire_message){.type = WIRE_read_output, .u.read_output = {.job = array + 3}};
    host_relay(&host, 1, 2001, "alice", &m);
    host_expect_answer(&host, 1, WIRE_error, &answer);
    assert_non_null(strstr(answer.u.error.text, "is queued"));
    wire_message_fini(&answer);
    host_relay(&host, 1, 2002, "bob", &m);
    host_expect_answer(&host, 1, WIRE_error, &answer);
    assert_string_equal(answer.u.error.code, WIRE_CODE_NOT_PERMITTED);
    wire_message_fini(&answer);
    m = (struct wire_message){.type = WIRE_cancel, .u.cancel = {.job = array, .tasks = "3"}};
    host_relay(&host, 1, 2001, "alice", &m);
    host_expect_answer(&host, 2, WIRE_jobs, &answer); /* its array goes on */
    assert_int_equal(only(&answer)->job, array + 3);
    assert_string_equal(only(&answer)->state, "cancelled");
    wire_message_fini(&answer);
    host_expect_answer(&host, 1, WIRE_done, &answer);
    wire_message_fini(&answer);
    array_verb(&host, WIRE_kill, array, "", NULL);
    host_expect_answer(&host, 3, WIRE_jobs, &answer);
    assert_string_equal(only(&answer)->state, "cancelled");
    wire_message_fini(&answer);
    fake_close(&host);
    lab_destroy(&lab);
}

static long peak_kb(const struct lab *lab)
{
    char path[64], line[200];
    long kb = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)lab->pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        (void)sscanf(line, "VmHWM: %ld", &kb);
    fclose(file);
    return kb;
}

/* An array with a long command, of which each task becomes a job that is held. */
static void tasks_take_no_memory_each(void **state)
{
    enum { TASKS = 300, LONG = 200000, GROWTH_KB = 24 << 10 }; /* all of them: 60 MB */
    static char text[LONG + 1];
    const char *command[] = {"/bin/echo", text};
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab.memory_counts = true;
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    array_submit(&host, "first", "", "starting");
    memset(text, 'x', LONG);
    struct wire_message m = lab_submission("a", 1);
    m.u.submit.tasks = "1-301";
    m.u.submit.command = (struct wire_strs){command, 2};
    char got[20];
    long before_kb = peak_kb(&lab);
    uint64_t array = lab_submit(&host, &m, got, sizeof(got));
    array_verb(&host, WIRE_hold, array, "1-150", NULL);
    array_verb(&host, WIRE_hold, array, "151-300", NULL);
    array_expect(&host, array, "queued", "301", 0, 0);
    long held_kb = peak_kb(&lab);
    kill_and_begin(&lab, &host, NULL);
    array_expect(&host, array, "queued", "301", 0, 0);
    array_expect_task(&host, array, TASKS, "held", TASKS);
    long again_kb = peak_kb(&lab);
    print_message("at most %ld kB, with the tasks held %ld kB, after a restart %ld kB\n", before_kb, held_kb, again_kb);
    assert_true(held_kb < before_kb + GROWTH_KB);
    assert_true(again_kb < before_kb + GROWTH_KB);
    array_verb(&host, WIRE_kill, array, "", NULL);
    array_expect(&host, array, "cancelled", "", 0, 0);
    fake_close(&host);
    lab_destroy(&lab);
}

/* The queue of a user is bounded, also if his jobs are one array that he takes apart. */
static void tasks_alone_are_jobs_in_the_queue(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message m = {.type = WIRE_hold}, answer;
    (void)state;
    lab_create(&lab, ONE_LEVEL "user_queued = 10\nadmin_hosts = ws1\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    uint64_t array = array_submit(&host, "a", "1-100", "queued");
    array_run_task(&host, array, 1, "1");
    array_verb(&host, WIRE_hold, array, "11-20", WIRE_CODE_REFUSED); /* the array is one */
    array_expect(&host, array, "queued", "2-100", 0, 0);
    array_verb(&host, WIRE_hold, array, "1,11-19", NULL);
    array_verb(&host, WIRE_release, array, "20", WIRE_CODE_REFUSED);
    array_verb(&host, WIRE_top, array, "30-40", WIRE_CODE_REFUSED);
    array_verb(&host, WIRE_top, array, "", NULL); /* none leaves it, as they have the first places */
    m.u.hold.job = array + 20;                    /* by its own id */
    host_relay(&host, 1, 2001, "alice", &m);
    host_expect_answer(&host, 1, WIRE_done, &answer);
    assert_int_equal(answer.type, WIRE_error);
    assert_non_null(strstr(answer.u.error.text, "alice has 10 jobs in the queue and may have 10"));
    wire_message_fini(&answer);
    array_verb(&host, WIRE_release, array, "11-19", NULL); /* they are jobs already */
    array_verb(&host, WIRE_hold, array, "", NULL);         /* as one */
    array_verb(&host, WIRE_release, array, "", NULL);
    array_verb(&host, WIRE_cancel, array, "30-40", NULL);
    array_expect(&host, array, "queued", "2-10,20-29,41-100", 0, 0);
    m.u.hold.tasks = "";
    lab_ask_as_root(&lab, &m, WIRE_done, &answer); /* administrators have no limit */
    wire_message_fini(&answer);
    array_expect_task(&host, array, 20, "held", 20);
    fake_close(&host);
    lab_destroy(&lab);
}

static void a_hundred_thousand(void **state)
{
    struct lab lab;
    struct fake host;
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    array_submit(&host, "first", "", "starting");
    int64_t begin = mono_ms(mono_now());
    uint64_t array = array_submit(&host, "a", "1-100000", "queued");
    array_expect(&host, array, "queued", "1-100000", 0, 0);
    array_expect_task(&host, array, 100000, "queued", 100000);
    kill_and_begin(&lab, &host, NULL);
    array_expect(&host, array, "queued", "1-100000", 0, 0);
    array_verb(&host, WIRE_cancel, array, "2-99999", NULL);
    array_expect(&host, array, "queued", "1,100000", 0, 0);
    array_verb(&host, WIRE_cancel, array, "", NULL);
    array_expect(&host, array, "cancelled", "", 0, 0);
    if (mono_ms(mono_now()) - begin > ONE_ROW_MS) /* one row, whatever is done to all of it */
        fail_msg("it has taken %" PRId64 " ms", mono_ms(mono_now()) - begin);
    fake_close(&host);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_tasks_that_wait),
        cmocka_unit_test(tasks_take_no_memory_each),
        cmocka_unit_test(tasks_alone_are_jobs_in_the_queue),
        cmocka_unit_test(a_hundred_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
