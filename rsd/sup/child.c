/* child.c - from fork to exec.
 *
 * Born in the job's leaf by clone3. First as the supervisor: session, signals, limits, CPUs, descriptors; then it
 * becomes the user completely and for good; only then does it touch a path: directory, output, hosts' file, command. By
 * then it holds no descriptor of the supervisor's that a path could lead to (/proc/self/fd) but the report's, a pipe of
 * elmer-sup that a user may not open: its end must be the exec. Its rank comes last, so that it gets there even while a
 * higher job spins; until then it is at ORDER_BIRTH, just below the supervisor, which counts what it uses (push.c), or,
 * where the births of the job have used too much, at its own rank from the beginning. What a user can make long comes
 * behind that: to empty a file, what Open MPI is told in files, and exec's search in PATH. A user may lower his rank
 * without any right, but not change from FIFO to RR: so the class is set while it may.
 * Everything was prepared before the fork; nothing here allocates except that search.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsd/root/caps.h"
#include "rsd/root/sched.h"
#include "rsd/sup/launchers.h"
#include "rsd/sup/parameters.h"
#include "rsd/sup/sup.h"

enum { HELPER_FILES = 1024, FD_AGENT = 3, FD_REPORT = 4, FD_ASIDE = 10 };

static _Noreturn void fail(enum child_stage stage)
{
    struct child_report report = {.stage = stage, .error = errno};
    ssize_t sent = write(FD_REPORT, &report, sizeof(report));
    _exit(sent == (ssize_t)sizeof(report) ? 126 : 127);
}

static void reset_signals(void)
{
    const uint64_t standard[4] = {0}; /* the kernel's sigaction: the library's refuses its own two signals */
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        (void)syscall(SYS_rt_sigaction, i, standard, NULL, (NSIG - 1) / 8);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void set_limits(const struct child_plan *plan)
{
    struct rlimit limit;
    limits_give_back(plan->limits);
    if (!plan->few_files || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    if (limit.rlim_max >
        HELPER_FILES) /* a daemon closes all descriptors up to the limit at each spawn, and cannot use more */
        limit.rlim_max = HELPER_FILES;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void set_birth_rank(const struct child_plan *plan)
{
    if (plan->rt)
        sched_rank(0, plan->birth, false);
}

/* Not by libc, whose calls change the ids of all threads that the process had before clone3: it may wait for ever for
 * one that is not here. */
#ifdef SYS_setresuid32
#define SYS_IDS(name) SYS_##name##32
#else
#define SYS_IDS(name) SYS_##name
#endif

/* 0, or -1 with errno, and *stage: where. */
static int become(const struct user *user, enum child_stage *stage)
{
    uid_t real, effective, saved;
    gid_t gids[3];
    *stage = STAGE_GROUPS;
    if (getresgid(&gids[0], &gids[1], &gids[2]) < 0)
        return -1;
    if (gids[0] != user->gid || gids[1] != user->gid || gids[2] != user->gid) {
        errno = EPERM;
        return -1;
    }
    *stage = STAGE_USER;
    if (syscall(SYS_IDS(setresuid), user->uid, user->uid, user->uid) < 0 || getresuid(&real, &effective, &saved) < 0)
        return -1;
    if (real != user->uid || effective != user->uid || saved != user->uid ||
        (user->uid != 0 && syscall(SYS_IDS(setuid), 0) == 0)) {
        errno = EPERM;
        return -1;
    }
    return caps_keep(CAPS_NOTHING); /* also what a user does not lose by itself, such as inheritable ones */
}

static void become_user(const struct child_plan *plan)
{
    enum child_stage stage;
    if (become(plan->user, &stage) < 0)
        fail(stage);
}

void child_become_user(const struct user *user, int out_fd)
{
    enum child_stage stage;
    int out = fcntl(out_fd, F_DUPFD_CLOEXEC, FD_ASIDE);
    reset_signals();
    if (out < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(127);
    close(STDIN_FILENO);
    (void)syscall(SYS_close_range, 2U, ~0U, 0U);
    if (become(user, &stage) < 0)
        _exit(127);
}

static int open_output(const char *path)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK |
                O_CLOEXEC; /* NONBLOCK: a FIFO without a reader is an error */
    int fd = path[0] ? open(path, flags, 0666) : open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && path[0])
        fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

/* 0 to 2 (the output of a daemon is a pipe), the agent's channel, the report: nothing else is left. */
static void keep_descriptors(const struct child_plan *plan)
{
    int report = fcntl(plan->report_fd, F_DUPFD_CLOEXEC, FD_ASIDE);
    int output = plan->stdout_fd >= 0 ? fcntl(plan->stdout_fd, F_DUPFD_CLOEXEC, FD_ASIDE) : -1;
    int agent = plan->agent_fd >= 0 ? fcntl(plan->agent_fd, F_DUPFD_CLOEXEC, FD_ASIDE) : -1;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (report < 0 || dup3(report, FD_REPORT, O_CLOEXEC) < 0)
        _exit(127);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output >= 0 ? output : null, 1) < 0 || dup2(null, 2) < 0)
        fail(STAGE_SESSION);
    close(FD_AGENT);
    if (plan->agent_fd >= 0 && dup2(agent, FD_AGENT) < 0)
        fail(STAGE_SESSION);
    (void)syscall(SYS_close_range, FD_REPORT + 1U, ~0U, 0U);
}

