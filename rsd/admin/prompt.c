#include <config.h>

#include "rsd/admin/prompt.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

static struct termios before;

static void on_end(int number)
{
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    (void)raise(number); /* which is the default's again */
}

static void catch_ends(struct sigaction saved[ENDS])
{
    const struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};

    for (size_t i = 0; i < ENDS; i++)
        if (sigaction(ends[i], NULL, &saved[i]) == 0 && saved[i].sa_handler != SIG_IGN)
            (void)sigaction(ends[i], &action, NULL);
}

static void leave_ends(const struct sigaction saved[ENDS])
{
    for (size_t i = 0; i < ENDS; i++)
        (void)sigaction(ends[i], &saved[i], NULL);
}

/* Nobody stops it meanwhile: a shell would not know how to undo that. */
static int hide_typing(void)
{
    struct termios quiet = before;

    quiet.c_lflag &= ~(tcflag_t)ECHO;
    quiet.c_lflag |= ECHONL;
    quiet.c_cc[VSUSP] = _POSIX_VDISABLE;
    return tcsetattr(STDIN_FILENO, TCSANOW, &quiet) < 0 ? -errno : 0;
}

static const char *ask_terminal(const char *prompt, char *line, size_t size)
{
    struct sigaction saved[ENDS];
    const char *got = NULL;

    catch_ends(saved);
    if (hide_typing() == 0) {
        fputs(prompt, stderr);
        fflush(stderr);
        got = fgets(line, (int)size, stdin);
    }
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    leave_ends(saved);
    return got;
}

static void keep_word(char *line)
{
    static const char blanks[] = " \t\r\n";
    char *word = line + strspn(line, blanks);
    size_t length = strcspn(word, blanks);

    memmove(line, word, length);
    line[length] = 0;
}

int prompt_secret(const char *prompt, char *line, size_t size, struct err *err)
{
    const char *got =
        tcgetattr(STDIN_FILENO, &before) == 0 ? ask_terminal(prompt, line, size) : fgets(line, (int)size, stdin);

    if (!got)
        return err_set(err, -EINVAL, "no token came on the standard input");
    keep_word(line);
    return 0;
}
