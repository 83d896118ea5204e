#include "config.h"

#include "rsd/sup/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "lib/job/lines.h"
#include "lib/job/variables.h"

enum { BYTES_MAX = 4 << 20 }; /* beyond what execve(2) takes */

struct task {
    const char *piece[LINES_COLUMNS_MAX + 1]; /* for {}, and for {1} .. */
    size_t size[LINES_COLUMNS_MAX + 1];
    unsigned last; /* 0: there are no columns */
    bool is;
};

static void task_init(struct task *task, const char *index, const char *line)
{
    *task = (struct task){.is = index != NULL, .piece = {line ? line : index}};
    if (!index)
        return;
    task->size[0] = strlen(task->piece[0]);
    task->last = line ? LINES_COLUMNS_MAX : 0;
    for (unsigned column = 1; column <= task->last; column++)
        task->piece[column] = line_column(line, task->size[0], column, &task->size[column]);
}

/* The text begins with a mark: returns the length of that, and what stands for it. 0: it does not. */
static size_t take_mark(const char *text, const struct task *task, const char **piece, size_t *size)
{
    unsigned column = 0;
    size_t length = task->is ? line_mark(text, &column) : 0;
    if (length == 0 || column > task->last)
        return 0;
    *piece = task->piece[column] ? task->piece[column] : "";
    *size = task->size[column];
    return length;
}

/* The text with what is put into it, at `to`; NULL: only count. Returns its length, without the NUL. */
static size_t put(const char *text, const struct task *task, char *to)
{
    size_t length = 0;
    while (*text && length < BYTES_MAX) {
        const char *piece;
        size_t size = 1, mark = take_mark(text, task, &piece, &size);
        if (mark == 0)
            piece = text;
        if (to)
            memcpy(to + length, piece, size);
        length += size;
        text += mark > 0 ? mark : 1;
    }
    return length;
}

char **arguments_make(const struct wire_strs *given, bool terminal, const char *index, const char *line)
{
    static char holder[] = ELMER_LIBEXECDIR "/" JOB_COURIER, option[] = "--terminal";
    struct task task;
    size_t before = terminal ? 2 : 0, size = (before + given->count + 1) * sizeof(char *);
    char **arguments, *text;
    task_init(&task, index, line);
    for (size_t i = 0; i < given->count; i++) {
        size += put(given->items[i], &task, NULL) + 1;
        if (size > BYTES_MAX)
            return NULL;
    }
    arguments = calloc(1, size);
    text = arguments ? (char *)&arguments[before + given->count + 1] : NULL;
    if (arguments && terminal) {
        arguments[0] = holder;
        arguments[1] = option;
    }
    for (size_t i = 0; arguments && i < given->count; i++) {
        arguments[before + i] = text;
        text += put(given->items[i], &task, text) + 1;
    }
    return arguments;
}
