/* watch.c - a picture after the other in the terminal's other screen, each written at once and over the one before, so
 * that nothing flickers; what there is no room for is counted. Lines do not wrap there, or their number would not be
 * known. However it ends, the terminal is as it was. The signals come only while it waits for the next picture. A
 * picture that cannot be drawn is the end if it is the first one; later its reason is shown in its place, because elmer
 * may be away for a while. */
#include "config.h"

#include "client/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "client/common.h"

#define OTHER_SCREEN "\033[?1049h\033[?25l\033[?7l"
#define OLD_SCREEN   "\033[?7h\033[?25h\033[?1049l"
#define HOME         "\033[H"
#define REST_OF_LINE "\033[K"
#define REST         "\033[J"

static volatile sig_atomic_t ended_by;
static struct termios before;
static bool entered;

static void on_signal(int number)
{
    ended_by = number;
}

static void on_resize(int number)
{
    (void)number; /* poll(2) has been interrupted */
}

/* *during: the mask in which they come. */
static void catch_signals(sigset_t *during)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t caught;

    sigemptyset(&action.sa_mask);
    sigemptyset(&caught);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        sigaddset(&caught, ends[i]);
        sigaction(ends[i], &action, NULL);
    }
    sigaddset(&caught, SIGWINCH);
    action.sa_handler = on_resize;
    sigaction(SIGWINCH, &action, NULL);
    sigprocmask(SIG_BLOCK, &caught, during);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        sigdelset(during, ends[i]);
    sigdelset(during, SIGWINCH);
}

static size_t terminal_rows(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* The picture as bytes for the terminal; malloc'd. */
static char *frame(const char *text, size_t rows, size_t *size)
{
    char *bytes = NULL;
    FILE *out = must(open_memstream(&bytes, size));
    size_t lines = count_lines(text), shown = lines < rows ? lines : rows - 1;

    fputs(HOME, out);
    for (size_t i = 0; i < shown; i++) {
        size_t length = strcspn(text, "\n");

        fprintf(out, "%.*s" REST_OF_LINE "\r\n", (int)length, text);
        text += length + 1;
    }
    if (shown < lines)
        fprintf(out, "(%zu line%s more)" REST_OF_LINE, lines - shown, lines - shown == 1 ? "" : "s");
    fputs(REST, out);
    if (fclose(out) != 0)
        must(NULL);
    return bytes;
}

static void write_all(const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = write(STDOUT_FILENO, bytes, size);

        if (sent < 0 && errno != EINTR)
            return;
        bytes += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
}

/* ---- the terminal ---- */

static void leave(void)
{
    if (!entered)
        return;
    entered = false;
    write_all(OLD_SCREEN, strlen(OLD_SCREEN));
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Nobody stops it with its screen on: a shell would not know how to undo that. */
static void enter(void)
{
    struct termios quiet = before;

    quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    quiet.c_cc[VSUSP] = _POSIX_VDISABLE;
    atexit(leave); /* also when there is no memory */
    entered = true;
    tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
    write_all(OTHER_SCREEN, strlen(OTHER_SCREEN));
}

/* ---- the pictures ---- */

/* What draw() prints and says is caught: the library's streams are variables. */
static int picture(int (*draw)(void *data), void *data, char **text)
{
    size_t size;
    FILE *out = stdout, *err = stderr, *page = must(open_memstream(text, &size));
    int code;

    stdout = stderr = page;
    code = draw(data);
    stdout = out;
    stderr = err;
    if (fclose(page) != 0)
        must(NULL);
    return code;
}

/* False: it shall end. */
static bool pause_for(int interval_ms, const sigset_t *during)
{
    const struct timespec interval = {interval_ms / 1000, (long)(interval_ms % 1000) * 1000000L};
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;

    if (ppoll(&keys, 1, &interval, during) <= 0)
        return ended_by == 0;
    return read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && key != 'Q' && ended_by == 0;
}

int watch(int interval_ms, int (*draw)(void *data), void *data)
{
    const char *term = getenv("TERM");
    sigset_t during;
    char *text;
    int code;

    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) < 0)
        return usage_error("-W needs a terminal");
    if (!term || !*term || strcmp(term, "dumb") == 0)
        return usage_error("-W needs a terminal whose cursor moves: TERM is '%s'", term ? term : "");
    code = picture(draw, data, &text);
    if (code != EXIT_DONE) {
        fputs(text, stderr);
        free(text);
        return code;
    }
    catch_signals(&during);
    enter();
    for (;;) {
        size_t size;
        char *bytes = frame(text, terminal_rows(), &size);

        write_all(bytes, size);
        free(bytes);
        free(text);
        if (!pause_for(interval_ms, &during))
            break;
        (void)picture(draw, data, &text);
    }
    leave();
    return EXIT_DONE;
}
