/* test_begin.c - elmer-rsd-begin before it has heard of rsd: it begins with systemd's socket only, and who is not rsd
 * is refused before anything is read or made. What it does for rsd is in tests/system/45-programs.t. It must be root's;
 * else it is skipped. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/scratch.h"

enum { PATIENCE_MS = 20000, FIRST_FD = 3 };

static char dir[64];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/elmer-rsd-begin-XXXXXX");
    return scratch_dir(dir) ? 0 : -1;
}

/* listener -1: none. */
static pid_t start(int listener, const char *more)
{
    char log[100], pid_text[24];
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    snprintf(log, sizeof(log), "%s/log", dir);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(fd, STDERR_FILENO);
    unsetenv("LISTEN_FDNAMES");
    if (listener >= 0) {
        snprintf(pid_text, sizeof(pid_text), "%d", (int)getpid());
        setenv("LISTEN_PID", pid_text, 1);
        setenv("LISTEN_FDS", "1", 1);
        setenv("LISTEN_FDNAMES", "rsd", 1);
        dup2(listener, FIRST_FD);
        fcntl(FIRST_FD, F_SETFD, 0); /* it may have been that */
    }
    execl("elmer-rsd-begin", "elmer-rsd-begin", more, (char *)NULL);
    _exit(127);
}

static bool says(const char *words)
{
    char path[100], text[4096];
    snprintf(path, sizeof(path), "%s/log", dir);
    for (int64_t end = mono_ms(mono_now()) + PATIENCE_MS; mono_ms(mono_now()) < end; poll(NULL, 0, 10)) {
        FILE *file = fopen(path, "re");
        size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
        text[size] = 0;
        if (file)
            fclose(file);
        if (strstr(text, words))
            return true;
    }
    return false;
}

static int status_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_by_hand(void **state)
{
    (void)state;
    assert_int_equal(status_of(start(-1, NULL)), 2);
    assert_true(says("systemd starts it"));
}

static int listen_at(struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "%.60s/spawn.sock", dir);
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static void test_other_arguments(void **state)
{
    struct sockaddr_un address;
    int listener = listen_at(&address);
    (void)state;
    assert_int_equal(status_of(start(listener, "--help")), 2);
    close(listener);
}

/* We are root, as it is, but no process of rsd.service. */
static void test_stranger(void **state)
{
    struct sockaddr_un address;
    int listener = listen_at(&address), fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    char byte;
    pid_t pid = start(listener, NULL);
    (void)state;
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(poll(&ended, 1, PATIENCE_MS), 1);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    assert_true(says("elmer-rsd-begin refuses a peer: process "));
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* it goes on to wait */
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(fd);
    close(listener);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {TEST(test_by_hand), TEST(test_other_arguments), TEST(test_stranger)};
    if (geteuid() != 0) {
        printf("1..0 # SKIP elmer-rsd-begin must be started by root\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
