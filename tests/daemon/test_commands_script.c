/* test_commands_script.c - where options, NPROCS and the command end, and job scripts: what esubmit sends, and that
 * this runs as the script would. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

enum { TEXT_MAX = 65536 };

static char script_path[128];

static void write_script(const struct world *w, const char *text, size_t size)
{
    FILE *file;

    (void)snprintf(script_path, sizeof(script_path), "%s/run.sh", w->dir);
    file = fopen(script_path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static int set_up_script(void **data)
{
    setenv("PATH", "/usr/bin:/bin", 1);
    return set_up(data);
}

static int tear_down_script(void **data)
{
    unlink(script_path);
    script_path[0] = '\0';
    return tear_down(data);
}

/* The submission that the command sends; it is answered. */
static struct wire_message take(struct world *w)
{
    struct wire_message message;

    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, message.id, "queued", -1, 0, "");
    assert_int_equal(finish(w), 0);
    return message;
}

static const char *variable(const struct wire_submit *submit, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < submit->environment.count; i++)
        if (strncmp(submit->environment.items[i], name, length) == 0 && submit->environment.items[i][length] == '=')
            return submit->environment.items[i] + length + 1;
    return NULL;
}

/* ---- NPROCS ---- */

static void test_nprocs(void **data)
{
    static const struct {
        const char *words[8];
        unsigned nprocs;
        const char *command[3];
    } table[] = {
        {{"esubmit", "4", "./a"}, 4, {"./a"}},
        {{"esubmit", "./a", "4"}, 1, {"./a", "4"}},
        {{"esubmit", "./a", "-w"}, 1, {"./a", "-w"}},
        {{"esubmit", "--", "4", "./a"}, 4, {"./a"}},
        {{"esubmit", "--", "-a"}, 1, {"-a"}},
        {{"esubmit", "4", "--", "-a", "-b"}, 4, {"-a", "-b"}},
        {{"esubmit", "4", "--", "--"}, 4, {"--"}},
        {{"esubmit", "-n", "3", "./a", "5"}, 3, {"./a", "5"}},
        {{"esubmit", "--nprocs", "3", "3", "./a"}, 3, {"./a"}},
        {{"esubmit", "1", "4"}, 1, {"4"}},
        {{"esubmit", "./4"}, 1, {"./4"}},
        {{"esubmit", "true", "x"}, 1, {"true", "x"}},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wire_message message;
        size_t count = 0;

        run(w, table[i].words);
        message = take(w);
        assert_int_equal(message.u.submit.nprocs, table[i].nprocs);
        for (; count < 3 && table[i].command[count]; count++)
            assert_string_equal(message.u.submit.command.items[count], table[i].command[count]);
        assert_int_equal(message.u.submit.command.count, count);
        wire_message_fini(&message);
    }
}

static void test_refused(void **data)
{
    struct world *w = *data;

    REFUSED(w, "'-w' stands behind the number of processors, and options come before it: esubmit -w .. 4 COMMAND",
            "esubmit", "4", "-w", "./a");
    REFUSED(w, "esubmit 4 -- --requeue", "esubmit", "4", "--requeue", "./a");
    REFUSED(w, "COMMAND is missing behind the number of processors (a program of the name 4: ./4)", "esubmit", "--",
            "4");
    REFUSED(w, "COMMAND is missing", "esubmit");
    REFUSED(w, "COMMAND is missing", "esubmit", "4", "--");
    REFUSED(w, "given twice: -n 3, and 4", "esubmit", "-n", "3", "4", "./a");
    REFUSED(w, "no number of processors", "esubmit", "0", "./a");
    REFUSED(w, "no number of processors", "esubmit", "99999999999999999999999", "./a");
    REFUSED(w, "no number of processors", "esubmit", "-n", "two", "./a");
    REFUSED(w, "with --mesh there is no number", "esubmit", "--mesh", "2x2", "4", "./a");
    REFUSED(w, "neither a number of processors", "esubmit", "4x", "./a");
    REFUSED(w, "nor a program of this host; for one that the job's host has: esubmit .. 1 7unheard", "esubmit",
            "7unheard", "x");
    REFUSED(w, "neither a number of processors", "esubmit", "1.5", "./a");
}

/* ---- scripts ---- */

