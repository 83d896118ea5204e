/* test_ini.c - configuration files: what is taken, and the sentences for what is not. */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/config/ini.h"
#include "tests/unit/scratch.h"

struct config {
    long levels;
    double threshold;
    size_t hosts_length;
    char hosts[64], listen[64], host_cpus[64], host_name[64], address[64];
};

static int set_levels(void *config, const char *subsection, const char *value, struct err *err)
{
    assert_string_equal(subsection, "");
    return ini_parse_int(value, 1, 16, &((struct config *)config)->levels, err);
}

static int set_threshold(void *config, const char *subsection, const char *value, struct err *err)
{
    (void)subsection;
    return ini_parse_double(value, 0, 1, &((struct config *)config)->threshold, err);
}

static int set_hosts(void *config, const char *subsection, const char *value, struct err *err)
{
    (void)subsection;
    (void)err;
    ((struct config *)config)->hosts_length = strlen(value);
    (void)snprintf(((struct config *)config)->hosts, sizeof((struct config *)config)->hosts, "%s", value);
    return 0;
}

static int set_listen(void *config, const char *subsection, const char *value, struct err *err)
{
    (void)subsection;
    (void)err;
    (void)snprintf(((struct config *)config)->listen, sizeof((struct config *)config)->listen, "%s", value);
    return 0;
}

static int set_cpus(void *config, const char *subsection, const char *value, struct err *err)
{
    struct config *c = config;

    (void)err;
    (void)snprintf(c->host_cpus, sizeof(c->host_cpus), "%s", value);
    (void)snprintf(c->host_name, sizeof(c->host_name), "%s", subsection);
    return 0;
}

static int refuse(void *config, const char *subsection, const char *value, struct err *err)
{
    (void)config;
    (void)subsection;
    (void)value;
    (void)err;
    return -EINVAL; /* without a sentence */
}

static const struct ini_key keys[] = {
    {"elmer", "levels", set_levels, "3", 0, NULL},
    {"elmer", "threshold", set_threshold, "0.75", 0, NULL},
    {"elmer", "hosts", set_hosts, "the local host", INI_MADE, NULL},
    {"elmer", "listen", set_listen, "*:1", INI_BUILT, NULL},
    {"elmer", "mute", refuse, "nothing", INI_MADE, NULL},
    {"elmer", "level", refuse, NULL, 0, NULL}, /* of before */
    {"host *", "cpus", set_cpus, "all", INI_MADE, NULL},
    INI_END,
};

static char path[64];

/* Two rules that need more than one key. */
static void check(void *data, struct ini_reading *reading)
{
    const struct config *config = data;

    if (config->levels == 2 && config->threshold > 0.9) {
        assert_false(ini_given(reading, "elmer", "listen"));
        assert_true(ini_given(reading, "elmer", "threshold"));
        ini_problem(reading, "elmer", "threshold", "two levels want a threshold of at most 0.9");
    }
    if (strcmp(config->host_name, "ghost") == 0) {
        assert_true(ini_given(reading, "host ghost", "cpus"));
        ini_problem(reading, "host ghost", "cpus", "no such host");
    }
    if (config->levels == 7)
        ini_problem(reading, "elmer", "nothing", "about no line");
}

static int read_bytes(const char *bytes, size_t size, struct config *config, struct err *err)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    memset(config, 0, sizeof(*config));
    return ini_read(path, keys, check, config, err);
}

static void taken(const char *text, struct config *config)
{
    struct err err = ERR_INIT;

    if (read_bytes(text, strlen(text), config, &err) != 0)
        fail_msg("%s", err.text);
    assert_string_equal(err.text, "");
}

static void refused_bytes(const char *bytes, size_t size, int line, const char *why)
{
    struct config config;
    struct err err = ERR_INIT;
    char expected[1200];

    assert_int_equal(read_bytes(bytes, size, &config, &err), -EINVAL);
    (void)snprintf(expected, sizeof(expected), "%s:%d: %s", path, line, why);
    assert_string_equal(err.text, expected);
}

static void refused(const char *text, int line, const char *why)
{
    refused_bytes(text, strlen(text), line, why);
}

