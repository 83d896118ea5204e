/* test_courier.c - elmer-courier as a process, where it has no descriptors left: for eruns, and as holder of a
 * terminal; and what was recorded on the way to it is worth nothing.
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
#include "lib/run/pack.h"
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

/* ---- what was recorded ---- */

static size_t file_bytes(const struct terminal_lab *lab, const char *name, char *bytes, size_t size)
{
    char path[128];
    FILE *file;
    size_t got;
    snprintf(path, sizeof(path), "%s/%s", lab->dir, name);
    file = fopen(path, "r");
    if (!file)
        return 0;
    got = fread(bytes, 1, size, file);
    (void)fclose(file);
    return got;
}

/* The next frame of a kind. */
static bool hear(struct run_link *link, enum run_type type)
{
    int64_t deadline = mono_now_ms() + LAB_WAIT_MS;
    struct run_frame frame;
    while (mono_now_ms() < deadline && link->state != RUN_DEAD) {
        struct pollfd wait = {.fd = link->fd, .events = run_link_events(link)};
        (void)poll(&wait, 1, 20);
        run_link_step(link, wait.revents);
        while (run_link_next(link, &frame) > 0)
            if (frame.type == type)
                return true;
    }
    return false;
}

/* Says all that was said before, and reads until the other side has ended. Returns how many bytes that has said. */
static size_t say_again(const struct terminal_lab *lab, uint16_t port)
{
    static char said[1 << 16], bytes[4096];
    size_t size = file_bytes(lab, "said", said, sizeof(said)), heard = 0;
    int fd = connect_to(port);
    ssize_t got = 1;
    assert_true(size > 0 && size < sizeof(said));
    assert_int_equal(send(fd, said, size, MSG_NOSIGNAL), (ssize_t)size);
    while (got > 0) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, LAB_WAIT_MS), 1);
        got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        heard += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return heard;
}

static void start_marker(const struct terminal_lab *lab, struct run_link *link)
{
    static const struct run_rank rank = {0, RUN_NO_CPU};
    const char *argv[] = {"/bin/sh", "-c", "echo run >>marker", NULL}, *environment[] = {"PATH=/usr/bin:/bin", NULL};
    const struct run_start start = {.umask = 022,
                                    .total = 1,
                                    .dir = lab->dir,
                                    .argv = {argv, 3},
                                    .environment = {environment, 1},
                                    .ranks = &rank,
                                    .nranks = 1};
    size_t size;
    uint8_t *bytes = run_start_pack(&start, &size);
    run_link_send(link, RUN_START, 0, bytes, size);
    free(bytes);
}

/* A courier behind a proxy that records; its port. */
static pid_t start_recorded(struct terminal_lab *lab, char *const *argv, uint16_t *port, pid_t *proxy)
{
    char dir[64] = "/tmp/courier.XXXXXX", line[32] = "";
    pid_t pid;
    int out;
    assert_non_null(scratch_dir(dir));
    terminal_desk_up(lab, dir);
    pid = start(argv, &out);
    assert_true(read(out, line, sizeof(line) - 1) > 0);
    close(out);
    *port = lab->port = (uint16_t)strtoul(line, NULL, 10);
    *proxy = terminal_proxy_up(lab);
    return pid;
}

static void end_recorded(struct terminal_lab *lab, pid_t pid, pid_t proxy)
{
    kill(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    terminal_desk_down(lab);
}

static void test_recorded_erun(void **state)
{
    char *const argv[] = {(char *)"elmer-courier", NULL};
    struct terminal_lab lab = {.desk = 0};
    struct claim claim = LAB_CLAIM;
    struct run_link link;
    char marker[100];
    uint16_t port;
    pid_t proxy, pid = start_recorded(&lab, argv, &port, &proxy);
    size_t pass;
    (void)state;
    claim.is_process = true;
    assert_true(terminal_connect(&lab, &claim, &link));
    start_marker(&lab, &link);
    assert_true(hear(&link, RUN_EXIT));
    pass = 4 + strlen("elmer run 1\n") + strlen(link.other);
    assert_int_equal(say_again(&lab, port), pass); /* while that connection is there ... */
    run_link_fini(&link);
    assert_int_equal(say_again(&lab, port), pass); /* ... and when it has ended */
    assert_int_equal(file_bytes(&lab, "marker", marker, sizeof(marker)), 4);
    end_recorded(&lab, pid, proxy);
}

/* Each time the same words would be sealed with the same key and number, or others. */
static void test_recorded_stranger(void **state)
{
    char *const argv[] = {(char *)"elmer-courier", NULL};
    struct terminal_lab lab = {.desk = 0};
    struct claim claim = LAB_CLAIM;
    struct run_link link;
    uint16_t port;
    pid_t proxy, pid = start_recorded(&lab, argv, &port, &proxy);
    (void)state;
    claim.is_process = true;
    claim.job++;
    assert_true(terminal_connect(&lab, &claim, &link));
    assert_true(hear(&link, RUN_REFUSED));
    assert_int_equal(say_again(&lab, port), 4 + strlen("elmer run 1\n") + strlen(link.other));
    run_link_fini(&link);
    end_recorded(&lab, pid, proxy);
}

static void test_recorded_eattach(void **state)
{
    char *const argv[] = {(char *)"elmer-courier", (char *)"--terminal", (char *)"/bin/cat", NULL};
    const struct run_look look = {.rows = 24, .columns = 80};
    struct terminal_lab lab = {.desk = 0};
    struct claim claim = LAB_CLAIM;
    struct run_link link;
    uint8_t bytes[RUN_LOOK_BYTES];
    uint16_t port;
    pid_t proxy, pid = start_recorded(&lab, argv, &port, &proxy);
    (void)state;
    assert_true(terminal_connect(&lab, &claim, &link));
    run_look_pack(&look, bytes);
    run_link_send(&link, RUN_LOOK, 0, bytes, sizeof(bytes));
    assert_true(hear(&link, RUN_LOOKING));
    assert_int_equal(say_again(&lab, port), 4 + strlen("elmer run 1\n") + strlen(link.other));
    run_link_send(&link, RUN_IN, 0, "x\n", 2); /* it was not put out */
    assert_true(hear(&link, RUN_OUT));
    run_link_fini(&link);
    end_recorded(&lab, pid, proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_for_eruns),        cmocka_unit_test(test_with_a_terminal),
        cmocka_unit_test(test_recorded_erun),    cmocka_unit_test(test_recorded_stranger),
        cmocka_unit_test(test_recorded_eattach),
    };
    return cmocka_run_group_tests_name("courier", tests, NULL, NULL);
}
