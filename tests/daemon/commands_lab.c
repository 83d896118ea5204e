/* commands_lab.c - see commands_lab.h. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

/* ---- running a command ---- */

void run(struct world *w, const char *const *words)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "client/%s", words[0]);
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid == 0) {
        int out = open(w->out, O_WRONLY | O_CREAT | O_TRUNC, 0600),
            err = open(w->err, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        if (dup2(out, 1) < 0 || dup2(err, 2) < 0)
            _exit(99);
        if (w->closed)
            close_range(0, 2, 0);
        execv(path, (char **)(uintptr_t)words);
        _exit(99);
    }
}

int run_at_terminal(struct world *w, const char *typed, const char *const *words)
{
    int master, slave, input = dup(0);
    char err[sizeof(w->err)];

    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    assert_int_equal(write(master, typed, strlen(typed)), strlen(typed));
    assert_int_equal(dup2(slave, 0), 0);
    memcpy(err, w->err, sizeof(err));
    (void)snprintf(w->err, sizeof(w->err), "/proc/self/fd/0");
    run(w, words);
    memcpy(w->err, err, sizeof(err));
    assert_int_equal(dup2(input, 0), 0);
    close(slave);
    close(input);
    return master;
}

static void read_terminal(int terminal, const char *words, bool said)
{
    char text[1024];
    size_t size = 0;

    for (ssize_t n = 1; n > 0 && size<sizeof(text) - 1; size += n> 0 ? (size_t)n : 0)
        n = read(terminal, text + size, sizeof(text) - 1 - size);
    text[size] = '\0';
    close(terminal);
    if (!strstr(text, words) == said)
        fail_msg("\"%s\" %s \"%s\"", text, said ? "does not contain" : "contains", words);
}

void expect_said(int terminal, const char *words)
{
    read_terminal(terminal, words, true);
}

void expect_unsaid(int terminal, const char *words)
{
    read_terminal(terminal, words, false);
}

void read_back(const char *path, char *text)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, text, OUTPUT_MAX - 1) : 0;

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
}

