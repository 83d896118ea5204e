/* test_prompt.c - a token that is typed, or comes from a file. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include "rsd/admin/prompt.h"

static int master, slave;
static char shown[1000];
static size_t size;

/* Exits 0 if it has read this word. */
static _Noreturn void child(const char *word)
{
    char line[100];
    struct err err = ERR_INIT;
    int result = prompt_secret("Token: ", line, sizeof(line), &err);
    if (result < 0)
        fputs(err.text, stderr);
    _exit(result < 0 ? 1 : strcmp(line, word) == 0 ? 0 : 2);
}

static pid_t at_terminal(const char *word)
{
    pid_t pid;
    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    memset(shown, 0, sizeof(shown));
    size = 0;
    pid = fork();
    if (pid == 0) {
        close(master);
        if (login_tty(slave) < 0)
            _exit(3);
        child(word);
    }
    return pid;
}

static void see(const char *text)
{
    while (!strstr(shown, text)) {
        ssize_t got = read(master, shown + size, sizeof(shown) - 1 - size); /* alarm(2) bounds this */
        assert_true(got > 0);
        size += (size_t)got;
    }
}

static struct termios modes(void)
{
    struct termios now;
    assert_int_equal(tcgetattr(slave, &now), 0);
    return now;
}

static void type(const char *text)
{
    assert_int_equal(write(master, text, strlen(text)), strlen(text));
}

static int status_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void as_it_was(void)
{
    assert_true((modes().c_lflag & (ECHO | ECHONL)) == ECHO);
    assert_int_equal(modes().c_cc[VSUSP], 26);
    close(master);
    close(slave);
}

static void what_is_typed_is_not_shown(void **state)
{
    pid_t pid = at_terminal("elmer1abc");
    (void)state;
    see("Token: ");
    assert_false(modes().c_lflag & ECHO);
    type(" elmer1abc \n");
    see("\n");
    assert_int_equal(status_of(pid), 0);
    assert_string_equal(shown, "Token: \r\n");
    as_it_was();
}

static void its_end_leaves_the_terminal_as_it_was(void **state)
{
    pid_t pid = at_terminal("");
    int status;
    (void)state;
    see("Token: ");
    type("elmer1\x1a\x03"); /* Ctrl-Z does nothing, Ctrl-C does */
    status = status_of(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    as_it_was();
}

static void nothing_is_said_to_be_nothing(void **state)
{
    pid_t pid = at_terminal("");
    (void)state;
    see("Token: ");
    type("\x04");
    see("no token came on the standard input");
    assert_int_equal(WEXITSTATUS(status_of(pid)), 1);
    as_it_was();
}

static void from_a_pipe(const char *text, const char *word, int expected)
{
    int pair[2], status;
    pid_t pid;
    assert_int_equal(pipe(pair), 0);
    assert_int_equal(write(pair[1], text, strlen(text)), strlen(text));
    close(pair[1]);
    pid = fork();
    if (pid == 0) {
        dup2(pair[0], STDIN_FILENO);
        close(STDERR_FILENO);
        child(word);
    }
    close(pair[0]);
    status = status_of(pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
}

static void a_pipe_is_not_asked(void **state)
{
    (void)state;
    from_a_pipe("elmer1abc\nmore\n", "elmer1abc", 0);
    from_a_pipe("elmer1abc", "elmer1abc", 0);
    from_a_pipe("\t elmer1abc  # ws3\r\n", "elmer1abc", 0);
    from_a_pipe("\n", "", 0);
    from_a_pipe("", "", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_typed_is_not_shown),
        cmocka_unit_test(its_end_leaves_the_terminal_as_it_was),
        cmocka_unit_test(nothing_is_said_to_be_nothing),
        cmocka_unit_test(a_pipe_is_not_asked),
    };
    alarm(30);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
