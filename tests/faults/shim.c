/* shim.c - a library to preload into elmer and rsd, which counts what they do to the world outside and can end them
 * (kill -9) before any of it.
 *
 * Counted, for each kind of process apart: write, writev, pwrite, send, sendto, sendmsg, ftruncate, fsync, fdatasync,
 * fork, clone, rename, unlink, rmdir, mkdir, bind, listen, kill. Not counted: what nobody outside the process can see,
 * that is an eventfd or a pipe (they wake the own loop; in elmer-tickets a pipe leads to the recorder and counts) and
 * the log on stderr; a kill there leaves the same world as a kill before the next counted call. stdio's writes are
 * inside libc and cannot be seen from here; the daemons use it for nothing that lasts.
 *
 * rsd hands a clean environment to its supervisors, so execve() puts the shim in. The network half and elmer-tickets
 * are programs that inherit it; the three processes of the latter count together. Other children of rsd count for
 * nobody until they execute a supervisor. SIGUSR2 ends elmer at any moment as a kill would. Nobody gets another
 * scheduling class: it is about what happens and not when, and the machine that tests is not to be disturbed. What a
 * power cut leaves of the store is in shim_store.c. */
#define _GNU_SOURCE
#include "tests/faults/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 64 };

static struct control *control;
static enum kind kind = KIND_NONE;
static char preload[300], variable[300], unwatched[] = UNWATCHED_VARIABLE "=1";

void *shim_real(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

/* ---- begin ---- */

static _Noreturn void die(void)
{
    if (kind == KIND_ELMER && control->unsynced != UNSYNCED_KEPT)
        store_cut(control);
    for (;;)
        syscall(SYS_kill, getpid(), SIGKILL);
}

static void on_signal(int signal)
{
    (void)signal;
    die();
}

static enum kind kind_of(int argc, const char *name)
{
    if (strcmp(name, "elmer") == 0)
        return KIND_ELMER;
    if (strcmp(name, "rsd") == 0)
        return KIND_RSD_ROOT;
    if (strcmp(name, "elmer-rsd-net") == 0)
        return KIND_RSD_NET;
    if (strcmp(name, "elmer-spawn") == 0)
        return KIND_SPAWN;
    if (strcmp(name, "elmer-tickets") == 0)
        return KIND_TICKETS;
    return strcmp(name, "elmer-supervisor") == 0 && argc == 1 ? KIND_SUPERVISOR : KIND_NONE;
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    const char *path = getenv(CONTROL_VARIABLE), *library = getenv("LD_PRELOAD");
    int fd = path && argc > 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return;
    control = page;
    if (!getenv(UNWATCHED_VARIABLE))
        kind = kind_of(argc, program_invocation_short_name);
    snprintf(variable, sizeof(variable), CONTROL_VARIABLE "=%s", path);
    snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", library ? library : "");
    if (kind == KIND_ELMER)
        signal(SIGUSR2, on_signal);
    (void)argv;
}

/* ---- counting ---- */

static void note(struct call *call, const char *name, const char *what)
{
    *call = (struct call){.kind = (uint8_t)kind, .pid = getpid()};
    snprintf(call->name, sizeof(call->name), "%s", name);
    size_t length = strlen(what), room = sizeof(call->what) - 1;
    snprintf(call->what, sizeof(call->what), "%s", length > room ? what + length - room : what);
}

/* The moment before a call. */
static void point(const char *name, const char *what)
{
    unsigned once = 0;
    int saved = errno;
    if (!control || kind >= KIND_COUNT)
        return;
    unsigned number = atomic_fetch_add(&control->counts[kind], 1) + 1, at = atomic_fetch_add(&control->ncalls, 1);
    if (at < CALLS_MAX)
        note(&control->calls[at], name, what);
    if (number == control->target && (int)kind == control->kind &&
        atomic_compare_exchange_strong(&control->fired, &once, 1)) {
        note(&control->fired_at, name, what);
        die();
    }
    errno = saved;
}

/* ... of one with a descriptor. Returns whether it is a file of the store. */
static bool point_fd(const char *name, int fd)
{
    char path[40], target[300] = "";
    struct stat st;
    if (!control || kind >= KIND_COUNT || fd == STDERR_FILENO || fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) == 0 ||
        (S_ISFIFO(st.st_mode) && kind != KIND_TICKETS))
        return false;
    int saved = errno;
    if (S_ISSOCK(st.st_mode)) {
        snprintf(target, sizeof(target), "socket");
    } else {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = 0;
    }
    errno = saved;
    point(name, target);
    return kind == KIND_ELMER && store_is_file(fd);
}

static bool of_store(const char *path)
{
    return control && kind == KIND_ELMER && store_is_path(control, path);
}

/* ---- writing ---- */

