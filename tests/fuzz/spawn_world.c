/* spawn_world.c - see spawn_world.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsd/root/spawn.h"
#include "tests/fuzz/spawn_world_internal.h"

struct fd fds[FDS];
jmp_buf spawn_world_end; /* where a child goes when it is over */
bool in_child, serving;
struct input *bytes;
struct spawn_ids ids;

bool spawn_world_fails(void)
{
    return input_byte(bytes) >= 240;
}

bool spawn_world_child(void)
{
    return in_child;
}

void spawn_world_made(uid_t uid)
{
    ids.made = uid;
}

int open_fd(enum kind kind, bool cloexec, int from)
{
    for (int fd = from; fd < FDS; fd++) {
        if (fds[fd].kind == CLOSED) {
            fds[fd] = (struct fd){kind, cloexec};
            return fd;
        }
    }
    errno = EMFILE;
    return -1;
}

enum kind kind_of(int fd)
{
    return fd >= 0 && fd < FDS ? fds[fd].kind : CLOSED;
}

bool spawn_world_is_tmp(int fd)
{
    return kind_of(fd) == TMP;
}

void spawn_world_begin(struct input *input)
{
    memset(fds, 0, sizeof(fds));
    for (int fd = 0; fd < 3; fd++)
        fds[fd].kind = OTHER;
    fds[SPAWN_FD_LINE] = (struct fd){LINE, true};
    fds[SPAWN_FD_GROUPS] = (struct fd){GROUPS, true};
    fds[SPAWN_FD_TMP] = (struct fd){TMP, true};
    fds[SPAWN_FD_GRANTS] = (struct fd){GRANTS_IN, true};
    bytes = input;
    in_child = false;
    serving = true;
}

void spawn_world_done(void)
{
    serving = false;
}

/* A check has failed: what libFuzzer does then is for real. */
_Noreturn void __real_abort(void);
_Noreturn void __wrap_abort(void);
_Noreturn void __wrap_abort(void)
{
    serving = false;
    __real_abort();
}

int spawn_world_open(void)
{
    int count = 0;
    for (int fd = SPAWN_FD_GRANTS + 1; fd < FDS; fd++)
        count += fds[fd].kind != CLOSED;
    return count;
}

/* ---- processes ---- */

/* The request goes on as one of the two. */
static long birth(bool leaf)
{
    spawn_world_birth();
    FUZZ_CHECK(!in_child, "a child's child");
    if (spawn_world_fails()) {
        errno = EAGAIN;
        return -1;
    }
    in_child = input_below(bytes, 2);
    memset(&ids, 0, sizeof(ids));
    ids.leaf = leaf;
    return in_child ? 0 : CHILD;
}

pid_t __wrap_fork(void);
pid_t __real_fork(void);
pid_t __wrap_fork(void)
{
    if (!serving)
        return __real_fork();
    return (pid_t)birth(false);
}

_Noreturn void __wrap__exit(int status);
_Noreturn void __real__exit(int);
_Noreturn void __wrap__exit(int status)
{
    if (!serving)
        __real__exit(status);
    (void)status;
    FUZZ_CHECK(in_child, "elmer-spawn itself ends");
    longjmp(spawn_world_end, 1);
}

int __wrap_execve(const char *path, char *const *argv, char *const *envp);
int __real_execve(const char *, char *const *, char *const *);
int __wrap_execve(const char *path, char *const *argv, char *const *envp)
{
    if (!serving)
        return __real_execve(path, argv, envp);
    FUZZ_CHECK(in_child && argv[0], "elmer-spawn itself becomes %s", path);
    for (size_t i = 0; envp[i]; i++)
        FUZZ_CHECK(strchr(envp[i], '='), "%s in the environment", envp[i]);
    ids.open = 0;
    for (int fd = 0; fd < FDS; fd++) {
        if (fds[fd].kind != CLOSED && !fds[fd].cloexec)
            ids.open++;
        FUZZ_CHECK(fds[fd].cloexec || (fds[fd].kind != LINE && fds[fd].kind != GROUPS && fds[fd].kind != TMP &&
                                       fds[fd].kind != GRANTS_IN && fds[fd].kind != GROUP),
                   "descriptor %d is handed on", fd);
    }
    spawn_world_exec(path, &ids);
    if (!spawn_world_fails())
        longjmp(spawn_world_end, 1);
    errno = ENOENT;
    return -1;
}

static long clone3(const struct clone_args *args)
{
    bool leaf = args->flags & (uint64_t)CLONE_INTO_CGROUP;
    long pid;
    FUZZ_CHECK(!leaf || kind_of((int)args->cgroup) == GROUP, "into no group");
    FUZZ_CHECK(args->flags & (uint64_t)CLONE_PIDFD, "without pidfd");
    if (input_byte(bytes) >= 224) {
        errno = ENOSYS;
        return -1;
    }
    pid = birth(leaf);
    if (pid > 0)
        *(int *)(uintptr_t)args->pidfd = open_fd(PIDFD, true, 0);
    return pid;
}

