/* test_launch.c - plain and each, and what launch.c does for all launchers. PVM: test_launch_pvm.c. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/elmer/launch/launch_fixture.h"

#define SUBMISSION (f.job.submission.u.submit)

/* ---- plain ---- */

static void test_plain(void **state)
{
    (void)state;
    make_job("001", NULL, 0);
    begin();
    expect("ws0: start 0 command sim -v cpus 0 1 > elmer-7.out\n");
    assert_string_equal(variable("ELMER_JOB_ID"), "7");
    assert_string_equal(variable("ELMER_RANK"), "0");
    assert_string_equal(variable("ELMER_NPROCS"), "3");
    assert_string_equal(variable("ELMER_HOSTS"), "ws0:ws0:ws1");
    assert_string_equal(variable("ELMER_TMPDIR"), "/tmp/jobs/7.1");
    assert_string_equal(variable("ELMER_HOSTFILE"), "/tmp/jobs/7.1/hostfile");
    assert_string_equal(variable("ELMER_SUBMIT_HOST"), "ws2");
    say(0, WIRE_started, 0, NULL);
    expect("LAUNCHED\n");
    say(0, WIRE_started, 0, NULL); /* again */
    assert_int_equal(fake_time_next(), -1);
    say_exited(0, 0, "command", 5, -1);
    expect("EXITED ws0 rank 0 status 5 signal 0\n");
    fake_time_pass(10000);
    assert_int_equal(fake_time_next(), -1);
}

/* The address by which others see the host of the process; a host that does not know the variable is not told. */
static void test_address(void **state)
{
    (void)state;
    f.facts[1].address = "10.0.0.1";
    make_job("12", NULL, 0);
    begin();
    expect("ws1: start 0 command sim -v cpus 0 > elmer-7.out\n");
    assert_string_equal(variable("ELMER_ADDRESS"), "10.0.0.1");
    f.minor[1] = WIRE_ADDRESS_MINOR - 1;
    launches_host_up(f.launches, 1);
    expect("ws1: start 0 command sim -v cpus 0 > elmer-7.out\n");
    assert_null(variable("ELMER_ADDRESS"));
}

static void test_mesh(void **state)
{
    (void)state;
    make_job("021", NULL, 0);
    f.state.mesh_rows = 1;
    begin();
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.out\n");
    assert_string_equal(variable("ELMER_MESH"), "1x3");
    assert_string_equal(variable("ELMER_HOSTS"), "ws0:ws2:ws1");
}

static void test_signal(void **state)
{
    (void)state;
    make_job("2", NULL, 0);
    begin();
    expect("ws2: start 0 command sim -v cpus 0 > elmer-7.out\n");
    say_exited(2, 0, "command", 0, 9); /* the report of its start was lost */
    expect("LAUNCHED\nEXITED ws2 rank 0 status -1 signal 9\n");
}

static void test_environment(void **state)
{
    static const char *const mine[] = {"HOME=/home/alice", "ELMER_RANK=99", "ELMER_HOSTS=all", "PVM_TMP=/mine",
                                       "ELMER_RANKS=4"};
    (void)state;
    make_job("0", mine, 5);
    begin();
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.out\n");
    assert_string_equal(variable("HOME"), "/home/alice");
    assert_string_equal(variable("ELMER_RANK"), "0");
    assert_string_equal(variable("ELMER_HOSTS"), "ws0");
    assert_string_equal(variable("ELMER_RANKS"), "4");
    assert_string_equal(variable("PVM_TMP"), "/mine"); /* reserved with PVM only */
    assert_null(strstr(f.environment, "=99"));
    assert_null(strstr(f.environment, "=all"));
}

static void test_files(void **state)
{
    (void)state;
    make_job("0", NULL, 0);
    SUBMISSION.output = "/out/%x.%j";
    SUBMISSION.errors = "/err/%u.%r";
    begin();
    expect("ws0: start 0 command sim -v cpus 0 > /out/sim.7 2> /err/alice.0\n");
}

static void test_name_too_long(void **state)
{
    static char pattern[4096];
    (void)state;
    memset(pattern, 'a', 4094);
    pattern[4092] = '%';
    pattern[4093] = 'u';
    make_job("0", NULL, 0);
    SUBMISSION.output = pattern;
    begin();
    expect("LAUNCH_FAILED start-failed: the name of its output file is too long: give a shorter one with -o and -e\n");
}

