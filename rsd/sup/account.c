/* account.c - PAM is asked by a program of its own (rsd/pam): modules do what they like, so not in a process that holds
 * the job, nor in its memory. It has our class, or it would wait behind the jobs; but little CPU time, because these
 * wait for it. What it may have started is in its session and in our group; a thread may reap it before we see it end,
 * so only its answer counts. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "rsd/root/sched.h"
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

static _Noreturn void run(const char *program, const char *user, bool rt, int out)
{
    const struct rlimit cpu = {CPU_SECONDS, CPU_SECONDS}, rt_time = {RT_US, RT_US}, no_core = {0, 0};
    char *argv[] = {(char *)"elmer-account", (char *)user, NULL};
    char *envp[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"SYSTEMD_NSS_DYNAMIC_BYPASS=1", NULL};
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0)
        _exit(127);
    (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    reset_signals();
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &no_core);
    if (rt && (setrlimit(RLIMIT_RTTIME, &rt_time) < 0 ||
               sched_rank(0, (struct order_rank){SCHED_FIFO, ORDER_BIRTH}, false) < 0))
        _exit(127);
    execve(program, argv, envp);
    _exit(127);
}

/* Bytes of the answer, up to its end or the end of a line; -ETIMEDOUT. */
static ssize_t hear(int fd, char *answer, size_t size, int64_t deadline_ms)
{
    size_t used = 0;
    for (;;) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        int64_t left = deadline_ms - mono_ms(mono_now());
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

static int judge(const char *answer, size_t length, const char *user, struct err *err)
{
    char why[ANSWER_BYTES + 4];
    const char *end = memchr(answer, '\n', length);
    if (end && end - answer == 3 && memcmp(answer, "yes", 3) == 0)
        return 0;
    if (end && end - answer > 3 && memcmp(answer, "no ", 3) == 0)
        return err_set(err, -EKEYREJECTED, "the account of %s may not be used here: %s (PAM, service elmer)", user,
                       str_printable(why, sizeof(why), answer + 3, (size_t)(end - answer - 3)));
    if (end)
        length = (size_t)(end - answer);
    return err_set(err, -EPROTO, "whether the account of %s may be used cannot be found out: %s (PAM, service elmer)",
                   user, length > 0 ? str_printable(why, sizeof(why), answer, length) : "elmer-account said nothing");
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

int account_ask(const char *program, const char *user, bool rt, int64_t limit_ms, struct err *err)
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
    length = hear(pair[0], answer, sizeof(answer), mono_ms(mono_now()) + limit_ms);
    close(pair[0]);
    end(pid, pidfd);
    if (length >= 0)
        return judge(answer, (size_t)length, user, err);
    return err_set(
        err, (int)length,
        "whether the account of %s may be used cannot be found out: PAM (service elmer) did not answer in %d "
        "ms",
        user, (int)limit_ms);
}
