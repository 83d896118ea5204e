/* test_swf.c - traces: all of their fields and comments; what is wrong in one is named by its line, and half of a trace
 * is no answer. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "esim/feedback.h"
#include "esim/json.h"
#include "esim/keys.h"
#include "esim/swf.h"
#include "tests/unit/scratch.h"

static char fault[300];

/* Not done: fault says why. */
static struct result simulate(const char *path)
{
    struct config config;
    struct result result = {.done = false};

    keys_default(&config);
    assert_true(keys_set(&config, "trace", path, fault, sizeof(fault)));
    if (!keys_complete(&config, fault, sizeof(fault)))
        return result;
    run(&config, &result, NULL, 0, 1, NULL);
    snprintf(fault, sizeof(fault), "%s", result.fault);
    return result;
}

#define GOOD "1 0 -1 100 4 50.5 -1 8 200 -1 1 7 1 -1 1 -1 -1 -1"

static void test_lines(void **state)
{
    double fields[SWF_FIELDS];

    (void)state;
    assert_int_equal(swf_parse_line(GOOD, fields), 0);
    assert_true(fields[SWF_CPU] == 50.5 && fields[SWF_ASKED_PROCS] == 8 && fields[SWF_THINK] == -1);
    assert_int_equal(swf_parse_line("  " GOOD "\r\n", fields), 0);
    assert_int_equal(swf_parse_line(GOOD " 1", fields), SWF_FIELDS + 1);
    assert_int_equal(swf_parse_line("1 0 -1 100 4", fields), 6);
    assert_int_equal(swf_parse_line("1 0 -1 x", fields), 4);
    assert_int_equal(swf_parse_line("1.5 0", fields), 1);
    assert_int_equal(swf_parse_line("1 0.5", fields), 3); /* a time may have a fraction, and the next one is missing */
    assert_int_equal(swf_parse_line("1 -2", fields), 2);
    assert_int_equal(swf_parse_line("1 nan", fields), 2);
    assert_int_equal(swf_parse_line("", fields), 1);
    /* decimal numbers; awk writes a large one with a fraction so, and of a whole one the end would be lost */
    assert_int_equal(swf_parse_line("1 1.23457e+06 +.5 x", fields), 4);
    assert_true(fields[SWF_SUBMIT] == 1234570 && fields[SWF_WAIT] == 0.5);
    assert_int_equal(swf_parse_line("1e3", fields), 1);
    assert_int_equal(swf_parse_line("0x10", fields), 1);
    assert_int_equal(swf_parse_line("1 0X1p3", fields), 2);
    assert_int_equal(swf_parse_line("1 -0x0", fields), 2);
    assert_int_equal(swf_parse_line("1 inf", fields), 2);
    assert_int_equal(swf_parse_line("1 -", fields), 2);
    assert_int_equal(swf_parse_line("1 .", fields), 2);
}

static const char *trace(const char *name)
{
    static char path[1000];

    snprintf(path, sizeof(path), "%s/tests/unit/esim/traces/%s", getenv("srcdir") ? getenv("srcdir") : ".", name);
    return path;
}

static void test_traces(void **state)
{
    struct result plain, packed;
    struct swf *swf;
    struct sim_job job;
    uint64_t count = 0;

    (void)state;
    plain = simulate(trace("small.swf"));
    assert_true(plain.done);
    assert_int_equal(plain.jobs, 200);
    packed = simulate(trace("small.swf.gz"));
    assert_true(plain.turnaround.mean == packed.turnaround.mean);
    swf = swf_open(trace("faults.swf"), true);
    assert_non_null(swf);
    assert_int_equal(swf_header(swf)->max_procs, 64);
    while (swf_source(swf)->next(swf_source(swf), &job))
        count += job.number;
    assert_int_equal(count, 1 + 4 + 7); /* in the order of the trace */
    assert_int_equal(swf_counts(swf).never_ran, 1);
    assert_int_equal(swf_counts(swf).bad_lines, 2);
    assert_int_equal(swf_counts(swf).unknown, 2);
    assert_int_equal(swf_counts(swf).parts, 0);
    swf_source(swf)->destroy(swf_source(swf));
    assert_null(swf_open(trace("none.swf"), true));
}

/* ---- what is wrong ---- */

#define HEAD   "; MaxProcs: 64\n"
#define JOB(n) #n " 0 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n"

static char dir[64];

static const char *file_of(const char *name, const void *text, size_t size)
{
    static char path[200];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    return path;
}
#define FILE_OF(name, text) file_of(name, text, sizeof(text) - 1)

