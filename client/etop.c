/* etop.c - move a waiting job before the others of its owner. */
#include "config.h"

#include <string.h>

#include "client/end.h"

static const struct option_row options[] = {OPTION_ROWS_END};
static const struct command command = {
    "etop",
    "Usage: etop ID\n"
    "Move a job that waits before your other waiting jobs, into the first place that they hold in the\n"
    "queue. These follow in their order; jobs of other users stay where they are.\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job or not waiting, 4 elmer not reachable,\n"
    "5 not permitted, 6 not now: try again.\n",
};

int main(int argc, char **argv)
{
    int first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;

    if (argc - first > 1 && (first == 2 || argv[1][0] != '-')) {
        command_begin(&command);
        return usage_error("one job at a time: the last one that is moved is the first");
    }
    return end_main(&command, elmer_top, elmer_top_tasks, argc, argv);
}
