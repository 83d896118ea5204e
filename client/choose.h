/* choose.h - which jobs ekill and ecancel are about: those named by their ids, or those of a user or with a name. */
#ifndef CLIENT_CHOOSE_H
#define CLIENT_CHOOSE_H

#include "client/common.h"

enum { OPTION_ME = OPTION_FIRST_FREE, OPTION_NAME, OPTION_YES, OPTION_SIGNAL = 's' /* if the command has it */ };

struct choice {
    bool waiting;     /* in: among the jobs that wait, else among those that run */
    const char *deed; /* in: "end" */
    uint32_t signal;  /* out: 0: not given */
    int argc;         /* out: the command and the ids, as words */
    char **argv;
};

/* Reads the options of the command, asks elmer for the jobs of a user or with a name, and on a terminal whether that
 * many are meant. Returns an exit code; -1: go on with what is chosen, and free it. */
int choose_jobs(const struct command *command, struct choice *choice, int argc, char **argv);
void choose_free(struct choice *choice);

#endif
