/* shim_store.c - what a power cut leaves of the store.
 *
 * The model: a file's content is safe up to its last fsync or fdatasync, and a name (of a file that was made or
 * removed) up to the last one of its directory; this is what POSIX promises and no more. Everything later is
 * remembered here as a change with what was there before. At the cut the changes are undone from the last to the
 * first; UNSYNCED_SOME then does some of them again, in order, because a disk may have written any of them.
 * sync_file_range(2) makes nothing safe. The -shm file is shared memory with a name: a cut removes it, and SQLite
 * builds it again from the log. The store must not write through any other shared mapping; shim.c ends it if it does.
 * Everything is in the memory of the process that writes, because it is this process that is ended. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/shim.h"

enum { FILES_MAX = 64, PATH_SIZE = 200 };

struct file {
    dev_t device;
    ino_t inode;
    int fd; /* our own, kept: closing it would give up the locks of SQLite */
    char path[PATH_SIZE];
};

enum change_type { CHANGE_DATA, CHANGE_MADE, CHANGE_REMOVED };

struct change {
    struct change *next, *previous;
    enum change_type type;
    struct file *file;  /* DATA */
    off_t offset, size; /* DATA: where; size of the file before, then after */
    off_t size_after;
    char *before, *after; /* DATA: what was there, what was written; NULL after: cut to size_after */
    size_t nbefore, nafter;
    char path[PATH_SIZE], saved[PATH_SIZE + 16]; /* MADE, REMOVED */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file files[FILES_MAX];
static size_t nfiles;
static struct change *first, *last;
static unsigned nsaved;

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "shim: %s\n", what);
    abort();
}

