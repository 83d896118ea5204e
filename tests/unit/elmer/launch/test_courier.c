/* test_courier.c - couriers of jobs: one for each host, started when somebody asks, found again, replaced. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/job/variables.h"
#include "tests/unit/elmer/launch/pvm_steps.h"

enum { FIRST = JOB_COURIERS, WAITING_MAX = 4096 };
static char answers[2000]; /* "NUMBER HOST ADDRESS:PORT" or "NUMBER HOST FAILURE", line by line */
static size_t nanswers;

static void on_reached(uint64_t number, const struct launches_reached *reached, void *data)
{
    size_t used = strlen(answers);
    assert_ptr_equal(data, answers);
    nanswers++;
    if (used > sizeof(answers) - 300)
        return;
    if (reached->failure)
        snprintf(answers + used, sizeof(answers) - used, "%d ws%d %s\n", (int)number, reached->place, reached->failure);
    else
        snprintf(answers + used, sizeof(answers) - used, "%d ws%d %s:%d of %d\n", (int)number, reached->place,
                 reached->address, reached->port, (int)reached->attempt);
}

static void answered(const char *lines)
{
    assert_string_equal(answers, lines);
    *answers = 0;
    nanswers = 0;
}

static void ask_from(int from, int host, uint16_t gone, uint64_t number)
{
    const char *refusal = launches_reach(f.launches, 7, from, host, gone, number);
    if (refusal)
        fail_msg("refused: %s", refusal);
}

static void ask(int host, uint16_t gone, uint64_t number)
{
    ask_from(0, host, gone, number);
}

/* A job on ws0 (2 processors) and ws1 that runs. */
static int job(void **state)
{
    setup(state);
    launches_connect(f.launches, on_reached, answers);
    *answers = 0;
    nanswers = 0;
    f.facts[1].address = "10.0.0.1";
    make_job("001", NULL, 0);
    begin();
    say(0, WIRE_started, 0, NULL);
    *f.log = 0;
    return 0;
}

static void test_first_and_next(void **state)
{
    (void)state;
    ask(1, 0, 11);
    ask(1, 0, 12); /* who asks meanwhile waits for the same */
    expect("ws1: start 1073741825 command elmer-courier cpus 0 captured\n");
    assert_string_equal(variable("ELMER_HOSTS"), "ws0:ws0:ws1");
    say(1, WIRE_started, FIRST + 1, NULL);
    answered("");
    say(1, WIRE_line, FIRST + 1, "40001");
    answered("11 ws1 10.0.0.1:40001 of 1\n12 ws1 10.0.0.1:40001 of 1\n");
    ask(1, 0, 13); /* it is there */
    answered("13 ws1 10.0.0.1:40001 of 1\n");
    ask(0, 0, 14); /* each host has its own; the queue host is where the others see elmer */
    expect("ws0: start 1073741824 command elmer-courier cpus 0 1 captured\n");
    say(0, WIRE_line, FIRST, "40002");
    answered("14 ws0 10.0.0.100:40002 of 1\n");
    fake_time_pass(60000); /* nobody waits any more */
    answered("");
}

#define NOT_FROM_THERE "only processes of this job may do that, and none is on the host of who asks"

static void test_who_may_not(void **state)
{
    (void)state;
    assert_string_equal(launches_reach(f.launches, 8, 0, 1, 0, 1), "the job does not run now");
    assert_string_equal(launches_reach(f.launches, 7, 0, 2, 0, 1), "it is no host of this job");
    assert_string_equal(launches_reach(f.launches, 7, 0, -1, 0, 1), "it is no host of this job");
    assert_string_equal(launches_reach(f.launches, 7, 2, 1, 0, 1), NOT_FROM_THERE); /* nor from any other host */
    assert_string_equal(launches_reach(f.launches, 7, -1, 1, 0, 1), NOT_FROM_THERE);
    end();
    assert_string_equal(launches_reach(f.launches, 7, 0, 1, 0, 1), "the job does not run now");
    answered("");
}

static void test_failures(void **state)
{
    (void)state;
    ask(1, 0, 1);
    expect("ws1: start 1073741825 command elmer-courier cpus 0 captured\n");
    say(1, WIRE_start_failed, FIRST + 1, "no such\nprogram");
    answered("1 ws1 no such\\x0Aprogram\n");
    ask(1, 0, 2); /* the next one has the next number: a number is started once */
    expect("ws1: start 1073741827 command elmer-courier cpus 0 captured\n");
    say(1, WIRE_line, FIRST + 1, "1"); /* of the one before */
    answered("");
    say(1, WIRE_line, FIRST + 3, "what?");
    answered("2 ws1 it has said something else than where it listens\n");
    for (int i = 0; i < 3; i++) {
        static const char *const none[] = {"0", "65536", ""};
        char line[100];
        fake_time_pass(1000);
        ask(1, 0, 3);
        snprintf(line, sizeof(line), "ws1: start %d command elmer-courier cpus 0 captured\n", FIRST + 5 + 2 * i);
        expect(line);
        say(1, WIRE_line, (uint32_t)(FIRST + 5 + 2 * i), none[i]);
        answered("3 ws1 it has said something else than where it listens\n");
    }
}

