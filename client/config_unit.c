/* config_unit.c - may a daemon write there? Its unit may say no, which only systemd knows, with all drop-ins. */
#include "config.h"

#include "client/config_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "lib/base/str.h"

/* ---- what the unit says ---- */

static bool is_below(const char *path, const char *dir)
{
    size_t length = strlen(dir);

    while (length > 1 && dir[length - 1] == '/')
        length--;
    return strncmp(path, dir, length) == 0 && (path[length] == '/' || path[length] == '\0' || length == 1);
}

/* One of these words is path, or above it. before: that of a directory's name; of a path there may be "-" and "+". */
static bool has(char *words, const char *before, const char *path)
{
    for (char *word; (word = strsep(&words, " "));) {
        char *dir;
        bool below;

        word += *before ? 0 : strspn(word, "-+");
        dir = must(str_format("%s%s", before, word));
        below = *word && is_below(path, dir);
        free(dir);
        if (below)
            return true;
    }
    return false;
}

/* Without systemd, or the unit, the answer has no "strict". */
static bool may_write(const char *unit, const char *path)
{
    char *command = must(str_format(
             "timeout 10 systemctl show -p ProtectSystem -p ReadWritePaths -p StateDirectory %s 2>/dev/null", unit)),
         line[16384];
    FILE *answer = popen(command, "re"); /* a constant, but for the name of a unit of ours. NOLINT(cert-env33-c) */
    bool strict = false, may = false;

    while (answer && fgets(line, sizeof(line), answer)) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "ProtectSystem=strict") == 0)
            strict = true;
        else if (strncmp(line, "ReadWritePaths=", 15) == 0)
            may = may || has(line + 15, "", path);
        else if (strncmp(line, "StateDirectory=", 15) == 0)
            may = may || has(line + 15, "/var/lib/", path);
    }
    if (answer)
        (void)pclose(answer);
    free(command);
    return may || !strict;
}

void config_check_unit(const char *key, const char *dir, const char *state, const char *unit)
{
    if (!is_below(dir, state) && !may_write(unit, dir))
        say("warning: %s is in %s, where %s may not write: systemctl edit %s, [Service], ReadWritePaths=%s", key, dir,
            unit, unit, dir);
}
