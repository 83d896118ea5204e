/* Whole lines of many tasks in one file. */
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
#include <unistd.h>

#include "rsd/pvm/output.h"

struct fixture {
    struct output output;
    FILE *file;
};

static int setup(void **state)
{
    static struct fixture f;
    f.file = tmpfile();
    assert_non_null(f.file);
    assert_true(fcntl(fileno(f.file), F_SETFL, O_APPEND) == 0);
    output_init(&f.output, fileno(f.file));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    output_fini(&f->output);
    fclose(f->file);
    return 0;
}

static void say(struct fixture *f, int tid, const char *text)
{
    assert_int_equal(output_text(&f->output, tid, text, strlen(text)), 0);
}

/* What is in the file so far. */
static void assert_file(struct fixture *f, const char *expected)
{
    static char text[4 * OUTPUT_LINE_MAX];
    ssize_t n = pread(fileno(f->file), text, sizeof(text) - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    assert_string_equal(text, expected);
}

static void test_lines_are_not_mixed(void **state)
{
    struct fixture *f = *state;
    say(f, 1, "one ");
    say(f, 2, "two\n");
    say(f, 1, "more\nand");
    assert_file(f, "two\none more\n");
    say(f, 1, " end\n");
    assert_file(f, "two\none more\nand end\n");
}

static void test_the_last_line_gets_a_newline(void **state)
{
    struct fixture *f = *state;
    say(f, 1, "first");
    say(f, 2, "second");
    output_end(&f->output, 1);
    assert_file(f, "first\n");
    output_end(&f->output, 1);
    output_end(&f->output, 7);
    assert_int_equal(f->output.count, 1);
    output_flush(&f->output);
    output_flush(&f->output);
    assert_file(f, "first\nsecond\n");
}

static void test_a_silent_task_is_open_until_its_end(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(output_begin(&f->output, 5), 0);
    assert_int_equal(output_begin(&f->output, 5), 0);
    assert_int_equal(f->output.count, 1);
    output_end(&f->output, 5);
    assert_int_equal(f->output.count, 0);
    assert_file(f, "");
}

static void test_a_long_line_is_cut(void **state)
{
    struct fixture *f = *state;
    static char text[2 * OUTPUT_LINE_MAX + 2], expected[2 * OUTPUT_LINE_MAX + 5];
    memset(text, 'a', 2 * OUTPUT_LINE_MAX + 1);
    for (size_t i = 0; i < 2 * OUTPUT_LINE_MAX + 1; i += 4000) {
        size_t left = 2 * OUTPUT_LINE_MAX + 1 - i;
        assert_int_equal(output_text(&f->output, 1, text + i, left < 4000 ? left : 4000), 0);
    }
    output_end(&f->output, 1);
    memset(expected, 'a', sizeof(expected) - 1);
    expected[OUTPUT_LINE_MAX] = expected[2 * OUTPUT_LINE_MAX + 1] = expected[2 * OUTPUT_LINE_MAX + 3] = '\n';
    assert_file(f, expected);
}

static void test_many_tasks(void **state)
{
    struct fixture *f = *state;
    enum { TASKS = 500 };
    for (int round = 0; round < 2; round++)
        for (int tid = 0; tid < TASKS; tid++)
            say(f, tid, round ? "b\n" : "a");
    assert_int_equal(f->output.count, TASKS);
    for (int tid = TASKS; tid-- > 0;)
        output_end(&f->output, tid);
    assert_int_equal(f->output.count, 0);
    assert_int_equal(lseek(fileno(f->file), 0, SEEK_END), 3 * TASKS);
}

static void test_a_failing_file_is_remembered(void **state)
{
    struct fixture *f = *state;
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    f->output.fd = full;
    say(f, 1, "lost\n");
    assert_int_equal(f->output.error, ENOSPC);
    say(f, 1, "lost too\n");
    close(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_are_not_mixed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_last_line_gets_a_newline, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_silent_task_is_open_until_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_long_line_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_tasks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failing_file_is_remembered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
