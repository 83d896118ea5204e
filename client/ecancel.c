/* ecancel.c - remove jobs from the queue. */
#include "config.h"

#include "client/end.h"

static const struct command command = {
    "ecancel",
    "Usage: ecancel ID...\n"
    "Remove jobs that wait in the queue.\n"
    "\n"
    "  -h, --help     print this and exit\n"
    "  -V, --version  print the version and exit\n"
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job or not waiting, 4 elmer not reachable,\n"
    "5 not permitted; with several jobs the greatest. A job that has started is ended by ekill.\n",
};

int main(int argc, char **argv)
{
    return end_main(&command, elmer_cancel, argc, argv);
}
