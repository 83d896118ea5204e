/* ekill.c - end running jobs. */
#include "config.h"

#include "client/end.h"

static const struct command command = {
    "ekill",
    "Usage: ekill ID...\n"
    "End jobs that are starting or running: their processes get SIGTERM, and SIGKILL after a grace time.\n"
    "\n"
    "  -h, --help     print this and exit\n"
    "  -V, --version  print the version and exit\n"
    "\n"
    "Exit status: 0 done, 1 refused, 2 usage, 3 no such job or not running, 4 elmer not reachable,\n"
    "5 not permitted; with several jobs the greatest. A job that still waits is removed by ecancel.\n",
};

int main(int argc, char **argv)
{
    return end_main(&command, elmer_kill, argc, argv);
}
