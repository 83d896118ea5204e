#include "config.h"

#include "tests/unit/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DIRS = 64, PATH_BYTES = 128 };

static char dirs[MAX_DIRS][PATH_BYTES];
static size_t count;
static pid_t owner;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    (void)remove(path);
    return 0;
}

static void remove_all(void)
{
    for (size_t i = 0; i < count && getpid() == owner; i++) /* not in a child that was forked */
        (void)nftw(dirs[i], remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

char *scratch_dir(char *dir)
{
    if (!mkdtemp(dir))
        return NULL;
    if (count == 0) {
        owner = getpid();
        if (atexit(remove_all) != 0)
            return dir;
    }
    if (count < MAX_DIRS && strlen(dir) < PATH_BYTES)
        (void)snprintf(dirs[count++], PATH_BYTES, "%s", dir);
    return dir;
}

bool scratch_put(const char *dir, const char *name, const char *text)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

bool scratch_mkdir(const char *dir, const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return mkdir(path, 0755) == 0;
}

pid_t scratch_pid(const char *dir, const char *name)
{
    char path[4096];
    int pid = 0;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return pid;
}
