/* test_launch_pvm_end.c - a job with PVM from when its command runs: helpers that end, the finish, links and restarts.
 */
#include "config.h"

#include <signal.h>
#include <string.h>

#include "tests/unit/elmer/launch/pvm_steps.h"

/* ---- while the command runs ---- */

static void test_daemon_is_killed(void **state)
{
    (void)state;
    to_running();
    say_exited(1, SLAVE1, "pvmd", 0, SIGKILL);
    expect("ABORT pvm-failed: ws1: its PVM daemon ended by signal 9" GONE "\n");
    assert_true(fake_time_next() <= fake_now_ms()); /* nothing but the memory of the launch waits */
}

static void test_agent_reports_a_failure(void **state)
{
    (void)state;
    to_running();
    say_pvm(0, WIRE_pvm_failed, "lost its master");
    expect("ABORT pvm-failed: its virtual machine failed: lost its master\n");
}

static void test_halted_by_the_command(void **state)
{
    (void)state;
    to_running();
    agent_ends(3, 0);
    fake_time_pass(900);
    master_ends(0, 0);
    expect("");
    say_exited(0, COMMAND, "command", 4, 0); /* all have ended: nothing to wait for */
    expect("EXITED ws0 rank 0 status 4 signal 0\n");
    fake_time_pass(5000);
}

static void test_halted_and_goes_on(void **state)
{
    (void)state;
    to_running();
    master_ends(0, 0);
    fake_time_pass(999);
    expect("");
    fake_time_pass(1);
    expect("ABORT pvm-failed: ws0: its PVM daemon ended with status 0" GONE "\n");
}

static void test_halted_and_then_killed(void **state)
{
    (void)state;
    to_running();
    agent_ends(1, 0);
    say_exited(1, SLAVE1, "pvmd", 0, SIGKILL);
    expect("ABORT pvm-failed: ws1: its PVM daemon ended by signal 9" GONE "\n");
    fake_time_pass(5000);
}

/* A daemon that is killed closes its sockets before its end is told: agent and command may be first. */
static void test_killed_and_told_last(void **state)
{
    (void)state;
    to_running();
    agent_ends(1, 0);
    say_exited(0, COMMAND, "command", 1, 0);
    fake_time_pass(199);
    expect("");
    master_ends(0, SIGKILL);
    expect("ABORT pvm-failed: ws0: its PVM daemon ended by signal 9" GONE "\n");
}

static void test_agent_gone_and_no_more_is_told(void **state)
{
    (void)state;
    to_running();
    agent_ends(1, 0);
    say_exited(0, COMMAND, "command", 1, 0);
    expect("");
    fake_time_pass(200);
    expect("EXITED ws0 rank 0 status 1 signal 0\n");
}

/* ---- the finish ---- */

static void test_agent_hangs(void **state)
{
    (void)state;
    to_finishing();
    fake_time_pass(1999);
    expect("");
    fake_time_pass(1);
    expect("EXITED ws0 rank 0 status 5 signal 0\n");
}

static void test_master_hangs(void **state)
{
    (void)state;
    to_finishing();
    fake_time_pass(1000);
    agent_ends(0, 0);
    fake_time_pass(199);
    expect("");
    fake_time_pass(1);
    expect("EXITED ws0 rank 0 status 5 signal 0\n");
}

static void test_slaves_end_in_the_finish(void **state)
{
    (void)state;
    to_finishing();
    say_exited(1, SLAVE1, "pvmd", 0, 0);
    say_pvm(0, WIRE_pvm_failed, "too late");
    expect("");
    fake_time_pass(2000);
    expect("EXITED ws0 rank 0 status 5 signal 0\n");
}

static void test_daemon_is_killed_in_the_finish(void **state)
{
    (void)state;
    to_finishing();
    agent_ends(3, SIGPIPE); /* however it ends */
    master_ends(0, SIGKILL);
    expect("ABORT pvm-failed: ws0: its PVM daemon ended by signal 9" GONE "\n");
    fake_time_pass(5000);
}

/* Whatever ends the job now, the status of the command is not lost. */
static void test_kill_in_the_finish(void **state)
{
    (void)state;
    to_finishing();
    f.state.nprocs = 9; /* the core ends it for another reason than that exit */
    f.state.each = true;
    end();
    expect("EXITED ws0 rank 0 status 5 signal 0\n");
    agent_ends(0, 0);
    expect("ws0: taken 4\n");
}

