/* child.c - from what erun wants started to the process. A child has a session of its own, so that a signal reaches
 * what it has started, and nothing of the courier's but its class and its control group. The courier has one thread, so
 * a child may do what it likes between fork and exec. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/run/added.h"
#include "rsd/courier/courier.h"

enum { REPORT_DESCRIPTOR = 3, PMI_DESCRIPTOR }; /* of the child */
enum stage { STAGE_CPUS, STAGE_DIR, STAGE_EXEC };
struct report {
    int stage, error;
};
struct pipes {
    int in[2], out[2], error[2], report[2], pmi[2];
    int terminal; /* the child's end; -1: it has none */
};

/* ---- what the child does ---- */

static void explain(const struct birth *birth, const struct report *report, char *text, size_t size)
{
    const char *why = strerror(report->error), *command = birth->start->argv.count ? birth->start->argv.items[0] : "";
    if (report->stage == STAGE_DIR)
        snprintf(text, size, "directory %.200s cannot be entered: %s; it must be on every host", birth->start->dir,
                 why);
    else if (report->stage == STAGE_CPUS)
        snprintf(text, size, "it cannot be put on its processor: %s", why);
    else if (birth->start->shell)
        snprintf(text, size, "the user's shell cannot be executed: %s", why);
    else if (report->error == ENOENT)
        snprintf(text, size, "command not found: %.200s", command);
    else
        snprintf(text, size, "command %.200s cannot be executed: %s", command, why);
}

/* The courier waits for START_MS; who is later says it himself. */
static _Noreturn void fail(const struct birth *birth, enum stage stage)
{
    struct report report = {stage, errno};
    char text[400];
    (void)signal(SIGPIPE, SIG_IGN);
    if (write(REPORT_DESCRIPTOR, &report, sizeof(report)) != (ssize_t)sizeof(report)) {
        explain(birth, &report, text, sizeof(text));
        dprintf(STDERR_FILENO, "elmer: %s\n", text);
    }
    _exit(report.error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTED);
}

static void reset_signals(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* One of the courier's processors, or all of them. */
static int take_cpus(const struct birth *birth)
{
    uint32_t left = birth->rank->cpu;
    cpu_set_t one;
    if (left == RUN_NO_CPU)
        return CPU_COUNT(&birth->courier->cpus);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &birth->courier->cpus) || left-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof(one), &one) < 0)
            fail(birth, STAGE_CPUS);
        return 1;
    }
    errno = ENODEV;
    fail(birth, STAGE_CPUS);
}

static void set_number(const char *name, unsigned number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    setenv(name, text, 1);
}

/* Where MPICH finds who has started it, and nobody else who may have started us. */
static void take_rank(const struct birth *birth)
{
    set_number("PMI_FD", PMI_DESCRIPTOR);
    set_number("PMI_RANK", birth->rank->rank);
    set_number("PMI_SIZE", birth->start->total);
    unsetenv("PMI_PORT");
    unsetenv("PMI_ID");
    unsetenv("PMI_SPAWNED");
}

static void take_interface(const char *own)
{
    const char *came = getenv(RUN_ADDED_DEVICES), *devices = getenv(RUN_DEVICES);
    if (!own || !came)
        return;
    if (devices && strcmp(devices, came) == 0)
        setenv(RUN_DEVICES, own, 1);
    setenv(RUN_ADDED_DEVICES, own, 1);
}

/* What came, but for the address of its host and its interface; and as many threads as it has processors here, unless
 * that came too. */
static void take_environment(const struct birth *birth, int processors)
{
    const char *added = getenv(RUN_ADDED), *address = getenv("ELMER_ADDRESS"), *own = getenv(RUN_ADDED_DEVICES), *name;
    char list[1024] = "", text[128];
    size_t length, used = 0;
    clearenv();
    for (size_t i = 0; i < birth->start->environment.count; i++)
        putenv((char *)birth->start->environment.items[i]);
    (void)(address ? setenv("ELMER_ADDRESS", address, 1) : unsetenv("ELMER_ADDRESS"));
    take_interface(own);
    for (const char *at = added; at && (length = run_added_next(&at, &name)) > 0;) {
        snprintf(text, sizeof(text), "%.*s", (int)length, name);
        if (getenv(text) || used + length + 16 > sizeof(list))
            continue;
        set_number(text, (unsigned)processors);
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s=%d", used ? " " : "", text, processors);
    }
    if (used > 0)
        setenv(RUN_ADDED, list, 1);
    if (birth->start->total == 0)
        return;
    set_number("ELMER_RANK", birth->rank->rank);
    set_number("ELMER_NPROCS", birth->start->total);
    if (birth->start->mpi)
        take_rank(birth);
}