static void test_its_end(void **state)
{
    (void)state;
    ask(1, 0, 1);
    say(1, WIRE_line, FIRST + 1, "40001");
    answered("1 ws1 10.0.0.1:40001 of 1\n");
    *f.log = 0;
    say_exited(1, FIRST + 1, "command", -1, 9); /* it is acknowledged, and means nothing to the job */
    expect("ws1: taken 1073741825\n");
    ask(1, 0, 2);
    expect("ws1: start 1073741827 command elmer-courier cpus 0 captured\n");
    say_exited(1, FIRST + 3, "command", 1, -1);
    expect("ws1: taken 1073741827\n");
    answered("2 ws1 it has ended\n");
    end();
    say_exited(1, FIRST + 3, "command", 1, -1); /* said again, of a job that has ended */
    expect("ws1: taken 1073741827\n");
}

/* Who could not reach it says so. */
static void test_gone(void **state)
{
    (void)state;
    ask(1, 0, 1);
    say(1, WIRE_line, FIRST + 1, "40001");
    answered("1 ws1 10.0.0.1:40001 of 1\n");
    *f.log = 0;
    ask(1, 40001, 2);
    expect("ws1: start 1073741827 command elmer-courier cpus 0 captured\n");
    say(1, WIRE_line, FIRST + 3, "40005");
    answered("2 ws1 10.0.0.1:40005 of 1\n");
    ask(1, 40001, 3); /* who has asked late */
    answered("3 ws1 10.0.0.1:40005 of 1\n");
    expect("");
}

static void start_is_seen(int nth)
{
    char line[100];
    snprintf(line, sizeof(line), "ws1: start %d command elmer-courier cpus 0 captured\n", FIRST + 1 + 2 * nth);
    expect(line);
}

/* Its directory is gone, say, and one who asks all the time has another one started each time, above all jobs. */
static void test_turns(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        ask(1, 0, 1);
        start_is_seen(i);
        say(1, WIRE_start_failed, (uint32_t)(FIRST + 1 + 2 * i), "no");
        answered("1 ws1 no\n");
    }
    ask(1, 0, 1); /* from now on, one in a second */
    ask(1, 0, 2);
    expect("");
    launches_host_up(f.launches, 1);
    say_exited(1, FIRST + 1 + 2 * 5, "command", 1, -1); /* of one that there is not yet */
    *f.log = 0;
    fake_time_pass(999);
    expect("");
    ask(0, 0, 3); /* each host has its own turns */
    expect("ws0: start 1073741824 command elmer-courier cpus 0 1 captured\n");
    answered("");
    fake_time_pass(1);
    start_is_seen(5);
    say(1, WIRE_line, FIRST + 1 + 2 * 5, "40001");
    answered("1 ws1 10.0.0.1:40001 of 1\n2 ws1 10.0.0.1:40001 of 1\n");
    ask(1, 40001, 4); /* it is there, but he says that it is gone */
    expect("");
    fake_time_pass(1000);
    start_is_seen(6);
    say(1, WIRE_line, FIRST + 1 + 2 * 6, "40002");
    answered("4 ws1 10.0.0.1:40002 of 1\n");
    fake_time_pass(3000); /* who has not asked for a while may again */
    for (int i = 7; i < 10; i++) {
        say_exited(1, (uint32_t)(FIRST + 2 * i - 1), "command", 1, -1);
        *f.log = 0;
        ask(1, 0, 5);
        start_is_seen(i);
    }
}

static void test_turn_of_a_job_that_ends(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        ask(1, 0, 1);
        say(1, WIRE_start_failed, (uint32_t)(FIRST + 1 + 2 * i), "no");
    }
    answered("1 ws1 no\n1 ws1 no\n1 ws1 no\n1 ws1 no\n1 ws1 no\n");
    ask(1, 0, 1);
    *f.log = 0;
    end();
    answered("1 ws1 the job is ending\n");
    fake_time_pass(60000);
    answered("");
    expect("");
}

