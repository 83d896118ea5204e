/* snapshot.c - copy FILE and FILE-wal so that they belong together.
 *
 * SQLite itself would make FILE-wal and FILE-shm where there are none, and keeps the log from being cut while somebody
 * reads. So both are copied, the store first, then the log. The header of a log changes when it is begun again, which
 * comes only after all of it has gone into the store. If it is the same before and after, then all that came into the
 * store meanwhile is in the copy of the log, too, and SQLite brings it there when the copy is opened. */
#include "config.h"

#include "esim/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/memory/mem.h"

enum { LOG_HEADER = 32, PIECE = 1 << 20, TRIES = 20 };

struct mark { /* equal ones: the copy between them is whole */
    unsigned char header[LOG_HEADER];
    struct timespec changed; /* of the store; of interest where the log is empty */
    off_t size;
};

static bool look(const char *path, const char *log, struct mark *mark)
{
    struct stat st;
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 || errno == ENOENT;

    *mark = (struct mark){.size = 0};
    if (fd >= 0) {
        ssize_t count = read(fd, mark->header, sizeof(mark->header));
        good = count >= 0;
        if (good && count == LOG_HEADER) { /* the log is enough */
            close(fd);
            return true;
        }
        memset(mark->header, 0, sizeof(mark->header));
        close(fd);
    }
    if (!good || stat(path, &st) != 0)
        return false;
    mark->changed = st.st_mtim;
    mark->size = st.st_size;
    return true;
}

static bool same(const struct mark *a, const struct mark *b)
{
    return memcmp(a->header, b->header, LOG_HEADER) == 0 && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool write_all(int fd, const char *data, size_t count)
{
    while (count > 0) {
        ssize_t written = write(fd, data, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        data += written;
        count -= (size_t)written;
    }
    return true;
}

/* What is not there is copied as an empty file. */
static bool copy(const char *from, const char *to, bool must)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, error;
    char *piece = mem_array(PIECE, 1);
    ssize_t count = 0;
    bool good = in >= 0 || (!must && errno == ENOENT);

    if (good)
        out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    good = good && out >= 0;
    while (good && in >= 0 && (count = read(in, piece, PIECE)) > 0)
        good = write_all(out, piece, (size_t)count);
    good = good && count == 0;
    error = errno;
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    free(piece);
    errno = error;
    return good;
}

static bool take(const char *path, const char *log, const struct snapshot *to, char *fault, size_t size)
{
    char *to_log = mem_format("%s-wal", to->path);
    bool whole = false, good = true;

    for (int i = 0; good && !whole && i < TRIES; i++) {
        struct mark before, after;
        good = look(path, log, &before) && copy(path, to->path, true) && copy(log, to_log, false) &&
               look(path, log, &after);
        whole = good && same(&before, &after);
    }
    if (!good)
        snprintf(fault, size, "cannot copy %.150s to read it: %s", path, strerror(errno));
    else if (!whole)
        snprintf(fault, size, "%.150s changes faster than it can be copied: give esim a copy of it", path);
    free(to_log);
    return whole;
}

bool snapshot_take(struct snapshot *snapshot, const char *path, char *fault, size_t size)
{
    const char *temporary = getenv("TMPDIR");
    char *log = mem_format("%s-wal", path);
    struct stat st;
    bool good = stat(path, &st) == 0;

    *snapshot = (struct snapshot){.dir = NULL};
    if (!good || !S_ISREG(st.st_mode)) {
        snprintf(fault, size, "%.150s: %s", path, good ? "this is not a file" : strerror(errno));
        good = false;
    }
    if (good) {
        snapshot->dir = mem_format("%s/esim-XXXXXX", temporary && temporary[0] == '/' ? temporary : "/var/tmp");
        snapshot->path = mem_format("%s/store", snapshot->dir);
        good = mkdtemp(snapshot->dir) != NULL;
        if (!good)
            snprintf(fault, size, "%.150s: %s", snapshot->dir, strerror(errno));
    }
    if (good) {
        memcpy(snapshot->path, snapshot->dir, strlen(snapshot->dir));
        good = take(path, log, snapshot, fault, size);
    }
    free(log);
    if (!good)
        snapshot_drop(snapshot);
    return good;
}

void snapshot_drop(struct snapshot *snapshot)
{
    static const char *const names[] = {"", "-wal", "-shm", "-journal"};

    for (size_t i = 0; snapshot->path && i < sizeof(names) / sizeof(names[0]); i++) {
        char *name = mem_format("%s%s", snapshot->path, names[i]);
        unlink(name);
        free(name);
    }
    if (snapshot->dir)
        rmdir(snapshot->dir);
    free(snapshot->dir);
    free(snapshot->path);
    *snapshot = (struct snapshot){.dir = NULL};
}
