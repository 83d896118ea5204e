/* locate.c - where cgroup2 is mounted and which group a process is in: read from proc, never assumed. */
#include "config.h"

#include "lib/base/locate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static void unescape(char *text)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' && in[3] >= '0' &&
            in[3] <= '7') {
            *out++ = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
            in += 3;
        } else {
            *out++ = *in;
        }
    }
    *out = 0;
}

/* 36 35 98:0 /root /mount/point rw,noatime master:1 - cgroup2 source options */
static int parse_mount(char *line, char **root, char **mount)
{
    char *fields[5], *end = line;
    char *type = strstr(line, " - ");
    if (!type || strncmp(type + 3, "cgroup2 ", 8) != 0)
        return 0;
    for (size_t i = 0; i < 5; i++) {
        fields[i] = end;
        end = strchr(end, ' ');
        if (!end)
            return 0;
        *end++ = 0;
    }
    *root = fields[3];
    *mount = fields[4];
    unescape(*root);
    unescape(*mount);
    return 1;
}

int group_of(const char *proc, pid_t pid, char *group, size_t size)
{
    char path[4096], line[4096];
    int result = -ENOENT;
    FILE *file;
    if (pid > 0)
        snprintf(path, sizeof(path), "%s/%d/cgroup", proc, (int)pid);
    else
        snprintf(path, sizeof(path), "%s/self/cgroup", proc);
    file = fopen(path, "re");
    if (!file)
        return -errno;
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        result = snprintf(group, size, "%s", line + 3) < (int)size ? 0 : -ENAMETOOLONG;
        break;
    }
    fclose(file);
    return result;
}

/* The path of group below a mount that shows the hierarchy from root on. */
static int join(const char *root, const char *mount, const char *group, char *path, size_t size)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    const char *below = group + length;
    if (strncmp(group, root, length) != 0 || (*below != 0 && *below != '/'))
        return -ENOENT;
    if (strcmp(below, "/") == 0)
        below = "";
    return snprintf(path, size, "%s%s", mount, below) < (int)size ? 0 : -ENAMETOOLONG;
}

int group_locate(const char *proc, const char *group, char *path, size_t size, struct err *err)
{
    char name[4096], own[4096], *line = NULL, *root, *mount;
    size_t capacity = 0;
    int result = -ENOENT;
    FILE *file;
    if (!group) {
        result = group_of(proc, 0, own, sizeof(own));
        if (result < 0)
            return err_set(err, result,
                           "%s/self/cgroup has no cgroup2 line (0::): Elmer needs cgroup2; boot with it or mount it",
                           proc);
        group = own;
    }
    snprintf(name, sizeof(name), "%s/self/mountinfo", proc);
    file = fopen(name, "re");
    if (!file)
        return err_set(err, -errno, "cannot read %s: %s", name, strerror(errno));
    result = -ENOENT;
    while (result < 0 && getline(&line, &capacity, file) > 0) {
        if (parse_mount(line, &root, &mount))
            result = join(root, mount, group, path, size);
    }
    free(line);
    fclose(file);
    if (result < 0)
        return err_set(err, result,
                       "no cgroup2 mount in %s shows the group %s: mount cgroup2 (on /sys/fs/cgroup) or set "
                       "cgroup_root in rsd.conf",
                       name, group);
    return 0;
}
