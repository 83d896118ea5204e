#include "config.h"

#include "tests/unit/elmer/launch/pvm_steps.h"

void to_master(void)
{
    make_job("012", NULL, 0);
    SUBMISSION.pvm = true;
    begin();
    expect(START_MASTER);
}

void to_agent(void)
{
    to_master();
    say(0, WIRE_started, MASTER, NULL);
    say(0, WIRE_line, MASTER, "/tmp/jobs/7.1/pvmd");
    expect(START_AGENT);
}

void to_slaves(void)
{
    to_agent();
    say(0, WIRE_started, AGENT, NULL);
    expect("");
}

void to_command(void)
{
    to_slaves();
    say_spawn(0, 1, "ws1", " pvmd -s  -d0x0\t-nws1");
    expect(START_SLAVE1);
    say(1, WIRE_line, SLAVE1, "ddpro<2316>");
    expect("ws0: pvm_spawned 1 ddpro<2316>\n");
    say_pvm(0, WIRE_pvm_ready, NULL);
    expect(START_COMMAND);
}

void to_running(void)
{
    to_command();
    say(0, WIRE_started, COMMAND, NULL);
    expect("LAUNCHED\n");
}

void to_finishing(void)
{
    to_running();
    say_exited(0, COMMAND, "command", 5, 0);
    expect("ws0: pvm_finish\n");
}

void agent_ends(int status, int signal)
{
    say_exited(0, AGENT, "agent", status, signal);
}

void master_ends(int status, int signal)
{
    say_exited(0, MASTER, "pvmd", status, signal);
}
