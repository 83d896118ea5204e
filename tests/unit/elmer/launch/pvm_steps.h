/* pvm_steps.h - the way of a job with PVM on ws0, ws1 and ws2, one processor each, up to where a test begins. Process 0
 * is the command, 3 the master, 4 the agent, 5 the daemon on ws1 and 6 that on ws2. */
#ifndef TESTS_UNIT_ELMER_LAUNCH_PVM_STEPS_H
#define TESTS_UNIT_ELMER_LAUNCH_PVM_STEPS_H

#include "tests/unit/elmer/launch/launch_fixture.h"

#define SUBMISSION (f.job.submission.u.submit)
enum { COMMAND = 0, MASTER = 3, AGENT = 4, SLAVE1 = 5, SLAVE2 = 6 };

#define START_MASTER "ws0: start 3 pvmd pvmd -nws0 cpus 0 captured\n"
#define START_AGENT                                                                                                    \
    "ws0: start 4 agent " ELMER_LIBEXECDIR "/elmer-pvm-agent --wd /home/alice ws1 ws2 cpus 0 > elmer-7.out\n"
#define START_SLAVE1  "ws1: start 5 pvmd pvmd -s -d0x0 -nws1 -f cpus 0 captured\n"
#define START_COMMAND "ws0: start 0 command sim -v cpus 0 > elmer-7.out\n"
#define GONE          ", and without it the job's virtual machine is gone"

/* Each checks what happens on its way. */
void to_master(void);    /* the master is being started */
void to_agent(void);     /* it has said its socket, the agent is being started */
void to_slaves(void);    /* the agent has started */
void to_command(void);   /* ws1 has its daemon, the machine is ready, the command is being started */
void to_running(void);   /* it has started */
void to_finishing(void); /* it has ended with status 5, the agent drains */

void agent_ends(int status, int signal);
void master_ends(int status, int signal);

#endif
