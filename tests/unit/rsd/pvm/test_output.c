/* test_output.c - the output of many tasks in one file: whole lines, whatever pieces they come in. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rsd/pvm/output.h"

static struct output output;
static int file;
static off_t seen;

static int begin(void **state)
{
    (void)state;
    file = memfd_create("output", MFD_CLOEXEC);
    assert_true(file >= 0);
    seen = 0;
    output_init(&output, file);
    return 0;
}

static int end(void **state)
{
    (void)state;
    output_fini(&output);
    close(file);
    return 0;
}

static void say(int tid, const char *text)
{
    assert_int_equal(output_text(&output, tid, text, strlen(text)), 0);
}

/* What has been written since. */
static void expect(const char *text)
{
    char buffer[200];
    ssize_t size = pread(file, buffer, sizeof(buffer) - 1, seen);
    assert_true(size >= 0);
    buffer[size] = '\0';
    assert_string_equal(buffer, text);
    seen += size;
}

static void test_lines_stay_whole(void **state)
{
    (void)state;
    say(1, "one ");
    say(2, "two\nand ");
    expect("two\n");
    say(1, "and more\n");
    expect("one and more\n");
    say(2, "a\n\nb\nc");
    expect("and a\n\nb\n");
    output_end(&output, 2);
    expect("c\n");
    output_end(&output, 2); /* it is not there any more */
    output_end(&output, 3);
    expect("");
}

static void test_what_is_left(void **state)
{
    (void)state;
    say(1, "one");
    say(2, "two");
    say(3, "three\n");
    expect("three\n");
    output_flush(&output);
    expect("one\ntwo\n");
    output_flush(&output); /* once */
    expect("");
    say(1, "on\n");
    expect("on\n");
}

static void test_tasks_that_are_open(void **state)
{
    (void)state;
    for (int tid = 1; tid <= 100; tid++)
        assert_int_equal(output_begin(&output, tid), 0);
    assert_int_equal(output_begin(&output, 50), 0);
    assert_int_equal(output.count, 100);
    for (int tid = 1; tid <= 100; tid++) {
        say(tid, "a");
        if (tid % 2)
            output_end(&output, tid);
    }
    assert_int_equal(output.count, 50);
    for (int tid = 2; tid <= 100; tid += 2)
        say(tid, "b\n"); /* each goes on with its own line */
    char written[300];
    assert_int_equal(pread(file, written, sizeof(written), 0), 50 * 2 + 50 * 3);
    for (int i = 0; i < 50; i++) {
        assert_memory_equal(written + 2 * i, "a\n", 2);
        assert_memory_equal(written + 100 + 3 * i, "ab\n", 3);
    }
}

/* A program that never ends its line must not take our memory. */
static void test_an_endless_line(void **state)
{
    enum { TEXT = 3 * OUTPUT_LINE_MAX + 10 };
    char *text = malloc(TEXT), *written = malloc(TEXT + 10);
    (void)state;
    memset(text, 'x', TEXT);
    for (int begin = 0; begin < TEXT; begin += 1000)
        assert_int_equal(output_text(&output, 1, text + begin, begin + 1000 < TEXT ? 1000 : (size_t)(TEXT - begin)), 0);
    assert_true(output.streams[0].capacity < 2 * OUTPUT_LINE_MAX);
    output_flush(&output);
    assert_int_equal(pread(file, written, TEXT + 10, 0), TEXT + 4); /* three cuts, and the end */
    for (int line = 0; line < 3; line++)
        assert_ptr_equal(memchr(written + line * (OUTPUT_LINE_MAX + 1), '\n', OUTPUT_LINE_MAX + 1),
                         written + line * (OUTPUT_LINE_MAX + 1) + OUTPUT_LINE_MAX);
    assert_int_equal(written[TEXT + 3], '\n');
    free(written);
    free(text);
}

/* The first error counts; the tasks go on. */
static void test_a_file_that_takes_nothing(void **state)
{
    (void)state;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(full >= 0);
    output.fd = -1;
    say(1, "lost\n");
    assert_int_equal(output.error, EBADF);
    output.fd = full;
    say(1, "lost too\n");
    close(full);
    output.fd = file;
    say(1, "found\n");
    expect("found\n");
    assert_int_equal(output.error, EBADF);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_lines_stay_whole),          TEST(test_what_is_left),
        TEST(test_tasks_that_are_open),       TEST(test_an_endless_line),
        TEST(test_a_file_that_takes_nothing),
    };
    return cmocka_run_group_tests_name("output of tasks", tests, NULL, NULL);
}
