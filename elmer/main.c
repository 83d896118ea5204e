/* main.c - options of elmer. */
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
                            "      --check-config check what the configuration says and exit; eadmin config check\n"
                            "                     looks at what it needs of this host, too\n"
                            "  -V, --version      print the version and exit\n"
                            "  -h, --help         print this and exit\n";

static void say_problem(const char *text, void *data)
{
    *(bool *)data = true;
    log_error("%s", text);
}

/* Says all that is wrong, not the first alone. */
static int load(struct settings *settings, const char *path, bool required)
{
    bool told = false;
    struct err err = ERR_INIT;
    struct ini_watch watch = {.problem = say_problem, .data = &told};
    int result = settings_load_watched(settings, path, required, &watch, &err);
    if (result && !told)
        log_error("%s", err.text);
    return result;
}

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
    for (int option; (option = getopt_long(argc, argv, "c:hV", options, NULL)) != -1;) {
        switch (option) {
        case 'c':
            path = optarg;
            break;
        case OPT_CHECK:
            check = true;
            break;
        case 'V':
        case OPT_VERSION:
            puts("elmer " PACKAGE_VERSION);
            return 0;
        case 'h':
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
    signal(SIGHUP, SIG_IGN);  /* a reload before it can begin, see notify_wait() */
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error like a full disk */
    if (load(&settings, path ? path : ELMER_SYSCONFDIR "/elmer.conf", path != NULL)) {
        settings_fini(&settings);
        return EXIT_CONFIG;
    }
    int result = check ? 0 : daemon_run(&settings, &err);
    settings_fini(&settings);
    if (result)
        log_error("%s", err.text);
    if (!result)
        return 0;
    return daemon_is_hopeless(result) ? EXIT_CONFIG : 1;
}