static void files_are_read(void **state)
{
    struct config config;

    (void)state;
    taken("", &config);
    taken("# nothing\n; at all\n\n", &config);
    taken("[elmer]\nlevels = 3\nthreshold=0.5 ; half\nhosts = ws1 ws2\nlisten = *:7700\n[host ws1]\ncpus = 0,1\n",
          &config);
    assert_int_equal(config.levels, 3);
    assert_true(config.threshold == 0.5);
    assert_string_equal(config.hosts, "ws1 ws2");
    assert_string_equal(config.listen, "*:7700");
    assert_string_equal(config.host_name, "ws1");
    assert_string_equal(config.host_cpus, "0,1");
    /* a mark of UTF-8, line ends of another system, indentation, no last line end, a section that comes again */
    taken("\xEF\xBB\xBF[elmer]\r\n  levels = 3\r\n\tthreshold = 0.25\r\n[host a]\r\n  cpus=1\r\n[host b]\n[elmer]\n  "
          "hosts = x",
          &config);
    assert_int_equal(config.levels, 3);
    assert_true(config.threshold == 0.25);
    assert_string_equal(config.hosts, "x");
    assert_string_equal(config.host_name, "a");
}

static void errors_of_several_keys_have_the_line_of_one(void **state)
{
    struct config config;
    struct err err = ERR_INIT;
    char expected[100];
    const char *text = "[elmer]\nlevels = 7\n";

    (void)state;
    taken("[elmer]\nlevels = 2\n\nthreshold = 0.8\n", &config);
    refused("[elmer]\nlevels = 2\n\nthreshold = 0.95\nhosts = a\n", 4, "two levels want a threshold of at most 0.9");
    refused("[elmer]\nlevels = 1\n[host  ghost]\n\ncpus = 1\n[host b]\n", 5, "no such host");
    assert_int_equal(read_bytes(text, strlen(text), &config, &err), -EINVAL);
    (void)snprintf(expected, sizeof(expected), "%s: about no line", path);
    assert_string_equal(err.text, expected);
}

static void long_lines_are_whole_or_refused(void **state)
{
    struct config config;
    enum { MAX = 256 * 1024 };
    const char *front = "[elmer]\nhosts = ";
    char *text = calloc(1, MAX + 100);

    (void)state;
    if (!HAVE_DECL_INI_MAX_LINE) {
        print_message("skipped: this inih does not tell the limit that it was built with\n");
        skip();
    }
    assert_non_null(text);
    (void)snprintf(text, MAX + 100, "%s", front);
    memset(text + strlen(front), 'h', MAX - strlen("hosts = "));
    taken(text, &config);
    assert_int_equal(config.hosts_length, MAX - strlen("hosts = "));
    text[strlen(text)] = 'h';
    refused(text, 2, "the line has more than 262144 bytes");
    free(text);
}

static void unknown_keys_name_the_nearest(void **state)
{
    (void)state;
    refused(
        "[elmer]\n\nlevelz = 3\n", 3,
        "unknown key levelz (value 3) in [elmer]; the nearest known key is levels; correct it, or take the line out");
    refused("[elmer]\ntreshhold = 0.5\n", 2,
            "unknown key treshhold (value 0.5) in [elmer]; the nearest known key is threshold; correct it, or take the "
            "line out");
    refused("[elmer]\ncpus = 0\n", 2,
            "unknown key cpus (value 0) in [elmer]; the nearest known key is hosts; correct it, or take the line out");
    refused("[host ws1]\ncpu = 0\n", 2,
            "unknown key cpu (value 0) in [host ws1]; the nearest known key is cpus; correct it, or take the line out");
    refused("[emler]\nlevels = 3\n", 2, "unknown section [emler]; the nearest known one is [elmer]");
    refused("[host]\ncpus = 0\n", 2, "unknown section [host]; the nearest known one is [host *]");
    refused("[elmer x]\nlevels = 3\n", 2, "unknown section [elmer x]; the nearest known one is [elmer]");
    refused("levels = 3\n", 1, "a key before the first section header; begin with [elmer]");
}

static void bad_values_are_explained(void **state)
{
    (void)state;
    refused("[elmer]\nlevels = 17\n", 2, "levels = 17: must be a whole number from 1 to 16");
    refused("[elmer]\nthreshold = 1\nlevels = 99\n", 2,
            "threshold = 1: must be a number greater than 0 and less than 1");
    refused("[elmer]\nlevels =\n", 2, "levels = : must be a whole number from 1 to 16");
    refused("[elmer]\nmute = x\n", 2, "mute = x: not a value that is allowed here");
}