/* Of a pid that was read, or of the child. */
static long pidfd_open(int pid)
{
    FUZZ_CHECK(pid == CHILD || (pid >= FIRST_PID && pid < FIRST_PID + 8), "holds %d", pid);
    return spawn_world_fails() ? -1 : open_fd(PIDFD, true, 0);
}

static void close_range_of(unsigned first, unsigned last)
{
    FUZZ_CHECK(in_child, "the parent closes what it has");
    for (unsigned fd = first; fd <= last && fd < FDS; fd++)
        fds[fd].kind = CLOSED;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list args;
    long given[6]; /* two are enough for what is served */
    va_start(args, number);
    for (size_t i = 0; i < (serving ? 2 : 6); i++)
        given[i] = va_arg(args, long);
    va_end(args);
    if (!serving)
        return __real_syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    switch (number) {
    case SYS_clone3:
        return clone3((const struct clone_args *)given[0]);
    case SYS_pidfd_open:
        return pidfd_open((int)given[0]);
    case SYS_pidfd_send_signal:
        FUZZ_CHECK(kind_of((int)given[0]) == PIDFD, "a signal to %ld", given[0]);
        return 0;
    case SYS_close_range:
        close_range_of((unsigned)given[0], (unsigned)given[1]);
        return 0;
    case SYS_capset:
        FUZZ_CHECK(in_child, "other capabilities");
        ids.capabilities = ((const struct __user_cap_data_struct *)given[1])[0].permitted;
        return 0;
    default:
        fuzz_fail(__FILE__, __LINE__, "syscall", "system call %ld", number);
    }
}

/* ---- who a child is ---- */

/* All that a child may fail at. */
#define IN_CHILD(name, parameters, effect)                                                                             \
    int __wrap_##name parameters;                                                                                      \
    int __wrap_##name parameters                                                                                       \
    {                                                                                                                  \
        FUZZ_CHECK(in_child, "elmer-spawn itself: " #name);                                                            \
        if (spawn_world_fails()) {                                                                                     \
            errno = EPERM;                                                                                             \
            return -1;                                                                                                 \
        }                                                                                                              \
        effect;                                                                                                        \
        return 0;                                                                                                      \
    }
IN_CHILD(setgroups, (size_t count, const gid_t *list), ids.groups = list ? (int)count : 0)
IN_CHILD(setresgid, (gid_t gid, gid_t e, gid_t s), ids.gid = gid == e && e == s ? gid : 0)
IN_CHILD(setresuid, (uid_t uid, uid_t e, uid_t s), ids.uid = uid == e && e == s ? uid : 0)
IN_CHILD(listen, (int fd, int backlog), FUZZ_CHECK(kind_of(fd) == GIVEN && backlog > 0, "%d listens", fd))

pid_t __wrap_setsid(void);
pid_t __real_setsid(void);
pid_t __wrap_setsid(void)
{
    if (!serving)
        return __real_setsid();
    FUZZ_CHECK(in_child, "elmer-spawn itself has a session");
    return 1;
}

/* What they do is not looked at; elmer-spawn itself must stay as it is. */
int __real_prctl(int option, ...);
int __wrap_prctl(int option, ...);
int __wrap_prctl(int option, ...)
{
    va_list args;
    unsigned long given[4];
    va_start(args, option);
    for (size_t i = 0; i < 4 && !serving; i++)
        given[i] = va_arg(args, unsigned long);
    va_end(args);
    if (!serving)
        return __real_prctl(option, given[0], given[1], given[2], given[3]);
    FUZZ_CHECK(in_child, "prctl");
    return spawn_world_fails() ? -1 : option == PR_CAPBSET_READ; /* none is withheld */
}

int __wrap_setrlimit(int resource, const struct rlimit *limit);
int __real_setrlimit(int, const struct rlimit *);
int __wrap_setrlimit(int resource, const struct rlimit *limit)
{
    if (!serving)
        return __real_setrlimit(resource, limit);
    (void)resource;
    (void)limit;
    FUZZ_CHECK(in_child, "setrlimit");
    return spawn_world_fails() ? -1 : 0;
}

int __wrap_sched_setscheduler(pid_t pid, int policy, const struct sched_param *param);
int __real_sched_setscheduler(pid_t, int, const struct sched_param *);
int __wrap_sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
    if (!serving)
        return __real_sched_setscheduler(pid, policy, param);
    FUZZ_CHECK(in_child && pid == 0 && policy == SCHED_OTHER && param->sched_priority == 0, "a class");
    return 0;
}

unsigned __wrap_alarm(unsigned seconds);
unsigned __real_alarm(unsigned);
unsigned __wrap_alarm(unsigned seconds)
{
    if (!serving)
        return __real_alarm(seconds);
    FUZZ_CHECK(in_child && seconds > 0, "an alarm");
    return 0;
}

typedef void (*handler)(int);
handler __wrap_signal(int number, handler what);
handler __real_signal(int, handler);
handler __wrap_signal(int number, handler what)
{
    if (!serving)
        return __real_signal(number, what);
    (void)number;
    (void)what;
    FUZZ_CHECK(in_child, "signal");
    return SIG_DFL;
}
