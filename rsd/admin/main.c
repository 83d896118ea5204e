/* main.c - elmer-rsd-admin: what an administrator asks of rsd. Options of rsd are handed over with its arguments as
 * they are; --reload comes from rsd.service. It ends when it is done. */
#include <config.h>

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "rsd/admin/join.h"
#include "rsd/admin/reload.h"

enum { EXIT_CONFIG = 2, OPT_JOIN = 256, OPT_NAME, OPT_FORCE, OPT_NOW, OPT_RELOAD };

static int usage_error(void)
{
    fputs("usage: rsd --join HOST[:PORT] TOKEN [--name NAME] [--force] [--now] [-c FILE]\n", stderr);
    return EXIT_CONFIG;
}

/* Others see the arguments of a process. */
static const char *hide(char *argument)
{
    static char copy[256]; /* longer than every token */
    snprintf(copy, sizeof(copy), "%s", argument);
    if (strcmp(argument, "-") != 0)
        memset(argument, 'x', strlen(argument));
    return copy;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"join", required_argument, NULL, OPT_JOIN},
                                            {"name", required_argument, NULL, OPT_NAME},
                                            {"force", no_argument, NULL, OPT_FORCE},
                                            {"now", no_argument, NULL, OPT_NOW},
                                            {"reload", no_argument, NULL, OPT_RELOAD},
                                            {NULL, 0, NULL, 0}};
    bool reload = false;
    struct rsd_join join = {.config = ELMER_SYSCONFDIR "/rsd.conf"};
    int option;
    log_open("rsd", LOG_LEVEL_INFO);
    while ((option = getopt_long(argc, argv, "c:", options, NULL)) >= 0) {
        switch (option) {
        case 'c':
            join.config = optarg;
            join.config_given = true;
            break;
        case OPT_JOIN:
            join.elmer = optarg;
            break;
        case OPT_NAME:
            join.name = optarg;
            break;
        case OPT_FORCE:
            join.force = true;
            break;
        case OPT_NOW:
            join.now = true;
            break;
        case OPT_RELOAD:
            reload = true;
            break;
        default:
            return usage_error();
        }
    }
    if (reload && !join.elmer && optind == argc)
        return rsd_reload_main(join.config, join.config_given);
    if (reload || !join.elmer || optind + 1 != argc)
        return usage_error();
    join.token = hide(argv[optind]);
    return rsd_join_main(&join);
}