/* Runs what would run on the host; its output is in text. */
static int run_command(const struct world *w, const struct wire_submit *submit, char *text)
{
    char name[160], path[160], *environment[16] = {0}, *argv[16] = {0};
    int pipes[2], status;
    size_t count = 0;
    ssize_t n;
    pid_t pid;

    (void)snprintf(name, sizeof(name), "ELMER_TMPDIR=%s", w->dir);
    environment[count++] = name;
    environment[count++] = (char *)(uintptr_t) "ELMER_RANK=3";
    for (size_t i = 0; i < submit->environment.count && count < 15; i++)
        environment[count++] = (char *)(uintptr_t)submit->environment.items[i];
    for (size_t i = 0; i < submit->command.count && i < 15; i++)
        argv[i] = (char *)(uintptr_t)submit->command.items[i];
    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        if (dup2(pipes[1], 1) >= 0 && close(pipes[1]) == 0)
            execve(argv[0], argv, environment);
        _exit(99);
    }
    close(pipes[1]);
    for (count = 0; (n = read(pipes[0], text + count, TEXT_MAX - 1 - count)) > 0;)
        count += (size_t)n;
    text[count] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)snprintf(path, sizeof(path), "%s/script-3/%s", w->dir, submit->command.items[3]);
    unlink(path);
    (void)snprintf(path, sizeof(path), "%s/script-3", w->dir);
    rmdir(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Its lines are options, those of the command line win, and the text runs when the file has gone. */
static void test_script(void **data)
{
    static const char text[] = "#!/bin/sh\n"
                               "# what it does\n"
                               "\n"
                               "#ELMER --nprocs 6 --each   # a remark\n"
                               "#ELMER --comment 'one \"two\"' -o \"a b\\\"%j\" --variable A=1 -v B=2 --after 4\n"
                               "#ELMERS --nonsense\n"
                               "echo \"$A $B ${0##*/} $# $2 ${ELMER_SCRIPT-none}\"\n"
                               "exit 7\n";
    static char output[TEXT_MAX];
    struct world *w = *data;
    struct wire_message message;

    write_script(w, text, strlen(text));
    RUN(w, "esubmit", "-v", "B=3", "--after", "any:5", script_path, "x y", "4");
    message = take(w);
    assert_int_equal(unlink(script_path), 0);
    assert_int_equal(message.u.submit.nprocs, 6);
    assert_true(message.u.submit.each);
    assert_string_equal(message.u.submit.comment, "one \"two\"");
    assert_int_equal(message.u.submit.after.count, 2);
    assert_string_equal(message.u.submit.after.items[0], "ok:4");
    assert_string_equal(message.u.submit.after.items[1], "any:5");
    assert_string_equal(message.u.submit.output, "a b\"%j");
    assert_string_equal(message.u.submit.name, "run.sh");
    assert_string_equal(variable(&message.u.submit, "ELMER_SCRIPT"), text);
    assert_int_equal(run_command(w, &message.u.submit, output), 7);
    assert_string_equal(output, "1 3 run.sh 2 4 none\n");
    wire_message_fini(&message);
    write_script(w, text, strlen(text));
    RUN(w, "esubmit", "--comment=c", "-D", w->dir, "-J", "n", "2", "./run.sh");
    message = take(w);
    assert_int_equal(message.u.submit.nprocs, 2);
    assert_string_equal(message.u.submit.comment, "c");
    assert_string_equal(message.u.submit.name, "n");
    wire_message_fini(&message);
}

/* Interpreters, and what only looks like a script. */
static void test_interpreter(void **data)
{
    static const struct {
        const char *text, *interpreter, *parameter; /* NULL: no script */
    } table[] = {
        {"#ELMER -n2\nx\n", "/bin/sh", ""},
        {"\n \t# c\n#ELMER\n", "/bin/sh", ""},
        {"#! /usr/bin/env  -S python3 -u \n#ELMER\n", "/usr/bin/env", "-S python3 -u"},
        {"#!/usr/bin/perl\n#ELMER -n2", "/usr/bin/perl", ""},
        {"#!/bin/sh\necho\n", NULL, NULL},
        {"#!/bin/sh\n# ELMER -n 2\n#Elmer -n 2\necho\n", NULL, NULL},
        {"\177ELF\n#ELMER -n 2\n", NULL, NULL},
        {"", NULL, NULL},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wire_message message;

        write_script(w, table[i].text, strlen(table[i].text));
        RUN(w, "esubmit", script_path);
        message = take(w);
        if (table[i].interpreter) {
            assert_string_equal(message.u.submit.command.items[4], table[i].interpreter);
            assert_string_equal(message.u.submit.command.items[5], table[i].parameter);
        } else {
            assert_string_equal(message.u.submit.command.items[0], script_path);
            assert_null(variable(&message.u.submit, "ELMER_SCRIPT"));
        }
        wire_message_fini(&message);
    }
}

static void test_script_refused(void **data)
{
    static const struct {
        const char *text, *said;
    } table[] = {
        {"#!/bin/sh\n\n#ELMER --nonsense\n", "run.sh:3: "},
        {"#ELMER -n 0\n", "run.sh:1: '0' is no number of processors"},
        {"#ELMER -n\n", "run.sh:1: option '-n' needs a value"},
        {"#ELMER 4\n", "run.sh:1: '4' is no option"},
        {"#ELMER -n 2\n#ELMER --comment 'a\n", "run.sh:2: a quote is open"},
        {"#ELMER --wait\n", "run.sh:1: '--wait' is for the command line only"},
        {"#ELMER -n 2 -P 4\n", "run.sh:1: '-P' is for the command line only"},
        {"#ELMER --help\n", "run.sh:1: '--help' is for the command line only"},
        {"#ELMER -v HOME=/\n", "run.sh:1: -v HOME"},
        {"#!/bin/sh\r\n#ELMER\n", "run.sh:1: the line ends with a carriage return"},
        {"#ELMER -n 2\r\n", "run.sh:1: the line ends with a carriage return"},
        {"\xEF\xBB\xBF#!/bin/sh\n#ELMER -n 2\n", "run.sh:1: the line begins with a byte order mark"},
        {"#!\n#ELMER -n 2\n", "run.sh:1: no interpreter"},
        {"#ELMER -n 2\n\n\xff\n", "run.sh:3: the line is not valid UTF-8"},
    };
    struct world *w = *data;
    char *large = malloc(TEXT_MAX + 2);

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        write_script(w, table[i].text, strlen(table[i].text));
        REFUSED(w, table[i].said, "esubmit", script_path);
    }
    write_script(w, "#ELMER -n 2\n\0\n", 14);
    REFUSED(w, "run.sh is no text", "esubmit", script_path);
    assert_non_null(large);
    memset(large, '\n', TEXT_MAX + 1);
    memcpy(large, "#ELMER", 6);
    write_script(w, large, TEXT_MAX + 1);
    REFUSED(w, "more than 65536 bytes", "esubmit", script_path);
    free(large);
}

