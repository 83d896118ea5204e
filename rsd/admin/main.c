/* main.c - elmer-rsd-admin: what an administrator asks of rsd. Options of rsd are handed over with its arguments as
 * they are; --reload comes from rsd.service. It ends when it is done. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "rsd/admin/join.h"
#include "rsd/admin/reload.h"
#include "rsd/options.h"

enum { EXIT_CONFIG = 2 };

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
    bool reload = false;
    struct rsd_join join = {.config = ELMER_SYSCONFDIR "/rsd.conf"};
    int option;
    log_open("rsd", LOG_LEVEL_INFO);
    while ((option = options_next(argc, argv, "", rsd_command.options)) != -1) {
        switch (option) {
        case 'c':
            join.config = optarg;
            join.config_given = true;
            break;
        case RSD_OPTION_JOIN:
            join.elmer = optarg;
            break;
        case RSD_OPTION_NAME:
            join.name = optarg;
            break;
        case RSD_OPTION_FORCE:
            join.force = true;
            break;
        case RSD_OPTION_NOW:
            join.now = true;
            break;
        case RSD_OPTION_RELOAD:
            reload = true;
            break;
        default:
            return options_common(&rsd_command, option, argv, EXIT_CONFIG);
        }
    }
    if (reload && !join.elmer && optind == argc)
        return rsd_reload_main(join.config, join.config_given);
    if (reload || !join.elmer || optind + 1 != argc)
        return usage_error();
    join.token = hide(argv[optind]);
    return rsd_join_main(&join);
}