/* elmer has forgotten; the host says what it said. */
static void test_restart(void **state)
{
    (void)state;
    f.state.state = JOB_RUNNING;
    restart();
    launches_connect(f.launches, on_reached, answers);
    ask(1, 0, 1);
    expect("ws1: start 1073741825 command elmer-courier cpus 0 captured\n");
    say(1, WIRE_started, FIRST + 1, NULL);
    say(1, WIRE_line, FIRST + 1, "40001");
    answered("1 ws1 10.0.0.1:40001 of 1\n");
    restart();
    launches_connect(f.launches, on_reached, answers);
    ask(1, 40001, 2); /* and that one is dead by now */
    expect("ws1: start 1073741825 command elmer-courier cpus 0 captured\n");
    say(1, WIRE_line, FIRST + 1, "40001");
    answered("");
    expect("ws1: start 1073741827 command elmer-courier cpus 0 captured\n");
    say(1, WIRE_line, FIRST + 3, "40009");
    answered("2 ws1 10.0.0.1:40009 of 1\n");
}

static void test_time_and_links(void **state)
{
    (void)state;
    f.linked[1] = false;
    ask(1, 0, 1);
    expect(""); /* lost */
    f.linked[1] = true;
    launches_host_up(f.launches, 1);
    expect("ws1: start 1073741825 command elmer-courier cpus 0 captured\n");
    fake_time_pass(10001);
    answered("1 ws1 the host has not started it in time: is it behind a job that spins, or cut off?\n");
    ask(1, 0, 2); /* waits for the same one */
    expect("");
    say(1, WIRE_line, FIRST + 1, "40001");
    answered("2 ws1 10.0.0.1:40001 of 1\n");
}

static void test_the_end_of_the_job(void **state)
{
    (void)state;
    ask(1, 0, 1);
    *f.log = 0;
    end();
    answered("1 ws1 the job is ending\n");
    fake_time_pass(60000);
    answered("");
}

/* Another host speaks of it, or of what there is not. */
static void test_lies(void **state)
{
    (void)state;
    ask(1, 0, 1);
    *f.log = 0;
    say(0, WIRE_line, FIRST + 1, "40001");
    say(2, WIRE_line, FIRST + 1, "40001");
    say(1, WIRE_line, FIRST, "40001");
    say(1, WIRE_line, UINT32_MAX, "40001");
    say(1, WIRE_start_failed, FIRST + 3, "x");
    answered("");
    say(1, WIRE_line, FIRST + 1, "40002");
    answered("1 ws1 10.0.0.1:40002 of 1\n");
    say(1, WIRE_line, FIRST + 1, "40003"); /* a second line */
    ask(1, 0, 2);
    answered("2 ws1 10.0.0.1:40002 of 1\n");
    expect("");
}

static void test_bounds(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < WAITING_MAX; i++)
        ask(1, 0, i);
    assert_string_equal(launches_reach(f.launches, 7, 0, 1, 0, 1), "too many processes wait for its courier");
    *f.log = 0;
    say(1, WIRE_line, FIRST + 1, "40001");
    assert_int_equal(nanswers, WAITING_MAX);
    for (uint32_t i = 0; i < 999; i++) {
        say_exited(1, FIRST + 1 + 2 * i, "command", 1, -1);
        ask(1, 0, 1);
        fake_time_pass(1000);
        *f.log = 0;
    }
    say_exited(1, FIRST + 1 + 2 * 999, "command", 1, -1);
    *f.log = 0;
    assert_string_equal(launches_reach(f.launches, 7, 0, 1, 0, 1), "its courier has ended too often: what ends it?");
}

/* ---- terminals ---- */

#define TERMINAL_START "ws1: start 0 command sim -v cpus 0 1 > elmer-7.out captured\n"

/* A job on ws1 whose command has a terminal. */
static int terminal_job(void **state)
{
    setup(state);
    launches_connect(f.launches, on_reached, answers);
    *answers = 0;
    nanswers = 0;
    f.facts[1].address = "10.0.0.1";
    make_job("11", NULL, 0);
    f.job.submission.u.submit.terminal = "keep";
    begin();
    expect(TERMINAL_START);
    return 0;
}

static void ask_terminal(uint64_t number)
{
    const char *refusal = launches_reach_terminal(f.launches, 7, number);
    if (refusal)
        fail_msg("refused: %s", refusal);
}

