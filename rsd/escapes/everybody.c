#include "config.h"

#include "rsd/escapes/everybody.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/locate.h"
#include "rsd/root/group.h"

static bool has_prefix(const char *path, const char *dir)
{
    const size_t length = strlen(dir);
    return strncmp(path, dir, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* Users alone have groups of which the kernel cannot say the path, because it is too long. */
static bool is_below(pid_t tid, const struct everybody *everybody)
{
    static char text[65536]; /* of a host with more hierarchies than this one: a line of PATH_MAX for each */
    struct err err = ERR_INIT;
    char name[64], path[8192], *group;
    int result;
    snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)tid);
    result = group_read(AT_FDCWD, name, text, sizeof(text));
    if (result < 0)
        return result == -ENAMETOOLONG;
    group = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (!group)
        return false;
    group += *group == '\n' ? 4 : 3;
    group[strcspn(group, "\n")] = 0;
    return group_locate("/proc", group, path, sizeof(path), &err) == 0 && has_prefix(path, everybody->users) &&
           !has_prefix(path, everybody->groups);
}

static void look_at(const struct everybody *everybody, const char *pid)
{
    char name[300];
    struct dirent *entry;
    DIR *tasks;
    snprintf(name, sizeof(name), "/proc/%s/task", pid);
    tasks = opendir(name);
    while (tasks && (entry = readdir(tasks))) {
        const pid_t tid = (pid_t)atoi(entry->d_name);
        if (tid > 0 && everybody->is_sought(tid) && is_below(tid, everybody))
            everybody->visit(everybody->data, tid);
        everybody->rest(everybody->data);
    }
    if (tasks)
        closedir(tasks);
}

bool everybody_walk(const struct everybody *everybody)
{
    struct dirent *entry;
    DIR *proc = opendir("/proc");
    while (proc && (entry = readdir(proc))) {
        if (isdigit((unsigned char)entry->d_name[0]))
            look_at(everybody, entry->d_name);
    }
    if (proc)
        closedir(proc);
    return proc && access("/proc/1/status", R_OK) == 0;
}
