/*
 * remote - run a command as root in a test machine, with the standard streams and the exit status of the caller.
 *
 * usage: remote serve DEVICE PORT                       in the machine, for ever
 *        remote call ADDRESS PORT PID PRIORITY CMD..    on the host; PID is the machine's, PRIORITY its place in
 * SCHED_FIFO or 0
 *
 * The server ranks above everything in its machine, so that a command is begun beside jobs that spin in real time; the
 * command itself gets the rank that was asked for, a session of its own and no part of the server's environment. It
 * serves on one network card only, which has no other station than the host. A command whose caller is gone gets
 * SIGTERM. What it leaves running in the background runs on, but its output is dropped from the moment at which the
 * command has ended.
 *
 * One connection for one command. The caller sends a length and as many bytes of strings that end with NUL: the
 * priority, then CMD. After that both sides send frames: a kind, a length, the bytes. A frame of kind INPUT without
 * bytes is the end of the input.
 *
 * The call ends with 255 and says so if the machine is not there, or goes (its PID ends) before the command does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 32768, MAX_REQUEST = 1 << 20, GONE = 255, CALL_MS = 20000 };
enum kind { INPUT = 1, OUTPUT, ERRORS, ENDED };

struct frame {
    uint32_t kind, length;
};

static _Noreturn void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("vm: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(GONE);
}

static bool write_all(int fd, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        const ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool read_all(int fd, void *bytes, size_t size)
{
    for (char *at = bytes; size > 0;) {
        const ssize_t n = read(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool send_frame(int sock, enum kind kind, const void *bytes, size_t size)
{
    char whole[sizeof(struct frame) + CHUNK];
    const struct frame head = {.kind = kind, .length = (uint32_t)size};
    memcpy(whole, &head, sizeof(head));
    if (size > 0)
        memcpy(whole + sizeof(head), bytes, size);
    return write_all(sock, whole, sizeof(head) + size);
}

static int tcp_socket(void)
{
    const int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (sock < 0)
        die("cannot make a socket: %s", strerror(errno));
    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return sock;
}

/* ---- in the machine ------------------------------------------------------------------------------------------- */

struct command {
    pid_t pid;
    int ended, in, out, err; /* pidfd and our ends of its streams, -1 when closed */
};

/* In the child. */
static _Noreturn void become(int priority, char **argv, const int in[2], const int out[2], const int err[2])
{
    static char *const environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                        "HOME=/root",
                                        "USER=root",
                                        "TERM=dumb",
                                        "LANG=C.UTF-8",
                                        NULL};
    const struct sched_param rank = {.sched_priority = priority};
    const int adjust = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (adjust >= 0)
        (void)!write(adjust, "0", 1);
    setsid();
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0 || chdir("/") != 0)
        _exit(126);
    if (sched_setscheduler(0, priority > 0 ? SCHED_FIFO : SCHED_OTHER, &rank) != 0) {
        perror("vm: sched_setscheduler");
        _exit(126);
    }
    execvpe(argv[0], argv, environment);
    fprintf(stderr, "vm: cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static bool start(struct command *c, int priority, char **argv)
{
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        return false;
    c->pid = fork();
    if (c->pid == 0)
        become(priority, argv, in, out, err);
    if (c->pid < 0)
        return false;
    close(in[0]);
    close(out[1]);
    close(err[1]);
    c->ended = pidfd_open(c->pid, 0);
    c->in = in[1], c->out = out[0], c->err = err[0];
    fcntl(c->in, F_SETFL, O_NONBLOCK);
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    fcntl(c->err, F_SETFL, O_NONBLOCK);
    return c->ended >= 0;
}

/* Send what has come on *fd, which is closed and -1 at its end. False if the caller is gone. */
static bool pass_on(int sock, enum kind kind, int *fd, bool *more)
{
    char bytes[CHUNK];
    const ssize_t n = read(*fd, bytes, sizeof(bytes));
    *more = n > 0;
    if (n > 0)
        return send_frame(sock, kind, bytes, (size_t)n);
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(*fd);
        *fd = -1;
    }
    return true;
}

