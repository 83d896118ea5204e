#include "config.h"

#include "client/filter.h"

#include <fnmatch.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"

static const char *const states[] = {"queued", "held", "starting", "running", "ending", "done", "cancelled", NULL};
enum { ENDED = 5 }; /* from here on */

bool filter_in_list(const char *list, const char *word)
{
    char *copy = must(strdup(list)), *rest = copy, *item;
    bool found = false;

    while (!found && (item = strsep(&rest, ",")))
        found = fnmatch(item, word, 0) == 0;
    free(copy);
    return found;
}

static bool is_state(const char *word)
{
    for (const char *const *state = states; *state; state++)
        if (strcmp(*state, word) == 0)
            return true;
    return false;
}

static bool check_states(const char *list)
{
    char *copy = must(strdup(list)), *rest = copy, *item;
    bool good = true;

    while (good && (item = strsep(&rest, ","))) {
        good = is_state(item);
        if (!good)
            usage_error("--state: '%s' is no state; there are queued, held, starting, running, ending, done, cancelled",
                        item);
    }
    free(copy);
    return good;
}

static bool any_in_list(const char *list, size_t first, size_t end)
{
    for (size_t i = first; i < end && states[i]; i++)
        if (filter_in_list(list, states[i]))
            return true;
    return false;
}

/* A list that must be empty is not what was meant. */
static bool check_shown(const char *list, bool ended, bool unended)
{
    bool good = (unended && any_in_list(list, 0, ENDED)) || (ended && any_in_list(list, ENDED, SIZE_MAX));

    if (!good && unended)
        usage_error("--state %s: jobs that have ended are in the history: add --history", list);
    else if (!good)
        usage_error("--state %s: the history has jobs that have ended, done or cancelled: leave out --history", list);
    return good;
}

bool filter_set(const struct filter *filter)
{
    return filter->name || filter->states || filter->hosts;
}

bool filter_check(const struct filter *filter, bool ended, bool unended)
{
    if (filter->hosts && !*filter->hosts) {
        usage_error("--host: want names separated by commas, like ws1,ws2");
        return false;
    }
    return !filter->states || (check_states(filter->states) && check_shown(filter->states, ended, unended));
}

static bool on_host(const struct elmer_job *job, const char *hosts)
{
    for (size_t i = 0; i < job->nhosts; i++)
        if (filter_in_list(hosts, job->hosts[i]))
            return true;
    return false;
}

bool filter_keeps(const struct elmer_job *job, void *data)
{
    const struct filter *filter = data;

    return (!filter->user || strcmp(filter->user, job->user) == 0) &&
           (!filter->name || (!job->hidden && fnmatch(filter->name, job->name, 0) == 0)) &&
           (!filter->states || filter_in_list(filter->states, job->state)) &&
           (!filter->hosts || on_host(job, filter->hosts));
}

const char *filter_me(void)
{
    static char *name; /* kept for whoever asks */
    const struct passwd *entry = getpwuid(geteuid());

    free(name);
    name = entry ? must(strdup(entry->pw_name)) : NULL;
    if (!entry)
        usage_error("--me: uid %lu has no name on this host; give -u USER", (unsigned long)geteuid());
    return name;
}