static void take_directory(const struct birth *birth, const char *home)
{
    umask((mode_t)birth->start->umask);
    if (chdir(birth->start->dir) == 0 || (birth->start->home && home && chdir(home) == 0))
        return;
    fail(birth, STAGE_DIR);
}

/* 0 to 2, the report, and that of a rank of MPI: nothing else is left. */
static void take_descriptors(const struct pipes *pipes)
{
    int in = pipes->terminal >= 0 ? pipes->terminal : pipes->in[0];
    int out = pipes->terminal >= 0 ? pipes->terminal : pipes->out[1];
    int error = pipes->terminal >= 0 ? pipes->terminal : pipes->error[1];
    int report = fcntl(pipes->report[1], F_DUPFD_CLOEXEC, 10);
    int pmi = pipes->pmi[1] >= 0 ? fcntl(pipes->pmi[1], F_DUPFD_CLOEXEC, 10) : -1;
    bool ranked = pipes->pmi[1] >= 0;
    if (in < 0)
        in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (report < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(error, 2) < 0 ||
        dup3(report, REPORT_DESCRIPTOR, O_CLOEXEC) < 0 || (ranked && dup2(pmi, PMI_DESCRIPTOR) < 0))
        _exit(EXIT_NOT_EXECUTED);
    (void)syscall(SYS_close_range, ranked ? PMI_DESCRIPTOR + 1U : PMI_DESCRIPTOR + 0U, ~0U, 0U);
}

/* Its shell with the line, or to type into: then a login shell, as its name says. */
static _Noreturn void execute(const struct birth *birth, const char *shell)
{
    const struct run_start *start = birth->start;
    char name[256];
    const char *slash;
    if (!start->shell)
        execvp(start->argv.items[0], (char *const *)start->argv.items);
    else if (start->argv.count > 0)
        execl(shell, shell, "-c", start->argv.items[0], (char *)NULL);
    if (!start->shell || start->argv.count > 0)
        fail(birth, STAGE_EXEC);
    slash = strrchr(shell, '/');
    snprintf(name, sizeof(name), "-%s", slash ? slash + 1 : shell);
    execl(shell, name, (char *)NULL);
    fail(birth, STAGE_EXEC);
}

static _Noreturn void run(const struct birth *birth, const struct pipes *pipes)
{
    const char *home = getenv("HOME"), *shell = getenv("SHELL");
    int processors;
    (void)setsid();
    take_descriptors(pipes);
    if (pipes->terminal >= 0)
        (void)ioctl(0, TIOCSCTTY, 0);
    reset_signals();
    if (write(REPORT_DESCRIPTOR, "", 1) != 1)
        _exit(EXIT_NOT_EXECUTED);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0); /* nobody is there for it any more */
    (void)setrlimit(RLIMIT_NOFILE, &birth->courier->files);
    processors = take_cpus(birth);
    take_environment(birth, processors);
    take_directory(birth, home);
    execute(birth, shell && *shell ? shell : "/bin/sh");
}

/* ---- what the courier does ---- */

static void close_all(struct pipes *pipes)
{
    int *fds[] = {pipes->in, pipes->out, pipes->error, pipes->report, pipes->pmi};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        for (int k = 0; k < 2; k++) {
            if (fds[i][k] >= 0)
                close(fds[i][k]);
            fds[i][k] = -1;
        }
    if (pipes->terminal >= 0)
        close(pipes->terminal);
    pipes->terminal = -1;
}

