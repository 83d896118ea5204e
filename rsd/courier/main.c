/* main.c - elmer-courier: starts processes on this host for those of its job on any host, as erun asks for.
 *
 * One for each job and host, started by its supervisor as any process of the job when the first of them asks: so it is
 * the user, in the job's group, at the job's rank, and what it does is done by the job. It prints the port that it
 * listens at, and ends with the job. Who may have something started is told by a pass (lib/ticket/pass.h). It holds
 * nothing between two connections; one that is ended takes its eruns with it, and what these have started.
 *
 * Signals to all of the job, SIGTERM at its end or warnings, are not for it: its children get them themselves. After
 * SIGTERM it takes no connection any more and ends with the last one.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/courier/courier.h"

enum { FIXED_FDS = 2, BACKLOG = 1024, DESK_MS = 9000, DESK_AGAIN_MS = 100, TURN_MS = 60000 };

static struct courier courier;
static struct session *sessions[SESSIONS];
static size_t nsessions;
static int listener = -1, signal_fd = -1;
static bool quitting;

/* ---- begin ---- */

static int die(const char *what)
{
    fprintf(stderr, "elmer-courier: %s: %s\n", what, strerror(errno));
    return 1;
}

/* rsd may be starting again just now. */
static bool get_pass(void)
{
    int64_t deadline = mono_ms(mono_now()) + DESK_MS;
    struct err err = ERR_INIT;
    if (!seal_key_make(&courier.key))
        return false;
    for (;;) {
        struct run_desk desk;
        int result = run_desk_ask_pass(&desk, courier.key.public_key, &err);
        if (result == 0)
            result = run_desk_wait(&desk, courier.text, deadline, &err);
        if (result == 0)
            return pass_decode(courier.text, &courier.pass);
        if (result == -EACCES || mono_ms(mono_now()) + DESK_AGAIN_MS >= deadline)
            return false;
        poll(NULL, 0, DESK_AGAIN_MS);
    }
}

/* By both protocols, or by IPv4 alone where there is no IPv6. */
static int listen_anywhere(uint16_t *port)
{
    const int off = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    socklen_t length = sizeof(six);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0 ||
                    bind(fd, (struct sockaddr *)&six, sizeof(six)) < 0)) {
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&four, sizeof(four)) < 0)
            return -1;
    }
    if (listen(fd, BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&six, &length) < 0)
        return -1;
    *port = ntohs(six.sin6_port); /* where it is in both */
    return fd;
}

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

static void take_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &courier.files) < 0)
        return;
    limit = courier.files;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Who has started us reads one line. */
static bool say_port(uint16_t port)
{
    char line[16];
    int length = snprintf(line, sizeof(line), "%u\n", (unsigned)port), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool said = write(STDOUT_FILENO, line, (size_t)length) == length;
    return said && null >= 0 && dup2(null, STDOUT_FILENO) >= 0;
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
        if (fd < 0)
            return;
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
    int64_t now;
    for (size_t i = 0; i < nsessions; i++) {
        need += session_fds_max(sessions[i]);
        full = full && (sessions[i]->link.state == RUN_OPEN || sessions[i]->started);
    }
    if (need > *room) {
        struct pollfd *more = reallocarray(*fds, 2 * need, sizeof(**fds));
        if (!more)
            return false;
        *fds = more;
        *room = 2 * need;
    }
    (*fds)[0] = (struct pollfd){.fd = full || quitting ? -1 : listener, .events = POLLIN};
    (*fds)[1] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
    for (size_t i = 0; i < nsessions; i++) {
        at[i] = count;
        count += session_fds(sessions[i], *fds + count);
    }
    if (poll(*fds, count, timeout_of(mono_ms(mono_now()))) < 0)
        return errno == EINTR;
    now = mono_ms(mono_now());
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
    uint16_t port = 0;
    (void)argv;
    if (argc != 1) {
        fprintf(stderr, "usage: elmer-courier: Elmer starts it for a job whose processes use erun\n");
        return 2;
    }
    take_files();
    signal_fd = open_signals();
    if (signal_fd < 0 || sched_getaffinity(0, sizeof(courier.cpus), &courier.cpus) < 0)
        return die("signals, processors");
    if (!get_pass())
        return die("no pass from elmer-tickets");
    listener = listen_anywhere(&port);
    if (listener < 0)
        return die("listen");
    if (!say_port(port))
        return die("standard output");
    while (turn(&fds, &room)) {
    }
    free(fds);
    return 0;
}
