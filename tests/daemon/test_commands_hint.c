/* test_commands_hint.c - what people type instead of a command is refused, or told, with what to type. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

static char file[128];

static void write_file(const struct world *w, const char *name, const char *text, mode_t mode)
{
    FILE *out;

    (void)snprintf(file, sizeof(file), "%s/%s", w->dir, name);
    out = fopen(file, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(file, mode), 0);
}

static int set_up_path(void **data)
{
    setenv("PATH", "/usr/bin:/bin", 1);
    return set_up(data);
}

static int tear_down_file(void **data)
{
    unlink(file);
    return tear_down(data);
}

/* The submission that the command sends. */
static struct wire_message submitted(struct world *w, const char *const *words)
{
    struct wire_message message;

    run(w, words);
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, message.id, "queued", -1, 0, "");
    assert_int_equal(finish(w), 0);
    return message;
}
#define SUBMITTED(w, ...) submitted(w, (const char *const[]){__VA_ARGS__, NULL})

/* ---- refused ---- */

static void test_lines(void **data)
{
    struct world *w = *data;

    write_file(w, "run.sh", "echo\n", 0600);
    REFUSED(w, "a shell line needs: sh -c '...'", "esubmit", "echo a; echo b");
    REFUSED(w, "a shell line needs: sh -c '...'", "esubmit", "2", "/bin/echo a >b");
    REFUSED(w, "a shell line needs: sh -c '...'", "esubmit", "A=1 echo");
    REFUSED(w, "there is no program 'run.sh' in PATH; did you mean ./run.sh?", "esubmit", "-D", w->dir, "run.sh");
    REFUSED(w, "did you mean ./run.sh?", "esubmit", "-D", w->dir, "2", "run.sh", "4");
    REFUSED(w, "'4 ./run.sh' is one word: leave out the quotes", "esubmit", "4 ./run.sh");
}

static void test_variables(void **data)
{
    struct world *w = *data;

    REFUSED(w, "'A=1' sets a variable and is no program: esubmit -v A=1 .. ./run.sh;", "esubmit", "A=1", "./run.sh");
    REFUSED(w, "esubmit -v A=1 .. ./run.sh;", "esubmit", "4", "A=1", "B=2", "./run.sh");
    REFUSED(w, "esubmit -v A=/tmp/x .. COMMAND;", "esubmit", "A=/tmp/x");
    REFUSED(w, "esubmit .. env A={} ./run.sh;", "esubmit", "-a", "1-3", "A={}", "./run.sh");
    REFUSED(w, "esubmit -v 'A=x y' .. ./run.sh;", "esubmit", "A=x y", "./run.sh");
    REFUSED(w, "-v 'A B=x': the name of a variable has no blanks", "esubmit", "-v", "A B=x", "true");
}

static void test_words_of_shells(void **data)
{
    struct world *w = *data;

    REFUSED(w, "'A=1' sets a variable and is no program: esubmit -v A=1 .. COMMAND;", "esubmit", "export", "A=1");
    REFUSED(w, "'export' is a word of the shell and no program", "esubmit", "export", "A");
    REFUSED(w, "'cd' is a word of the shell and no program: esubmit -D /tmp .. COMMAND runs it there", "esubmit", "cd",
            "/tmp");
    REFUSED(w, "'source' is a word of the shell and no program; a shell line needs: sh -c '...'", "esubmit", "2",
            "source", "x");
    REFUSED(w, "'.' is a word of the shell", "esubmit", ".", "./x");
}

/* What only looks like one of these: programs, wherever they are. */
static void test_programs(void **data)
{
    static const char *const words[][5] = {
        {"esubmit", "env", "A=1", "true"},
        {"esubmit", "elsewhere", "A=1"},
        {"esubmit", "./A=1"},
        {"esubmit", "2", "./4 x"},
        {"esubmit", "export", "A=1"},
        {"esubmit", "B=1"},
        {"esubmit", "-a", "1-3", "A={}/run.sh"},
    };
    struct world *w = *data;
    char path[200];

    (void)snprintf(path, sizeof(path), "%s/B=1", w->dir);
    write_file(w, "export", "#!/bin/sh\n", 0700);
    assert_int_equal(link(file, path), 0);
    setenv("PATH", w->dir, 1);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct wire_message message = submitted(w, words[i]);

        wire_message_fini(&message);
    }
    unlink(path);
}

/* ---- scripts ---- */

/* One that PATH has is read as one with a slash; a relative folder of PATH is below the job's directory. */
static void test_script_in_path(void **data)
{
    static const char text[] = "#!/bin/sh\n#ELMER -n 3\necho\n";
    struct world *w = *data;
    struct wire_message message;

    write_file(w, "s7.sh", text, 0700);
    setenv("PATH", "/usr/bin:.", 1);
    message = SUBMITTED(w, "esubmit", "-D", w->dir, "s7.sh", "x");
    assert_int_equal(message.u.submit.nprocs, 3);
    assert_string_equal(message.u.submit.name, "s7.sh");
    assert_string_equal(message.u.submit.command.items[3], "s7.sh");
    wire_message_fini(&message);
    setenv("PATH", w->dir, 1);
    message = SUBMITTED(w, "esubmit", "s7.sh");
    assert_int_equal(message.u.submit.nprocs, 3);
    wire_message_fini(&message);
    message = SUBMITTED(w, "esubmit", "s8.sh"); /* not here */
    assert_string_equal(message.u.submit.command.items[0], "s8.sh");
    wire_message_fini(&message);
    write_file(w, "s7.sh", "#!/bin/sh\n#ELMER -n 0\n", 0700);
    REFUSED(w, "/s7.sh:2: '0' is no number of processors", "esubmit", "s7.sh");
}

static void test_interpreters(void **data)
{
    static const struct {
        const char *text, *words[5], *said; /* "": nothing */
    } table[] = {
        {"#ELMER -n 2\n", {"esubmit", "sh", "job.x"}, "esubmit: #ELMER lines of job.x are not read: esubmit ./job.x\n"},
        {"#!/bin/bash\n#ELMER -n 2\n", {"esubmit", "2", "/bin/bash", "-x", "job.x"}, "read: esubmit ./job.x\n"},
        {"#!/usr/bin/env python3\n#ELMER -n 2\n", {"esubmit", "python3.11", "./job.x"}, "read: esubmit ./job.x\n"},
        {"#ELMER -n 2\n",
         {"esubmit", "perl", "job.x"},
         "read: begin it with a line #!/usr/bin/env perl, then esubmit ./job.x\n"},
        {"#!/bin/sh\n", {"esubmit", "sh", "job.x"}, ""},
        {"#ELMER -n 2\n", {"esubmit", "sh", "other.x"}, ""},
        {"#ELMER -n 2\n", {"esubmit", "cat", "job.x"}, ""},
        {"#ELMER -n 2\n", {"esubmit", "python3"}, ""},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const char *words[8] = {"esubmit", "-D", w->dir};
        struct wire_message message;

        for (size_t k = 1; k < 5 && table[i].words[k]; k++)
            words[k + 2] = table[i].words[k];
        write_file(w, "job.x", table[i].text, 0600);
        message = submitted(w, words);
        if (!strstr(w->stderr_text, table[i].said) || (!*table[i].said && strstr(w->stderr_text, "#ELMER")))
            fail_msg("%zu: %s", i, w->stderr_text);
        wire_message_fini(&message);
    }
}

#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up_path, tear_down_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_lines),    WITH_ELMER(test_variables),      WITH_ELMER(test_words_of_shells),
        WITH_ELMER(test_programs), WITH_ELMER(test_script_in_path), WITH_ELMER(test_interpreters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