static bool store_fails(void)
{
    if (control->store_error)
        errno = control->store_error;
    return control->store_error;
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (point_fd("write", fd)) {
        fprintf(stderr, "shim: write() to the store is not foreseen\n");
        abort();
    }
    return REAL(write)(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    point_fd("writev", fd);
    return REAL(writev)(fd, parts, count);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    if (!point_fd("pwrite", fd))
        return REAL(pwrite)(fd, data, size, offset);
    return store_fails() ? -1 : store_write(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    return pwrite(fd, data, size, offset);
}

int ftruncate(int fd, off_t size)
{
    if (!point_fd("ftruncate", fd))
        return REAL(ftruncate)(fd, size);
    return store_fails() ? -1 : store_truncate(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, size);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    point_fd("send", fd);
    return REAL(send)(fd, data, size, flags);
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
    point_fd("sendto", fd);
    return REAL(sendto)(fd, data, size, flags, to, length);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    point_fd("sendmsg", fd);
    return REAL(sendmsg)(fd, message, flags);
}

/* ---- making safe ---- */

static bool sync_is_ignored(int fd)
{
    if (!control || kind != KIND_ELMER || !control->store[0])
        return false;
    struct stat st;
    if (!store_is_file(fd) && (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode)))
        return false;
    int number = (int)atomic_fetch_add(&control->syncs, 1) + 1;
    return control->sync_ignored == number || control->sync_ignored == SYNC_IGNORE_ALL;
}

static int sync_fd(int fd, int (*sync)(int))
{
    if (sync_is_ignored(fd))
        return 0;
    int result = sync(fd);
    if (result == 0 && control && kind == KIND_ELMER)
        store_synced(fd);
    return result;
}

int fsync(int fd)
{
    point_fd("fsync", fd);
    return sync_fd(fd, REAL(fsync));
}

int fdatasync(int fd)
{
    point_fd("fdatasync", fd);
    return sync_fd(fd, REAL(fdatasync));
}

/* What is written through a mapping cannot be followed. */
void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    if (fd >= 0 && (protection & PROT_WRITE) && (flags & MAP_SHARED) && kind == KIND_ELMER && store_is_file(fd)) {
        fprintf(stderr, "shim: a writable mapping of the store is not foreseen\n");
        abort();
    }
    return REAL(mmap64)(at, size, protection, flags, fd, offset);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return mmap64(at, size, protection, flags, fd, offset);
}

/* ---- names ---- */

static int open_followed(const char *path, int flags, mode_t mode)
{
    bool ours = of_store(path), existed = ours && store_exists(path);
    int fd = REAL(open)(path, flags, mode);
    if (ours && fd >= 0 && (flags & O_ACCMODE) != O_RDONLY)
        store_opened(fd, path, existed);
    return fd;
}

#define MODE_OF(flags)                                                                                                 \
    mode_t mode = 0;                                                                                                   \
    va_list args;                                                                                                      \
    va_start(args, flags);                                                                                             \
    if ((flags) & (O_CREAT | __O_TMPFILE))                                                                             \
        mode = va_arg(args, mode_t);                                                                                   \
    va_end(args)

int open(const char *path, int flags, ...)
{
    MODE_OF(flags);
    return open_followed(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE_OF(flags);
    return open_followed(path, flags, mode);
}

int unlink(const char *path)
{
    point("unlink", path);
    return of_store(path) ? store_unlink(path) : REAL(unlink)(path);
}

int unlinkat(int fd, const char *path, int flags)
{
    point(flags & AT_REMOVEDIR ? "rmdir" : "unlink", path);
    return REAL(unlinkat)(fd, path, flags);
}

int rmdir(const char *path)
{
    point("rmdir", path);
    return REAL(rmdir)(path);
}

int rename(const char *from, const char *to)
{
    point("rename", to);
    return REAL(rename)(from, to);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    point("rename", to);
    return REAL(renameat)(from_fd, from, to_fd, to);
}

int mkdir(const char *path, mode_t mode)
{
    point("mkdir", path);
    return REAL(mkdir)(path, mode);
}

int mkdirat(int fd, const char *path, mode_t mode)
{
    point("mkdir", path);
    return REAL(mkdirat)(fd, path, mode);
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    point_fd("bind", fd);
    return REAL(bind)(fd, address, length);
}

int listen(int fd, int backlog)
{
    point_fd("listen", fd);
    return REAL(listen)(fd, backlog);
}

/* ---- processes ---- */

static void in_child(void)
{
    if (kind != KIND_TICKETS)
        kind = KIND_NONE;
}

pid_t fork(void)
{
    point("fork", "");
    pid_t pid = REAL(fork)();
    if (pid == 0)
        in_child();
    return pid;
}

int kill(pid_t pid, int signal)
{
    point("kill", "");
    return REAL(kill)(pid, signal);
}

long syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_sched_setattr)
        return 0;
    bool forks = number == SYS_clone3 || number == SYS_clone;
    if (forks)
        point("clone", "");
    else if (number == SYS_pidfd_send_signal)
        point("kill", "");
    long result = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (forks && result == 0)
        in_child();
    return result;
}

static bool is_supervisor(const char *path)
{
    const char *slash = strrchr(path, '/');
    return control && strcmp(slash ? slash + 1 : path, "elmer-supervisor") == 0;
}

int execve(const char *path, char *const argv[], char *const envp[])
{
    char *environment[ENVIRONMENT_MAX + 4];
    size_t count = 0;
    if (!is_supervisor(path))
        return REAL(execve)(path, argv, envp);
    for (; count < ENVIRONMENT_MAX && envp[count]; count++)
        environment[count] = envp[count];
    environment[count++] = preload;
    environment[count++] = variable;
    if (getenv(UNWATCHED_VARIABLE))
        environment[count++] = unwatched;
    environment[count] = NULL;
    return REAL(execve)(path, argv, environment);
}

/* ---- memory ---- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static bool refused(size_t size)
{
    if (!control || !control->memory_limit || size < control->memory_limit || kind != control->memory_kind)
        return false;
    control->memory_refused++;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return refused(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    size_t all;
    return !__builtin_mul_overflow(count, size, &all) && refused(all) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return refused(size) ? NULL : __libc_realloc(old, size);
}

/* ---- the wall clock ---- */

static time_t step(void)
{
    return control ? control->clock_step_s : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = REAL(clock_gettime)(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += step();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int result = REAL(gettimeofday)(now, zone);
    if (result == 0)
        now->tv_sec += step();
    return result;
}

time_t time(time_t *out)
{
    time_t now = REAL(time)(NULL) + step();
    if (out)
        *out = now;
    return now;
}
