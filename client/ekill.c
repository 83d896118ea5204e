/* ekill.c - end running jobs, or send them a signal. */
#include "config.h"

#include "client/choose.h"
#include "client/end.h"

static const struct option_row options[] = {
    {OPTION_ME, "me", NULL, "all of one's own jobs that run"},
    {'u', "user", "USER", "those of USER"},
    {OPTION_NAME, "name", "PATTERN", "those whose name matches a shell pattern, like 'solve*'"},
    {OPTION_SIGNAL, "signal", "SIGNAL", "end nothing, but send this signal to their processes, like USR1"},
    {OPTION_YES, "yes", NULL, "ask nothing; else it asks on a terminal when it is more than ten jobs"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "ekill",
    "Usage: ekill [--signal SIGNAL] ID...\n"
    "       ekill [--signal SIGNAL] [--me | -u USER] [--name PATTERN] [--yes]\n"
    "End jobs that are starting or running: their processes get SIGTERM, and SIGKILL after a grace time.\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job or not running, 4 elmer not reachable,\n"
    "5 not permitted, 6 not now: try again; with several jobs the greatest. A job that still waits\n"
    "is removed by ecancel.\n",
};

static uint32_t number; /* of the signal */

static int send_signal(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text,
                       struct elmer_error *error)
{
    return elmer_signal(elmer, job, (int)number, timeout_ms, text, error);
}

int main(int argc, char **argv)
{
    struct choice choice = {.deed = "end"};
    int code = choose_jobs(&command, &choice, argc, argv);

    if (code >= 0)
        return code;
    number = choice.signal;
    code = end_main(&command, number ? send_signal : elmer_kill, number ? NULL : elmer_kill_tasks, choice.argc,
                    choice.argv);
    choose_free(&choice);
    return code;
}
