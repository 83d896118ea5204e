/* agent.h - the life of elmer-pvm-agent. */
#ifndef RSD_PVM_AGENT_H
#define RSD_PVM_AGENT_H

#include <stddef.h>

/* A host that is to join the master's; address is NULL if PVM shall resolve the name. */
struct agent_host {
    const char *name, *address;
};

struct agent_options {
    const char *dir; /* where tasks start, NULL: PVM_WD of the daemons' environment decides */
    const struct agent_host *hosts;
    size_t count;
    int output_fd, errors_fd, control_fd;
};

enum agent_exit { AGENT_EXIT_DONE = 0, AGENT_EXIT_FAILED = 1, AGENT_EXIT_USAGE = 2, AGENT_EXIT_MACHINE_GONE = 3 };

/* Live until the end; returns the exit status. */
enum agent_exit agent_run(const struct agent_options *options);

#endif
