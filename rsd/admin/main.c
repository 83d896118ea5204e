/* main.c - elmer-rsd-admin: what an administrator asks of rsd. rsd hands its arguments over as they are, but
 * for the token (rsd/errand.h); --reload comes from rsd.service. It ends when it is done. */
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
    if (!reload && join.elmer && optind == argc) {
        fprintf(stderr,
                "rsd: --join %s: the token is missing: eadmin token on the queue host prints one; - asks for it\n",
                join.elmer);
        return EXIT_CONFIG;
    }
    if (reload || !join.elmer || optind + 1 != argc || strcmp(argv[optind], "-") != 0)
        return usage_error();
    return rsd_join_main(&join);
}
