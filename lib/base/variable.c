/* variable.c - see variable.h. */
#include "config.h"

#include "lib/base/variable.h"

#include <stddef.h>
#include <string.h>

const char *variable_value(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1 : NULL;
}

bool variable_is_one_of(const char *entry, const char *const *names)
{
    for (; names && *names; names++)
        if (variable_value(entry, *names))
            return true;
    return false;
}
