/* main.c - elmer-courier: starts processes on this host for those of its job on any host, as erun asks for.
 *
 * One for each job and host, started by its supervisor as any process of the job when the first of them asks: so it is
 * the user, in the job's group, at the job's rank, and what it does is done by the job. It prints the port that it
 * listens at, and ends with the job. Who may have something started is told by a pass (lib/ticket/pass.h). It holds
 * nothing between two connections; one that is ended takes its eruns with it, and what these have started.
 *
 * With --terminal it is the holder of a job's terminal (holder.c), which is another program in the same file.
 *
 * Signals to all of the job, SIGTERM at its end or warnings, are not for it: its children get them themselves. After
 * SIGTERM it takes no connection any more and ends with the last one.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/courier/courier.h"

enum { FIXED_FDS = 2, TURN_MS = 60000 };

static struct courier courier;
static struct session *sessions[SESSIONS];
static size_t nsessions;
static int listener = -1, signal_fd = -1;
static bool quitting;
static int64_t accept_ms; /* there is no descriptor for who wants to come: tried again then; 0: not so */

/* ---- begin ---- */

static int open_signals(void)
{
    static const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2,
                                  SIGPIPE, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU};
    sigset_t set;
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        (void)signal(ignored[i], SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* ---- life ---- */

/* Of those that have not said who they are the oldest makes room. */
static bool make_room(void)
{
    for (size_t i = 0; i < nsessions; i++)
        if (sessions[i]->link.state != RUN_OPEN && !sessions[i]->started) {
            session_destroy(sessions[i]);
            memmove(&sessions[i], &sessions[i + 1], (--nsessions - i) * sizeof(sessions[0]));
            return true;
        }
    return false;
}

static void let_in(int64_t now)
{
    for (int i = 0; i < SESSIONS; i++) {
        int fd;
        struct session *session;
        if (nsessions == SESSIONS && !make_room())
            return;
        fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            accept_ms = accept_fails(errno) ? now + ACCEPT_AGAIN_MS : 0;
            return;
        }
        session = session_create(fd, &courier, now);
        if (session)
            sessions[nsessions++] = session;
        else
            close(fd);
    }
}

static void reap(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t i = 0; i < nsessions && !session_reaped(sessions[i], pid, status); i++) {
        }
}

static void hear_signals(void)
{
    struct signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        quitting = quitting || info.ssi_signo == SIGTERM;
    reap();
}

static int timeout_of(int64_t now)
{
    int64_t next = now + TURN_MS;
    for (size_t i = 0; i < nsessions; i++)
        next = session_next_ms(sessions[i]) < next ? session_next_ms(sessions[i]) : next;
    if (accept_ms > 0 && accept_ms < next)
        next = accept_ms;
    return next <= now ? 0 : (int)(next - now);
}

static void sweep(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < nsessions; i++) {
        if (session_over(sessions[i]))
            session_destroy(sessions[i]);
        else
            sessions[kept++] = sessions[i];
    }
    nsessions = kept;
}

static bool turn(struct pollfd **fds, size_t *room)
{
    size_t need = FIXED_FDS, count = FIXED_FDS, at[SESSIONS], steps = nsessions;
    bool full = nsessions == SESSIONS;
    int64_t now = mono_now_ms();
    if (now >= accept_ms)
        accept_ms = 0;
    for (size_t i = 0; i < nsessions; i++) {
        need += session_fds_max(sessions[i]);
        full = full && (sessions[i]->link.state == RUN_OPEN || sessions[i]->started);
    }
    if (need > *room) {
        struct pollfd *more = reallocarray(*fds, 4 * need, sizeof(**fds)); /* half of it is courier_poll's */
        if (!more)
            return false;
        *fds = more;
        *room = 2 * need;
    }
    (*fds)[0] = (struct pollfd){.fd = full || quitting || accept_ms > 0 ? -1 : listener, .events = POLLIN};
    (*fds)[1] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
    for (size_t i = 0; i < nsessions; i++) {
        at[i] = count;
        count += session_fds(sessions[i], *fds + count);
    }
    if (courier_poll(*fds, *fds + *room, count, timeout_of(now)) < 0)
        return errno == EINTR;
    now = mono_now_ms();
    for (size_t i = 0; i < steps; i++)
        session_step(sessions[i], &courier, *fds + at[i], now);
    if ((*fds)[1].revents)
        hear_signals();
    sweep();
    if ((*fds)[0].revents)
        let_in(now);
    return !(quitting && nsessions == 0);
}

int main(int argc, char **argv)
{
    struct pollfd *fds = NULL;
    size_t room = 0;
    struct err err = ERR_INIT;
    if (argc > 2 && strcmp(argv[1], "--terminal") == 0)
        return hold_terminal(argv + 2);
    if (argc != 1) {
        fprintf(stderr, "usage: elmer-courier [--terminal COMMAND [ARG...]]: Elmer starts it for a job whose processes "
                        "use erun, or that has a terminal\n");
        return 2;
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* for family.c */
    signal_fd = open_signals();
    if (signal_fd < 0 || courier_begin(&courier, &listener, &err) < 0) {
        fprintf(stderr, "elmer-courier: %s\n", signal_fd < 0 ? strerror(errno) : err.text);
        return 1;
    }
    courier_read_hosts(&courier);
    while (turn(&fds, &room)) {
    }
    free(fds);
    free(courier.hosts);
    return 0;
}
