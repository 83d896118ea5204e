/* fixture.h - a virtual machine on one computer for the tests of the agent: the test plays elmer and the supervisor.
 * The "hosts" ws1, ws2, .. are addresses of the loopback device in a network namespace of the test's own. */
#ifndef TESTS_PVM_FIXTURE_H
#define TESTS_PVM_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/wire/channel.h"

enum { FIXTURE_HOSTS = 3, FIXTURE_WAIT_MS = 20000 };

struct fixture {
    char dir[64];
    char socket[160];            /* PVMSOCK */
    pid_t daemon[FIXTURE_HOSTS]; /* 0: none */
    pid_t agent;
    bool linked;
    struct channel link; /* to the agent */
};

/* Enter a network namespace with the addresses of all hosts. False where that is not permitted: then one host only. */
bool fixture_enter_network(void);

/* Start the master daemon and, with hosts - 1 others, the agent. Names that begin with '-' are options of the agent. */
void fixture_start(struct fixture *f, int hosts);
/* Answer the agent's requests until it is ready or has failed: returns the type of that message, *reason is malloc'd.
 * Requests for `refused` (may be NULL) are answered with `answer`. */
enum wire_type fixture_serve(struct fixture *f, const char *refused, const char *answer, char **reason);
/* Run a program (a path in the build directory) to its end with the machine's environment, on the first host; its
 * stdout and stderr come back together, malloc'd (printed may be NULL). Returns its exit status as fixture_wait(). */
int fixture_run(struct fixture *f, const char *program, char **printed, const char *const *argv);
/* Send agent_finish. */
void fixture_finish(struct fixture *f);
/* Wait for the end of a process; its exit status, 128 + signal, or -1 if it does not end in FIXTURE_WAIT_MS. */
int fixture_wait(pid_t *pid);
/* What the agent has written, malloc'd. */
char *fixture_output(const struct fixture *f);
char *fixture_errors(const struct fixture *f);
/* End what is left and remove the files. */
void fixture_end(struct fixture *f);

#endif