static void test_terminal(void **state)
{
    (void)state;
    ask_terminal(1); /* it waits until it is said */
    answered("");
    expect(TERMINAL_START);
    say(1, WIRE_started, 0, NULL);
    expect("LAUNCHED\n");
    say(0, WIRE_line, 0, "40009"); /* of another host */
    answered("");
    say(1, WIRE_line, 0, "40001");
    answered("1 ws1 10.0.0.1:40001 of 1\n");
    ask_terminal(2);
    answered("2 ws1 10.0.0.1:40001 of 1\n");
    say(1, WIRE_line, 0, "40001"); /* said again */
    ask_terminal(3);
    answered("3 ws1 10.0.0.1:40001 of 1\n");
    ask_from(1, 1, 0, 4); /* a courier is something else */
    expect("ws1: start 1073741824 command elmer-courier cpus 0 1 captured\n");
    end();
    answered("4 ws1 the job is ending\n");
    assert_string_equal(launches_reach_terminal(f.launches, 7, 5), "the job does not run now");
}

/* Nobody has asked before it is there. */
static void test_terminal_first(void **state)
{
    (void)state;
    say(1, WIRE_started, 0, NULL);
    expect("LAUNCHED\n");
    say(1, WIRE_line, 0, "40001");
    ask_terminal(1);
    answered("1 ws1 10.0.0.1:40001 of 1\n");
}

static void test_terminal_fails(void **state)
{
    (void)state;
    say(1, WIRE_started, 0, NULL);
    expect("LAUNCHED\n");
    ask_terminal(1);
    expect(TERMINAL_START); /* it may have said it to an elmer of before */
    say(1, WIRE_line, 0, "elmer-tickets of this host\tdoes not answer");
    answered("1 ws1 elmer-tickets of this host\\x09does not answer\n");
}

/* elmer has forgotten where it is, and asks for the start that was, which the host answers with what it has said. */
static void test_terminal_after_a_restart(void **state)
{
    (void)state;
    say(1, WIRE_started, 0, NULL);
    say(1, WIRE_line, 0, "40001");
    restart();
    launches_connect(f.launches, on_reached, answers);
    *f.log = 0;
    ask_terminal(1);
    expect(TERMINAL_START);
    say(1, WIRE_started, 0, NULL);
    say(1, WIRE_line, 0, "40001");
    answered("1 ws1 10.0.0.1:40001 of 1\n");
}

/* A host that has not said where it is: who asks later has it asked again. */
static void test_terminal_in_time(void **state)
{
    (void)state;
    say(1, WIRE_started, 0, NULL);
    expect("LAUNCHED\n");
    ask_terminal(1);
    expect(TERMINAL_START);
    fake_time_pass(10001);
    answered("1 ws1 the host has not started it in time: is it behind a job that spins, or cut off?\n");
    launches_host_up(f.launches, 1); /* nobody asks */
    expect("");
    ask_terminal(2);
    expect(TERMINAL_START);
    say(1, WIRE_line, 0, "40001");
    answered("2 ws1 10.0.0.1:40001 of 1\n");
}

/* It says that the command has started and ended, never where its terminal is, and links again while the launch has
 * something to finish. */
static void test_terminal_of_a_liar(void **state)
{
    (void)state;
    launches_connect(f.launches, on_reached, answers);
    *answers = 0;
    to_running();
    SUBMISSION.terminal = "keep";
    ask_terminal(1);
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.out captured\n");
    say_exited(0, COMMAND, "command", 5, 0);
    expect("ws0: pvm_finish\n");
    answered("1 ws0 it has ended\n");
    launches_host_up(f.launches, 0);
    expect("");
    say(0, WIRE_line, COMMAND, "40001");
    launches_host_up(f.launches, 0);
    expect("");
    assert_string_equal(launches_reach_terminal(f.launches, 7, 2), "the job does not run now");
    answered("");
}

int main(void)
{
#define CASE(name)     cmocka_unit_test_setup_teardown(name, job, teardown)
#define TERMINAL(name) cmocka_unit_test_setup_teardown(name, terminal_job, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_first_and_next),
        CASE(test_who_may_not),
        CASE(test_failures),
        CASE(test_its_end),
        CASE(test_gone),
        CASE(test_turns),
        CASE(test_turn_of_a_job_that_ends),
        CASE(test_restart),
        CASE(test_time_and_links),
        CASE(test_the_end_of_the_job),
        CASE(test_lies),
        CASE(test_bounds),
        TERMINAL(test_terminal),
        TERMINAL(test_terminal_first),
        TERMINAL(test_terminal_fails),
        TERMINAL(test_terminal_after_a_restart),
        TERMINAL(test_terminal_in_time),
        cmocka_unit_test_setup_teardown(test_terminal_of_a_liar, setup, teardown),
    };
    return cmocka_run_group_tests_name("courier", tests, NULL, NULL);
}
