#include "config.h"

#include "rsd/options.h"

static const struct option_row options[] = {
    {'c', "config", "FILE", "read FILE instead of " ELMER_SYSCONFDIR "/rsd.conf"},
    {RSD_OPTION_JOIN, "join", "HOST[:PORT] TOKEN",
     "let this host join the cluster of the elmer there, with a token of\n`eadmin token`; - asks for it, or reads "
     "it from the\nstandard input"},
    {RSD_OPTION_NAME, "name", "NAME", "join under this name, not the host's"},
    {RSD_OPTION_FORCE, "force", NULL, "join although FILE names another elmer"},
    {RSD_OPTION_NOW, "now", NULL, "then start rsd, now and at each boot"},
    {RSD_OPTION_RELOAD, "reload", NULL, NULL}, /* of rsd.service */
    OPTION_ROWS_END,
};
const struct command rsd_command = {
    "rsd",
    "Usage: rsd [-c FILE]\n"
    "       rsd --join HOST[:PORT] TOKEN [--name NAME] [--force] [--now] [-c FILE]\n"
    "The rescheduling daemon of a workstation: runs the jobs that elmer sends, in strict order. Runs as root, usually "
    "as a service.\n"
    "\n",
    options,
    NULL,
};
