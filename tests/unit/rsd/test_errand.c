/* test_errand.c - who sees the token of rsd --join. This program is executed as rsd, and hands over to itself. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsd/errand.h"
#include "rsd/options.h"

#define TOKEN "elmer1abcdefghijklmnopqrstuvwxyz"
#define STAGE "TEST_ERRAND_STAGE" /* rsd; program */

enum { FD_MARK = 8, FD_SAID = 9, HOLD_MS = 200 };

int __real_execv(const char *path, char *const argv[]);
int __wrap_execv(const char *path, char *const argv[]);
int __wrap_execv(const char *path, char *const argv[])
{
    (void)!write(FD_MARK, "x", 1); /* from here on nobody must see it */
    return __real_execv(path, argv);
}

/* ---- as rsd, and as the program ---- */

static int rsd_main(int argc, char **argv)
{
    int option;
    while ((option = options_next(argc, argv, "+", rsd_command.options)) != -1 && option != RSD_OPTION_JOIN)
        ;
    setenv(STAGE, "program", 1);
    return errand_hand_over("/proc/self/exe", argc, argv) < 0 ? 1 : 2;
}

/* What it got: "ARG ARG..|what is in its standard input". */
static int program_main(int argc, char **argv)
{
    char line[300] = "";
    for (int i = 1; i < argc; i++)
        dprintf(FD_SAID, "%s%s", i > 1 ? " " : "", argv[i]);
    (void)!fgets(line, sizeof(line), stdin);
    dprintf(FD_SAID, "|%s", line);
    poll(NULL, 0, HOLD_MS); /* to be looked at */
    return 0;
}

/* ---- the tests ---- */

static struct run {
    char said[20000];
    unsigned before, after; /* how often its arguments showed the token, until it was handed over and then */
    unsigned looks, looks_after;
} run;

static bool shows_token(pid_t pid)
{
    char path[40], text[20000];
    ssize_t size;
    int fd;
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    size = fd < 0 ? -1 : read(fd, text, sizeof(text));
    if (fd >= 0)
        close(fd);
    return size > 0 && memmem(text, (size_t)size, TOKEN, strlen(TOKEN)) != NULL;
}

static void child(char **argv, const int mark[2], const int said[2])
{
    int input = open("/dev/null", O_RDONLY);
    if (dup2(mark[1], FD_MARK) < 0 || dup2(said[1], FD_SAID) < 0 || dup2(input, STDIN_FILENO) < 0)
        _exit(3);
    setenv(STAGE, "rsd", 1);
    __real_execv("/proc/self/exe", argv);
    _exit(3);
}

/* Polls all the while, as any user can. */
static void hand_over(char **argv)
{
    int mark[2], said[2], status = 0;
    bool handed = false;
    size_t size = 0;
    ssize_t got;
    char byte;
    pid_t pid;
    memset(&run, 0, sizeof(run));
    assert_true(pipe2(mark, O_NONBLOCK | O_CLOEXEC) == 0 && pipe2(said, O_CLOEXEC) == 0);
    pid = fork();
    if (pid == 0)
        child(argv, mark, said);
    close(mark[1]);
    close(said[1]);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        handed = handed || read(mark[0], &byte, 1) == 1; /* before the look */
        run.looks++;
        run.looks_after += handed ? 1 : 0;
        *(handed ? &run.after : &run.before) += shows_token(pid) ? 1 : 0;
    }
    while ((got = read(said[0], run.said + size, sizeof(run.said) - 1 - size)) > 0)
        size += (size_t)got;
    close(mark[0]);
    close(said[0]);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void expect(const char *const *arguments, const char *said)
{
    char *argv[10] = {strdup("rsd")};
    for (size_t i = 0; arguments[i]; i++)
        argv[i + 1] = strdup(arguments[i]);
    hand_over(argv);
    if (run.after > 0)
        fail_msg("%u of %u looks have seen the token after it was handed over", run.after, run.looks);
    assert_string_equal(run.said, said);
    for (size_t i = 0; argv[i]; i++)
        free(argv[i]);
}
#define EXPECT(said, ...) expect((const char *const[]){__VA_ARGS__, NULL}, said)

static void nobody_sees_it_after_it_was_handed_over(void **state)
{
    (void)state;
    EXPECT("--join ws1 --now -|" TOKEN "\n", "--join", "ws1", TOKEN, "--now");
    print_message("the arguments were read %u times: with the token %u times before, %u after\n", run.looks, run.before,
                  run.after);
    assert_true(run.looks_after > 0);
}

static void each_form_is_understood(void **state)
{
    (void)state;
    EXPECT("--join ws1 -|" TOKEN "\n", "--join", "ws1", TOKEN);
    EXPECT("-c file --join=ws1 --name=ws7 --force -|" TOKEN "\n", "-c", "file", "--join=ws1", TOKEN, "--name=ws7",
           "--force");
    EXPECT("--now --join ws1 -- -|" TOKEN "\n", "--now", "--join", "ws1", "--", TOKEN);
    EXPECT("--join ws1 --now -|", "--join", "ws1", "-", "--now");
    EXPECT("--join ws1 -|\n", "--join", "ws1", "");
    EXPECT("--join ws1|", "--join", "ws1");
}

/* The program refuses it, with what is right. */
static void what_is_wrong_is_hidden_too(void **state)
{
    (void)state;
    EXPECT("--join ws1 - -|word\n", "--join", "ws1", "word", TOKEN);
    EXPECT("--join ws1 --frob -|" TOKEN "\n", "--join", "ws1", TOKEN, "--frob");
}

/* A pipe that nobody reads takes so much; the program says that a part of it is no token. */
static void what_is_too_long_does_not_block(void **state)
{
    static char longest[9000];
    (void)state;
    memset(longest, 'a', sizeof(longest) - 1);
    hand_over((char *[]){(char *)"rsd", (char *)"--join", (char *)"ws1", longest, NULL});
    assert_int_equal(strncmp(run.said, "--join ws1 -|aaaa", 17), 0);
}

int main(int argc, char **argv)
{
    const char *stage = getenv(STAGE);
    if (stage && strcmp(stage, "rsd") == 0)
        return rsd_main(argc, argv);
    if (stage)
        return program_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_sees_it_after_it_was_handed_over),
        cmocka_unit_test(each_form_is_understood),
        cmocka_unit_test(what_is_wrong_is_hidden_too),
        cmocka_unit_test(what_is_too_long_does_not_block),
    };
    alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
