#include "lib/job/lines.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- the text ---- */

size_t lines_next(const char **at)
{
    size_t length = strcspn(*at, "\n");

    *at += length + ((*at)[length] == '\n');
    return length;
}

uint32_t lines_count(const char *text)
{
    uint32_t count = 0;

    for (; *text; count++)
        (void)lines_next(&text);
    return count;
}

size_t lines_cost(const char *text)
{
    size_t cost = 0;

    for (; *text; text++)
        cost += *text == '\n' || *text == '\t' ? 3 : *text == '"' || *text == '\\' ? 4 : 1;
    return cost;
}

/* ---- a line ---- */

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

const char *line_column(const char *line, size_t length, unsigned column, size_t *size)
{
    const char *end = line + length, *begin;

    for (;;) {
        while (line < end && blank(*line))
            line++;
        for (begin = line; line < end && !blank(*line);)
            line++;
        if (begin == line)
            return NULL;
        if (--column == 0)
            break;
    }
    *size = (size_t)(line - begin);
    return begin;
}

size_t line_mark(const char *text, unsigned *column)
{
    size_t length = 1;

    *column = 0;
    if (*text != '{')
        return 0;
    for (; text[length] >= '0' && text[length] <= '9' && length <= 2; length++)
        *column = 10 * *column + (unsigned)(text[length] - '0');
    return text[length] == '}' && text[1] != '0' ? length + 1 : 0;
}

/* ---- the check ---- */

/* How often a command has which of them, and the bytes beside these. */
struct marks {
    size_t count[LINES_COLUMNS_MAX + 1], rest;
    unsigned last; /* the highest column */
};

static void count_marks(const char *const *command, size_t ncommand, struct marks *marks)
{
    *marks = (struct marks){.rest = 0};
    for (size_t i = 0; i < ncommand; i++, marks->rest++)
        for (const char *at = command[i]; *at;) {
            unsigned column;
            size_t length = line_mark(at, &column);
            if (length > 0)
                marks->count[column]++;
            else
                marks->rest++;
            if (length > 0 && column > marks->last)
                marks->last = column;
            at += length > 0 ? length : 1;
        }
}

static int refuse(char why[LINES_WHY], const char *text)
{
    snprintf(why, LINES_WHY, "%s", text);
    return -1;
}

static int check_bytes(const char *line, size_t length, char why[LINES_WHY])
{
    size_t blanks = 0;

    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\r')
            return refuse(why, "has a carriage return, as files from Windows have: take them out (tr -d '\\r')");
        if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
            return refuse(why, "has a control character: a line is text and tabs");
        blanks += blank(line[i]);
    }
    if (blanks == length)
        return refuse(why, "is empty: each line is a task, take it out");
    if (length > LINE_BYTES_MAX)
        return refuse(why, "is longer than 4095 bytes: put what is long into files, and name these");
    return 0;
}

/* Columns that are asked for are there, and the command does not become too long with them. */
static int check_command(const char *line, size_t length, const struct marks *marks, char why[LINES_WHY])
{
    size_t size = marks->rest + marks->count[0] * length, part = 0;

    for (unsigned column = 1; column <= marks->last; column++) {
        if (!line_column(line, length, column, &part)) {
            snprintf(why, LINES_WHY, "has only %u column%s, and the command has {%u}", column - 1,
                     column == 2 ? "" : "s", marks->last);
            return -1;
        }
        size += marks->count[column] * part;
    }
    return size <= LINES_COMMAND_MAX ? 0 : refuse(why, "makes the command longer than 256 KiB");
}

int lines_check(const char *text, uint32_t count, const char *const *command, size_t ncommand, uint32_t *line,
                char why[LINES_WHY])
{
    struct marks marks;
    uint32_t lines = lines_count(text), number = 0;

    *line = 0;
    if (lines != count) {
        snprintf(why, LINES_WHY, "there are %" PRIu32 " lines, and %" PRIu32 " tasks: it is one for each", lines,
                 count);
        return -1;
    }
    if (lines_cost(text) > LINES_BYTES_MAX)
        return refuse(why, "the lines are more than 640 KiB together (an end of a line counts 3, a quote or backslash "
                           "4): make several arrays of them, or put what is long into files");
    count_marks(command, ncommand, &marks);
    while (*text) {
        const char *at = text;
        size_t length = lines_next(&text);
        number++;
        if (check_bytes(at, length, why) < 0 || check_command(at, length, &marks, why) < 0) {
            *line = number;
            return -1;
        }
    }
    return 0;
}