static void keys_given_twice_are_refused(void **state)
{
    struct config config;

    (void)state;
    refused("[elmer]\nlevels = 3\nhosts = a\nlevels = 3\n", 4,
            "levels is given twice in [elmer]: first in line 2; remove one of them");
    refused("[elmer]\nlevels = 3\n[host a]\n[elmer]\nlevels = 4\n", 5,
            "levels is given twice in [elmer]: first in line 2; remove one of them");
    taken("[host a]\ncpus = 0\n[host b]\ncpus = 0\n", &config);
}

static void what_is_not_ini_is_refused(void **state)
{
    char section[128];

    (void)state;
    refused("[elmer]\nlevels\n", 2, "neither [section] nor key = value nor a comment (#)");
    refused("[elmer]\nlevels = 3\n[host ws1\nlevels = 3\n", 3, "neither [section] nor key = value nor a comment (#)");
    refused("\x7F"
            "ELF",
            1, "the line contains a control character");
    refused_bytes("[elmer]\nlevels = 3\0\n", 20, 2, "the line contains a control character");
    refused("[elmer]\nhosts = \xFF\n", 2, "the line contains bytes that are not UTF-8");
    (void)snprintf(section, sizeof(section), "[elmer]\nlevels = 3\n[host %0*d]\ncpus = 0\n", 60, 0);
    refused(section, 3, "the line contains a section header of more than 48 bytes");
}

static void files_that_cannot_be_read(void **state)
{
    struct config config;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(ini_read("/nonexistent/elmer.conf", keys, NULL, &config, &err), -ENOENT);
    assert_string_equal(err.text, "/nonexistent/elmer.conf: No such file or directory");
    assert_true(ini_read("/", keys, NULL, &config, &err) < 0);
    assert_int_equal(ini_read("/nonexistent/elmer.conf", keys, NULL, &config, NULL), -ENOENT);
}

/* ---- all problems, and fragments ---- */

static struct heard {
    char problems[4096], given[1024];
} heard;

static void on_problem(const char *text, void *data)
{
    size_t used = strlen(((struct heard *)data)->problems);

    (void)snprintf(((struct heard *)data)->problems + used, sizeof(heard.problems) - used, "%s\n",
                   strrchr(text, '/') ? strrchr(text, '/') + 1 : text);
}

static void on_given(const struct ini_value *value, void *data)
{
    size_t used = strlen(((struct heard *)data)->given);

    (void)snprintf(((struct heard *)data)->given + used, sizeof(heard.given) - used, "%s %s%s=%s %s:%d%s\n",
                   value->key->section, value->subsection, value->key->name, value->value,
                   strrchr(value->file, '/') + 1, value->line, value->refused ? " refused" : "");
}

static const struct ini_watch watch = {.problem = on_problem, .given = on_given, .data = &heard};
static char dir[64];

static void put(const char *name, const char *text)
{
    assert_true(scratch_put(dir, name, text));
}

static int read_all(bool required, const struct ini_watch *watcher, struct config *config, struct err *err)
{
    char file[100];

    (void)snprintf(file, sizeof(file), "%s/a.conf", dir);
    memset(config, 0, sizeof(*config));
    memset(&heard, 0, sizeof(heard));
    return ini_read_all(file, required, keys, check, config, watcher, err);
}

static void begin(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/elmer-ini-XXXXXX");
    assert_non_null(scratch_dir(dir));
}

static void all_problems_are_told(void **state)
{
    struct config config;
    struct err err = ERR_INIT;

    (void)state;
    begin();
    put("a.conf",
        "[elmer]\nlevels = 17\nlevels = 2\nthreshold\nthreshold = 0.95\nlisten = x\n\x01\n[hots a]\ncpus = 0\n"
        "cpus = 1\n[elmer]\nhost = b\n[host ghost]\ncpus = 7\n");
    assert_int_equal(read_all(true, &watch, &config, &err), -EINVAL);
    assert_string_equal(heard.problems,
                        "a.conf:2: levels = 17: must be a whole number from 1 to 16\n"
                        "a.conf:3: levels is given twice in [elmer]: first in line 2; remove one of them\n"
                        "a.conf:4: neither [section] nor key = value nor a comment (#)\n"
                        "a.conf:7: the line contains a control character\n"
                        "a.conf:9: unknown section [hots a]; the nearest known one is [host *]\n"
                        "a.conf:12: unknown key host (value b) in [elmer]; the nearest known key is hosts; correct it, "
                        "or take the line out\n"
                        "a.conf:14: no such host\n");
    assert_non_null(strstr(err.text, "a.conf:2: levels = 17: must be"));
    assert_string_equal(heard.given, "elmer levels=17 a.conf:2 refused\nelmer threshold=0.95 a.conf:5\n"
                                     "elmer listen=x a.conf:6\nhost * ghostcpus=7 a.conf:14\n");
    assert_string_equal(config.listen, "x"); /* what was good counts */
    assert_int_equal(read_all(true, NULL, &config, &err), -EINVAL);
    assert_string_equal(config.listen, ""); /* the first one ends it */
}

