/* test_ini_left_out.c - values that are wrong, but were taken by releases before: told, and nothing else. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/config/ini.h"
#include "tests/unit/scratch.h"

static int set_levels(void *config, const char *subsection, const char *value, struct err *err)
{
    (void)subsection;
    return ini_parse_int(value, 1, 16, config, err);
}

static int leave_out(void *config, const char *subsection, const char *value, struct err *err)
{
    (void)config, (void)subsection, (void)value;
    (void)err_set(err, -EINVAL, "no name of a zone");
    return INI_LEFT_OUT;
}

static const struct ini_key keys[] = {
    {"elmer", "levels", set_levels, "3", 0, NULL}, {"host *", "zone", leave_out, "none", INI_MADE, NULL}, INI_END};
static char dir[] = "/tmp/elmer-ini-XXXXXX", path[60], said[1024];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof(path), "%s/a.conf", scratch_dir(dir));
    return 0;
}

static void say(const char *kind, const char *text)
{
    size_t used = strlen(said);

    (void)snprintf(said + used, sizeof(said) - used, "%s%s\n", kind, text);
}

static void on_problem(const char *text, void *data)
{
    (void)data;
    say("problem: ", strrchr(text, '/') + 1);
}

static void on_fault(const char *text, void *data)
{
    (void)data;
    say("fault: ", strrchr(text, '/') + 1);
}

static void on_given(const struct ini_value *value, void *data)
{
    (void)data;
    say(value->refused ? "not given: " : "given: ", value->key->name);
}

static int read_file(const char *text, const struct ini_watch *watch, long *levels)
{
    struct err err = ERR_INIT;
    int result;

    said[0] = '\0';
    assert_true(scratch_put(dir, "a.conf", text));
    result = ini_read_all(path, true, keys, NULL, levels, watch, &err);
    assert_int_equal(err.text[0] != '\0', result != 0);
    return result;
}

static void all_goes_on_without_it(void **state)
{
    const struct ini_watch watch = {.problem = on_problem, .fault = on_fault, .given = on_given};
    long levels = 0;

    (void)state;
    assert_int_equal(read_file("[host h]\nzone = 7\n[elmer]\nlevels = 2\n", &watch, &levels), 0);
    assert_int_equal(levels, 2);
    assert_string_equal(said, "fault: a.conf:2: zone = 7: no name of a zone\nnot given: zone\ngiven: levels\n");
    assert_int_equal(read_file("[host h]\nzone = 7\n[elmer]\nlevels = 17\n", &watch, &levels), -EINVAL);
    assert_string_equal(said, "fault: a.conf:2: zone = 7: no name of a zone\n"
                              "problem: a.conf:4: levels = 17: must be a whole number from 1 to 16\n"
                              "not given: zone\nnot given: levels\n");
}

static void nobody_has_to_hear_of_it(void **state)
{
    const struct ini_watch watch = {.problem = on_problem};
    long levels = 0;

    (void)state;
    assert_int_equal(read_file("[host h]\nzone = 7\n[elmer]\nlevels = 4\n", NULL, &levels), 0);
    assert_int_equal(levels, 4);
    assert_int_equal(read_file("[host h]\nzone = 7\n[elmer]\nlevels = 5\n", &watch, &levels), 0);
    assert_int_equal(levels, 5);
    assert_string_equal(said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_goes_on_without_it),
                                       cmocka_unit_test(nobody_has_to_hear_of_it)};

    return cmocka_run_group_tests(tests, setup, NULL);
}