static bool drain(int sock, enum kind kind, int *fd)
{
    for (bool more = *fd >= 0; more;)
        if (!pass_on(sock, kind, fd, &more))
            return false;
    return true;
}

static bool tell_end(int sock, struct command *c)
{
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)c->ended, &info, WEXITED) != 0)
        return false;
    const uint32_t status = (uint32_t)(info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status);
    return drain(sock, OUTPUT, &c->out) && drain(sock, ERRORS, &c->err) &&
           send_frame(sock, ENDED, &status, sizeof(status));
}

/* Input that the command has not yet taken. */
struct input {
    char bytes[CHUNK];
    size_t at, size;
};

static void feed(struct command *c, struct input *left)
{
    const ssize_t n = write(c->in, left->bytes + left->at, left->size - left->at);
    if (n > 0)
        left->at += (size_t)n;
    else if (n == 0 || errno == EAGAIN || errno == EINTR)
        return;
    else { /* it does not read any more: the rest is for nobody */
        close(c->in);
        c->in = -1;
        left->at = left->size;
    }
}

static bool take_frame(int sock, struct command *c, struct input *left)
{
    struct frame head;
    if (!read_all(sock, &head, sizeof(head)) || head.kind != INPUT || head.length > CHUNK ||
        !read_all(sock, left->bytes, head.length))
        return false;
    left->at = 0;
    left->size = c->in >= 0 ? head.length : 0;
    if (head.length == 0 && c->in >= 0) {
        close(c->in);
        c->in = -1;
    }
    return true;
}

static bool relay(int sock, struct command *c)
{
    struct input left = {.size = 0};
    for (;;) {
        const bool fed = left.at == left.size;
        struct pollfd fds[] = {{c->ended, POLLIN, 0},
                               {sock, fed ? POLLIN : POLLRDHUP, 0},
                               {fed ? -1 : c->in, POLLOUT, 0},
                               {c->out, POLLIN, 0},
                               {c->err, POLLIN, 0}};
        bool more;
        if (poll(fds, sizeof(fds) / sizeof(*fds), -1) < 0 && errno != EINTR)
            return false;
        if (fds[0].revents != 0)
            return tell_end(sock, c);
        if ((fds[1].revents != 0 && (!fed || !take_frame(sock, c, &left))) ||
            (fds[3].revents != 0 && !pass_on(sock, OUTPUT, &c->out, &more)) ||
            (fds[4].revents != 0 && !pass_on(sock, ERRORS, &c->err, &more)))
            return false;
        if (fds[2].revents != 0)
            feed(c, &left);
    }
}

static bool take_request(int sock, char **bytes, size_t *size)
{
    uint32_t length;
    if (!read_all(sock, &length, sizeof(length)) || length == 0 || length > MAX_REQUEST || !(*bytes = malloc(length)))
        return false;
    *size = length;
    return read_all(sock, *bytes, length) && (*bytes)[length - 1] == '\0';
}

/* A process of its own for each connection. */
static _Noreturn void serve_one(int sock)
{
    char *request = NULL, **argv;
    size_t size = 0, count = 0;
    struct command c = {0};
    if (!take_request(sock, &request, &size) || !(argv = calloc(size + 1, sizeof(*argv))))
        _exit(1);
    for (char *at = request; at < request + size; at += strlen(at) + 1)
        argv[count++] = at;
    if (count < 2 || !start(&c, atoi(argv[0]), argv + 1))
        _exit(1);
    if (!relay(sock, &c))
        kill(-c.pid, SIGTERM);
    _exit(0);
}

static int serve(const char *device, int port)
{
    const struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int sock = tcp_socket(), one = 1;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* nobody waits for those that serve */
    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (setsockopt(sock, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device)) != 0 ||
        bind(sock, (const struct sockaddr *)&here, sizeof(here)) != 0 || listen(sock, 64) != 0)
        die("cannot serve on %s: %s", device, strerror(errno));
    for (;;) {
        const int caller = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
        if (caller < 0)
            continue;
        setsockopt(caller, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (fork() == 0) {
            signal(SIGCHLD, SIG_DFL);
            close(sock);
            serve_one(caller);
        }
        close(caller);
    }
}

