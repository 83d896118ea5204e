#include "config.h"

#include "tests/fuzz/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "tests/fuzz/fuzz.h"

enum { MAX_FILES = 16, MAX_OPEN = 64, FIRST_FD = 1 << 20 };

static struct file {
    const char *path;
    const uint8_t *data;
    size_t size;
} files[MAX_FILES];
static size_t file_count;
static struct descriptor {
    bool open;
    const struct file *file;
    size_t at;
} descriptors[MAX_OPEN];

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __real_pread(int fd, void *buffer, size_t size, off_t at);
ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t at);
int __real_close(int fd);
int __wrap_close(int fd);

void files_put(const char *path, const uint8_t *data, size_t size)
{
    FUZZ_CHECK(file_count < MAX_FILES, "too many files");
    files[file_count++] = (struct file){path, data, size};
}

int files_clear(void)
{
    int left = 0;

    for (size_t i = 0; i < MAX_OPEN; i++) {
        left += descriptors[i].open;
        descriptors[i].open = false;
    }
    file_count = 0;
    return left;
}

static const struct file *find(const char *path)
{
    for (size_t i = 0; i < file_count; i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    return NULL;
}

static bool ours(const char *path)
{
    return strncmp(path, "/fuzz/", 6) == 0 || (file_count > 0 && strncmp(path, "/proc/", 6) == 0);
}

static FILE *open_stream(const struct file *file)
{
    static char buffer[4096]; /* the C library's own is large, and is mapped each time */
    const uint8_t *data = file->size > 0 ? file->data : (const uint8_t *)"\n";
    FILE *stream = fmemopen((void *)(uintptr_t)data, file->size > 0 ? file->size : 1, "r");

    FUZZ_CHECK(stream != NULL, "no memory");
    /* cppcheck-suppress nullPointerRedundantCheck */
    (void)setvbuf(stream, buffer, _IOFBF, sizeof(buffer));
    return stream;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    const struct file *file = find(path);

    if (file)
        return open_stream(file);
    if (!ours(path))
        return __real_fopen(path, mode);
    errno = ENOENT;
    return NULL;
}

static int open_ours(const char *path)
{
    const struct file *file = find(path);

    for (int i = 0; file && i < MAX_OPEN; i++) {
        if (descriptors[i].open)
            continue;
        descriptors[i] = (struct descriptor){true, file, 0};
        return FIRST_FD + i;
    }
    errno = !file ? ENOENT : EMFILE;
    return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    return ours(path) ? open_ours(path) : __real_open(path, flags, mode);
}

/* A file is put by its name relative to the directory. */
int __wrap_openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    return dir >= FIRST_FD ? open_ours(path) : __real_openat(dir, path, flags, mode);
}

static struct descriptor *ours_at(int fd)
{
    if (fd < FIRST_FD)
        return NULL;
    FUZZ_CHECK(fd - FIRST_FD < MAX_OPEN && descriptors[fd - FIRST_FD].open, "%d is not open", fd);
    return &descriptors[fd - FIRST_FD];
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
    struct descriptor *descriptor = ours_at(fd);
    size_t left;

    if (!descriptor)
        return __real_read(fd, buffer, size);
    left = descriptor->file->size - descriptor->at;
    size = size < left ? size : left;
    if (size > 0)
        memcpy(buffer, descriptor->file->data + descriptor->at, size);
    descriptor->at += size;
    return (ssize_t)size;
}

ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t at)
{
    struct descriptor *descriptor = ours_at(fd);

    if (!descriptor)
        return __real_pread(fd, buffer, size, at);
    descriptor->at = (size_t)at < descriptor->file->size ? (size_t)at : descriptor->file->size;
    return __wrap_read(fd, buffer, size);
}

/* What a build with _FORTIFY_SOURCE calls instead. */
ssize_t __wrap___read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __wrap___read_chk(int fd, void *buffer, size_t size, size_t room)
{
    FUZZ_CHECK(size <= room, "%zu bytes into %zu", size, room);
    return __wrap_read(fd, buffer, size);
}

ssize_t __wrap___pread_chk(int fd, void *buffer, size_t size, off_t at, size_t room);
ssize_t __wrap___pread_chk(int fd, void *buffer, size_t size, off_t at, size_t room)
{
    FUZZ_CHECK(size <= room, "%zu bytes into %zu", size, room);
    return __wrap_pread(fd, buffer, size, at);
}

int __wrap_close(int fd)
{
    struct descriptor *descriptor = ours_at(fd);

    if (!descriptor)
        return __real_close(fd);
    descriptor->open = false;
    return 0;
}
