/* helpers.c - the helpers of a job with a PVM virtual machine.
 *
 * Daemons and agent go without the variables that make a program load something (environment.c). Tasks inherit from the
 * daemon that starts them and would miss them; so the command of the job gets them named in PVM_EXPORT, by which
 * libpvm3 hands them to every task that the command, or a task of it, spawns.
 *
 * A daemon looks for a task's program in PVM_PATH. PVM's own programs (the group server, pvmgs) are beside pvmd on
 * Debian, where none of its defaults leads.
 */
#include "config.h"

#include "rsd/sup/helpers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

enum { EXPORT_BYTES = 1024 };

void helpers_find(struct sup *sup)
{
    const char *daemon = getenv("ELMER_PVMD"), *agent = getenv("ELMER_PVM_AGENT");
    sup->daemon = daemon ? daemon : ELMER_PVMD;
    sup->agent = agent ? agent : ELMER_LIBEXECDIR "/elmer-pvm-agent";
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
        if (!environment_loads_something(entry) || used + length + 1 >= sizeof(names))
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
    const char *own = environment_value(given, "PVM_PATH"), *slash = strrchr(sup->daemon, '/');
    return str_format("%s:%.*s", own && *own ? own : "$HOME/pvm3/bin/$PVM_ARCH:$PVM_ROOT/bin/$PVM_ARCH",
                      slash ? (int)(slash - sup->daemon) : 0, sup->daemon);
}

int helpers_settings(const struct sup *sup, enum job_role role, const struct wire_strs *given, struct setting *settings,
                     char **made)
{
    int count = 0;
    *made = NULL;
    if (!environment_value(given, "PVM_TMP"))
        return 0;
    settings[count++] = (struct setting){"PVM_TMP", sup->tmpdir};
    if (role == ROLE_AGENT)
        return count;
    *made = role == ROLE_DAEMON ? search_path(sup, given) : exports(given);
    if (!*made)
        return -ENOMEM;
    if (**made)
        settings[count++] = (struct setting){role == ROLE_DAEMON ? "PVM_PATH" : "PVM_EXPORT", *made};
    return count;
}
