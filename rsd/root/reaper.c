#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rsd/root/reaper.h"

static int out_fd = -1;
static pthread_t thread;
static pthread_mutex_t releasing = PTHREAD_MUTEX_INITIALIZER; /* held while the kernel may keep the thread */

/* Woken by the kernel when a child ends; without children there is nothing to wait for. */
static void *reap(void *unused)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    const struct sched_param param = {0};
    sched_setscheduler(0, SCHED_OTHER, &param);
    for (;;) {
        struct reaped reaped = {0};
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == 0) {
            pthread_mutex_lock(&releasing);
            reaped.pid = waitpid(info.si_pid, &reaped.status, 0);
            pthread_mutex_unlock(&releasing);
        }
        if (reaped.pid > 0)
            (void)!write(out_fd, &reaped, sizeof(reaped)); /* blocks while nobody reads */
        else
            nanosleep(&pause, NULL);
    }
    return unused;
}

int reaper_start(void)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int pair[2], result;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    out_fd = pair[1];
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    result = pthread_create(&thread, &attr, reap, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (result == 0)
        return pair[0];
    close(pair[0]);
    close(pair[1]);
    return -result;
}

void reaper_end(void)
{
    struct sched_param param;
    int policy;
    if (out_fd < 0 || pthread_mutex_trylock(&releasing) != 0)
        return;
    if (pthread_getschedparam(pthread_self(), &policy, &param) == 0)
        pthread_setschedparam(thread, policy, &param); /* it does not release anybody any more: we keep the lock */
}

int reaper_peek(pid_t pid, int *status)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != pid)
        return 0;
    *status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
    return 1;
}

int reaper_peek_stopped(pid_t pid)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) < 0 || info.si_pid != pid)
        return 0;
    return info.si_status;
}
