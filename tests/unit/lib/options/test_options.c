/* test_options.c - a table of options: how it is read, what is said of what is wrong, and what --help prints. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/options/options.h"

enum { OPTION_CHECK = OPTION_FIRST_FREE, OPTION_KEY, OPTION_HIDDEN, WORDS = 16 };
static const struct option_row rows[] = {
    {'c', "config", "FILE", "read FILE"},
    {OPTION_CHECK, "check", NULL, "look\nand exit"},
    {OPTION_KEY, "load", "L", "a key"},
    {OPTION_KEY, "loaded", "[=YES]", "another key"},
    {0, NULL, NULL, "between"},
    {OPTION_HIDDEN, "hidden", NULL, NULL},
    OPTION_ROWS_END,
};
static const struct command command = {"thing", "Usage: thing\n", rows, "Notes.\n"};

static char line[400], *argv[WORDS];
static int argc;

static void type(const char *words)
{
    argc = 0;
    snprintf(line, sizeof(line), "thing %s", words);
    for (char *at = line, *word; (word = strsep(&at, " "));)
        argv[argc++] = word;
    argv[argc] = NULL;
    optind = 0;
}

/* As rsd: what is for another program it reads anew, in the other order. */
static void test_another_order(void **state)
{
    (void)state;
    type("--check rest --config a");
    assert_int_equal(options_next(argc, argv, "+", rows), OPTION_CHECK);
    assert_int_equal(options_next(argc, argv, "+", rows), -1);
    assert_string_equal(argv[optind], "rest");
    optind = 0;
    assert_int_equal(options_next(argc, argv, "", rows), OPTION_CHECK);
    assert_int_equal(options_next(argc, argv, "", rows), 'c');
    assert_int_equal(options_next(argc, argv, "", rows), -1);
    assert_int_equal(optind, argc - 1);
    optind = 0;
    assert_int_equal(options_next(argc, argv, "+", rows), OPTION_CHECK);
}

static void test_read(void **state)
{
    (void)state;
    type("--config a -c b --check --load 2 --loaded --loaded=no --hidden rest");
    assert_int_equal(options_next(argc, argv, "+", rows), 'c');
    assert_string_equal(optarg, "a");
    assert_int_equal(options_next(argc, argv, "+", rows), 'c');
    assert_string_equal(optarg, "b");
    assert_ptr_equal(options_row(), &rows[0]);
    assert_int_equal(options_next(argc, argv, "+", rows), OPTION_CHECK);
    assert_int_equal(options_next(argc, argv, "+", rows), OPTION_KEY);
    assert_string_equal(options_row()->name, "load");
    assert_string_equal(optarg, "2");
    assert_int_equal(options_next(argc, argv, "+", rows), OPTION_KEY);
    assert_string_equal(options_row()->name, "loaded");
    assert_null(optarg);
    assert_int_equal(options_next(argc, argv, "+", rows), OPTION_KEY);
    assert_string_equal(optarg, "no");
    assert_int_equal(options_next(argc, argv, "+", rows), OPTION_HIDDEN);
    assert_int_equal(options_next(argc, argv, "+", rows), -1);
    assert_string_equal(argv[optind], "rest");
}

static void test_find(void **state)
{
    (void)state;
    assert_ptr_equal(options_find(rows, "load=3", 4), &rows[2]);
    assert_ptr_equal(options_find(rows, "loaded", 6), &rows[3]);
    assert_null(options_find(rows, "loa", 3));
    assert_null(options_find(rows, "", 0));
}

static void says(const char *words, const char *expected)
{
    char text[OPTIONS_FAULT_BYTES];
    int c;

    type(words);
    do
        c = options_next(argc, argv, "", rows);
    while (c != '?' && c != ':' && c != -1);
    assert_int_not_equal(c, -1);
    options_fault(c, argv, text);
    assert_string_equal(text, expected);
}

static void test_faults(void **state)
{
    char word[700] = "--", expected[700];

    (void)state;
    says("--config", "option '--config' needs a value");
    says("-c", "option '-c' needs a value");
    says("-z", "unknown option '-z'");
    says("--check=1", "option '--check' doesn't allow an argument");
    says("--lo", "option '--lo' is ambiguous; possibilities: '--load' '--loaded'");
    says("--confg x", "unrecognized option '--confg'; did you mean '--config'?");
    says("--laod", "unrecognized option '--laod'; did you mean '--load'?");
    says("--other", "unrecognized option '--other'");
    memset(word + 2, 'x', 350);
    type(word);
    snprintf(expected, sizeof(expected), "unrecognized option '%s'", argv[1]);
    says(word, expected);
}

/* What run() prints to stdout and stderr. */
static char printed[4000];
static int run(const char *words)
{
    FILE *file = tmpfile();
    int out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO), c, code;
    size_t length;

    assert_non_null(file);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    type(words);
    c = options_next(argc, argv, "", rows);
    code = c == -1 ? options_surplus(&command, argv[optind], 7) : options_common(&command, c, argv, 7);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    close(out);
    close(error);
    rewind(file);
    length = fread(printed, 1, sizeof(printed) - 1, file);
    printed[length] = '\0';
    fclose(file);
    return code;
}

static void test_common(void **state)
{
    (void)state;
    assert_int_equal(run("--help"), 0);
    assert_string_equal(printed, "Usage: thing\n"
                                 "  -c, --config FILE  read FILE\n"
                                 "  --check            look\n"
                                 "                     and exit\n"
                                 "  --load L           a key\n"
                                 "  --loaded[=YES]     another key\n"
                                 "between\n"
                                 "  -h, --help         print this and exit\n"
                                 "  -V, --version      print the version and exit\n"
                                 "Notes.\n");
    assert_int_equal(run("-V"), 0);
    assert_string_equal(printed, "thing " PACKAGE_VERSION "\n");
    assert_int_equal(run("--wrong"), 7);
    assert_string_equal(printed, "thing: unrecognized option '--wrong'; see 'thing --help'\n");
    assert_int_equal(run("a\033b"), 7);
    assert_null(strchr(printed, '\033'));
    assert_non_null(strstr(printed, "unexpected argument 'a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),   cmocka_unit_test(test_another_order), cmocka_unit_test(test_find),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_common),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
