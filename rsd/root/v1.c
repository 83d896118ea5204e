/* v1.c - out of the groups of cgroup v1.
 *
 * Where controllers are bound to cgroup v1 (hybrid) a process is in a group of each, and is born in those of its
 * parent: that it is born into a group of cgroup2 changes these not. So all jobs would share what rsd-spawn.service is
 * limited to, 256 MB of memory, no devices, a number of tasks. rsd keeps nothing there for jobs, so who gives birth to
 * them goes to the top first.
 */
#include "config.h"

#include "rsd/root/v1.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "rsd/root/group.h"

static const char *const limiting[] = {"memory", "devices", "pids"};

/* In a list with commas, which ends at a colon or the end of the line. */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; *at && *at != ':' && *at != '\n'; at += *at == ',') {
        const size_t here = strcspn(at, ",:\n");
        if (here == length && strncmp(at, word, length) == 0)
            return true;
        at += here;
    }
    return false;
}

static FILE *open_own(const char *proc, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/self/%s", proc, name);
    return fopen(path, "re");
}

/* 4:memory:/system.slice/x.service */
static bool is_below(const char *proc, const char *controller)
{
    char line[4096];
    bool below = false;
    FILE *file = open_own(proc, "cgroup");
    while (file && !below && fgets(line, sizeof(line), file)) {
        const char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        below = group && has_word(list + 1, controller) && strcmp(group, ":/\n") != 0;
    }
    if (file)
        fclose(file);
    return below;
}

/* 36 31 0:33 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory. Only where all of it is
 * shown: in a container without these mounts nobody has set a limit there for a unit. */
static bool find_top(const char *proc, const char *controller, char *path, size_t size)
{
    char line[4096], root[2048], mount[2048];
    bool found = false;
    FILE *file = open_own(proc, "mountinfo");
    while (file && !found && fgets(line, sizeof(line), file)) {
        const char *source = strstr(line, " - cgroup "), *options;
        if (!source || sscanf(line, "%*s %*s %*s %2047s %2047s", root, mount) != 2 || strcmp(root, "/") != 0)
            continue;
        options = strchr(source + strlen(" - cgroup "), ' ');
        found =
            options && has_word(options + 1, controller) && snprintf(path, size, "%s/cgroup.procs", mount) < (int)size;
    }
    if (file)
        fclose(file);
    return found;
}

void v1_leave(const char *proc)
{
    char path[4096];
    for (size_t i = 0; i < sizeof(limiting) / sizeof(limiting[0]); i++) {
        int result = 0;
        if (is_below(proc, limiting[i]) && find_top(proc, limiting[i], path, sizeof(path)))
            result = group_write(AT_FDCWD, path, "0");
        if (result < 0)
            log_notice("jobs share the limits of rsd-spawn.service: its group of cgroup v1 (%s) cannot be left: %s",
                       limiting[i], strerror(-result));
    }
}