int finish(struct world *w)
{
    int64_t deadline = mono_ms(mono_now()) + RUN_MS;
    int status;
    pid_t pid;

    while ((pid = waitpid(w->pid, &status, WNOHANG)) == 0 && mono_ms(mono_now()) < deadline)
        poll(NULL, 0, 2);
    if (pid == 0) {
        kill(w->pid, SIGKILL);
        waitpid(w->pid, NULL, 0);
    }
    w->pid = 0;
    read_back(w->out, w->stdout_text);
    read_back(w->err, w->stderr_text);
    if (pid == 0)
        fail_msg("the command did not end; stderr: %s", w->stderr_text);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void run_refused(struct world *w, const char *const *words, const char *text)
{
    run(w, words);
    assert_int_equal(finish(w), 2);
    assert_string_equal(w->stdout_text, "");
    if (!strstr(w->stderr_text, text))
        fail_msg("'%s' is not in: %s", text, w->stderr_text);
}

void check_schema(struct world *w, const char *top)
{
    char line[512];

    (void)snprintf(line, sizeof(line), "python3 '%s/tests/schema' '%s/schemas' <'%s/out'", top, top, w->dir);
    assert_int_equal(system(line), 0);
}

void accept_command(struct world *w)
{
    if (w->elmer.fd >= 0)
        channel_fini(&w->elmer);
    peer_accept(w->listening, &w->elmer, WIRE_FROM_CLIENT);
}

void accept_command_of_minor(struct world *w, unsigned minor)
{
    struct wire_message hello;
    int fd;

    if (w->elmer.fd >= 0)
        channel_fini(&w->elmer);
    fd = peer_accept_fd(w->listening);
    assert_int_equal(channel_init(&w->elmer, fd, WIRE_FROM_CLIENT, 1 << 24), 0);
    wire_hello_fill(&hello, "peer");
    hello.u.hello.minor = minor;
    peer_send(&w->elmer, &hello);
    peer_expect_gone(&w->elmer, WIRE_hello);
    w->elmer.minor = minor;
}

void accept_twice_of_minor(struct world *w, unsigned minor)
{
    struct wire_message message;
    struct err err = ERR_INIT;

    accept_command_of_minor(w, minor);
    assert_int_equal(channel_receive(&w->elmer, &message, peer_soon(), &err), -EBADMSG);
    accept_command_of_minor(w, minor);
}

int set_up(void **data)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    signal(SIGPIPE, SIG_IGN);
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/commands.XXXXXX");
    assert_non_null(scratch_dir(w->dir));
    (void)snprintf(w->socket, sizeof(w->socket), "%s/elmer.sock", w->dir);
    (void)snprintf(w->out, sizeof(w->out), "%s/out", w->dir);
    (void)snprintf(w->err, sizeof(w->err), "%s/err", w->dir);
    w->listening = peer_listen(w->socket);
    w->elmer.fd = -1;
    setenv("ELMER_SOCKET", w->socket, 1);
    setenv("TZ", "UTC", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    *data = w;
    return 0;
}

int tear_down(void **data)
{
    struct world *w = *data;

    if (w->pid > 0) {
        kill(w->pid, SIGKILL);
        waitpid(w->pid, NULL, 0);
    }
    if (w->elmer.fd >= 0)
        channel_fini(&w->elmer);
    close(w->listening);
    unlink(w->socket);
    unlink(w->out);
    unlink(w->err);
    rmdir(w->dir);
    free(w);
    return 0;
}

/* ---- what elmer says ---- */

void answer_submitted(struct world *w, uint64_t id, const char *state, int level, uint64_t ahead, const char *reason)
{
    const char *hosts[] = {"ws1", "ws1", "ws2"};
    struct wire_message message = {.type = WIRE_submitted, .id = id};

    message.u.submitted.job = 42;
    message.u.submitted.state = state;
    message.u.submitted.level = level;
    message.u.submitted.ahead = ahead;
    message.u.submitted.reason = reason;
    if (level >= 0)
        message.u.submitted.hosts = (struct wire_strs){hosts, 3};
    peer_send(&w->elmer, &message);
}

struct wire_processor view_processors[3] = {{"ws1", 0}, {"ws1", 1}, {"ws2", 0}};
static const char *words[] = {"./prog", "-x", "a b"};
static double levels[] = {1.5, 0};
static struct wire_usage usages[] = {{"ws1", 2.25, 1048576}, {"ws2", -1, -1}};

struct wire_job_view view_of(uint64_t id, const char *name, const char *state)
{
    struct wire_job_view view = {.job = id,
                                 .attempt = 1,
                                 .name = name,
                                 .user = "alice",
                                 .uid = 2001,
                                 .state = state,
                                 .level = -1,
                                 .nprocs = 3,
                                 .dir = "/home/alice",
                                 .submitted_ms = 1767225600000,
                                 .started_ms = -1,
                                 .ended_ms = -1,
                                 .exit_status = -1,
                                 .signal = -1,
                                 .reason_code = "",
                                 .reason = ""};

    view.command = (struct wire_strs){words, 3};
    return view;
}

struct wire_job_view done_view(uint64_t id, int exit_status, int number, const char *code, const char *reason)
{
    struct wire_job_view view = view_of(id, "prog", "done");

    view.exit_status = exit_status;
    view.signal = number;
    view.reason_code = code;
    view.reason = reason;
    view.started_ms = view.submitted_ms + 250;
    view.ended_ms = view.started_ms + 3723000;
    view.processors.items = view_processors;
    view.processors.count = 3;
    view.usage.items = usages;
    view.usage.count = 2;
    view.level_seconds = (struct wire_doubles){levels, 2};
    return view;
}

void answer_jobs(struct world *w, uint64_t id, struct wire_job_view *views, size_t count, bool more)
{
    struct wire_message message = {.type = WIRE_jobs, .id = id, .u.jobs = {.more = more}};

    message.u.jobs.jobs.items = views;
    message.u.jobs.jobs.count = count;
    peer_send(&w->elmer, &message);
}

/* The next wait is answered with this. */
