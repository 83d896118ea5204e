/* main.c - options of elmer. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "elmer/daemon.h"
#include "lib/base/log.h"

enum { EXIT_CONFIG = 2 /* also of a store that cannot be used: starting again would not help */ };

static const char usage[] = "Usage: elmer [-c FILE] [--check-config]\n"
                            "The queue daemon of Elmer.\n"
                            "\n"
                            "  -c, --config FILE  read FILE instead of " ELMER_SYSCONFDIR "/elmer.conf\n"
                            "      --check-config check the configuration and exit\n"
                            "      --version      print the version and exit\n"
                            "      --help         print this and exit\n";

enum { OPT_CHECK = 256, OPT_VERSION, OPT_HELP };

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"check-config", no_argument, NULL, OPT_CHECK},
        {"version", no_argument, NULL, OPT_VERSION},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    const char *path = NULL;
    bool check = false;
    for (int option; (option = getopt_long(argc, argv, "c:", options, NULL)) != -1;) {
        switch (option) {
        case 'c':
            path = optarg;
            break;
        case OPT_CHECK:
            check = true;
            break;
        case OPT_VERSION:
            puts("elmer " PACKAGE_VERSION);
            return 0;
        case OPT_HELP:
            fputs(usage, stdout);
            return 0;
        default:
            fputs(usage, stderr);
            return EXIT_CONFIG;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "elmer: unexpected argument \"%s\"\n%s", argv[optind], usage);
        return EXIT_CONFIG;
    }
    struct settings settings = {0};
    struct err err = ERR_INIT;
    log_open("elmer", LOG_LEVEL_INFO);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error like a full disk */
    if (settings_load(&settings, path ? path : ELMER_SYSCONFDIR "/elmer.conf", path != NULL, &err)) {
        log_error("%s", err.text);
        return EXIT_CONFIG;
    }
    int code = check ? 0 : daemon_run(&settings, &err);
    settings_fini(&settings);
    if (code)
        log_error("%s", err.text);
    if (code == -EUCLEAN || code == -EPROTO)
        return EXIT_CONFIG;
    return code ? 1 : 0;
}
