/* account.c - PAM is asked by a program of its own (rsd/pam), as the user: modules do what they like, so not in a
 * process that is root or holds the job. He can end it, which is a refusal, stop it and limit it, but not trace it or
 * write its answer. It has our class, or it would wait behind the jobs; but little CPU time, because these wait for it.
 * What it may have started is in its session and in our group; a thread may reap it before we see it end, so only its
 * answer counts. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rsd/root/order.h"
#include "rsd/sup/admit.h"

enum { ANSWER_BYTES = 512, CPU_SECONDS = 2, RT_US = 500000 };

static void reset_signals(void)
{
    const uint64_t standard[4] = {0}; /* as in child.c */
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        (void)syscall(SYS_rt_sigaction, number, standard, NULL, (NSIG - 1) / 8);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void run(const char *program, const struct user *user, bool rt, int out)
{
    const struct rlimit cpu = {CPU_SECONDS, CPU_SECONDS}, rt_time = {RT_US, RT_US}, no_core = {0, 0};
    char *argv[] = {(char *)"elmer-account", user->name, NULL};
    char *envp[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"SYSTEMD_NSS_DYNAMIC_BYPASS=1", NULL};
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0)
        _exit(127);
    (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    reset_signals();
    setsid();
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &no_core);
    /* A filter may refuse what rsd could do another way (sched_setattr): not with rsd's rank, then. */
    if (rt && (setrlimit(RLIMIT_RTTIME, &rt_time) < 0 ||
               (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ORDER_BIRTH}) < 0 &&
                sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0}) < 0)))
        _exit(127);
    if (geteuid() == 0 &&
        (setgroups((size_t)user->group_count, user->groups) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
         setresuid(user->uid, user->uid, user->uid) < 0))
        _exit(127);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* after the change of user, which clears it */
    execve(program, argv, envp);
    _exit(127);
}

/* Of our own: elmer-spawn is root with all that is linked into it, and needs no clock otherwise. */
static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Bytes of the answer, up to its end or the end of a line; -ETIMEDOUT. */
static ssize_t hear(int fd, char *answer, size_t size, int64_t deadline_ms)
{
    size_t used = 0;
    for (;;) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        int64_t left = deadline_ms - now_ms();
        ssize_t got;
        if (left <= 0)
            return -ETIMEDOUT;
        if (poll(&in, 1, (int)left) <= 0)
            continue;
        got = read(fd, answer + used, size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : (ssize_t)used;
        used += (size_t)got;
        if (memchr(answer, '\n', used) || used == size)
            return (ssize_t)used;
    }
}

/* Into a sentence and a log. */
static const char *printable(char *out, size_t size, const char *text, size_t length)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < length && used + 5 < size; i++)
        used += (size_t)snprintf(out + used, size - used, text[i] < ' ' || text[i] > '~' ? "\\x%02X" : "%c",
                                 (unsigned char)text[i]);
    return out;
}

static int judge(const char *answer, size_t length, const char *user, struct err *err)
{
    char why[ANSWER_BYTES + 4];
    const char *end = memchr(answer, '\n', length);
    if (end && end - answer == 3 && memcmp(answer, "yes", 3) == 0)
        return 0;
    if (end && end - answer > 3 && memcmp(answer, "no ", 3) == 0)
        return err_set(err, -EKEYREJECTED, "the account of %s may not be used here: %s (PAM, service elmer)", user,
                       printable(why, sizeof(why), answer + 3, (size_t)(end - answer - 3)));
    if (end)
        length = (size_t)(end - answer);
    return err_set(err, -EPROTO, "whether the account of %s may be used cannot be found out: %s (PAM, service elmer)",
                   user, length > 0 ? printable(why, sizeof(why), answer, length) : "elmer-account said nothing");
}

static void end(pid_t pid, int pidfd)
{
    if (pidfd >= 0) {
        kill(-pid,
             SIGKILL); /* what its modules have started; the number is its session's as long as that has members */
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        close(pidfd);
    }
}

int account_ask(const char *program, const struct user *user, bool rt, int64_t limit_ms, struct err *err)
{
    char answer[ANSWER_BYTES];
    int pair[2], pidfd;
    ssize_t length;
    pid_t pid;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    pid = fork();
    if (pid == 0)
        run(program, user, rt, pair[1]);
    close(pair[1]);
    if (pid < 0) {
        int result = errno;
        close(pair[0]);
        return err_set(err, -result, "cannot fork to ask PAM: %s", strerror(result));
    }
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0U);
    length = hear(pair[0], answer, sizeof(answer), now_ms() + limit_ms);
    close(pair[0]);
    end(pid, pidfd);
    if (length >= 0)
        return judge(answer, (size_t)length, user->name, err);
    return err_set(
        err, (int)length,
        "whether the account of %s may be used cannot be found out: PAM (service elmer) did not answer in %d "
        "ms",
        user->name, (int)limit_ms);
}