/* In the order of their names, and each replaces what was before. */
static void fragments_are_read_after_the_file(void **state)
{
    struct config config;
    struct err err = ERR_INIT;

    (void)state;
    begin();
    put("a.conf", "[elmer]\nlevels = 3\nlisten = a\n[host h]\ncpus = 1\n");
    assert_true(scratch_mkdir(dir, "a.conf.d"));
    assert_int_equal(read_all(true, &watch, &config, &err), 0);
    assert_int_equal(config.levels, 3);
    put("a.conf.d/20-z.conf", "[elmer]\nlevels = 5\n");
    put("a.conf.d/10-y.conf", "[elmer]\nlevels = 4\nhosts = y\n[host h]\ncpus = 2\n");
    put("a.conf.d/30-none.conf~", "garbage");
    put("a.conf.d/.40-hidden.conf", "garbage");
    put("a.conf.d/.conf", "garbage");
    assert_int_equal(read_all(true, &watch, &config, &err), 0);
    assert_string_equal(heard.problems, "");
    assert_int_equal(config.levels, 5);
    assert_string_equal(config.hosts, "y");
    assert_string_equal(config.host_cpus, "2");
    assert_string_equal(heard.given, "elmer levels=5 20-z.conf:2\nelmer listen=a a.conf:3\nhost * hcpus=2 "
                                     "10-y.conf:5\nelmer hosts=y 10-y.conf:3\n");
    put("a.conf.d/20-z.conf", "[elmer]\nlevels = 5\nlevels = 6\n");
    assert_int_equal(read_all(true, &watch, &config, &err), -EINVAL);
    assert_string_equal(heard.problems, "20-z.conf:3: levels is given twice in [elmer]: first in line 2; remove one of "
                                        "them\n");
    assert_non_null(strstr(err.text, "/a.conf.d/20-z.conf:3: "));
    put("a.conf", "[elmer]\nlevels = 3\n");
    put("a.conf.d/20-z.conf", "[elmer]\nthreshold = 0.95\nlevels = 2\n"); /* a check of several keys */
    assert_int_equal(read_all(true, &watch, &config, &err), -EINVAL);
    assert_string_equal(heard.problems, "20-z.conf:2: two levels want a threshold of at most 0.9\n");
}