/* Both its input and its output are the courier's end then: in[1] and out[0]. */
static int open_terminal(const struct run_start *start, struct pipes *pipes)
{
    struct winsize size = {.ws_row = (unsigned short)start->rows, .ws_col = (unsigned short)start->columns};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    char name[64];
    pipes->in[1] = master;
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) != 0)
        return -errno;
    pipes->terminal = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    pipes->out[0] = fcntl(master, F_DUPFD_CLOEXEC, 0);
    if (pipes->terminal < 0 || pipes->out[0] < 0)
        return -errno;
    if (start->rows > 0 && start->columns > 0)
        (void)ioctl(master, TIOCSWINSZ, &size);
    return 0;
}

static int open_pipes(const struct birth *birth, struct pipes *pipes)
{
    *pipes = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, -1};
    if (pipe2(pipes->report, O_CLOEXEC) < 0 ||
        (birth->start->mpi && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes->pmi) < 0))
        return -errno;
    if (birth->start->pty)
        return open_terminal(birth->start, pipes);
    if (pipe2(pipes->out, O_CLOEXEC) < 0 || pipe2(pipes->error, O_CLOEXEC) < 0 ||
        (birth->input && pipe2(pipes->in, O_CLOEXEC) < 0))
        return -errno;
    if (fcntl(pipes->out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(pipes->error[0], F_SETFL, O_NONBLOCK) < 0 ||
        (birth->input && fcntl(pipes->in[1], F_SETFL, O_NONBLOCK) < 0))
        return -errno;
    return 0;
}

static int keep(int *fd)
{
    int kept = *fd;
    *fd = -1;
    return kept;
}

static void note_pipes(struct child *child)
{
    struct stat out, error;
    if (child->terminal || fstat(child->out, &out) < 0 || fstat(child->error, &error) < 0)
        return;
    child->pipes[0] = out.st_ino;
    child->pipes[1] = error.st_ino;
}

static int no_process(char *text, size_t size, int result)
{
    snprintf(text, size, "a process cannot be made: %s; are limits on processes, files or memory reached?",
             strerror(result));
    return result;
}

/* What comes until then; also when that is over already. 0: nothing. */
static ssize_t hear_child(int fd, void *data, size_t size, int64_t until_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready;
    do {
        int64_t left = until_ms - mono_now_ms();
        ready = poll(&wait, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    return ready > 0 ? read(fd, data, size) : ready;
}

int child_start(const struct birth *birth, struct child *child, int *input, char *text, size_t size)
{
    struct pipes pipes;
    struct report report = {0, 0};
    char here;
    int result = -open_pipes(birth, &pipes);
    pid_t pid;
    ssize_t got;
    *child = (struct child){
        .rank = birth->rank->rank, .out = -1, .error = -1, .talk = {.fd = -1}, .terminal = birth->start->pty};
    *input = -1;
    pid = result == 0 ? fork() : -1;
    if (pid == 0)
        run(birth, &pipes);
    if (pid < 0) {
        result = result ? result : errno;
        close_all(&pipes);
        return no_process(text, size, result);
    }
    close(keep(&pipes.report[1]));
    got = hear_child(pipes.report[0], &here, 1, mono_now_ms() + START_MS); /* signals reach it from now on */
    if (got > 0) /* nothing: it has executed, or it still tries, in a directory that is slow or does not answer */
        got = hear_child(pipes.report[0], &report, sizeof(report), birth->until_ms);
    child->pid = pid;
    if (got == (ssize_t)sizeof(report)) { /* it ends by itself, and nobody asks how */
        explain(birth, &report, text, size);
        child->pid = 0;
    } else {
        child->out = keep(&pipes.out[0]);
        child->error = keep(&pipes.error[0]);
        child->talk.fd = keep(&pipes.pmi[0]);
        *input = keep(&pipes.in[1]);
        note_pipes(child);
    }
    close_all(&pipes);
    return child->pid ? 0 : report.error ? report.error : EIO;
}

void child_signal(const struct child *child, int number)
{
    if (child->pid > 0 && !child->reaped)
        (void)kill(-child->pid, number);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void child_close(struct child *child)
{
    close_fd(&child->out);
    close_fd(&child->error);
    talk_fini(&child->talk);
}
