#include "config.h"

#include "lib/run/added.h"

#include <string.h>

bool run_added_is(const char *added, const char *entry)
{
    static const char self[] = RUN_ADDED "=";
    size_t size = strlen(entry);
    if (strncmp(entry, self, sizeof(self) - 1) == 0)
        return true;
    for (const char *at = added; at && *at;) {
        size_t length = strcspn(at, " ");
        if (length == size && strncmp(at, entry, length) == 0)
            return true;
        at += length + (at[length] == ' ');
    }
    return false;
}

size_t run_added_next(const char **at, const char **name)
{
    size_t length, whole;
    *at += strspn(*at, " ");
    length = strcspn(*at, "= ");
    whole = strcspn(*at, " ");
    *name = *at;
    *at += whole;
    return length;
}
