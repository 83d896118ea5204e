/* ini_table.c - the caller's table of keys: what matches, what is nearest, what holds without a file. */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/config/ini_internal.h"

/* Does the header match a table's section ("elmer", or "host *" for "[host NAME]")? */
static bool match_section(const char *known, const char *header, const char **subsection)
{
    size_t word = strcspn(known, " ");
    const char *rest = header + strcspn(header, " \t");

    if ((size_t)(rest - header) != word || strncmp(known, header, word) != 0)
        return false;
    *subsection = rest + strspn(rest, " \t");
    return (known[word] != '\0') == (**subsection != '\0');
}

const struct ini_key *ini_find_key(const struct ini_key *keys, const char *header, const char *name,
                                   const char **subsection, bool *known)
{
    *known = false;
    for (; keys->name; keys++) {
        if (!match_section(keys->section, header, subsection))
            continue;
        *known = true;
        if (strcmp(keys->name, name) == 0)
            return keys;
    }
    return NULL;
}

int ini_unknown_section(const struct ini_key *keys, const char *header, struct err *err)
{
    size_t best = SIZE_MAX;
    const char *nearest = "";

    for (const struct ini_key *key = keys; key->name; key++) {
        size_t distance = str_distance(header, key->section);

        if (distance < best) {
            best = distance;
            nearest = key->section;
        }
    }
    if (*header == '\0')
        return err_set(err, -EINVAL, "a key before the first section header; begin with [%s]", nearest);
    return err_set(err, -EINVAL, "unknown section [%s]; the nearest known one is [%s]", header, nearest);
}

int ini_unknown_key(const struct ini_key *keys, const char *header, const char *name, const char *value,
                    struct err *err)
{
    size_t best = SIZE_MAX;
    const char *nearest = "", *subsection;

    for (const struct ini_key *key = keys; key->name; key++) {
        size_t distance = str_distance(name, key->name);

        if (key->normal && match_section(key->section, header, &subsection) && distance < best) {
            best = distance;
            nearest = key->name;
        }
    }
    return err_set(err, -EINVAL,
                   "unknown key %.100s (value %.100s) in [%s]; the nearest known key is %s; correct it, or take "
                   "the line out",
                   name, value, header, nearest);
}

int ini_defaults(const struct ini_key *keys, void *config, struct err *err)
{
    for (; keys->name; keys++) {
        int result = !keys->normal || (keys->flags & INI_MADE) ? 0 : keys->set(config, "", keys->normal, err);

        if (result != 0) {
            err_prefix(err, "the default %s = %s", keys->name, keys->normal);
            return result;
        }
    }
    return 0;
}
