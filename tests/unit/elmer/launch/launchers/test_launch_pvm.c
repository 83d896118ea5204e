/* test_launch_pvm.c - the launch of a job with PVM up to its command: master, agent, slaves; and what goes wrong on the
 * way. What comes then: test_launch_pvm_end.c. */
#include "config.h"

#include <signal.h>
#include <string.h>

#include "tests/unit/elmer/launch/pvm_steps.h"

/* ---- the normal way ---- */

static void test_whole(void **state)
{
    (void)state;
    to_finishing();
    say_exited(0, COMMAND, "command", 5, 0); /* again */
    agent_ends(0, 0);
    expect("");
    master_ends(0, 0);
    expect("EXITED ws0 rank 0 status 5 signal 0\n");
    say_exited(1, SLAVE1, "pvmd", 0, 0);
    expect("ws1: taken 5\n");
    fake_time_pass(5000);
}

static void test_environment(void **state)
{
    static const char *const mine[] = {"PVM_TMP=/mine", "PVM_VMID=3", "PVMSOCK=/mine", "PVM_EXPORT=DISPLAY"};
    (void)state;
    make_job("01", mine, 4);
    SUBMISSION.pvm = true;
    begin();
    expect("ws0: start 2 pvmd pvmd -nws0 cpus 0 captured\n");
    assert_string_equal(variable("PVM_TMP"), "/tmp/jobs/7.1");
    assert_string_equal(variable("PVM_WD"), "/home/alice");
    assert_string_equal(variable("PVM_RSH"), "/bin/false");
    assert_string_equal(variable("PVMDLOGMAX"), "1000000");
    assert_string_equal(variable("PVM_EXPORT"), "DISPLAY");
    assert_null(variable("PVM_VMID"));
    assert_null(variable("PVMSOCK"));
    say(0, WIRE_line, 2, "/sock");
    *f.log = 0;
    assert_string_equal(variable("PVMSOCK"), "/sock"); /* the agent */
    say(0, WIRE_started, 3, NULL);
    say_spawn(0, 1, "ws1", "pvmd -s");
    expect("ws1: start 4 pvmd pvmd -s -f cpus 0 captured\n");
    assert_null(variable("PVMSOCK")); /* a daemon makes its own */
    say_pvm(0, WIRE_pvm_ready, NULL);
    expect(START_COMMAND);
    assert_string_equal(variable("PVMSOCK"), "/sock");
}

/* The command starts as it would without PVM. */
static void test_each(void **state)
{
    (void)state;
    make_job("0011", NULL, 0);
    SUBMISSION.pvm = SUBMISSION.each = true;
    begin();
    expect("ws0: start 4 pvmd pvmd -nws0 cpus 0 1 captured\n");
    say(0, WIRE_line, 4, "/sock");
    say(0, WIRE_started, 5, NULL);
    expect("ws0: start 5 agent " ELMER_LIBEXECDIR "/elmer-pvm-agent --wd /home/alice ws1 cpus 0 1 > elmer-7.0.out\n");
    say_pvm(0, WIRE_pvm_ready, NULL);
    expect("ws0: start 0 command sim -v cpus 0 > elmer-7.0.out\n"
           "ws0: start 1 command sim -v cpus 1 > elmer-7.1.out\n"
           "ws1: start 2 command sim -v cpus 0 > elmer-7.2.out\n"
           "ws1: start 3 command sim -v cpus 1 > elmer-7.3.out\n");
    for (uint32_t rank = 0; rank < 3; rank++)
        say_exited(rank / 2 ? 1 : 0, rank, "command", 0, 0);
    expect("EXITED ws0 rank 0 status 0 signal 0\nEXITED ws0 rank 1 status 0 signal 0\n"
           "EXITED ws1 rank 2 status 0 signal 0\n");
    say_exited(1, 3, "command", 0, 0); /* the last one is held */
    expect("LAUNCHED\nws0: pvm_finish\n");
    fake_time_pass(1999);
    expect("");
    fake_time_pass(1);
    expect("EXITED ws1 rank 3 status 0 signal 0\n");
}

