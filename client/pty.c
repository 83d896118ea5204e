#include "config.h"

#include "client/pty.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/job/terminal.h"

/* What programs ask about the terminal that is looked at from. */
static void take_kind(struct environment *environment)
{
    static const char *const names[] = {"TERM", "COLORTERM"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        if (value && *value && !environment_get(environment, names[i]))
            environment_set(environment, names[i], value);
    }
}

int pty_take(const struct pty_option *option, struct elmer_submission *submission, struct environment *environment)
{
    if (!option->asked && (option->keep || option->detach))
        return usage_error("%s is for a job with a terminal: give --pty, too", option->keep ? "--keep" : "--detach");
    if (!option->asked)
        return -1;
    if (submission->each)
        return usage_error("--pty: a terminal is for one command; start the others from within it, with erun --each");
    if (submission->tasks)
        return usage_error("--pty: a terminal is for one command, not for the tasks of an array");
    if (submission->requeue)
        return usage_error("--pty: what was typed cannot be run again; leave out --requeue");
    if (submission->warning_signal == SIGTERM)
        return usage_error(
            "--pty: --signal TERM would end the terminal at once, as the end of the job does; give another");
    if (option->detach && !option->keep)
        return usage_error("--detach: nobody would look at the terminal, and it would end; give --keep, too");
    submission->terminal = option->keep ? TERMINAL_KEEP : TERMINAL_PTY;
    take_kind(environment);
    return -1;
}