/* What is told while all jobs are read; the sum of their numbers. */
static char *told(const char *path, uint64_t *sum)
{
    static char text[5000];
    FILE *to = tmpfile();
    int before = dup(2);
    struct sim_job job;
    struct swf *swf;

    *sum = 0;
    assert_non_null(to);
    fflush(stderr);
    dup2(fileno(to), 2);
    swf = swf_open(path, false);
    while (swf && swf_source(swf)->next(swf_source(swf), &job))
        *sum += job.number;
    fflush(stderr);
    dup2(before, 2);
    close(before);
    assert_non_null(swf);
    snprintf(fault, sizeof(fault), "%s", swf_fault(swf) ? swf_fault(swf) : "");
    swf_source(swf)->destroy(swf_source(swf));
    rewind(to);
    text[fread(text, 1, sizeof(text) - 1, to)] = '\0';
    fclose(to);
    return text;
}

static void expect_told(const char *path, uint64_t expected, const char *lines)
{
    char want[1000] = "", *said;
    uint64_t sum;

    for (const char *at = lines; *at != '\0'; at += strcspn(at, "\n") + 1)
        snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s:%.*s\n", path, (int)strcspn(at, "\n"), at);
    said = told(path, &sum);
    assert_string_equal(said, want);
    assert_int_equal(sum, expected);
}

static void test_bytes(void **state)
{
    static const char zeros[] = HEAD JOB(1) "2 0 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\0junk\n"
                                            "\0\0\0\0\n" JOB(5) "6\n";
    char *large = calloc(1, 12000);

    (void)state;
    expect_told(FILE_OF("crlf", "; MaxProcs: 64\r\n1 0 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\r\n"), 1, "");
    expect_told(FILE_OF("mark", "\xef\xbb\xbf" HEAD JOB(1) "\xef\xbb\xbf" JOB(2)), 1, /* at the beginning only */
                "3: there is no good number for the job number\n");
    expect_told(FILE_OF("end", HEAD "1 0 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1"), 1, "");
    expect_told(FILE_OF("fields", HEAD "1 0 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1\n" /* 17, 19 */
                                       "2 0 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1 7\n" JOB(4)),
                4, "2: there is no good number for the think time\n3: there is more behind the 18 fields\n");
    expect_told(FILE_OF("zeros", zeros), 6,
                "3: a byte of the line is zero\n4: a byte of the line is zero\n"
                "6: there is no good number for the submit time\n");
    assert_non_null(large);
    memset(large, 'x', 11000); /* a zero in it does not make two lines of it */
    large[100] = '\0';
    memcpy(large + 11000, "\n" JOB(2) "3\n", sizeof("\n" JOB(2) "3\n"));
    expect_told(file_of("large", large, strlen(large + 11000) + 11000), 2,
                "1: a byte of the line is zero\n3: there is no good number for the submit time\n");
    large[100] = 'x';
    expect_told(file_of("large", large, strlen(large)), 2,
                "1: the line is too long\n3: there is no good number for the submit time\n");
    large[0] = ';'; /* a comment may be as long as it likes */
    expect_told(file_of("large", large, strlen(large)), 2, "3: there is no good number for the submit time\n");
    free(large);
    expect_told(FILE_OF("far", HEAD "1 0 -1 1000000000001 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
                                    "2 1000000000001 -1 1 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n" JOB(3)),
                3, "2: there is no good number for the run time\n3: there is no good number for the submit time\n");
    expect_told(FILE_OF("wide", HEAD "1 0 -1 1 1000001 -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
                                     "2 0 -1 1 4 -1 -1 1000001 -1 -1 1 1 1 -1 1 -1 -1 -1\n" JOB(3)),
                3,
                "2: there is no good number for the processors\n"
                "3: there is no good number for the requested processors\n");
    expect_told(FILE_OF("fractions", HEAD "1 0.5 1.5 100.25 4 -1 -1 4 99.5 -1 1 1 1 -1 1 -1 -1 2.5\n"
                                          "2 1 -1 1 4.5 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n"),
                1, "3: there is no good number for the processors\n"); /* times may have one */
    expect_told(FILE_OF("unknown", HEAD "-1 0 -1 100 4 -1 -1 4 -1 -1 1 4294967294 1 -1 1 -1 -1 -1\n" JOB(2)), 2, "");
    expect_told(FILE_OF("user", HEAD "1 0 -1 100 4 -1 -1 4 -1 -1 1 4294967295 1 -1 1 -1 -1 -1\n" JOB(2)), 2,
                "2: there is no good number for the user\n");
}