static void test_cannot_start(void **state)
{
    (void)state;
    make_job("1", NULL, 0);
    begin();
    expect("ws1: start 0 command sim -v cpus 0 > elmer-7.out\n");
    say(1, WIRE_start_failed, 0, "sim: no such file");
    expect("LAUNCH_FAILED start-failed: ws1: sim: no such file\n");
    say(1, WIRE_start_failed, 0, "sim: no such file"); /* again */
    fake_time_fire();
    say(1, WIRE_start_failed, 0, "sim: no such file");
}

/* ---- who may say what ---- */

static void test_others_say(void **state)
{
    (void)state;
    make_job("01", NULL, 0);
    begin();
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.out\n");
    say(1, WIRE_started, 0, NULL); /* not where it is */
    say(2, WIRE_started, 0, NULL); /* no host of the job */
    say(1, WIRE_start_failed, 0, "no");
    say(0, WIRE_started, 1, NULL); /* no such process */
    say(0, WIRE_started, 2, NULL); /* no helpers */
    say(0, WIRE_line, 0, "a line");
    say_spawn(0, 1, "ws1", "pvmd -s"); /* no launcher that knows it */
    say_pvm(0, WIRE_pvm_ready, NULL);
    say_pvm(0, WIRE_pvm_failed, "no");
    say_empty(1);
    f.state.attempt = 2;
    say(0, WIRE_started, 0, NULL); /* another attempt */
    f.state.attempt = 1;
    struct wire_message order = {.type = WIRE_order}; /* of no job */
    launches_message(f.launches, 0, &order);
    expect("");
    say(0, WIRE_started, 0, NULL);
    expect("LAUNCHED\n");
}

/* Only the core knows whether an exit without a launch matters; that of a helper does not, once that is on disk. */
static void test_exits_without_a_launch(void **state)
{
    (void)state;
    make_job("0", NULL, 0);
    f.state.attempt = 3;
    f.state.state = JOB_ENDING;
    f.held = true;
    say_exited(1, 4, "pvmd", 0, 0);
    expect("");
    commit();
    expect("ws1: taken 4\n");
    f.state.state = JOB_STARTING; /* after a restart of elmer: it will have one, to which that is said again */
    say_exited(1, 4, "pvmd", 0, 0);
    expect("");
    f.state.each = true;
    f.state.nprocs = 9; /* it goes on */
    say_exited(1, 0, "command", 2, 0);
    expect("EXITED ws1 rank 0 status 2 signal 0\n");
}

/* ---- attempts, ends, links ---- */

static void test_begin_again(void **state)
{
    (void)state;
    make_job("0", NULL, 0);
    begin();
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.out\n");
    begin(); /* the same attempt */
    expect("");
    f.state.attempt = 2;
    f.processors[0].host = 2;
    begin();
    expect("ws2: start 0 command sim -v cpus 0 > elmer-7.out\n");
    assert_string_equal(variable("ELMER_TMPDIR"), "/tmp/jobs/7.2");
    say(0, WIRE_started, 0, NULL);
    expect("");
    say(2, WIRE_started, 0, NULL);
    expect("LAUNCHED\n");
    fake_time_fire(); /* the first is freed, the second lives */
    say_exited(2, 0, "command", 0, 0);
    expect("EXITED ws2 rank 0 status 0 signal 0\n");
}

static void test_not_to_be_started(void **state)
{
    (void)state;
    make_job("0", NULL, 0);
    f.state.state = JOB_ENDING;
    begin();
    f.state.state = JOB_STARTING;
    f.state.processors = NULL;
    begin();
    f.known = false;
    begin();
    expect("");
}

static void test_ended_on_the_way(void **state)
{
    (void)state;
    make_job("0", NULL, 0);
    begin();
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.out\n");
    end();
    say(0, WIRE_started, 0, NULL);
    launches_host_up(f.launches, 0);
    end();
    expect("");
}

static void test_relink(void **state)
{
    (void)state;
    make_job("01", NULL, 0);
    f.linked[0] = false;
    begin();
    expect("");
    f.linked[0] = true;
    launches_host_up(f.launches, 1);
    launches_host_up(f.launches, 2);
    expect("");
    launches_host_up(f.launches, 0);
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.out\n");
    launches_host_up(f.launches, 0); /* not confirmed yet */
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.out\n");
    say(0, WIRE_started, 0, NULL);
    expect("LAUNCHED\n");
    launches_host_up(f.launches, 0);
    expect("");
}

