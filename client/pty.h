/* pty.h - the options of esubmit for a job with a terminal. */
#ifndef CLIENT_PTY_H
#define CLIENT_PTY_H

#include <stdbool.h>

#include "client/environment.h"
#include "libelmer/elmer.h"

struct pty_option {
    bool asked, keep, detach;
};
/* Into the submission, and what kind of terminal it is into the environment. -1, or an exit code: it has said what is
 * wrong. */
int pty_take(const struct pty_option *option, struct elmer_submission *submission, struct environment *environment);

#endif
