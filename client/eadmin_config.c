/* eadmin_config.c - config: which files are meant, and what is to be done with them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/config_check.h"
#include "client/config_show.h"
#include "client/eadmin.h"
#include "lib/base/str.h"

#define ELMER_CONF ELMER_SYSCONFDIR "/elmer.conf"
#define RSD_CONF   ELMER_SYSCONFDIR "/rsd.conf"

struct wish {
    bool show, defaults;
    const char *user, *file;
};

/* ---- which files ---- */

static bool has_fragments(const char *path)
{
    char *dir = must(str_format("%s.d", path));
    bool there = access(dir, F_OK) == 0;

    free(dir);
    return there;
}

/* The first header says it; else the name does. */
static bool is_of_rsd(const char *path)
{
    FILE *file = fopen(path, "re");
    const char *slash = strrchr(path, '/');
    char *line = NULL;
    size_t size = 0;
    bool known = false, rsd = strncmp(slash ? slash + 1 : path, "rsd", 3) == 0;

    while (file && !known && getline(&line, &size, file) >= 0) {
        const char *begin = line + strspn(line, " \t");

        known = *begin == '[';
        if (known)
            rsd = strncmp(begin + 1 + strspn(begin + 1, " \t"), "rsd", 3) == 0;
    }
    if (file)
        fclose(file);
    free(line);
    return rsd;
}

/* A fragment counts only together with its file: FILE.d/NAME.conf stands for FILE, which need not be there. malloc'd.
 */
static char *main_file(const char *path)
{
    char *copy = must(strdup(path)), *slash = strrchr(copy, '/');
    size_t length = slash ? (size_t)(slash - copy) : 0;

    if (length > 2 && strncmp(slash - 2, ".d", 2) == 0)
        copy[length - 2] = 0;
    return copy;
}

/* ---- the work ---- */

static int work(const struct wish *wish, const char *path, bool required, bool rsd)
{
    if (wish->show)
        return (rsd ? config_show_rsd : config_show_elmer)(path, required, wish->defaults);
    return (rsd ? config_check_rsd : config_check_elmer)(path, required, wish->user);
}

static int work_on_file(const struct wish *wish)
{
    char *path = main_file(wish->file);
    int result = work(wish, path, strcmp(path, wish->file) == 0, is_of_rsd(wish->file));

    free(path);
    return result;
}

/* What this host has; a host without any is one by itself, as the defaults say. */
static int work_on_all(const struct wish *wish)
{
    bool rsd = access(RSD_CONF, F_OK) == 0 || has_fragments(RSD_CONF),
         elmer = access(ELMER_CONF, F_OK) == 0 || has_fragments(ELMER_CONF) || !rsd;
    int code = EXIT_DONE, next;

    if (elmer || wish->defaults)
        code = work(wish, ELMER_CONF, false, false);
    if (wish->show && (elmer || wish->defaults))
        putchar('\n');
    if (!rsd && !wish->show)
        return code;
    next = work(wish, RSD_CONF, false, true);
    return code == EXIT_DONE ? next : code;
}

static int parse(struct wish *wish, int argc, char **argv)
{
    static const int takes[] = {OPTION_USER, OPTION_DEFAULT, 0};
    int c;

    optind = 0; /* anew: check or show may stand before options */
    while ((c = eadmin_option(argc, argv, "", takes)) != -1) {
        if (c == OPTION_USER)
            wish->user = optarg;
        else if (c == OPTION_DEFAULT)
            wish->defaults = true;
        else
            return common_option(c, argv);
    }
    if (optind == argc || (strcmp(argv[optind], "check") != 0 && strcmp(argv[optind], "show") != 0))
        return usage_error("config needs check or show");
    wish->show = strcmp(argv[optind++], "show") == 0;
    if (optind < argc)
        wish->file = argv[optind++];
    if (optind < argc)
        return usage_error("one file at a time: '%s' is too many", argv[optind]);
    if (wish->show ? wish->user != NULL : wish->defaults)
        return usage_error("option '%s' is not for config %s", wish->show ? "--user" : "--default",
                           wish->show ? "show" : "check");
    return -1;
}

int eadmin_config(int argc, char **argv)
{
    struct wish wish = {.file = NULL};
    int code = parse(&wish, argc, argv);

    if (code < 0)
        code = wish.file ? work_on_file(&wish) : work_on_all(&wish);
    return code == EXIT_DONE ? finish_output(code) : code;
}