static void *memory(size_t size)
{
    void *data = calloc(1, size ? size : 1);
    if (!data)
        give_up("no memory");
    return data;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

bool store_is_path(const struct control *control, const char *path)
{
    size_t length = strlen(control->store);
    return length > 0 && strncmp(path, control->store, length) == 0 && path[length] == '/';
}

bool store_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static struct file *find(int fd)
{
    struct stat st;
    if (!nfiles || fstat(fd, &st) < 0)
        return NULL;
    for (size_t i = 0; i < nfiles; i++)
        if (files[i].inode == st.st_ino && files[i].device == st.st_dev)
            return &files[i];
    return NULL;
}

bool store_is_file(int fd)
{
    pthread_mutex_lock(&lock);
    bool is = find(fd) != NULL;
    pthread_mutex_unlock(&lock);
    return is;
}

/* ---- changes ---- */

static struct change *change_add(enum change_type type)
{
    struct change *change = memory(sizeof(*change));
    change->type = type;
    change->previous = last;
    *(last ? &last->next : &first) = change;
    last = change;
    return change;
}

static void change_drop(struct change *change)
{
    *(change->previous ? &change->previous->next : &first) = change->next;
    *(change->next ? &change->next->previous : &last) = change->previous;
    if (change->type == CHANGE_REMOVED)
        REAL(unlink)(change->saved);
    free(change->before);
    free(change->after);
    free(change);
}

void store_opened(int fd, const char *path, bool existed)
{
    struct stat st;
    if (ends_with(path, "-shm") || ends_with(path, ".lock") || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    pthread_mutex_lock(&lock);
    if (!find(fd)) {
        if (nfiles == FILES_MAX)
            give_up("more files in the store than expected");
        struct file *file = &files[nfiles++];
        *file = (struct file){.device = st.st_dev, .inode = st.st_ino, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 200)};
        snprintf(file->path, sizeof(file->path), "%s", path);
    }
    if (!existed)
        snprintf(change_add(CHANGE_MADE)->path, PATH_SIZE, "%s", path);
    pthread_mutex_unlock(&lock);
}

static struct change *change_data(struct file *file, off_t offset, size_t covered)
{
    struct stat st;
    struct change *change = change_add(CHANGE_DATA);
    if (fstat(file->fd, &st) < 0)
        give_up("fstat");
    *change = (struct change){
        .type = CHANGE_DATA, .previous = change->previous, .file = file, .offset = offset, .size = st.st_size};
    change->before = memory(covered);
    ssize_t got = offset < st.st_size ? pread(file->fd, change->before, covered, offset) : 0;
    change->nbefore = got > 0 ? (size_t)got : 0;
    return change;
}

ssize_t store_write(int fd, const void *data, size_t size, off_t offset)
{
    pthread_mutex_lock(&lock);
    struct file *file = find(fd);
    struct change *change = change_data(file, offset, size);
    ssize_t written = REAL(pwrite)(fd, data, size, offset);
    if (written > 0) {
        change->after = memory((size_t)written);
        memcpy(change->after, data, (size_t)written);
        change->nafter = (size_t)written;
    } else {
        change_drop(change);
    }
    pthread_mutex_unlock(&lock);
    return written;
}

int store_truncate(int fd, off_t size)
{
    struct stat st;
    pthread_mutex_lock(&lock);
    struct file *file = find(fd);
    off_t now = fstat(fd, &st) < 0 ? 0 : st.st_size;
    struct change *change = change_data(file, size, now > size ? (size_t)(now - size) : 0);
    change->size_after = size;
    int result = REAL(ftruncate)(fd, size);
    if (result < 0)
        change_drop(change);
    pthread_mutex_unlock(&lock);
    return result;
}

int store_unlink(const char *path)
{
    char saved[PATH_SIZE + 16];
    pthread_mutex_lock(&lock);
    snprintf(saved, sizeof(saved), "%s.cut-%u", path, nsaved++);
    bool keep = !ends_with(path, "-shm") && link(path, saved) == 0;
    int result = REAL(unlink)(path);
    if (keep && result == 0) {
        struct change *change = change_add(CHANGE_REMOVED);
        snprintf(change->path, sizeof(change->path), "%s", path);
        snprintf(change->saved, sizeof(change->saved), "%s", saved);
    } else if (keep) {
        REAL(unlink)(saved);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void store_synced(int fd)
{
    struct stat st;
    bool directory = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    pthread_mutex_lock(&lock);
    struct file *file = directory ? NULL : find(fd);
    for (struct change *change = first, *next; change; change = next) {
        next = change->next;
        if (directory ? change->type != CHANGE_DATA : file && change->file == file)
            change_drop(change);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- the cut ---- */

static void undo(const struct change *change)
{
    switch (change->type) {
    case CHANGE_DATA:
        if (change->nbefore > 0 &&
            REAL(pwrite)(change->file->fd, change->before, change->nbefore, change->offset) != (ssize_t)change->nbefore)
            give_up("cannot undo a write");
        if (REAL(ftruncate)(change->file->fd, change->size) < 0)
            give_up("cannot undo the growth of a file");
        break;
    case CHANGE_MADE:
        REAL(unlink)(change->path);
        break;
    case CHANGE_REMOVED:
        REAL(rename)(change->saved, change->path);
        break;
    }
}

static void redo(const struct change *change)
{
    if (change->type != CHANGE_DATA)
        return;
    if (change->nafter == 0)
        (void)!REAL(ftruncate)(change->file->fd, change->size_after);
    else
        (void)!REAL(pwrite)(change->file->fd, change->after, change->nafter, change->offset);
}

static void remove_shared(const struct control *control)
{
    for (size_t i = 0; i < nfiles; i++) {
        char path[PATH_SIZE + 8];
        snprintf(path, sizeof(path), "%s-shm", files[i].path);
        if (!strchr(base_of(files[i].path), '-') && store_is_path(control, path))
            REAL(unlink)(path);
    }
}

void store_cut(struct control *control)
{
    unsigned seed = control->seed;
    bool some = control->unsynced == UNSYNCED_SOME;
    for (int i = 0; pthread_mutex_trylock(&lock) != 0 && i < 1000; i++)
        usleep(100);
    /* a name that was chosen stays; content is undone and done again */
    for (struct change *change = last; change; change = change->previous) {
        control->dropped++;
        if (!(some && change->type != CHANGE_DATA && rand_r(&seed) % 2))
            undo(change);
        else if (change->type == CHANGE_REMOVED)
            REAL(unlink)(change->saved);
    }
    for (struct change *change = first; some && change; change = change->next)
        if (rand_r(&seed) % 2)
            redo(change);
    remove_shared(control);
}
