/* environment.c - the environment of a job's process on this host.
 *
 * The daemons and the agent of a virtual machine may rank above all jobs for a moment, so nothing of the user's is
 * loaded into them: they go without the variables that the loader, the C library and shells obey. Tasks inherit from
 * the daemon that starts them and would miss them; so the command of the job gets them named in PVM_EXPORT, by which
 * libpvm3 hands them to every task that the command, or a task of it, spawns.
 *
 * A daemon looks for a task's program in PVM_PATH. PVM's own programs (the group server, pvmgs) are beside pvmd on
 * Debian, where none of its defaults leads.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "rsd/sup/environment.h"

enum { EXPORT_BYTES = 1024 };

static bool is_variable(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

const char *environment_value(const struct wire_strs *environment, const char *name)
{
    for (size_t i = 0; i < environment->count; i++) {
        if (is_variable(environment->items[i], name))
            return environment->items[i] + strlen(name) + 1;
    }
    return NULL;
}

/* What makes a program load or write something before its main() has begun, or without its doing. */
static bool loads_something(const char *entry)
{
    static const char *const names[] = {
        "BASH_ENV", "ENV",      "GCONV_PATH", "GETCONF_DIR",      "GLIBC_TUNABLES", "HOSTALIASES", "LOCALDOMAIN",
        "LOCPATH",  "NIS_PATH", "NLSPATH",    "RESOLV_HOST_CONF", "RES_OPTIONS",    "TZDIR"};
    if (strncmp(entry, "LD_", 3) == 0 || strncmp(entry, "MALLOC_", 7) == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_variable(entry, names[i]))
            return true;
    }
    return false;
}

/* PVM_EXPORT with the names of what the daemons go without; NULL: no memory. A name that is there already does no harm
 * twice. A user may send any number of them, and we rank above jobs: so no more than can be meant. */
static char *exports(const struct wire_strs *given)
{
    const char *own = environment_value(given, "PVM_EXPORT");
    char names[EXPORT_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < given->count; i++) {
        const char *entry = given->items[i];
        size_t length = strcspn(entry, "=");
        if (!loads_something(entry) || used + length + 1 >= sizeof names)
            continue;
        names[used++] = ':';
        memcpy(names + used, entry, length);
        used += length;
    }
    bool alone = !own || !*own;
    size_t skipped = alone && used > 0; /* the first ':' */
    return str_format("%s%.*s", alone ? "" : own, (int)(used - skipped), names + skipped);
}

/* The user's own places first, as PVM has them. */
static char *search_path(const struct sup *sup, const struct wire_strs *given)
{
    const char *own = environment_value(given, "PVM_PATH"), *slash = strrchr(sup->pvmd, '/');
    return str_format("%s:%.*s", own && *own ? own : "$HOME/pvm3/bin/$PVM_ARCH:$PVM_ROOT/bin/$PVM_ARCH",
                      slash ? (int)(slash - sup->pvmd) : 0, sup->pvmd);
}

/* Goes over what came with the job. */
struct setting {
    const char *name, *value;
};
enum { SETTINGS = 10 };

static size_t settings_of(const struct sup *sup, const struct wire_strs *given, const char *hostfile,
                          struct setting *settings)
{
    size_t count = 0;
    settings[count++] = (struct setting){"HOME", sup->user.home};
    settings[count++] = (struct setting){"USER", sup->user.name};
    settings[count++] = (struct setting){"LOGNAME", sup->user.name};
    settings[count++] = (struct setting){"SHELL", sup->user.shell};
    settings[count++] = (struct setting){"ELMER_TMPDIR", sup->tmpdir};
    settings[count++] = (struct setting){"ELMER_HOSTFILE", hostfile};
    if (environment_value(given, "PVM_TMP"))
        settings[count++] = (struct setting){"PVM_TMP", sup->tmpdir};
    if (!environment_value(given, "PATH"))
        settings[count++] = (struct setting){"PATH", "/usr/local/bin:/usr/bin:/bin"};
    return count;
}

void environment_free(char **environment)
{
    for (size_t i = 0; environment && environment[i]; i++)
        free(environment[i]);
    free(environment);
}

static bool replaced(const char *entry, const struct setting *settings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_variable(entry, settings[i].name))
            return true;
    }
    return false;
}

static char **merge(const struct wire_strs *given, const struct setting *settings, size_t count, bool bare)
{
    char **environment = calloc(given->count + count + 1, sizeof(char *));
    size_t used = 0;
    bool full = environment != NULL;
    for (size_t i = 0; full && i < given->count; i++) {
        if (!replaced(given->items[i], settings, count) && !(bare && loads_something(given->items[i])))
            full = (environment[used++] = strdup(given->items[i])) != NULL;
    }
    for (size_t i = 0; full && i < count; i++)
        full = (environment[used++] = str_format("%s=%s", settings[i].name, settings[i].value)) != NULL;
    if (full)
        return environment;
    environment_free(environment);
    return NULL;
}

char **environment_make(const struct sup *sup, enum job_role role, const struct wire_strs *given, const char *hostfile)
{
    struct setting settings[SETTINGS];
    size_t count = settings_of(sup, given, hostfile, settings);
    bool pvm = environment_value(given, "PVM_TMP") != NULL;
    char *value = NULL, **environment;
    if (pvm && role != ROLE_AGENT) {
        value = role == ROLE_PVMD ? search_path(sup, given) : exports(given);
        if (!value)
            return NULL;
        if (*value)
            settings[count++] = (struct setting){role == ROLE_PVMD ? "PVM_PATH" : "PVM_EXPORT", value};
    }
    environment = merge(given, settings, count, role != ROLE_COMMAND);
    free(value);
    return environment;
}