/* Status 2, 3 and 4: what a job did between two checkpoints, beside the line of the whole job. */
static void test_parts(void **state)
{
    static const char text[] = HEAD "1 0 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
                                    "1 0 -1 60 4 -1 -1 4 -1 -1 2 1 1 -1 1 -1 -1 -1\n"
                                    "1 -1 5 40 4 -1 -1 4 -1 -1 3 1 1 -1 1 -1 -1 -1\n"
                                    "2 0 -1 60 4 -1 -1 4 -1 -1 2 1 1 -1 1 -1 -1 -1\n" /* nothing sums it up */
                                    "2 -1 5 40 4 -1 -1 4 -1 -1 4 1 1 -1 1 -1 -1 -1\n"
                                    "3 0 -1 100 4 -1 -1 4 -1 -1 5 1 1 -1 1 -1 -1 -1\n"
                                    "4 0 -1 100 4 -1 -1 4 -1 -1 -1 1 1 -1 1 -1 -1 -1\n";
    const char *path = FILE_OF("parts", text);
    struct result result = simulate(path);

    (void)state;
    assert_true(result.done);
    assert_int_equal(result.jobs, 3);
    assert_int_equal(result.lines.parts, 4);
    assert_int_equal(result.lines.parts_alone, 1);
    assert_int_equal(result.lines.unknown, 0);
    expect_told(path, 1 + 3 + 4, "");
}

static void expect_fault(const char *path, const char *what)
{
    struct result result = simulate(path);

    assert_false(result.done);
    if (!strstr(fault, what))
        fail_msg("'%s' does not say '%s'", fault, what);
}

/* Jobs in the order of their submission, whatever that of the trace is; of the same time in that of the trace. */
static void test_order(void **state)
{
    static const char text[] = HEAD "1 50 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
                                    "2 1e11 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n" /* far beyond all others */
                                    "3 50 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n" JOB(4)
                                        JOB(5) "6 100 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
                                               "7 60 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 6 -1\n";
    static const uint64_t orders[2][7] = {{4, 5, 1, 3, 7, 6, 2}, {4, 5, 1, 3, 6, 2}}; /* 7 follows 6 */
    const char *path = FILE_OF("order", text);

    (void)state;
    for (int follow = 0; follow < 2; follow++) {
        struct source *source = feedback_source(swf_open(path, false), path, follow != 0);
        struct sim_job job;
        int count = 0;
        for (; source->next(source, &job); count++) {
            assert_int_equal(job.number, orders[follow][count]);
            assert_int_equal(job.index, job.number);
        }
        assert_int_equal(count, 7 - follow);
        assert_int_equal(feedback_counts(source).moved, 5);
        assert_int_equal(feedback_counts(source).following, follow);
        source->destroy(source);
    }
    assert_int_equal(simulate(path).jobs, 7);
}

/* Far more than run, so that most are kept from the core; some follow others, also such as are too large. */
static void test_followers_of_many(void **state)
{
    enum { JOBS = 600 };
    const char *path = FILE_OF("many", HEAD);
    double turnarounds[2][JOBS] = {{0}};
    FILE *out = fopen(path, "a");

    (void)state;
    assert_non_null(out);
    for (int i = 1; i <= JOBS; i++) {
        const int procs = i % 11 == 0 ? 65 : i * 7 % 64 + 1, preceding = i > 300 && i % 5 == 0 ? i - 280 : -1;
        fprintf(out, "%d %d -1 %d %d -1 -1 %d -1 -1 1 1 1 -1 1 -1 %d %d\n", i, i, 50 + i * 13 % 100, procs, procs,
                preceding, i % 3 - 1);
    }
    fclose(out);
    for (int every = 0; every < 2; every++) {
        struct config config;
        struct result result = {.done = false};
        keys_default(&config);
        assert_true(keys_set(&config, "trace", path, fault, sizeof(fault)));
        config.world.every_job = every == 1;
        assert_true(keys_complete(&config, fault, sizeof(fault)));
        run(&config, &result, turnarounds[every], JOBS, 1, NULL);
        assert_true(result.done);
        assert_int_equal(result.refused, JOBS / 11);
        assert_int_equal(result.jobs, JOBS - JOBS / 11);
        assert_int_equal(result.trace.following, 60);
    }
    assert_memory_equal(turnarounds[0], turnarounds[1], sizeof(turnarounds[0]));
}

