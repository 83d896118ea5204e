/* machine.h - esubmit -P and -p: a PVM virtual machine without a command. */
#ifndef CLIENT_MACHINE_H
#define CLIENT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libelmer/elmer.h"

struct machine {
    bool asked;
    const char *file; /* of hosts; NULL: none */
    char *text;       /* what it says */
    const char **hosts;
};

/* What is left of the command line, and what the options say, as a job. Returns -1, or the exit code. */
int machine_complete(struct machine *machine, struct elmer_submission *submission, char *const *operands);
void machine_fini(struct machine *machine);
enum { MACHINE_USE = 200 };
/* Of a job that is one and runs, how programs find it; "" of others. */
const char *machine_use(char *text, size_t size, const struct elmer_job *job);
/* It is submitted: wait while it starts, and say how it is used. */
void machine_tell(struct elmer *elmer, const struct elmer_submitted *submitted);

#endif