static void test_addresses(void **state)
{
    (void)state;
    make_job("012", NULL, 0);
    SUBMISSION.pvm = true;
    f.facts[0].name_loopback = true; /* the queue host; the others see elmer on it */
    f.facts[1].address = "10.0.0.1";
    f.facts[2].address = "127.0.0.1"; /* no address for others */
    begin();
    expect("ws0: start 3 pvmd pvmd -n10.0.0.100 cpus 0 captured\n");
    say(0, WIRE_line, MASTER, "/sock");
    expect("ws0: start 4 agent " ELMER_LIBEXECDIR
           "/elmer-pvm-agent --wd /home/alice ws1=10.0.0.1 ws2 cpus 0 > elmer-7.out\n");
}

static void test_alone_a_name_will_do(void **state)
{
    (void)state;
    make_job("1", NULL, 0);
    SUBMISSION.pvm = true;
    f.facts[1].name_loopback = true;
    f.facts[1].address = "10.0.0.1";
    begin();
    expect("ws1: start 1 pvmd pvmd -nws1 cpus 0 captured\n");
}

/* ---- before the start ---- */

static void test_host_without_pvm(void **state)
{
    (void)state;
    make_job("012", NULL, 0);
    SUBMISSION.pvm = true;
    f.facts[1].launchers = 1u << LAUNCHER_PLAIN | 1u << LAUNCHER_EACH;
    begin();
    expect("LAUNCH_FAILED pvm-failed: host ws1 has no PVM: install it there, or leave the host out with --hosts\n");
}

static void test_master_cannot_start(void **state)
{
    (void)state;
    to_master();
    say(1, WIRE_start_failed, MASTER, "no");       /* not where it is */
    say(0, WIRE_start_failed, AGENT, "not asked"); /* not yet */
    expect("");
    say(0, WIRE_start_failed, MASTER, "no pvmd");
    expect("LAUNCH_FAILED pvm-failed: ws0: its virtual machine could not be started: no pvmd\n");
    say(0, WIRE_line, MASTER, "/sock"); /* too late */
    expect("");
}

static void test_master_says_nonsense(void **state)
{
    (void)state;
    to_master();
    say(0, WIRE_line, MASTER, "libpvm: \033[31mfailed");
    expect("LAUNCH_FAILED pvm-failed: ws0: its PVM daemon said \"libpvm: \\x1B[31mfailed\" instead of the name of its "
           "socket\n");
}

static void test_master_ends_at_once(void **state)
{
    (void)state;
    to_master();
    master_ends(1, 0);
    expect("ABORT pvm-failed: ws0: its PVM daemon ended with status 1" GONE
           "; does the host know its own name and address?\n");
}

static void test_agent_cannot_start(void **state)
{
    (void)state;
    to_agent();
    say(0, WIRE_line, MASTER, "/another"); /* it has said its line */
    expect("");
    say(0, WIRE_start_failed, AGENT, "no agent");
    expect("LAUNCH_FAILED pvm-failed: ws0: its virtual machine could not be started: no agent\n");
}

static void test_agent_ends_on_the_way(void **state)
{
    (void)state;
    to_slaves();
    agent_ends(2, 0);
    expect("ABORT pvm-failed: ws0: the agent of its virtual machine ended with status 2" GONE "\n");
}

static void test_agent_gives_up(void **state)
{
    (void)state;
    to_slaves();
    say_pvm(1, WIRE_pvm_failed, "not from where the agent is");
    expect("");
    say_pvm(0, WIRE_pvm_failed, "no answer");
    expect("LAUNCH_FAILED pvm-failed: its virtual machine failed: no answer\n");
    say_pvm(0, WIRE_pvm_failed, "no answer");
    say_pvm(0, WIRE_pvm_ready, NULL);
    expect("");
}

