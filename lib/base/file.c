#include "config.h"

#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_dir(const char *path, mode_t mode, struct err *err)
{
    struct stat st;
    int fd;

    if (mode && mkdir(path, mode) < 0 && errno != EEXIST)
        return err_set(err, -errno, "cannot make the directory %s: %s", path, strerror(errno));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "cannot open the directory %s: %s", path, strerror(errno));
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022)) {
        close(fd);
        return err_set(err, -EPERM, "%s must belong to the user who uses it (uid %u) and be writable by nobody else",
                       path, (unsigned)geteuid());
    }
    return fd;
}

static int write_all(int fd, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t n = write(fd, text, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        left -= (size_t)n;
    }
    return 0;
}

int file_write_new(int dir, const char *name, const char *text, mode_t mode)
{
    int result, fd;

    unlinkat(dir, name, 0);
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    result = write_all(fd, text);
    if (result == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
        result = -errno;
    if (close(fd) < 0 && result == 0)
        result = -errno;
    if (result < 0)
        unlinkat(dir, name, 0);
    return result;
}

int file_move(int dir, const char *from, const char *to)
{
    return renameat(dir, from, dir, to) < 0 || fsync(dir) < 0 ? -errno : 0;
}

int file_write(int dir, const char *name, const char *text, mode_t mode, struct err *err)
{
    char temporary[300];
    int result;

    snprintf(temporary, sizeof(temporary), ".%s.%d", name, (int)getpid());
    result = file_write_new(dir, temporary, text, mode);
    if (result == 0)
        result = file_move(dir, temporary, name);
    return result == 0 ? 0 : err_set(err, result, "cannot write %s: %s", name, strerror(-result));
}

int file_read(int dir, const char *name, size_t max, char **text, struct err *err)
{
    char *bytes = malloc(max + 1);
    struct stat st;
    size_t size = 0;
    ssize_t n = -1;
    int result, fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    result = !bytes ? -ENOMEM : fd < 0 || fstat(fd, &st) < 0 ? -errno : !S_ISREG(st.st_mode) ? -EMEDIUMTYPE : 0;
    while (result == 0 && size <= max && (n = read(fd, bytes + size, max + 1 - size)) != 0) {
        if (n > 0)
            size += (size_t)n;
        else if (errno != EINTR)
            result = -errno;
    }
    if (fd >= 0)
        close(fd);
    if (result == 0 && (size > max || memchr(bytes, 0, size)))
        result = -EFBIG;
    if (result < 0) {
        free(bytes);
        return err_set(err, result, "cannot read %s: %s", name,
                       result == -EMEDIUMTYPE ? "it is no regular file" : strerror(-result));
    }
    bytes[size] = 0;
    *text = bytes;
    return 0;
}

int file_read_fd(int fd, size_t max, char **text, size_t *size)
{
    char *bytes = malloc(max + 2);
    ssize_t n = -1;
    int result = bytes ? 0 : -ENOMEM;

    *text = NULL;
    *size = 0;
    while (result == 0 && *size <= max && (n = read(fd, bytes + *size, max + 1 - *size)) != 0) {
        if (n > 0)
            *size += (size_t)n;
        else if (errno != EINTR)
            result = -errno;
    }
    if (result < 0) {
        free(bytes);
        return result;
    }
    bytes[*size] = 0;
    *text = bytes;
    return 0;
}

void file_fill_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}
