#include "config.h"

#include "elmer/store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/memory/mem.h"
#include "elmer/store/sql.h"

static int refuse_place(const char *path, const char *name, struct err *err)
{
    const char *slash = strrchr(path, '/');
    return err_set(err, -EROFS,
                   "cannot make %s: %s; if elmer's unit keeps it from writing there: systemctl edit elmer, [Service], "
                   "ReadWritePaths=%.*s, then systemctl restart elmer",
                   name, strerror(EROFS), slash ? (int)(slash - path) : 1, slash ? path : ".");
}

static int take_lock(const char *path, const char *name, int fd, struct err *err)
{
    if (fd < 0 && errno == EROFS)
        return refuse_place(path, name, err);
    if (fd < 0)
        return err_set(err, -errno,
                       "cannot make %s: %s; the directory of the store must be there and belong to the user that elmer "
                       "runs as (or set \"store = ...\")",
                       name, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB))
        return err_set(err, -EBUSY, "the store %s is in use by another elmer: stop that one first", path);
    return 0;
}

static bool read_note(int fd, uint64_t *commits)
{
    char text[40] = "";
    return pread(fd, text, sizeof(text) - 1, 0) >= 0 && sscanf(text, "commits %" SCNu64, commits) == 1;
}

static int look_at(const char *path, struct store_file *file, int fd, struct err *err)
{
    struct stat st;
    if (stat(path, &st)) { /* a new store, or opening it says why not */
        if (errno == ENOENT && file->noted && ftruncate(fd, 0) == 0 && fsync(fd) == 0)
            *file = (struct store_file){0};
        return 0;
    }
    if (!S_ISREG(st.st_mode))
        return err_set(
            err, -EUCLEAN,
            "the store %s is not a file: elmer does not touch it. Set \"store = ...\" to another name, or move "
            "it away to begin with an empty queue",
            path);
    if (st.st_size == 0 && file->noted)
        return sql_explain(path, -EUCLEAN, err, "it is empty");
    return 0;
}

int store_file_lock(const char *path, struct store_file *file, struct err *err)
{
    char *name = mem_format("%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int result = take_lock(path, name, fd, err);
    *file = (struct store_file){0};
    file->known = !result && read_note(fd, &file->noted);
    free(name);
    if (!result)
        result = look_at(path, file, fd, err);
    if (!result)
        file->lock = fd + 1;
    else if (fd >= 0)
        close(fd);
    return result;
}

void store_file_unlock(struct store_file *file)
{
    if (file->lock)
        close(file->lock - 1);
    file->lock = 0;
}

int store_file_check(const char *path, struct store_file *file, sqlite3 *db, struct err *err)
{
    struct err inner = ERR_INIT;
    char text[160];
    int64_t commits = 0;
    int result = sql_integer(db, "SELECT value FROM meta WHERE key = 'commits'", &commits, &inner);
    if (result)
        return sql_explain(path, result, err, inner.text);
    file->commits = commits > 0 ? (uint64_t)commits : 0;
    if (file->commits >= file->noted)
        return 0;
    snprintf(text, sizeof(text),
             "its last %" PRIu64 " changes are missing: %s-wal is damaged or gone, or this is an old copy",
             file->noted - file->commits, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    return sql_explain(path, -EUCLEAN, err, text);
}

/* Its pages can be new ones of the store, which then has to grow by as many while they are still in the log: of a full
 * disk the log must leave something. */
int store_file_log_pages(const char *path)
{
    struct statvfs disk;
    struct stat st;
    char *name = mem_format("%s-wal", path);
    uint64_t pages = STORE_LOG_PAGES;
    if (statvfs(path, &disk) == 0)
        pages = ((uint64_t)disk.f_bavail * disk.f_frsize + (stat(name, &st) == 0 ? (uint64_t)st.st_size : 0)) / 4 /
                STORE_PAGE;
    free(name);
    return pages > STORE_LOG_PAGES ? STORE_LOG_PAGES : pages < STORE_LOG_PAGES_MIN ? STORE_LOG_PAGES_MIN : (int)pages;
}

static void note(const struct store_file *file)
{
    char text[40];
    int size = snprintf(text, sizeof(text), "commits %020" PRIu64 "\n", file->commits);
    bool right = pwrite(file->lock - 1, text, (size_t)size, 0) == size || ftruncate(file->lock - 1, 0) == 0;
    (void)right;
}

void store_file_note(const struct store_file *file)
{
    note(file);
    (void)fsync(file->lock - 1);
}

void store_file_committed(struct store_file *file)
{
    file->commits++;
    note(file);
}