static void test_restart(void **state)
{
    (void)state;
    make_job("0", NULL, 0);
    begin();
    say(0, WIRE_started, 0, NULL);
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.out\nLAUNCHED\n");
    restart();
    launches_host_up(f.launches, 0);
    say(0, WIRE_started, 0, NULL);
    expect("");
    say_exited(0, 0, "command", 3, 0);
    expect("EXITED ws0 rank 0 status 3 signal 0\n");
}

/* ---- each ---- */

static void make_each(const char *hosts)
{
    make_job(hosts, NULL, 0);
    SUBMISSION.each = true;
}

static void test_each(void **state)
{
    (void)state;
    make_each("011");
    begin();
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.0.out\n"
           "ws1: start 1 command sim -v cpus 0 > elmer-7.1.out\n"
           "ws1: start 2 command sim -v cpus 1 > elmer-7.2.out\n");
    assert_string_equal(variable("ELMER_RANK"), "2");
    assert_string_equal(variable("ELMER_HOSTS"), "ws0:ws1:ws1");
    say(1, WIRE_started, 2, NULL);
    say(0, WIRE_started, 0, NULL);
    say(0, WIRE_started, 1, NULL); /* it is on ws1 */
    expect("");
    say_exited(1, 2, "command", 0, 0); /* before all have started */
    expect("EXITED ws1 rank 2 status 0 signal 0\n");
    say(1, WIRE_started, 1, NULL);
    expect("LAUNCHED\n");
    say_exited(1, 1, "command", 1, 0);
    say_exited(0, 0, "command", 0, 15);
    expect("EXITED ws1 rank 1 status 1 signal 0\nEXITED ws0 rank 0 status -1 signal 15\n");
}

static void test_each_cannot_start(void **state)
{
    (void)state;
    make_each("012");
    begin();
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.0.out\n"
           "ws1: start 1 command sim -v cpus 0 > elmer-7.1.out\n"
           "ws2: start 2 command sim -v cpus 0 > elmer-7.2.out\n");
    say(0, WIRE_started, 0, NULL);
    say(2, WIRE_start_failed, 2, "sim: permission denied");
    expect("LAUNCH_FAILED start-failed: ws2: sim: permission denied\n");
    say(1, WIRE_started, 1, NULL);
    expect("");
}

/* A name that is too long for a rank only: nothing more is started. */
static void test_each_name_too_long(void **state)
{
    static char pattern[4200];
    (void)state;
    make_each("0001");
    memset(pattern, 'a', 4094);
    memcpy(pattern + 4094, "%r%r", 5);
    SUBMISSION.output = pattern;
    begin();
    expect("LAUNCH_FAILED start-failed: the name of its output file is too long: give a shorter one with -o and -e\n");
}

static void test_each_relink(void **state)
{
    (void)state;
    make_each("0112");
    begin();
    *f.log = 0;
    say(1, WIRE_started, 1, NULL);
    launches_host_up(f.launches, 1);
    expect("ws1: start 2 command sim -v cpus 1 > elmer-7.2.out\n");
}

/* What had exited before the job's last hosts opened, and before a restart. */
static void test_each_has_exited_before(void **state)
{
    (void)state;
    make_each("012");
    f.exited[0] = 1u << 1;
    begin();
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.0.out\n"
           "ws2: start 2 command sim -v cpus 0 > elmer-7.2.out\n");
    say(0, WIRE_started, 0, NULL);
    say(2, WIRE_started, 2, NULL);
    expect("LAUNCHED\n");
    restart();
    expect("");
    say_exited(0, 0, "command", 0, 0);
    expect("EXITED ws0 rank 0 status 0 signal 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(test_plain),
        CASE(test_mesh),
        CASE(test_address),
        CASE(test_signal),
        CASE(test_environment),
        CASE(test_files),
        CASE(test_name_too_long),
        CASE(test_cannot_start),
        CASE(test_others_say),
        CASE(test_exits_without_a_launch),
        CASE(test_begin_again),
        CASE(test_not_to_be_started),
        CASE(test_ended_on_the_way),
        CASE(test_relink),
        CASE(test_restart),
        CASE(test_each),
        CASE(test_each_cannot_start),
        CASE(test_each_name_too_long),
        CASE(test_each_relink),
        CASE(test_each_has_exited_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
