/* main.c - options of elmer. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "elmer/daemon.h"
#include "lib/base/log.h"
#include "lib/options/options.h"

enum { EXIT_CONFIG = 2 /* also of a store that cannot be used: starting again would not help */ };

enum { OPTION_CHECK = OPTION_FIRST_FREE };
static const struct option_row options[] = {
    {'c', "config", "FILE", "read FILE instead of " ELMER_SYSCONFDIR "/elmer.conf"},
    {OPTION_CHECK, "check-config", NULL,
     "check what the configuration says and exit; eadmin config check\nlooks at what it needs of this host, too"},
    OPTION_ROWS_END,
};
static const struct command command = {
    "elmer", "Usage: elmer [-c FILE] [--check-config]\nThe queue daemon of Elmer.\n\n", options, NULL};

static void say_problem(const char *text, void *data)
{
    *(bool *)data = true;
    log_error("configuration: %s", text);
}

static void say_fault(const char *text, void *data)
{
    (void)data;
    log_warning("elmer does without a value of its configuration: %s", text);
}

/* Says all that is wrong, not the first alone. */
static int load(struct settings *settings, const char *path, bool required)
{
    bool told = false;
    struct err err = ERR_INIT;
    struct ini_watch watch = {.problem = say_problem, .fault = say_fault, .data = &told};
    int result = settings_load_watched(settings, path, required, &watch, &err);
    if (result && !told)
        say_problem(err.text, &told);
    return result;
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    bool check = false;
    for (int option; (option = options_next(argc, argv, "", options)) != -1;) {
        switch (option) {
        case 'c':
            path = optarg;
            break;
        case OPTION_CHECK:
            check = true;
            break;
        default:
            return options_common(&command, option, argv, EXIT_CONFIG);
        }
    }
    if (optind < argc)
        return options_surplus(&command, argv[optind], EXIT_CONFIG);
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
        log_error("elmer ends: %s", err.text);
    if (!result)
        return 0;
    return daemon_is_hopeless(result) ? EXIT_CONFIG : 1;
}