static void test_empty_in_the_finish(void **state)
{
    (void)state;
    to_finishing();
    say_empty(HOSTS); /* not one of the job */
    expect("");
    say_empty(0);
    expect("EXITED ws0 rank 0 status 5 signal 0\n");
}

/* ---- links and restarts ---- */

static void test_relink(void **state)
{
    (void)state;
    to_master();
    launches_host_up(f.launches, 1);
    launches_host_up(f.launches, 0);
    expect(START_MASTER);
    say(0, WIRE_line, MASTER, "/sock");
    expect(START_AGENT);
    launches_host_up(f.launches, 2);
    launches_host_up(f.launches, 0);
    expect(START_AGENT);
    say(0, WIRE_started, AGENT, NULL);
    say_spawn(0, 1, "ws1", "pvmd -s -d0x0 -nws1");
    expect(START_SLAVE1);
    launches_host_up(f.launches, 0);
    launches_host_up(f.launches, 2);
    launches_host_up(f.launches, 1);
    expect(START_AGENT START_SLAVE1);
    say(1, WIRE_line, SLAVE1, "ddpro<1>");
    expect("ws0: pvm_spawned 1 ddpro<1>\n");
    launches_host_up(f.launches, 1);
    expect("");
    launches_host_up(f.launches, 0); /* it says again that it is ready, should that be so */
    expect(START_AGENT);
    say_pvm(0, WIRE_pvm_ready, NULL);
    expect(START_COMMAND);
    launches_host_up(f.launches, 1);
    launches_host_up(f.launches, 0);
    expect(START_COMMAND);
    say(0, WIRE_started, COMMAND, NULL);
    expect("LAUNCHED\n");
    launches_host_up(f.launches, 0);
    expect("");
}

static void test_restart(void **state)
{
    (void)state;
    to_running();
    restart();
    say(1, WIRE_line, SLAVE1, "ddpro<1>"); /* said again */
    say_spawn(0, 9, "ws2", "pvmd -s");
    expect("ws0: pvm_spawned 9 PvmCantStart\n");
    say_exited(0, COMMAND, "command", 0, 0);
    expect("ws0: pvm_finish\n");
    agent_ends(0, 0);
    master_ends(0, 0);
    expect("EXITED ws0 rank 0 status 0 signal 0\n");
}

static void test_daemon_dies_after_a_restart(void **state)
{
    (void)state;
    to_running();
    restart();
    say_exited(2, SLAVE2, "pvmd", 0, SIGSEGV);
    expect("ABORT pvm-failed: ws2: its PVM daemon ended by signal 11" GONE "\n");
}

/* The restart comes before it is on disk that the job is ending: the host says the same again, and it is the same. */
static void test_restart_on_the_way(void **state)
{
    (void)state;
    to_running();
    agent_ends(0, SIGKILL);
    expect("ABORT pvm-failed: ws0: the agent of its virtual machine ended by signal 9" GONE "\n"); /* and not: taken */
    restart();
    agent_ends(0, SIGKILL);
    expect("ABORT pvm-failed: ws0: the agent of its virtual machine ended by signal 9" GONE "\n");
}

static void test_killed_on_the_way(void **state)
{
    (void)state;
    to_slaves();
    end();
    launches_host_up(f.launches, 0);
    say_exited(0, AGENT, "agent", 0, SIGTERM);
    expect("ws0: taken 4\n");
    fake_time_fire();
    master_ends(0, SIGTERM);
    expect("ws0: taken 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(test_daemon_is_killed),
        CASE(test_agent_reports_a_failure),
        CASE(test_halted_by_the_command),
        CASE(test_halted_and_goes_on),
        CASE(test_halted_and_then_killed),
        CASE(test_killed_and_told_last),
        CASE(test_agent_gone_and_no_more_is_told),
        CASE(test_agent_hangs),
        CASE(test_master_hangs),
        CASE(test_slaves_end_in_the_finish),
        CASE(test_daemon_is_killed_in_the_finish),
        CASE(test_kill_in_the_finish),
        CASE(test_empty_in_the_finish),
        CASE(test_relink),
        CASE(test_restart),
        CASE(test_daemon_dies_after_a_restart),
        CASE(test_restart_on_the_way),
        CASE(test_killed_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