static void fragments_do_without_the_file(void **state)
{
    struct config config;
    struct err err = ERR_INIT;

    (void)state;
    begin();
    assert_int_equal(read_all(false, NULL, &config, &err), 0);
    assert_true(scratch_mkdir(dir, "a.conf.d"));
    put("a.conf.d/10-y.conf", "[elmer]\nlevels = 4\n");
    assert_int_equal(read_all(false, NULL, &config, &err), 0);
    assert_int_equal(config.levels, 4);
    assert_int_equal(read_all(true, NULL, &config, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/a.conf: No such file"));
    assert_true(scratch_mkdir(dir, "a.conf.d/20-dir.conf"));
    assert_true(read_all(false, NULL, &config, &err) < 0);
    assert_non_null(strstr(err.text, "20-dir.conf: cannot be read"));
    begin();
    put("a.conf.d", "no directory");
    assert_int_equal(read_all(false, NULL, &config, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, "a.conf.d: Not a directory"));
}

static void defaults_are_values(void **state)
{
    static const struct ini_key bad[] = {{"elmer", "levels", set_levels, "17", 0, NULL}, INI_END};
    struct config config = {.levels = 0};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(ini_defaults(keys, &config, &err), 0);
    assert_int_equal(config.levels, 3);
    assert_string_equal(config.listen, "*:1");
    assert_string_equal(config.hosts, "");
    assert_int_equal(ini_defaults(bad, &config, &err), -EINVAL);
    assert_string_equal(err.text, "the default levels = 17: must be a whole number from 1 to 16");
}

static void values(void **state)
{
    const char *const not_int[] = {"", " 1", "+1", "1 ", "1.0", "0x1", "99999999999999999999", "11", "-6", "one"};
    const char *const not_double[] = {"", "0", "1", "nan", "inf", "0x0.8", "0.5x", " 0.5", "-0.5", "1e999"};
    const char *const not_time[] = {"", "ms", "-1s", "1 s", "1d", "9ms", "2h", "1s1s", "nan", "0x10s", "1e3ms"};
    struct err err;
    double d = 0;
    long n = 0;
    int b = -1;

    (void)state;
    for (size_t i = 0; i < sizeof(not_int) / sizeof(*not_int); i++)
        assert_int_equal(ini_parse_int(not_int[i], -5, 10, &n, NULL), -EINVAL);
    for (size_t i = 0; i < sizeof(not_double) / sizeof(*not_double); i++)
        assert_int_equal(ini_parse_double(not_double[i], 0, 1, &d, NULL), -EINVAL);
    for (size_t i = 0; i < sizeof(not_time) / sizeof(*not_time); i++)
        assert_int_equal(ini_parse_duration_ms(not_time[i], 10, 3600000, &n, NULL), -EINVAL);
    assert_true(n == 0 && d == 0);
    assert_int_equal(ini_parse_int("-5", -5, 10, &n, NULL), 0);
    assert_int_equal(n, -5);
    assert_int_equal(ini_parse_double("7.5e-1", 0, 1, &d, NULL), 0);
    assert_true(d == 0.75);
    assert_true(ini_parse_duration_ms("500ms", 0, 9999, &n, NULL) == 0 && n == 500);
    assert_true(ini_parse_duration_ms("2", 0, 9999, &n, NULL) == 0 && n == 2000);
    assert_true(ini_parse_duration_ms("1.5s", 0, 9999, &n, NULL) == 0 && n == 1500);
    assert_true(ini_parse_duration_ms("5m", 0, 999999, &n, NULL) == 0 && n == 300000);
    assert_true(ini_parse_duration_ms("1h", 0, 3600000, &n, NULL) == 0 && n == 3600000);
    err_clear(&err);
    assert_int_equal(ini_parse_duration_ms("1y", 1000, 30L * 86400000, &n, &err), -EINVAL);
    assert_string_equal(err.text, "must be a time from 1s to 30d, such as 2s, 5m, 1h or 7d");
    err_clear(&err); /* examples are within the bounds */
    assert_int_equal(ini_parse_duration_ms("0", 1000, 60000, &n, &err), -EINVAL);
    assert_string_equal(err.text, "must be a time from 1s to 1m, such as 2s");
    err_clear(&err);
    assert_int_equal(ini_parse_duration_ms("1d", 500, 2000, &n, &err), -EINVAL);
    assert_string_equal(err.text, "must be a time from 500ms to 2s, such as 500ms or 2s");
    err_clear(&err);
    assert_int_equal(ini_parse_duration_ms("1d", 1, 100, &n, &err), -EINVAL);
    assert_string_equal(err.text, "must be a time from 1ms to 100ms");
    assert_true(ini_parse_bool("yes", &b, NULL) == 0 && b == 1);
    assert_true(ini_parse_bool("off", &b, NULL) == 0 && b == 0);
    err_clear(&err);
    assert_int_equal(ini_parse_bool("maybe", &b, &err), -EINVAL);
    assert_string_equal(err.text, "must be yes or no");
    assert_int_equal(b, 0);
}

static int setup(void **state)
{
    int fd;

    (void)state;
    (void)snprintf(path, sizeof(path), "/tmp/elmer-ini-XXXXXX");
    fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(errors_of_several_keys_have_the_line_of_one),
        cmocka_unit_test(long_lines_are_whole_or_refused),
        cmocka_unit_test(unknown_keys_name_the_nearest),
        cmocka_unit_test(bad_values_are_explained),
        cmocka_unit_test(keys_given_twice_are_refused),
        cmocka_unit_test(what_is_not_ini_is_refused),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(all_problems_are_told),
        cmocka_unit_test(fragments_are_read_after_the_file),
        cmocka_unit_test(fragments_do_without_the_file),
        cmocka_unit_test(defaults_are_values),
        cmocka_unit_test(values),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
