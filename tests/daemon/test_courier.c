/* test_courier.c - elmer-courier as a process, where it has no descriptors left: for eruns, and as holder of a
 * terminal.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/job/terminal.h"
#include "tests/daemon/terminal_lab.h"
#include "tests/unit/scratch.h"

enum { FILES = 24, CONNECTIONS = 40, LOOK_MS = 1000, BUSY_MS = 200 };

/* Its port is on the descriptor. */
static pid_t start(char *const *argv, int *out)
{
    const struct rlimit files = {FILES, FILES};
    int fds[2];
    pid_t pid;
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], 1);
        close(fds[0]);
        close(fds[1]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        setrlimit(RLIMIT_NOFILE, &files);
        setenv("ELMER_TERMINAL", TERMINAL_KEEP, 1);
        execv("./elmer-courier", argv);
        _exit(99);
    }
    close(fds[1]);
    *out = fds[0];
    return pid;
}

static int64_t used_ms(pid_t pid)
{
    struct timespec used;
    clockid_t clock;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &used), 0);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static int connect_to(uint16_t port)
{
    int fd = run_link_connect("", port);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    assert_true(fd >= 0);
    assert_int_equal(poll(&wait, 1, LAB_WAIT_MS), 1);
    return fd;
}

/* It has shown its pass. */
static bool answers(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&wait, 1, LAB_WAIT_MS) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) == 1;
}

static void run_without_descriptors(char *const *argv)
{
    struct terminal_lab lab = {.desk = 0};
    char dir[64] = "/tmp/courier.XXXXXX", line[32] = "";
    int out, fds[CONNECTIONS], last;
    int64_t begin, used;
    uint16_t port;
    pid_t pid;
    assert_non_null(scratch_dir(dir));
    terminal_desk_up(&lab, dir);
    pid = start(argv, &out);
    assert_true(read(out, line, sizeof(line) - 1) > 0);
    port = (uint16_t)strtoul(line, NULL, 10);
    close(out);
    for (size_t i = 0; i < CONNECTIONS; i++)
        fds[i] = connect_to(port);
    assert_true(answers(fds[0]));
    poll(NULL, 0, 100); /* it takes as many as it can */
    begin = mono_now_ms();
    used = used_ms(pid);
    while (mono_now_ms() < begin + LOOK_MS)
        poll(NULL, 0, 50);
    used = used_ms(pid) - used;
    if (used > BUSY_MS)
        fail_msg("it was busy for %d ms of %d", (int)used, LOOK_MS);
    for (size_t i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    last = connect_to(port);
    assert_true(answers(last));
    close(last);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    terminal_desk_down(&lab);
}

static void test_for_eruns(void **state)
{
    char *const argv[] = {(char *)"elmer-courier", NULL};
    (void)state;
    run_without_descriptors(argv);
}

static void test_with_a_terminal(void **state)
{
    char *const argv[] = {(char *)"elmer-courier", (char *)"--terminal", (char *)"/bin/sleep", (char *)"100", NULL};
    (void)state;
    run_without_descriptors(argv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_for_eruns),
        cmocka_unit_test(test_with_a_terminal),
    };
    return cmocka_run_group_tests_name("courier", tests, NULL, NULL);
}
