#include "config.h"

#include "tests/pvm/fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/clock.h"

static bool have_network;

static int64_t deadline(void)
{
    return mono_ms(mono_now()) + FIXTURE_WAIT_MS;
}

static const char *address_of(int host)
{
    static char text[16];
    if (!have_network)
        return "127.0.0.1";
    snprintf(text, sizeof(text), "10.213.99.%d", host);
    return text;
}

/* An alias of the loopback device, up. */
static bool add_address(int socket_fd, int host)
{
    struct ifreq request = {0};
    struct sockaddr_in address = {.sin_family = AF_INET};
    snprintf(request.ifr_name, sizeof(request.ifr_name), "lo:%d", host);
    inet_pton(AF_INET, address_of(host), &address.sin_addr);
    memcpy(&request.ifr_addr, &address, sizeof(address));
    if (ioctl(socket_fd, SIOCSIFADDR, &request) < 0)
        return false;
    request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
    return ioctl(socket_fd, SIOCSIFFLAGS, &request) == 0;
}

bool fixture_enter_network(void)
{
    if (unshare(CLONE_NEWNET) < 0)
        return false;
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    have_network = true;
    bool ok = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    for (int host = 1; host <= FIXTURE_HOSTS && ok; host++)
        ok = add_address(fd, host);
    if (fd >= 0)
        close(fd);
    return ok;
}

static void host_dir(const struct fixture *f, int host, char *path, size_t size)
{
    snprintf(path, size, "%s/ws%d", f->dir, host);
}

/* In a child: become a process of the job on this host, with a limit that PVM can live with. */
static void enter_host(const struct fixture *f, int host)
{
    char dir[128];
    struct rlimit files = {1024, 1024};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_NOFILE, &files);
    host_dir(f, host, dir, sizeof(dir));
    setenv("PVM_TMP", dir, 1);
    setenv("PVM_WD", f->dir, 1);
    setenv("PVM_RSH", "/bin/false", 1);
    setenv("PVM_ALLOW_ROOT", "1", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* libpvm3 leaks in pvm_catchout(), say */
    unsetenv("PVMSOCK");
    if (f->socket[0])
        setenv("PVMSOCK", f->socket, 1);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
}

static void run_daemon(char *command)
{
    char *argv[32];
    int argc = 0;
    char *rest = command;
    for (char *word; argc < 31 && (word = strsep(&rest, " "));)
        argv[argc++] = word;
    argv[argc] = NULL;
    execvp(argv[0], argv);
    _exit(127);
}

static void first_line(int fd, char *line, size_t size)
{
    size_t length = 0;
    while (length + 1 < size && read(fd, line + length, 1) == 1 && line[length] != '\n')
        length++;
    line[length] = '\0';
}

/* Start a daemon on a host and wait for its first line. */
static void start_daemon(struct fixture *f, int host, const char *command, char *line, size_t size)
{
    int fds[2];
    char dir[128], copy[1200];
    host_dir(f, host, dir, sizeof(dir));
    mkdir(dir, 0700);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    snprintf(copy, sizeof(copy), "%s", command);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        enter_host(f, host);
        dup2(fds[1], 1);
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 2);
        run_daemon(copy);
    }
    close(fds[1]);
    first_line(fds[0], line, size);
    close(fds[0]);
    f->daemon[host - 1] = pid;
}

