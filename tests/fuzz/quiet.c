/* quiet.c - in place of lib/base/log.c: every line is made, checked and thrown away. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "tests/fuzz/fuzz.h"

void log_open(const char *program, enum log_level max)
{
    (void)program;
    (void)max;
}

void log_fields(void)
{
}

/* Nothing in an argument may act on a terminal or begin a line of its own. */
static void check_line(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7F, "a control character in the log: \"%s\"", text);
}

static void make_line(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void make_line(const char *format, va_list args)
{
    char text[4096];

    (void)vsnprintf(text, sizeof(text), format, args);
    check_line(text);
}

#define LOG_FUNCTION(name)                                                                                             \
    void name(const char *format, ...)                                                                                 \
    {                                                                                                                  \
        va_list args;                                                                                                  \
                                                                                                                       \
        va_start(args, format);                                                                                        \
        make_line(format, args);                                                                                       \
        va_end(args);                                                                                                  \
    }

LOG_FUNCTION(log_error)
LOG_FUNCTION(log_warning)
LOG_FUNCTION(log_notice)
LOG_FUNCTION(log_info)
LOG_FUNCTION(log_debug)

int log_allowed(struct log_limit *limit, unsigned burst, unsigned interval_ms)
{
    (void)limit;
    (void)burst;
    (void)interval_ms;
    return 1;
}