static void put_fd(int fd, int at, enum child_stage stage)
{
    if (fd < 0 || dup2(fd, at) < 0)
        fail(stage);
    if (fd > 2)
        close(fd);
}

static void open_files(const struct child_plan *plan)
{
    if (plan->stdout_fd < 0)
        put_fd(open_output(plan->output), 1, STAGE_OUTPUT);
    if (plan->stdout_fd < 0 && strcmp(plan->output, plan->errors) == 0)
        put_fd(1, 2, STAGE_ERRORS);
    else
        put_fd(open_output(plan->errors), 2, STAGE_ERRORS);
}

/* What O_TRUNC does, at the process's own rank: to free gigabytes takes long. It leaves alone what is no file. */
static void empty_files(const struct child_plan *plan)
{
    struct stat file;
    if (!plan->truncate)
        return;
    for (int fd = 1; fd <= 2; fd++) {
        if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && ftruncate(fd, 0) < 0)
            fail(fd == 1 ? STAGE_OUTPUT : STAGE_ERRORS);
    }
}

/* ---- files with the job's hosts ---- */

struct out {
    int fd;
    char text[4096];
    size_t used;
};

static void flush(struct out *out)
{
    if (write(out->fd, out->text, out->used) != (ssize_t)out->used)
        fail(STAGE_HOSTFILE);
    out->used = 0;
}

static void put(struct out *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (out->used == sizeof(out->text))
            flush(out);
        out->text[out->used++] = text[i];
    }
}

/* A line for each processor, or, with a separator, for those of a host that stand together, and how many. */
static void put_hosts(struct out *out, const char *hosts, const char *separator)
{
    char number[24];
    for (const char *at = hosts; *at;) {
        size_t length = strcspn(at, ":"), count = 1;
        const char *next = at + length;
        while (separator && *next == ':' && strncmp(next + 1, at, length) == 0 &&
               (next[length + 1] == ':' || !next[length + 1])) {
            next += length + 1;
            count++;
        }
        put(out, at, length);
        if (separator) {
            put(out, separator, strlen(separator));
            put(out, number, (size_t)snprintf(number, sizeof(number), "%zu", count));
        }
        put(out, "\n", 1);
        at = next + (*next == ':');
    }
    flush(out);
}

/* Written aside and renamed: processes start side by side. */
static void write_hosts(const struct child_plan *plan, const char *file, const char *separator)
{
    char name[160];
    struct out out = {.used = 0};
    snprintf(name, sizeof(name), "%s.%d", file, (int)getpid());
    out.fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out.fd < 0)
        fail(STAGE_HOSTFILE);
    put_hosts(&out, plan->hosts, separator);
    close(out.fd);
    if (rename(name, file) < 0)
        fail(STAGE_HOSTFILE);
}

/* ELMER_HOSTS is names joined by ':'. The file with one of them per line comes last: where it is, all are. */
static void write_hostfile(const struct child_plan *plan)
{
    const char *slash = strrchr(plan->hostfile, '/');
    int length = slash ? (int)(slash + 1 - plan->hostfile) : 0;
    char file[160];
    if (!plan->hosts || access(plan->hostfile, F_OK) == 0)
        return;
    snprintf(file, sizeof(file), "%.*s" LAUNCHERS_SLOTS, length, plan->hostfile);
    write_hosts(plan, file, " slots=");
    snprintf(file, sizeof(file), "%.*s" LAUNCHERS_COLONS, length, plan->hostfile);
    write_hosts(plan, file, ":");
    write_hosts(plan, plan->hostfile, NULL);
}

