/* world_process.c - the rest of the world's kernel: time, children, and files, of which those below /fuzz are the
 * world's. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/fuzz/world.h"

struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    return (struct mono){.ns = world_now_ms() * 1000000};
}

int64_t __wrap_boot_ms(void);
int64_t __wrap_boot_ms(void)
{
    return world_now_ms();
}

pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
    if (!world_fails())
        return world_new_pid();
    errno = EAGAIN;
    return -1;
}

int __wrap_signalfd(int fd, const sigset_t *set, int flags);
int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
    (void)fd;
    (void)set;
    (void)flags;
    return world_open(WORLD_SIGNALS);
}

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    (void)how;
    (void)set;
    (void)old;
    return 0;
}

static bool ours(const char *path)
{
    return strncmp(path, "/fuzz/", 6) == 0;
}

int __wrap_unlink(const char *path);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    return ours(path) ? 0 : __real_unlink(path);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    if (!ours(path))
        return __real_open(path, flags, mode);
    if (!world_fails())
        return world_open(WORLD_OTHER);
    errno = ENOENT;
    return -1;
}

/* What the kernel says of a process. */
static int open_proc(int fd)
{
    static const char *const texts[] = {"",
                                        "1 (x) R 1",
                                        "1 (x) S 1",
                                        "Name: x\nSigIgn:\t0000000000004000\n",
                                        "Name: x\nSigIgn:\t0000000000000000\n",
                                        "/autogroup-1 nice 0\n",
                                        "/autogroup-1 nice 19\n"};
    const char *text = fd < 0 ? "" : texts[input_byte(world_input()) % (sizeof(texts) / sizeof(*texts))];

    world_feed(fd, text, strlen(text));
    return fd;
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    if (!world_has(dir) && !ours(path))
        return __real_openat(dir, path, flags, mode);
    return open_proc(__wrap_open("/fuzz/", flags));
}

/* Folders hold names of jobs, and others. */
static struct folder {
    int fd;
    struct dirent entry;
} folder;

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd)
{
    if (!world_has(fd))
        return __real_fdopendir(fd);
    folder.fd = fd;
    return (DIR *)(void *)&folder;
}

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir)
{
    static const char *const names[] = {"1.1", "1.2", "2.1", "3.1", "keeper", "..", "18446744073709551615.4294967295"};
    uint8_t byte;

    if (dir != (DIR *)(void *)&folder)
        return __real_readdir(dir);
    byte = input_byte(world_input());
    if (byte < 128)
        return NULL;
    (void)snprintf(folder.entry.d_name, sizeof(folder.entry.d_name), "%s",
                   names[byte % (sizeof(names) / sizeof(*names))]);
    return &folder.entry;
}

int __real_closedir(DIR *dir);
int __wrap_closedir(DIR *dir);
int __wrap_closedir(DIR *dir)
{
    return dir == (DIR *)(void *)&folder ? close(folder.fd) : __real_closedir(dir);
}

/* pidfd_send_signal(2) and its kin. */
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    (void)number;
    errno = ENOSYS;
    return -1;
}
