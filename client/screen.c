#include "config.h"

#include "client/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "client/common.h"

static struct termios before, raw;
static volatile sig_atomic_t is_raw;

/* What a signal handler may do. Not TCSADRAIN: nobody may read what is still to come. */
void screen_back(void)
{
    if (is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    is_raw = 0;
}

/* A fault of ours ends the program, but not with a terminal that shows nothing any more. */
static void on_fault(int number)
{
    if (is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void screen_raw(void)
{
    static bool prepared;
    static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGXFSZ};

    if (is_raw || !isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before) < 0)
        return;
    if (!prepared) {
        (void)atexit(screen_back);
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
            (void)signal(faults[i], on_fault);
    }
    prepared = true;
    raw = before;
    cfmakeraw(&raw);
    is_raw = 1; /* a signal between the two sets what is set */
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0)
        is_raw = 0;
}

bool screen_is_raw(void)
{
    return is_raw != 0;
}

/* A shell may have set it otherwise meanwhile. */
void screen_again(void)
{
    if (is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

void screen_stop(void)
{
    bool was = screen_is_raw();

    screen_back();
    (void)kill(getpid(), SIGSTOP);
    if (was)
        screen_raw();
}

int screen_signals(void)
{
    static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,    SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT, SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU,  SIGIO,   SIGPWR};
    sigset_t set;

    (void)signal(SIGPIPE, SIG_IGN); /* what cannot be written is an error of write(2) */
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction now;

        if (numbers[i] == SIGWINCH || numbers[i] == SIGCONT ||
            (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN))
            sigaddset(&set, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

void screen_signals_end(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void screen_size(uint32_t *rows, uint32_t *columns)
{
    struct winsize size;

    *rows = *columns = 0;
    for (int fd = 0; fd < 2; fd++)
        if (ioctl(fd, TIOCGWINSZ, &size) == 0) {
            *rows = size.ws_row;
            *columns = size.ws_col;
            return;
        }
}

int screen_open_again(int fd)
{
    char path[64];
    struct stat file;

    if (fstat(fd, &file) < 0 || !(S_ISCHR(file.st_mode) || S_ISFIFO(file.st_mode)))
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Who reads nothing there has no note, and goes on hearing signals and ~. */
static void note_between(const char *text)
{
    int fd = screen_open_again(STDERR_FILENO);

    dprintf(fd >= 0 ? fd : STDERR_FILENO, "\r\n[%s]\r\n", text);
    if (fd >= 0)
        close(fd);
}

void screen_note(const char *format, ...)
{
    va_list args;
    char *clean;

    va_start(args, format);
    clean = printable_format(format, args);
    va_end(args);
    if (is_raw)
        note_between(clean);
    else
        say("%s", clean);
    free(clean);
}