static int open_file(const struct fixture *f, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void exec_agent(const struct fixture *f, int link, int hosts)
{
    char names[FIXTURE_HOSTS][64];
    char *argv[FIXTURE_HOSTS + 4] = {(char[]){"elmer-pvm-agent"}, (char[]){"--wd"}, (char *)(uintptr_t)f->dir};
    for (int host = 2; host <= hosts; host++) {
        snprintf(names[host - 1], sizeof(names[0]), "ws%d=%s", host, address_of(host));
        argv[host + 1] = names[host - 1];
    }
    enter_host(f, 1);
    dup2(open_file(f, "out"), 1);
    dup2(open_file(f, "err"), 2);
    dup2(link, 3);
    execv("./elmer-pvm-agent", argv);
    _exit(127);
}

void fixture_start(struct fixture *f, int hosts)
{
    int pair[2];
    char command[64];
    *f = (struct fixture){.dir = "/tmp/elmer-test-pvm.XXXXXX"};
    assert_non_null(mkdtemp(f->dir));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(command, sizeof(command), "pvmd -n%s", address_of(1));
    start_daemon(f, 1, command, f->socket, sizeof(f->socket));
    assert_int_equal(f->socket[0], '/');
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    f->agent = fork();
    assert_true(f->agent >= 0);
    if (f->agent == 0) {
        close(pair[0]);
        int high = fcntl(pair[1], F_DUPFD, 10);
        exec_agent(f, high, hosts);
    }
    close(pair[1]);
    assert_int_equal(channel_init(&f->link, pair[0], WIRE_FROM_AGENT, 1 << 20), 0);
    f->linked = true;
}

static void answer_spawn(struct fixture *f, const struct wire_agent_spawn *spawn, const char *refused,
                         const char *answer)
{
    char line[1024];
    int host = atoi(spawn->host + 2);
    assert_true(strncmp(spawn->host, "ws", 2) == 0 && host >= 2 && host <= FIXTURE_HOSTS);
    if (refused && strcmp(refused, spawn->host) == 0) {
        snprintf(line, sizeof(line), "%s", answer);
    } else {
        char command[2100];
        snprintf(command, sizeof(command), "%s -f", spawn->command);
        start_daemon(f, host, command, line, sizeof(line));
    }
    struct wire_message message = {.type = WIRE_agent_spawned,
                                   .u.agent_spawned = {.request = spawn->request, .line = line}};
    assert_int_equal(channel_send_all(&f->link, &message, deadline(), NULL), 0);
}

enum wire_type fixture_serve(struct fixture *f, const char *refused, const char *answer, char **reason)
{
    for (;;) {
        struct wire_message message;
        struct err err = ERR_INIT;
        int result = channel_receive(&f->link, &message, deadline(), &err);
        if (result != 1)
            fail_msg("no message from the agent: %d %s", result, err.text);
        enum wire_type type = message.type;
        if (type == WIRE_agent_spawn)
            answer_spawn(f, &message.u.agent_spawn, refused, answer);
        if (type == WIRE_agent_failed && reason)
            *reason = strdup(message.u.agent_failed.reason);
        wire_message_fini(&message);
        if (type != WIRE_agent_spawn)
            return type;
    }
}

static char *read_all(int fd)
{
    size_t size = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    assert_non_null(text);
    for (;;) {
        if (size + 4096 > capacity) {
            char *larger = realloc(text, capacity *= 2);
            assert_non_null(larger);
            text = larger;
        }
        ssize_t n = read(fd, text + size, 4095);
        if (n <= 0)
            break;
        size += (size_t)n;
    }
    text[size] = '\0';
    close(fd);
    return text;
}

int fixture_run(struct fixture *f, const char *program, char **printed, const char *const *argv)
{
    int fds[2];
    char path[4096];
    assert_non_null(realpath(program, path));
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        enter_host(f, 1);
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        execv(path, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(fds[1]);
    char *text = read_all(fds[0]);
    if (printed)
        *printed = text;
    else
        free(text);
    return fixture_wait(&pid);
}

void fixture_finish(struct fixture *f)
{
    struct wire_message message = {.type = WIRE_agent_finish};
    assert_int_equal(channel_send_all(&f->link, &message, deadline(), NULL), 0);
}

int fixture_wait(pid_t *pid)
{
    int64_t end = deadline();
    while (mono_ms(mono_now()) < end) {
        int status;
        pid_t got = waitpid(*pid, &status, WNOHANG);
        if (got == *pid) {
            *pid = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return -1;
}

static char *read_file(const struct fixture *f, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return read_all(fd);
}

char *fixture_output(const struct fixture *f)
{
    return read_file(f, "out");
}

char *fixture_errors(const struct fixture *f)
{
    return read_file(f, "err");
}

static void kill_and_reap(pid_t *pid)
{
    if (*pid <= 0)
        return;
    kill(*pid, SIGKILL);
    waitpid(*pid, NULL, 0);
    *pid = 0;
}

/* Orphans of the daemons are ours (subreaper). */
static void reap_orphans(void)
{
    int64_t end = mono_ms(mono_now()) + 2000;
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && mono_ms(mono_now()) < end)
        if (pid == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void fixture_end(struct fixture *f)
{
    char command[128];
    kill_and_reap(&f->agent);
    for (int i = 0; i < FIXTURE_HOSTS; i++)
        kill_and_reap(&f->daemon[i]);
    reap_orphans();
    if (f->linked)
        channel_fini(&f->link);
    f->linked = false;
    snprintf(command, sizeof(command), "rm -rf %s", f->dir);
    assert_int_equal(system(command), 0);
}