/* ---- on the host ---------------------------------------------------------------------------------------------- */

static void put_request(int sock, char **strings)
{
    static char request[sizeof(uint32_t) + MAX_REQUEST];
    size_t size = sizeof(uint32_t);
    for (; *strings; strings++) {
        const size_t length = strlen(*strings) + 1;
        if (size + length > sizeof(request))
            die("a command of more than %d bytes", (int)MAX_REQUEST);
        memcpy(request + size, *strings, length);
        size += length;
    }
    const uint32_t length = (uint32_t)(size - sizeof(length));
    memcpy(request, &length, sizeof(length));
    if (!write_all(sock, request, size))
        die("the machine does not take commands: %s", strerror(errno));
}

static void send_input(int sock, bool *open)
{
    char bytes[CHUNK];
    const ssize_t n = read(0, bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    *open = n > 0;
    send_frame(sock, INPUT, bytes, n > 0 ? (size_t)n : 0); /* if it is not taken, the answer says more */
}

/* The exit status once the command has ended, else -1. */
static int take_answer(int sock)
{
    char bytes[CHUNK];
    struct frame head;
    uint32_t status;
    if (!read_all(sock, &head, sizeof(head)) || head.length > CHUNK || !read_all(sock, bytes, head.length))
        die("the machine has ended the connection before the command ended");
    if (head.kind == ENDED && head.length == sizeof(status)) {
        memcpy(&status, bytes, sizeof(status));
        return (int)status;
    }
    if (!write_all(head.kind == ERRORS ? 2 : 1, bytes, head.length))
        exit(128 + SIGPIPE); /* as a program whose reader is gone; the command learns of it by our end */
    return -1;
}

static bool connect_within(int sock, const struct sockaddr_in *there, int machine)
{
    int error = 0;
    socklen_t size = sizeof(error);
    fcntl(sock, F_SETFL, O_NONBLOCK);
    if (connect(sock, (const struct sockaddr *)there, sizeof(*there)) != 0 && errno != EINPROGRESS)
        return false;
    struct pollfd fds[] = {{sock, POLLOUT, 0}, {machine, POLLIN, 0}};
    if (poll(fds, 2, CALL_MS) <= 0 || fds[0].revents == 0 ||
        getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
        return false;
    fcntl(sock, F_SETFL, 0);
    return true;
}

static int call(const char *address, int port, pid_t pid, char **strings)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int sock = tcp_socket(), machine = pidfd_open(pid, 0);
    bool input = true;
    signal(SIGPIPE, SIG_IGN);
    if (inet_pton(AF_INET, address, &there.sin_addr) != 1 || machine < 0)
        die("there is no machine %s with the process %d", address, (int)pid);
    if (!connect_within(sock, &there, machine))
        die("the machine takes no commands: it is booting, or hangs");
    put_request(sock, strings);
    for (int status;;) {
        struct pollfd fds[] = {{sock, POLLIN, 0}, {machine, POLLIN, 0}, {input ? 0 : -1, POLLIN, 0}};
        if (poll(fds, 3, -1) < 0)
            continue;
        if (fds[0].revents != 0) {
            if ((status = take_answer(sock)) >= 0)
                return status;
        } else if (fds[1].revents != 0) {
            die("the machine is gone");
        } else if (fds[2].revents != 0) {
            send_input(sock, &input);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        return serve(argv[2], atoi(argv[3]));
    if (argc >= 7 && strcmp(argv[1], "call") == 0)
        return call(argv[2], atoi(argv[3]), (pid_t)atoi(argv[4]), argv + 5);
    fputs("usage: remote serve DEVICE PORT | call ADDRESS PORT PID PRIORITY CMD..\n", stderr);
    return 2;
}