/* A line that nobody reads is told, for example of a script that this one writes. */
static void test_late_line(void **data)
{
    static const char text[] = "#ELMER -n 2\ncat <<E\n#ELMER -n 3\n#ELMER -n 4\nE\n";
    struct world *w = *data;
    struct wire_message message;

    write_script(w, text, strlen(text));
    RUN(w, "esubmit", script_path);
    message = take(w);
    assert_int_equal(message.u.submit.nprocs, 2);
    assert_non_null(strstr(w->stderr_text, "run.sh:3: #ELMER lines behind the first command are not read"));
    assert_null(strstr(w->stderr_text, "run.sh:4"));
    wire_message_fini(&message);
}

/* The same where no line is read, so that the file is a command like any other. */
static void test_no_line_read(void **data)
{
    static const struct {
        const char *text, *said; /* "": nothing */
    } table[] = {
        {"#!/bin/sh\nset -e\n#ELMER --nprocs 4\n#ELMER -w\n",
         "run.sh:3: #ELMER lines behind the first command are not read: move them up\n"},
        {"#!/bin/sh\n #ELMER -n 4\n", "run.sh:2: this line is not read: one with options begins with '#ELMER ', "},
        {"#!/bin/sh\n\n# ELMER --nprocs 4\n", "run.sh:3: this line is not read"},
        {"#!/bin/sh\n#elmer -n 4\n", "run.sh:2: this line is not read"},
        {"#!/bin/sh\n#ELMER: -n 4\n", "run.sh:2: this line is not read"},
        {"#!/bin/sh\n#ELMER-n 4\n", "run.sh:2: this line is not read"},
        {"#!/bin/sh\n# Elmer is asked for 4 processors\n##ELMER -n 4\nset -e\n# ELMER -n 4\n", ""},
        {"set -e\n#ELMER -n 4\n", ""},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wire_message message;

        write_script(w, table[i].text, strlen(table[i].text));
        RUN(w, "esubmit", script_path);
        message = take(w);
        assert_int_equal(message.u.submit.nprocs, 1);
        assert_string_equal(message.u.submit.command.items[0], script_path);
        if (!strstr(w->stderr_text, table[i].said) || (!*table[i].said && strstr(w->stderr_text, "not read")))
            fail_msg("%zu: %s", i, w->stderr_text);
        assert_null(strstr(w->stderr_text, "run.sh:4"));
        wire_message_fini(&message);
    }
}

/* ---- standard input ---- */

static struct wire_message submit_input(struct world *w, const char *const *words, const char *text, size_t size)
{
    int saved = dup(0), fd;

    write_script(w, text, size);
    fd = open(script_path, O_RDONLY);
    assert_true(saved >= 0 && fd >= 0 && dup2(fd, 0) == 0);
    run(w, words);
    assert_int_equal(dup2(saved, 0), 0);
    close(fd);
    close(saved);
    return take(w);
}