/* ---- the end ---- */

/* An order may have changed our class since the plan was made, and then we, the user now, may not have the one of the
 * plan (from OTHER to FIFO, from FIFO to RR). So be nobody's rival until the supervisor, which sees the exec, gives us
 * the right one. */
static void set_final_rank(const struct child_plan *plan)
{
    int result = sched_rank(0, plan->rank, plan->reset_on_fork);
    if (result == -EPERM) {
        sched_rank(0, (struct order_rank){SCHED_OTHER, 0}, plan->reset_on_fork);
        return;
    }
    if (result < 0) {
        errno = -result;
        fail(STAGE_RANK);
    }
}

_Noreturn void child_run(const struct child_plan *plan)
{
    reset_signals();
    set_birth_rank(plan);
    keep_descriptors(plan);
    if (setsid() < 0)
        fail(STAGE_SESSION);
    set_limits(plan);
    if (sched_setaffinity(0, sizeof(*plan->cpus), plan->cpus) < 0)
        fail(STAGE_CPUS);
    become_user(plan);
    umask(plan->umask);
    if (chdir(plan->dir) < 0)
        fail(STAGE_DIR);
    write_hostfile(plan);
    open_files(plan);
    environ = plan->environment; /* execvp searches in the job's PATH */
    set_final_rank(plan);
    empty_files(plan);
    if (plan->given)
        parameters_obey(environ, plan->given, plan->user->home);
    execvp(plan->argv[0], plan->argv);
    fail(STAGE_EXEC);
}

static void explain_exec(int error, const struct wire_start *start, char *text, size_t size)
{
    const char *command = start->argv.items[0];
    bool path = strchr(command, '/') != NULL;
    if (error == ENOENT && path)
        snprintf(text, size,
                 "command not found: there is no %s on this host, or not the interpreter that its first line names; "
                 "check the path, and that the host sees the same files",
                 command);
    else if (error == ENOENT)
        snprintf(text, size,
                 "command not found: %s is in no directory of PATH on this host; give its path, or pass another PATH "
                 "with -v PATH=...",
                 command);
    else if (error == EACCES)
        snprintf(text, size, "command %s may not be executed: %s; is it a program, and has it the x permission?",
                 command, strerror(error));
    else if (error == E2BIG)
        snprintf(text, size, "command %s: its arguments and environment are too long; shorten them", command);
    else
        snprintf(text, size, "command %s cannot be executed on this host: %s", command, strerror(error));
}

void child_explain(const struct child_report *report, const struct wire_start *start, const char *user, char *text,
                   size_t size)
{
    const char *why = strerror(report->error);
    bool one = start->capture; /* of a terminal: output and errors are one file */
    switch (one && report->stage == STAGE_ERRORS ? STAGE_OUTPUT : (enum child_stage)report->stage) {
    case STAGE_DIR:
        snprintf(text, size,
                 "directory %s cannot be entered by %s: %s; it must be on every host, or choose another with -D",
                 start->dir, user, why);
        break;
    case STAGE_OUTPUT:
        snprintf(text, size, "output file %s cannot be written by %s in %s: %s; choose another with -o", start->output,
                 user, start->dir, why);
        break;
    case STAGE_ERRORS:
        snprintf(text, size, "error file %s cannot be written by %s in %s: %s; choose another with -e", start->errors,
                 user, start->dir, why);
        break;
    case STAGE_EXEC:
        explain_exec(report->error, start, text, size);
        break;
    case STAGE_HOSTFILE:
        snprintf(text, size,
                 "the list of hosts cannot be written to the job's temporary directory: %s; is its disk full?", why);
        break;
    case STAGE_CPUS:
        snprintf(text, size, "the process cannot be put on its processors: %s; has one been taken off line?", why);
        break;
    case STAGE_RANK:
        snprintf(text, size, "the process cannot get its scheduling class: %s", why);
        break;
    case STAGE_SESSION:
    case STAGE_GROUPS:
    case STAGE_USER:
        snprintf(text, size, "the process cannot become user %s: %s", user, why);
        break;
    default:
        snprintf(text, size, "the process ended before its command was executed");
        break;
    }
}
