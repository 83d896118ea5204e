#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/config/ini_internal.h"

/* The daemons are users of their own, who read what all may. */
int ini_unreadable(const char *path, int code, const char *mode, struct err *err)
{
    const struct passwd *user = code == EACCES ? getpwuid(geteuid()) : NULL;

    if (code != EACCES)
        return err_set(err, -code, "%s", strerror(code));
    return err_set(err, -code, "the user %s cannot read it: %s; chmod %s %s, and 755 the directories above it",
                   user ? user->pw_name : "of this program", strerror(code), mode, path);
}

static int add(struct ini_files *files, char *path, struct err *err)
{
    char **more = !path ? NULL : reallocarray(files->paths, files->count + 1, sizeof(*more));

    if (!more) {
        free(path);
        return err_set(err, -ENOMEM, "out of memory");
    }
    files->paths = more;
    files->paths[files->count++] = path;
    return 0;
}

static bool is_fragment(const char *name)
{
    size_t length = strlen(name);

    return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".conf") == 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_fragments(struct ini_files *files, const char *path, struct err *err)
{
    size_t first = files->count;
    int result = 0;
    DIR *dir = opendir(path);

    if (!dir && errno == ENOENT)
        return 0;
    if (!dir) {
        result = ini_unreadable(path, errno, "755", err);
        err_prefix(err, "%s", path);
        return result;
    }
    errno = 0;
    for (const struct dirent *entry; result == 0 && (entry = readdir(dir)); errno = 0)
        if (is_fragment(entry->d_name))
            result = add(files, str_format("%s/%s", path, entry->d_name), err);
    if (result == 0 && errno != 0)
        result = err_set(err, -errno, "%s: %s", path, strerror(errno));
    (void)closedir(dir);
    if (files->count > first)
        qsort(files->paths + first, files->count - first, sizeof(*files->paths), compare);
    return result;
}

int ini_files_find(const char *path, bool fragments, struct ini_files *files, struct err *err)
{
    char *dir = NULL;
    int result;

    *files = (struct ini_files){0};
    result = add(files, strdup(path), err);
    if (result == 0 && fragments && !(dir = str_format("%s.d", path)))
        result = err_set(err, -ENOMEM, "out of memory");
    if (result == 0 && fragments)
        result = add_fragments(files, dir, err);
    free(dir);
    return result;
}

void ini_files_free(struct ini_files *files)
{
    while (files->count > 0)
        free(files->paths[--files->count]);
    free(files->paths);
    *files = (struct ini_files){0};
}
