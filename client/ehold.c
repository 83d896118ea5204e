/* ehold.c - keep waiting jobs from their turn. */
#include "config.h"

#include "client/end.h"

static const struct option_row options[] = {OPTION_ROWS_END};
static const struct command command = {
    "ehold",
    "Usage: ehold ID...\n"
    "Hold jobs that wait in the queue: they keep their places, and have no turn until they are released.\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job or not waiting, 4 elmer not reachable,\n"
    "5 not permitted, 6 not now: try again; with several jobs the greatest. erelease releases them.\n",
};

int main(int argc, char **argv)
{
    return end_main(&command, elmer_hold, elmer_hold_tasks, argc, argv);
}
