/* main.c - options of elmer. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "elmer/daemon.h"
#include "elmer/notify.h"
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

struct told {
    bool any, quiet; /* it has been said before */
};

static void say_problem(const char *text, void *data)
{
    struct told *told = data;
    told->any = true;
    if (!told->quiet)
        log_error("configuration: %s", text);
}

static void say_fault(const char *text, void *data)
{
    if (!((const struct told *)data)->quiet)
        log_warning("elmer does without a value of its configuration: %s", text);
}

/* Says all that is wrong, not the first alone. */
static int load(struct settings *settings, const char *path, bool required, bool quiet, struct err *err)
{
    struct told told = {.quiet = quiet};
    struct ini_watch watch = {.problem = say_problem, .fault = say_fault, .data = &told};
    int result = settings_load_watched(settings, path, required, &watch, err);
    if (result && !told.any)
        say_problem(err->text, &told);
    return result;
}

/* That a file cannot be read passes, as with the store; that it says something wrong does not. */
static bool is_unreadable(int result)
{
    return result == -EACCES || result == -EIO || result == -ESTALE || result == -EMFILE || result == -ENFILE ||
           result == -ENOMEM;
}

static void say_waiting(const struct err *err)
{
    log_warning("elmer cannot begin: %s; it tries again every %d s", err->text, NOTIFY_WAIT_S);
}

/* 0; negative: it is wrong, as has been said; 1: ended by a signal before it could be read. */
static int load_when_it_can(struct settings *settings, const char *path, bool required)
{
    struct err err = ERR_INIT, before;
    int result;
    for (bool waited = false;; waited = true) {
        result = load(settings, path, required, false, &err);
        if (!is_unreadable(result)) {
            if (!result && waited)
                log_notice("elmer can begin now");
            return result;
        }
        for (say_waiting(&err); is_unreadable(result);) {
            settings_fini(settings);
            if (notify_wait(err.text))
                return 1;
            before = err;
            err_clear(&err);
            result = load(settings, path, required, true, &err);
            if (is_unreadable(result) && strcmp(err.text, before.text) != 0)
                say_waiting(&err);
        }
        settings_fini(settings); /* once more, for what was not said */
        err_clear(&err);
    }
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
    const char *file = path ? path : ELMER_SYSCONFDIR "/elmer.conf";
    int result =
        check ? load(&settings, file, path != NULL, false, &err) : load_when_it_can(&settings, file, path != NULL);
    if (result > 0) {
        log_notice("ends after a signal, without having begun");
        return 0;
    }
    if (result) {
        settings_fini(&settings);
        return EXIT_CONFIG;
    }
    result = check ? 0 : daemon_run(&settings, &err);
    settings_fini(&settings);
    if (result)
        log_error("elmer ends: %s", err.text);
    if (!result)
        return 0;
    return daemon_is_hopeless(result) ? EXIT_CONFIG : 1;
}
