/* environment.c - the environment of a job's process on this host.
 *
 * Helpers, such as the daemons and the agent of a virtual machine, may rank above all jobs for a moment, so nothing of
 * the user's is loaded into them: they go without the variables that the loader, the C library and shells obey.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/base/variable.h"
#include "rsd/sup/environment.h"
#include "rsd/sup/helpers.h"
#include "rsd/sup/launchers.h"
#include "rsd/sup/polling.h"
#include "rsd/sup/threads.h"

const char *environment_value(const struct wire_strs *environment, const char *name)
{
    for (size_t i = 0; i < environment->count; i++) {
        const char *value = variable_value(environment->items[i], name);
        if (value)
            return value;
    }
    return NULL;
}

bool environment_loads_something(const char *entry)
{
    static const char *const names[] = {
        "BASH_ENV", "ENV",      "GCONV_PATH", "GETCONF_DIR",      "GLIBC_TUNABLES", "HOSTALIASES", "LOCALDOMAIN",
        "LOCPATH",  "NIS_PATH", "NLSPATH",    "RESOLV_HOST_CONF", "RES_OPTIONS",    "TZDIR"};
    if (strncmp(entry, "LD_", 3) == 0 || strncmp(entry, "MALLOC_", 7) == 0)
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (variable_value(entry, names[i]))
            return true;
    }
    return false;
}

enum { OWN_SETTINGS = 7 };

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
        if (variable_value(entry, settings[i].name))
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
        if (!replaced(given->items[i], settings, count) && !(bare && environment_loads_something(given->items[i])))
            full = (environment[used++] = strdup(given->items[i])) != NULL;
    }
    for (size_t i = 0; full && i < count; i++)
        full = (environment[used++] = str_format("%s=%s", settings[i].name, settings[i].value)) != NULL;
    if (full)
        return environment;
    environment_free(environment);
    return NULL;
}

char **environment_make(const struct sup *sup, enum job_role role, const struct wire_strs *given, const char *hostfile,
                        size_t processors)
{
    struct setting
        settings[OWN_SETTINGS + THREADS_SETTINGS + LAUNCHERS_SETTINGS + POLLING_SETTINGS + 1 + HELPERS_SETTINGS];
    struct launchers launchers = {.count = 0};
    struct polling polling = {.count = 0};
    struct threads threads;
    size_t count = settings_of(sup, given, hostfile, settings);
    char *made, **environment = NULL;
    threads_set(&threads, given, role == ROLE_AGENT ? 0 : processors);
    memcpy(settings + count, threads.settings, threads.count * sizeof(*settings));
    count += threads.count;
    if (role == ROLE_COMMAND) {
        launchers_set(&launchers, sup, given);
        polling_set(&polling, given, POLLING_LIBRARY);
    }
    memcpy(settings + count, launchers.settings, launchers.count * sizeof(*settings));
    count += launchers.count;
    memcpy(settings + count, polling.settings, polling.count * sizeof(*settings));
    count += polling.count;
    if (polling.library && sup->waits.path[0])
        settings[count++] = (struct setting){PAGE_VARIABLE, sup->waits.path};
    int added = helpers_settings(sup, role, given, settings + count, &made);
    if (added >= 0)
        environment = merge(given, settings, count + (size_t)added, role != ROLE_COMMAND);
    free(made);
    return environment;
}
