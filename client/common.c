/* common.c - what the commands share. */
#include "config.h"

#include "client/common.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "libelmer/client.h"

static const struct command *self;
static const char *where; /* NULL: nowhere in particular */

void command_begin(const struct command *command)
{
    self = command;
    file_fill_standard();
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) /* names are UTF-8 in every locale, and so are their widths */
        setlocale(LC_CTYPE, "C.UTF-8");
}

void *must(void *memory)
{
    if (!memory) {
        fprintf(stderr, "%s: out of memory\n", self->name);
        exit(EXIT_REFUSED);
    }
    return memory;
}

char *printable(const char *text)
{
    size_t length = strlen(text), size = 4 * length + 1;
    char *out = must(malloc(size));

    return str_printable(out, size, text, length);
}

char *printable_format(const char *format, va_list args)
{
    char *text = NULL, *clean;

    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    clean = printable(must(text));
    free(text);
    return clean;
}

static void say_line(const char *hint, const char *format, va_list args)
{
    char *clean = printable_format(format, args), *place = printable(where ? where : "");

    fprintf(stderr, "%s: %s%s%s%s\n", self->name, place, *place ? ": " : "", clean, hint);
    free(place);
    free(clean);
}

void say_where(const char *place)
{
    where = place;
}

void say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say_line("", format, args);
    va_end(args);
}

int usage_error(const char *format, ...)
{
    char hint[64];
    va_list args;

    snprintf(hint, sizeof(hint), "; see '%s --help'", self->name);
    va_start(args, format);
    say_line(hint, format, args);
    va_end(args);
    return EXIT_USAGE;
}

int common_option(int c, char **argv)
{
    char text[OPTIONS_FAULT_BYTES];

    if (c == 'h') {
        options_help(self);
        return finish_output(EXIT_DONE);
    }
    if (c == 'V') {
        printf("%s (Elmer) %s\n", self->name, PACKAGE_VERSION);
        return finish_output(EXIT_DONE);
    }
    options_fault(c, argv, text);
    return usage_error("%s", text);
}

int exit_code(int result)
{
    switch ((enum elmer_result)result) {
    case ELMER_OK:
        return EXIT_DONE;
    case ELMER_USAGE:
        return EXIT_USAGE;
    case ELMER_NO_SUCH_JOB:
    case ELMER_WRONG_STATE:
        return EXIT_JOB;
    case ELMER_UNREACHABLE:
        return EXIT_UNREACHABLE;
    case ELMER_NOT_PERMITTED:
        return EXIT_PERMISSION;
    case ELMER_UNAVAILABLE:
        return EXIT_UNAVAILABLE;
    case ELMER_REFUSED:
    case ELMER_FAILED:
        break;
    }
    return EXIT_REFUSED;
}

enum { TOLD_AFTER_MS = 500 }; /* libelmer has looked for so long before it says so */

static bool waiting_said;
static int64_t waiting_since_ms;

/* A call that is made again and again says it once. */
static void say_waiting(const char *why, void *data)
{
    (void)data;
    if (!waiting_said)
        say("%s; waiting for it", why);
    waiting_said = true;
    waiting_since_ms = mono_ms(mono_now()) - TOLD_AFTER_MS;
}

void say_unavailable(const char *why)
{
    if (!waiting_said)
        say("%s; asking until it can answer", why);
    waiting_said = true;
    waiting_since_ms = mono_ms(mono_now());
}

bool waiting_was_said(void)
{
    bool said = waiting_said;

    waiting_said = false;
    return said;
}

int say_result(int result, const struct elmer_error *error)
{
    if (result == ELMER_USAGE)
        return usage_error("%s", error->text);
    /* What has not been answered in time was not waited for: elmer was there. */
    if (result == ELMER_UNREACHABLE && waiting_said && strncmp(error->text, "elmer has not", 13) != 0)
        say("%s; given up after %lld s", error->text, (long long)(mono_ms(mono_now()) - waiting_since_ms + 500) / 1000);
    else
        say("%s", error->text);
    return exit_code(result);
}

/* Not to scripts, which may take it for an error: nothing is wrong. */
static void say_slow(void)
{
    static bool said;

    if (!said && isatty(STDERR_FILENO))
        say("the list goes on to come: elmer gives the lists of a user a part of its time only");
    said = true;
}

void tell_sudo(struct elmer *elmer)
{
    const char *user = geteuid() == 0 ? getenv("SUDO_USER") : NULL;

    if (user && *user && strcmp(user, "root") != 0)
        client_called_by(elmer, user);
}

struct elmer *open_elmer(void)
{
    const char *socket = getenv("ELMER_SOCKET");
    struct elmer_options options = {.socket = socket && *socket ? socket : NULL, .on_wait = say_waiting};
    struct elmer_error error = {{0}};
    struct elmer *elmer;

    if (elmer_open(&options, &elmer, &error) != ELMER_OK) {
        say("%s", error.text);
        return NULL;
    }
    client_wait_for_pages(elmer, ANSWER_MS, say_slow);
    tell_sudo(elmer);
    return elmer;
}

bool parse_id(const char *text, uint64_t *id)
{
    if (str_to_u64(text, id) && *id > 0 && *id <= INT64_MAX) /* no message carries more */
        return true;
    usage_error("'%s' is no job id; a job id is a number from 1 on, as esubmit printed it", text);
    return false;
}

int finish_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    say("cannot write to standard output: %s", strerror(errno));
    return EXIT_REFUSED;
}
