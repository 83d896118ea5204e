/* test_erun_streams.c - what erun reads and writes beside other processes that have the same pipe, socket or file: it
 * never waits there, and leaves the descriptor as it was for them. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/erun.h"

enum { WAIT_S = 60 }; /* what waits is ended by SIGALRM */

static bool blocks(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

/* Another process has read what poll(2) has said. */
static void test_input_that_another_has_taken(void **state)
{
    char text[8] = "";
    int fds[2], own;
    (void)state;
    assert_int_equal(pipe(fds), 0);
    own = streams_own(fds[0], O_RDONLY);
    assert_int_not_equal(own, fds[0]);
    assert_int_equal(streams_read(own, text, sizeof(text)), -1);
    assert_int_equal(errno, EAGAIN);
    assert_true(blocks(fds[0]));
    assert_int_equal(write(fds[1], "here", 4), 4);
    assert_int_equal(streams_read(own, text, 2), 2);
    assert_int_equal(read(fds[0], text + 2, 6), 2); /* each byte for one of them */
    assert_string_equal(text, "here");
    close(fds[1]);
    assert_int_equal(streams_read(own, text, sizeof(text)), 0);
    close(fds[0]);
    close(own);
}

/* Standard input that is the other end of a pipe: it is not read, before or behind. */
static void test_the_other_end_of_a_pipe(void **state)
{
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(streams_own(fds[1], O_RDONLY), fds[1]);
    assert_int_equal(streams_own(fds[0], O_WRONLY), fds[0]);
    close(fds[0]);
    close(fds[1]);
}

static void test_input_of_a_socket(void **state)
{
    char text[8] = "";
    int fds[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(streams_own(fds[0], O_RDONLY), fds[0]);
    assert_int_equal(streams_read(fds[0], text, sizeof(text)), -1);
    assert_int_equal(errno, EAGAIN);
    assert_true(blocks(fds[0]));
    assert_int_equal(write(fds[1], "here", 4), 4);
    assert_int_equal(streams_read(fds[0], text, sizeof(text)), 4);
    close(fds[1]);
    assert_int_equal(streams_read(fds[0], text, sizeof(text)), 0);
    close(fds[0]);
}

/* Who reads a file after erun begins where erun has stopped. */
static void test_input_of_a_file(void **state)
{
    FILE *file = tmpfile();
    char text[8] = "";
    (void)state;
    assert_non_null(file);
    assert_int_equal(write(fileno(file), "one two", 7), 7);
    assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
    assert_int_equal(streams_own(fileno(file), O_RDONLY), fileno(file));
    assert_int_equal(streams_read(fileno(file), text, 4), 4);
    assert_int_equal(read(fileno(file), text + 4, 4), 3);
    assert_string_equal(text, "one two");
    fclose(file);
}

/* Another process has filled the room that poll(2) has said. */
static void test_output_that_another_has_filled(void **state)
{
    static const char page[4096];
    char text[sizeof(page)];
    int fds[2], own;
    (void)state;
    assert_int_equal(pipe(fds), 0);
    own = streams_own(fds[1], O_WRONLY);
    assert_int_not_equal(own, fds[1]);
    while (write(own, page, sizeof(page)) > 0) {
    }
    assert_int_equal(errno, EAGAIN);
    assert_true(blocks(fds[1]));
    assert_int_equal(read(fds[0], text, sizeof(text)), sizeof(text));
    assert_int_equal(write(own, page, sizeof(page)), sizeof(page));
    close(fds[0]);
    assert_int_equal(write(own, page, 1), -1);
    assert_int_equal(errno, EPIPE);
    close(fds[1]);
    close(own);
}

enum { MUCH = 200000, PIECES = 10 };

/* A process that has got that much for standard output, and is to end: its pid, and what it writes in *fd. */
static pid_t one_that_ends(int *fd)
{
    static const char zeros[MUCH / PIECES];
    struct target target = {.link = {.fd = -1, .state = RUN_DEAD}};
    int fds[2];
    pid_t pid;
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        if (dup2(fds[1], STDOUT_FILENO) < 0)
            _exit(1);
        close(fds[1]);
        for (int i = 0; i < PIECES; i++)
            streams_put(STDOUT_FILENO, &target, zeros, sizeof(zeros));
        streams_finish();
        _exit(7);
    }
    close(fds[1]);
    *fd = fds[0];
    return pid;
}

static void test_the_end_waits_for_who_reads(void **state)
{
    static char text[20000];
    int fd, status = 0;
    pid_t pid = one_that_ends(&fd);
    size_t all = 0;
    ssize_t got;
    (void)state;
    while ((got = read(fd, text, sizeof(text))) > 0) {
        all += (size_t)got;
        poll(NULL, 0, 10);
    }
    assert_int_equal(all, MUCH);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    close(fd);
}

static void test_and_not_for_who_does_not(void **state)
{
    int fd, status = 0;
    pid_t pid = one_that_ends(&fd);
    (void)state;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input_that_another_has_taken),
        cmocka_unit_test(test_the_other_end_of_a_pipe),
        cmocka_unit_test(test_input_of_a_socket),
        cmocka_unit_test(test_input_of_a_file),
        cmocka_unit_test(test_output_that_another_has_filled),
        cmocka_unit_test(test_the_end_waits_for_who_reads),
        cmocka_unit_test(test_and_not_for_who_does_not),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    (void)alarm(WAIT_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
