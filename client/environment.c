/* environment.c - which variables a job gets from the one who submits it. */
#include "config.h"

#include "client/environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/str.h"
#include "lib/job/variables.h"

static const char *const safe[] = {"PATH", "LANG", "LANGUAGE", "TZ", NULL};
/* Set on the host where the job runs, from its table of users or by Elmer: a value from here would be lost. */
static const char *const reserved[] = {
    "HOME", "USER", "LOGNAME", "SHELL", JOB_VARIABLES, "ELMER_SCRIPT", "ELMER_ADDED", "ELMER_ADDED_DEVICES", NULL};

static bool is_in(const char *const *names, const char *name, size_t length)
{
    for (; *names; names++)
        if (strlen(*names) == length && strncmp(*names, name, length) == 0)
            return true;
    return false;
}

/* Takes over variable (NAME=VALUE). */
static void put(struct environment *environment, char *variable)
{
    size_t length = (size_t)(strchr(variable, '=') - variable) + 1;

    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], variable, length) == 0) {
            free(environment->items[i]);
            environment->items[i] = variable;
            return;
        }
    environment->items = must(reallocarray(environment->items, environment->count + 2, sizeof(char *)));
    environment->items[environment->count++] = variable;
    environment->items[environment->count] = NULL;
}

void environment_init(struct environment *environment)
{
    *environment = (struct environment){0};
    put(environment, must(strdup("PATH=/usr/local/bin:/usr/bin:/bin"))); /* where there is none */
    for (char **variable = environ; variable && *variable; variable++) {
        size_t length = strcspn(*variable, "=");

        if ((*variable)[length] == '=' && (is_in(safe, *variable, length) || strncmp(*variable, "LC_", 3) == 0))
            put(environment, must(strdup(*variable)));
    }
}

void environment_fini(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->items[i]);
    free(environment->items);
    *environment = (struct environment){0};
}

void environment_set(struct environment *environment, const char *name, const char *value)
{
    put(environment, must(str_format("%s=%s", name, value)));
}

const char *environment_get(const struct environment *environment, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], name, length) == 0 && environment->items[i][length] == '=')
            return environment->items[i] + length + 1;
    return NULL;
}

bool environment_add(struct environment *environment, const char *argument)
{
    size_t length = strcspn(argument, "=");
    const char *value;
    char *name;

    if (length == 0) {
        usage_error("-v '%s' names no variable; give -v NAME or -v NAME=VALUE", argument);
        return false;
    }
    if (strcspn(argument, " \t\n") < length) {
        usage_error("-v '%s': the name of a variable has no blanks; give -v NAME or -v NAME=VALUE, one -v for each",
                    argument);
        return false;
    }
    if (is_in(reserved, argument, length)) {
        usage_error("-v %.*s: Elmer sets this variable itself, on the host where the job runs", (int)length, argument);
        return false;
    }
    if (argument[length] == '=') {
        put(environment, must(strdup(argument)));
        return true;
    }
    value = getenv(argument);
    if (!value) {
        usage_error("-v %s: there is no such variable here; export it, or give -v %s=VALUE", argument, argument);
        return false;
    }
    name = must(str_format("%s=%s", argument, value));
    put(environment, name);
    return true;
}
