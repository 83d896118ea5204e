/* log.c - the only file-scope state of the base library: a program has one stderr. */
#include "config.h"

#include "lib/base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/journal.h"

/* A pipe that polls writable takes this much without blocking (PIPE_BUF). */
enum { LINE_MAX_BYTES = 4096 };

static struct {
    const char *program;
    enum log_level max;
    bool journal, socket;
    unsigned long lost;
    int fields; /* -1: lines have none */
    pid_t pid;  /* whose descriptor that is */
    void (*divert)(enum log_level level, const char *format, const char *text, void *data);
    void *divert_data;
} log_state = {.program = "elmer", .max = LOG_LEVEL_INFO, .fields = -1};

/* systemd names device and inode of the stream that it gave us; a later redirection makes them differ. */
static bool stderr_is_journal(const struct stat *st)
{
    const char *text = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    char rest;

    return text && sscanf(text, "%llu:%llu%c", &device, &inode, &rest) == 2 && st->st_dev == device &&
           st->st_ino == inode;
}

void log_open(const char *program, enum log_level max)
{
    struct stat st;
    bool known = fstat(STDERR_FILENO, &st) == 0;
    const char *wanted = getenv("ELMER_LOG");

    log_state.program = program;
    log_state.max = wanted && strcmp(wanted, "debug") == 0 ? LOG_LEVEL_DEBUG : max;
    log_state.socket = known && S_ISSOCK(st.st_mode);
    log_state.journal = known && stderr_is_journal(&st);
}

void log_fields(void)
{
    if (!log_state.journal || log_state.fields >= 0)
        return;
    log_state.fields = journal_open(JOURNAL_SOCKET);
    log_state.pid = getpid();
}

void log_divert(void (*to)(enum log_level level, const char *format, const char *text, void *data), void *data)
{
    log_state.divert = to;
    log_state.divert_data = data;
}

/* stderr may be shared with others, so it is not made non-blocking: ask first instead. */
static bool put(const char *line, size_t size)
{
    struct pollfd pfd = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t n;

    if (log_state.socket)
        n = send(STDERR_FILENO, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLOUT) != 0)
        n = write(STDERR_FILENO, line, size);
    else
        n = -1;
    return n == (ssize_t)size;
}

static const char *level_word(enum log_level level)
{
    return level <= LOG_LEVEL_ERROR ? "error: " : level == LOG_LEVEL_WARNING ? "warning: " : "";
}

/* One line, whatever is in it. */
static void flatten(char *text)
{
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
}

/* false: it has none, or the journal does not take it now; its stream may. */
static bool emit_fields(enum log_level level, const char *format, const char *text)
{
    char record[JOURNAL_RECORD_MAX];

    return log_state.fields >= 0 && log_state.pid == getpid() &&
           journal_send(log_state.fields, record, journal_record(log_state.program, (int)level, format, text, record));
}

static void emit(enum log_level level, const char *format, char *text)
{
    char line[LINE_MAX_BYTES];
    int length;
    size_t size;

    flatten(text);
    if (log_state.divert) {
        log_state.divert(level, format, text, log_state.divert_data);
        return;
    }
    if (emit_fields(level, format, text))
        return;
    if (log_state.journal)
        length = snprintf(line, sizeof(line) - 1, "<%d>%s", (int)level, text);
    else
        length = snprintf(line, sizeof(line) - 1, "%s: %s%s", log_state.program, level_word(level), text);
    if (length < 0)
        return;
    size = (size_t)length < sizeof(line) - 2 ? (size_t)length : sizeof(line) - 2;
    line[size++] = '\n';
    if (!put(line, size))
        log_state.lost++;
}

static void log_va(enum log_level level, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static void log_va(enum log_level level, const char *format, va_list args)
{
    int saved = errno;
    char text[LINE_MAX_BYTES];

    if (level > log_state.max)
        return;
    if (log_state.lost > 0) {
        unsigned long lost = log_state.lost;

        log_state.lost = 0;
        (void)snprintf(text, sizeof(text), "%lu log lines were lost here: stderr did not take them", lost);
        emit(LOG_LEVEL_WARNING, "", text);
        if (log_state.lost > 0)
            log_state.lost = lost;
    }
    if (vsnprintf(text, sizeof(text), format, args) >= 0)
        emit(level, format, text);
    errno = saved;
}

void log_diverted(enum log_level level, const char *format, const char *text)
{
    char copy[LINE_MAX_BYTES];

    if (level > log_state.max)
        return;
    (void)snprintf(copy, sizeof(copy), "%s", text);
    emit(level, format, copy);
}

#define LOG_FUNCTION(name, level)                                                                                      \
    void name(const char *format, ...)                                                                                 \
    {                                                                                                                  \
        va_list args;                                                                                                  \
                                                                                                                       \
        va_start(args, format);                                                                                        \
        log_va(level, format, args);                                                                                   \
        va_end(args);                                                                                                  \
    }

LOG_FUNCTION(log_error, LOG_LEVEL_ERROR)
LOG_FUNCTION(log_warning, LOG_LEVEL_WARNING)
LOG_FUNCTION(log_notice, LOG_LEVEL_NOTICE)
LOG_FUNCTION(log_info, LOG_LEVEL_INFO)
LOG_FUNCTION(log_debug, LOG_LEVEL_DEBUG)

int log_allowed(struct log_limit *limit, unsigned burst, unsigned interval_ms)
{
    int64_t now = mono_ms(mono_now());

    if (limit->count == 0 || now - limit->window_start_ms >= (int64_t)interval_ms) {
        if (limit->swallowed > 0)
            log_notice("%u similar line%s left out", limit->swallowed, limit->swallowed == 1 ? " was" : "s were");
        *limit = (struct log_limit){.window_start_ms = now};
    }
    if (limit->count >= burst) {
        limit->swallowed++;
        return 0;
    }
    limit->count++;
    return 1;
}
