/* erelease.c - let held jobs have their turn again. */
#include "config.h"

#include "client/end.h"

static const struct option_row options[] = {OPTION_ROWS_END};
static const struct command command = {
    "erelease",
    "Usage: erelease ID...\n"
    "Release jobs that are held: they are where they would be had they not been held.\n"
    "\n",
    options,
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job or not waiting, 4 elmer not reachable,\n"
    "5 not permitted, 6 not now: try again; with several jobs the greatest.\n",
};

int main(int argc, char **argv)
{
    return end_main(&command, elmer_release, elmer_release_tasks, argc, argv);
}
