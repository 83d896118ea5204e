/* terminal.h - jobs whose command has a terminal (esubmit --pty): what the submission says, the variable that says it
 * to the hosts, and what user and holder (rsd/courier/holder.c) can rely on.
 *
 * The variable is part of the submission's environment, so a ticket covers it: neither elmer nor a network half can
 * give a command a terminal that was not asked for, or take one away, which would change where its output goes. */
#ifndef LIB_JOB_TERMINAL_H
#define LIB_JOB_TERMINAL_H

#include <stdbool.h>
#include <string.h>

#define TERMINAL_VARIABLE "ELMER_TERMINAL"
#define TERMINAL_PTY      "pty"  /* it ends with who looks at it, after TERMINAL_GRACE_MS */
#define TERMINAL_KEEP     "keep" /* it stays while nobody looks */

enum {
    TERMINAL_KEPT = 1 << 20,   /* bytes of output that are kept until somebody has seen them */
    TERMINAL_GRACE_MS = 60000, /* a connection that is lost may come back for so long */
    TERMINAL_SIDE_MAX = 10000  /* rows or columns */
};

static inline bool terminal_is_known(const char *text)
{
    return strcmp(text, TERMINAL_PTY) == 0 || strcmp(text, TERMINAL_KEEP) == 0;
}

#endif