/* Half of a trace would look like an answer. */
static void test_damaged(void **state)
{
    char packed[2000], path[200];
    size_t size;
    long line;
    gzFile out;
    FILE *in;
    uint64_t sum;

    (void)state;
    snprintf(path, sizeof(path), "%s/packed.gz", dir);
    out = gzopen(path, "wb");
    assert_non_null(out);
    gzputs(out, HEAD);
    for (int i = 1; i <= 1000; i++)
        gzprintf(out, "%d %d -1 %d 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1\n", i, i * 10, i * 7 % 13);
    gzclose(out);
    assert_true(simulate(path).done);
    in = fopen(path, "r");
    assert_non_null(in);
    size = fread(packed, 1, sizeof(packed), in);
    fclose(in);
    snprintf(path, sizeof(path), "%s", file_of("cut.gz", packed, size / 2));
    assert_string_equal(told(path, &sum), ""); /* the last line is not wrong, it is cut off */
    expect_fault(path, "cannot be read beyond line ");
    expect_fault(path, "unexpected end of file");
    expect_fault(file_of("cut.gz", packed, 12), "cannot be read beyond line 0: unexpected end of file");
    for (size_t i = size / 2; i < size / 2 + 200; i++)
        packed[i] ^= (char)0x5a;
    expect_fault(file_of("changed.gz", packed, size), "cannot be read beyond line ");
    line = strtol(strstr(fault, "line ") + 5, NULL, 10);
    assert_true(line > 100); /* what was unpacked before the damage was found counts as read */
    snprintf(path, sizeof(path), "%s/pipe", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_fault(path, "is no file: a trace is read more than once"); /* and nobody waits for one who writes to it */
    expect_fault(dir, "cannot be read beyond line 0: Is a directory");
    expect_fault(FILE_OF("empty", ""), "does not say how large its machine is");
    expect_fault(FILE_OF("headless", JOB(1)), "does not say how large its machine is");
    expect_fault(FILE_OF("huge", "; MaxProcs: 99999999999\n" JOB(1)), "larger than one can be here");
    expect_fault(FILE_OF("none", HEAD), "there is no job");
    expect_fault(FILE_OF("none", HEAD "1 2 3\n"), "there is no job");
    expect_fault(FILE_OF("wide", "; MaxProcs: 2\n" JOB(1)), "the machine is too small");
}

static void expect_text(const json_t *object, const char *key, const char *expected)
{
    assert_string_equal(json_string_value(json_object_get(object, key)), expected);
}

/* The header says where a trace is from, and JSON hands it on. */
static void test_header(void **state)
{
    static const char text[] =
        ";\n; Version: 2.2\n;Computer:  Cray \"T3E\" \r\n ; Note: one\n; MaxJobs: 3\n; Note: MaxProcs: 7\n"
        "; MaxProcs: 64 (two of them down)\n; UnixStartTime: 7\n; no name\n; MaxNodes: 8\n" JOB(1) "; Note: late\n";
    struct config config;
    struct result result = {.done = false, .fault = "x"};
    struct plan plan = {.configs = &config, .count = 1, .compared = 1, .results = &result};
    struct swf *swf = swf_open(FILE_OF("header", text), true);
    const json_t *header;
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    json_t *all;

    (void)state;
    assert_non_null(swf);
    assert_int_equal(swf_header(swf)->max_procs, 64);
    assert_int_equal(swf_header(swf)->max_nodes, 8);
    assert_int_equal(swf_header(swf)->max_jobs, 3);
    assert_int_equal(swf_header(swf)->unix_start, 7);
    swf_source(swf)->destroy(swf_source(swf));
    keys_default(&config);
    config.trace = FILE_OF("header", text);
    assert_true(json_print(out, &plan));
    fclose(out);
    all = json_loads(line, 0, NULL);
    header = json_object_get(all, "trace");
    assert_int_equal(json_object_size(header), 7);
    expect_text(header, "Computer", "Cray \"T3E\"");
    expect_text(header, "Note", "one\nMaxProcs: 7");
    expect_text(header, "Version", "2.2");
    json_decref(all);
    free(line);
}

/* From the first job to the last end, of however many jobs. */
static void test_time(void **state)
{
    char text[100 + 40 * 80];
    struct result result;
    int at = snprintf(text, sizeof(text), "; MaxProcs: 1\n");

    (void)state;
    for (int i = 0; i < 39; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%d %d -1 10 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1\n", i + 1,
                       10000000 + i * (i < 38 ? 10 : 500));
    result = simulate(file_of("late", text, (size_t)at));
    assert_int_equal(result.jobs, 39);
    assert_true(fabs(result.seconds - (38 * 500 + 10)) < 0.1);
    assert_true(fabs(result.utilisation.mean - 390.0 / (38 * 500 + 10)) < 1e-4);
    assert_true(fabs(result.load_out.mean - 390.0 / (38 * 500 + 10)) < 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),  cmocka_unit_test(test_parts), cmocka_unit_test(test_traces),
        cmocka_unit_test(test_bytes),  cmocka_unit_test(test_order), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_header), cmocka_unit_test(test_time),  cmocka_unit_test(test_followers_of_many),
    };

    snprintf(dir, sizeof(dir), "/tmp/test_swf.XXXXXX");
    return !scratch_dir(dir) ? 99 : cmocka_run_group_tests(tests, NULL, NULL);
}
