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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input_that_another_has_taken),
        cmocka_unit_test(test_the_other_end_of_a_pipe),
        cmocka_unit_test(test_input_of_a_socket),
        cmocka_unit_test(test_input_of_a_file),
        cmocka_unit_test(test_output_that_another_has_filled),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    (void)alarm(WAIT_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