static void test_input(void **data)
{
    static const char text[] = "#ELMER -J fromhere\nprintf '%s\\n' \"$@\"; cat /dev/null\n";
    static char output[TEXT_MAX];
    struct world *w = *data;
    struct wire_message message =
        submit_input(w, (const char *const[]){"esubmit", "2", "-", "a", "b c", "", NULL}, text, strlen(text));
    char *large = malloc(TEXT_MAX + 1);

    assert_int_equal(message.u.submit.nprocs, 2);
    assert_string_equal(message.u.submit.name, "fromhere");
    assert_int_equal(run_command(w, &message.u.submit, output), 0);
    assert_string_equal(output, "a\nb c\n\n");
    wire_message_fini(&message);
    assert_non_null(large); /* the largest, with bytes that cost most */
    memset(large, '\t', TEXT_MAX);
    memcpy(large, "echo large #\n", 13);
    message = submit_input(w, (const char *const[]){"esubmit", "-", NULL}, large, TEXT_MAX);
    assert_int_equal(message.u.submit.nprocs, 1);
    assert_string_equal(message.u.submit.name, "script");
    assert_int_equal(strlen(variable(&message.u.submit, "ELMER_SCRIPT")), TEXT_MAX);
    assert_int_equal(run_command(w, &message.u.submit, output), 0);
    assert_string_equal(output, "large\n");
    wire_message_fini(&message);
    free(large);
    w->closed = true; /* /dev/null instead */
    RUN(w, "esubmit", "-");
    assert_int_equal(finish(w), 2);
}

/* ---- one process on several hosts ---- */

static void submit(struct world *w, const char *const *words, const char *state, int level, uint64_t ahead)
{
    struct wire_message message;

    run(w, words);
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, message.id, state, level, ahead, "");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
}

static void test_idle(void **data)
{
    static const struct {
        const char *words[6];
        bool told;
    } table[] = {
        {{"esubmit", "3", "x"}, true},
        {{"esubmit", "--each", "3", "x"}, false},
        {{"esubmit", "--pvm", "3", "x"}, false},
        {{"esubmit", "3", "/usr/bin/mpirun.openmpi", "x"}, false},
        {{"esubmit", "3", "sh", "-c", "mpirun x"}, false},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        submit(w, table[i].words, "starting", 0, 0);
        assert_true(!strstr(w->stderr_text, "runs on ws1 only: --each, --pvm or mpirun use the others\n") !=
                    table[i].told);
    }
}

/* Of a job that waits only what is certain: without a host, and without another request. */
static void test_idle_later(void **data)
{
    static const struct {
        const char *words[7];
        bool told;
    } table[] = {
        {{"esubmit", "3", "x"}, false},
        {{"esubmit", "--per-host", "2", "3", "x"}, true},
        {{"esubmit", "--per-host", "3", "3", "x"}, false},
        {{"esubmit", "--per-host", "2", "--each", "3", "x"}, false},
        {{"esubmit", "--mesh", "2x2", "x"}, true},
        {{"esubmit", "--mesh", "1x1", "x"}, false},
        {{"esubmit", "--mesh", "2x2", "mpiexec", "x"}, false},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        submit(w, table[i].words, "queued", -1, 2);
        assert_string_equal(w->stderr_text,
                            table[i].told ? "job 42 queued: 2 ahead\n"
                                            "runs on its first host only: --each, --pvm or mpirun use the others\n"
                                          : "job 42 queued: 2 ahead\n");
    }
}

/* At a terminal, where somebody reads it, the hosts are asked for. */
static void test_idle_at_terminal(void **data)
{
    struct wire_host_view view = {
        .host = "ws1", .state = "up", .mode = "", .address = "", .reason = "", .processors = 2};
    struct world *w = *data;

    for (int nprocs = 2; nprocs <= 3; nprocs++) {
        int terminal = RUN_AT_TERMINAL(w, "", "esubmit", nprocs == 2 ? "2" : "3", "x");
        struct wire_message message, answer = {.type = WIRE_hosts, .u.hosts.hosts = {&view, 1}};

        accept_command(w);
        message = peer_expect(&w->elmer, WIRE_submit);
        answer_submitted(w, message.id, "queued", -1, 2, "");
        wire_message_fini(&message);
        message = peer_expect(&w->elmer, WIRE_query_hosts);
        answer.id = message.id;
        peer_send(&w->elmer, &answer);
        wire_message_fini(&message);
        assert_int_equal(finish(w), 0);
        (nprocs == 2 ? expect_unsaid : expect_said)(terminal, "runs on its first host only: --each, --pvm or mpirun");
    }
}

#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up_script, tear_down_script)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_nprocs),
        WITH_ELMER(test_refused),
        WITH_ELMER(test_script),
        WITH_ELMER(test_interpreter),
        WITH_ELMER(test_script_refused),
        WITH_ELMER(test_late_line),
        WITH_ELMER(test_no_line_read),
        WITH_ELMER(test_input),
        WITH_ELMER(test_idle),
        WITH_ELMER(test_idle_later),
        WITH_ELMER(test_idle_at_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
