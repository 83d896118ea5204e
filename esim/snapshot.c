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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/memory/mem.h"

enum { LOG_HEADER = 32, PIECE = 1 << 20, TRIES = 20 };

static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

static const struct snapshot *volatile there; /* the names are made before, as a handler can make none */
static struct sigaction actions[SIGNALS];

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
    bool whole = false, good = true;

    for (int i = 0; good && !whole && i < TRIES; i++) {
        struct mark before, after;
        good = look(path, log, &before) && copy(path, to->path, true) && copy(log, to->files[1], false) &&
               look(path, log, &after);
        whole = good && same(&before, &after);
    }
    if (!good)
        snprintf(fault, size, "cannot copy %.150s to read it: %s", path, strerror(errno));
    else if (!whole)
        snprintf(fault, size, "%.150s changes faster than it can be copied: give esim a copy of it", path);
    return whole;
}

/* ---- its files ---- */

void snapshot_abandon(void)
{
    const struct snapshot *snapshot = there;

    for (size_t i = 0; snapshot && i < SNAPSHOT_FILES; i++)
        unlink(snapshot->files[i]);
    if (snapshot)
        rmdir(snapshot->dir);
}

static void on_end(int number)
{
    snapshot_abandon();
    (void)raise(number); /* which is the default's again */
}

/* One that is ignored stays so. */
static void watch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};

    for (size_t i = 0; i < SIGNALS; i++)
        if (sigaction(signals[i], NULL, &actions[i]) == 0 && actions[i].sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
}

static void leave_signals(void)
{
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &actions[i], NULL);
}

/* Their names are right as soon as there is a file: in between the directory has its own already, and is empty. */
static bool make_dir(struct snapshot *snapshot, const char *parent, char *fault, size_t size)
{
    static const char *const names[SNAPSHOT_FILES] = {"", "-wal", "-shm", "-journal"};

    snapshot->dir = mem_format("%s/esim-XXXXXX", parent);
    for (size_t i = 0; i < SNAPSHOT_FILES; i++)
        snapshot->files[i] = mem_format("%s/store%s", snapshot->dir, names[i]);
    snapshot->path = snapshot->files[0];
    there = snapshot;
    watch_signals();
    if (!mkdtemp(snapshot->dir)) {
        snprintf(fault, size, "%.150s: %s", snapshot->dir, strerror(errno));
        return false;
    }
    for (size_t i = 0; i < SNAPSHOT_FILES; i++)
        memcpy(snapshot->files[i], snapshot->dir, strlen(snapshot->dir));
    return true;
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
    good = good && make_dir(snapshot, temporary && temporary[0] == '/' ? temporary : "/var/tmp", fault, size) &&
           take(path, log, snapshot, fault, size);
    free(log);
    if (!good)
        snapshot_drop(snapshot);
    return good;
}

void snapshot_drop(struct snapshot *snapshot)
{
    if (!snapshot->dir)
        return;
    snapshot_abandon();
    there = NULL;
    leave_signals();
    for (size_t i = 0; i < SNAPSHOT_FILES; i++)
        free(snapshot->files[i]);
    free(snapshot->dir);
    *snapshot = (struct snapshot){.dir = NULL};
}