static void test_spawns(void **state)
{
    (void)state;
    to_agent();
    say_spawn(0, 1, "ws1", "pvmd -s"); /* the report that it has started is still to come */
    expect("ws0: pvm_spawned 1 PvmCantStart\n");
    say(0, WIRE_started, AGENT, NULL);
    say_spawn(0, 2, "ws7", "pvmd -s");
    say_spawn(0, 3, "ws0", "pvmd -s");
    say_spawn(0, 4, "ws1", " \t");
    say_spawn(1, 5, "ws1", "pvmd -s"); /* the agent is on ws0 */
    expect("ws0: pvm_spawned 2 PvmNoHost\nws0: pvm_spawned 3 PvmDupHost\nws0: pvm_spawned 4 PvmCantStart\n");
    say_spawn(0, 6, "ws1", "pvmd -s -d0x0 -nws1");
    expect(START_SLAVE1);
    say_spawn(0, 6, "ws1", "pvmd -s -d0x0 -nws1"); /* again */
    expect("");
    say_spawn(0, 7, "ws1", "pvmd -s");
    expect("ws0: pvm_spawned 7 PvmDupHost\n");
    say(2, WIRE_line, SLAVE1, "from the wrong host");
    say(2, WIRE_line, SLAVE2, "not asked for");
    expect("");
    say(1, WIRE_line, SLAVE1, "ddpro<1>");
    say(1, WIRE_line, SLAVE1, "ddpro<1>");
    expect("ws0: pvm_spawned 6 ddpro<1>\n");
    say_spawn(0, 6, "ws1", "pvmd -s -d0x0 -nws1"); /* that was lost with a link */
    expect("ws0: pvm_spawned 6 ddpro<1>\n");
}

/* A daemon's line is an answer, and its death before that is a failure. */
static void test_slave_cannot_start(void **state)
{
    (void)state;
    to_slaves();
    say_spawn(0, 1, "ws1", "pvmd -s -d0x0 -nws1");
    expect(START_SLAVE1);
    say(2, WIRE_start_failed, SLAVE2, "not asked for");
    expect("");
    say(1, WIRE_start_failed, SLAVE1, "pvmd: command not found");
    expect("LAUNCH_FAILED pvm-failed: ws1: its PVM daemon could not be started: pvmd: command not found\n");
}

static void test_slave_dies_on_the_way(void **state)
{
    (void)state;
    to_slaves();
    say_spawn(0, 1, "ws1", "pvmd -s -d0x0 -nws1");
    expect(START_SLAVE1);
    say_exited(1, SLAVE1, "pvmd", 0, SIGTSTP);
    expect("ABORT pvm-failed: ws1: its PVM daemon was stopped by signal 20" GONE "\n");
}

static void test_command_cannot_start(void **state)
{
    (void)state;
    to_command();
    say(0, WIRE_start_failed, COMMAND, "sim: no such file");
    expect("LAUNCH_FAILED start-failed: ws0: sim: no such file\n");
}

static void test_daemon_ends_before_the_command_has_started(void **state)
{
    (void)state;
    to_command();
    say_exited(1, SLAVE1, "pvmd", 0, 0);
    expect("ABORT pvm-failed: ws1: its PVM daemon ended with status 0" GONE "\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(test_whole),
        CASE(test_environment),
        CASE(test_each),
        CASE(test_addresses),
        CASE(test_alone_a_name_will_do),
        CASE(test_host_without_pvm),
        CASE(test_master_cannot_start),
        CASE(test_master_says_nonsense),
        CASE(test_master_ends_at_once),
        CASE(test_agent_cannot_start),
        CASE(test_agent_ends_on_the_way),
        CASE(test_agent_gives_up),
        CASE(test_spawns),
        CASE(test_slave_cannot_start),
        CASE(test_slave_dies_on_the_way),
        CASE(test_command_cannot_start),
        CASE(test_daemon_ends_before_the_command_has_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
