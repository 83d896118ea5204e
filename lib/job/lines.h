/* lines.h - an array's tasks as lines of a text: {} in a task's command is its line, {1} {2} .. are the columns of
 * that, with blanks between (esubmit --array-file). The first line is that of the first task. */
#ifndef LIB_JOB_LINES_H
#define LIB_JOB_LINES_H

#include <stddef.h>
#include <stdint.h>

enum {
    LINE_BYTES_MAX = 4095,       /* also in job.def */
    LINES_BYTES_MAX = 640 << 10, /* as lines_cost() counts them; also in job.def */
    LINES_COLUMNS_MAX = 99,
    LINES_COMMAND_MAX = 256 << 10, /* bytes of a task's command with all that is put into it */
    LINES_WHY = 240                /* also enough for tasks_parse() */
};

/* Where the lines stand in what is sent to be signed (rsd/tickets/sign.c); no process ever has it. */
#define LINES_VARIABLE "ELMER_ARRAY_LINES"
/* What a task has for its line. */
#define LINE_VARIABLE "ELMER_ARRAY_LINE"

/* 0: these are so many lines that tasks can have with this command; -1 with what is wrong in why, and the number of the
 * line in *line (from 1 on; 0: it is not about one). The last line may end without newline. */
int lines_check(const char *text, uint32_t count, const char *const *command, size_t ncommand, uint32_t *line,
                char why[LINES_WHY]);
uint32_t lines_count(const char *text);
/* What the text takes of a message that is carried in another one. */
size_t lines_cost(const char *text);
/* One behind the other: the length of the line at *at, which then is behind it and its newline. */
size_t lines_next(const char **at);
/* A column of a line, from 1 on; NULL: it has fewer. */
const char *line_column(const char *line, size_t length, unsigned column, size_t *size);
/* The text begins with {} or {1} to {99}: the length of that, and the column, 0 for {}. Else 0. */
size_t line_mark(const char *text, unsigned *column);

#endif
