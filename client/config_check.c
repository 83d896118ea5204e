/* config_check.c - the parts of the check that know no key: what the files give and where, how a problem is said, and
 * how to look at things as the daemon would. */
#include "config.h"

#include "client/config_check.h"

#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/str.h"

struct config_given {
    const struct ini_key *key;
    char *value, *file;
    int line;
    bool refused;
};

static void on_problem(const char *text, void *data)
{
    struct config_check *check = data;

    check->problems++;
    say("%s", text);
}

static void on_given(const struct ini_value *value, void *data)
{
    struct config_check *check = data;

    check->given = must(reallocarray(check->given, check->count + 1, sizeof(*check->given)));
    check->given[check->count++] = (struct config_given){.key = value->key,
                                                         .value = must(strdup(value->value)),
                                                         .file = must(strdup(value->file)),
                                                         .line = value->line,
                                                         .refused = value->refused};
}

void config_check_init(struct config_check *check, const char *path, const struct ini_key *keys)
{
    *check = (struct config_check){.path = path, .keys = keys, .by_root = geteuid() == 0};
}

void config_check_fini(struct config_check *check)
{
    for (size_t i = 0; i < check->count; i++) {
        free(check->given[i].value);
        free(check->given[i].file);
    }
    free(check->given);
}

struct ini_watch config_check_watch(struct config_check *check)
{
    return (struct ini_watch){.problem = on_problem, .fault = on_problem, .given = on_given, .data = check};
}

/* Names of keys in sections of hosts are not those of others. */
static const struct config_given *find(const struct config_check *check, const char *name)
{
    for (size_t i = 0; i < check->count; i++)
        if (strcmp(check->given[i].key->name, name) == 0)
            return &check->given[i];
    return NULL;
}

bool config_given(const struct config_check *check, const char *name)
{
    return find(check, name) != NULL;
}

bool config_refused(const struct config_check *check, const char *name)
{
    const struct config_given *given = find(check, name);

    return given && given->refused;
}

const char *config_value(const struct config_check *check, const struct ini_key *key)
{
    const struct config_given *given = find(check, key->name);

    if (given)
        return given->refused ? NULL : given->value;
    return key->flags & INI_MADE ? NULL : key->normal;
}

void config_problem(struct config_check *check, const char *name, const char *value, const char *format, ...)
{
    const struct config_given *given = find(check, name);
    char *place = must(given ? str_format("%s:%d", given->file, given->line) : strdup(check->path)), *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    must(text);
    say("%s: %s%s%.200s%s: %s", place, name, value ? " = " : "", value ? value : "",
        given || !value ? "" : " (the default)", text);
    free(place);
    free(text);
    check->problems++;
}

/* ---- as another user ---- */

static bool become(const struct passwd *user)
{
    return initgroups(user->pw_name, user->pw_gid) == 0 && setresgid(user->pw_gid, user->pw_gid, user->pw_gid) == 0 &&
           setresuid(user->pw_uid, user->pw_uid, user->pw_uid) == 0;
}

int config_as_user(const struct passwd *user, int (*work)(void *data), void *data)
{
    int status = 0;
    pid_t pid;

    if (geteuid() != 0 || user->pw_uid == 0)
        return work(data);
    if (fflush(stdout) != 0 || (pid = fork()) < 0) {
        say("cannot start a process of the user %s: %s", user->pw_name, strerror(errno));
        return EXIT_REFUSED;
    }
    if (pid == 0) {
        int code = EXIT_REFUSED;

        if (become(user))
            code = work(data);
        else
            say("cannot become the user %s: %s", user->pw_name, strerror(errno));
        _exit(finish_output(code));
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    say("the process that looks as the user %s was killed", user->pw_name);
    return EXIT_REFUSED;
}
