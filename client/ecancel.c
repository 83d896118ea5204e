/* ecancel.c - remove jobs from the queue. */
#include "config.h"

#include "client/choose.h"
#include "client/end.h"

static const struct option_row options[] = {
    {OPTION_ME, "me", NULL, "all of one's own jobs that wait"},
    {'u', "user", "USER", "those of USER"},
    {OPTION_NAME, "name", "PATTERN", "those whose name matches a shell pattern, like 'solve*'"},
    {OPTION_YES, "yes", NULL, "ask nothing; else it asks on a terminal when it is more than ten jobs"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "ecancel",
    "Usage: ecancel ID...\n"
    "       ecancel [--me | -u USER] [--name PATTERN] [--yes]\n"
    "Remove jobs that wait in the queue.\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job or not waiting, 4 elmer not reachable,\n"
    "5 not permitted, 6 not now: try again; with several jobs the greatest. A job that has started\n"
    "is ended by ekill.\n",
};

int main(int argc, char **argv)
{
    struct choice choice = {.waiting = true, .deed = "cancel"};
    int code = choose_jobs(&command, &choice, argc, argv);

    if (code >= 0)
        return code;
    code = end_main(&command, elmer_cancel, elmer_cancel_tasks, choice.argc, choice.argv);
    choose_free(&choice);
    return code;
}
