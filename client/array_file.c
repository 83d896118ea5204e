#include "config.h"

#include "client/array_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/file.h"
#include "lib/base/str.h"
#include "lib/job/lines.h"
#include "lib/job/tasks.h"

void array_file_fini(struct array_file *file)
{
    free(file->name);
    free(file->text);
    free(file->tasks);
    *file = (struct array_file){.name = NULL};
}

/* ---- the option ---- */

/* Where the % of FILE%N stands, or the end. */
static const char *limit_of(const char *option)
{
    const char *percent = strrchr(option, '%');

    return percent && percent[1] && strspn(percent + 1, "0123456789") == strlen(percent + 1) ? percent
                                                                                             : option + strlen(option);
}

static int take_option(struct array_file *file, const char *option, const char **limit)
{
    uint64_t number;

    *limit = limit_of(option);
    file->name = must(strndup(option, (size_t)(*limit - option)));
    if (!*file->name)
        return usage_error("--array-file: the name of the file is missing");
    if (**limit && ((*limit)[1] == '0' || !str_to_u64(*limit + 1, &number) || number > TASKS_INDEX_MAX))
        return usage_error("--array-file %s: want how many tasks may run at a time behind %%, without zeros in front, "
                           "like %s%%8",
                           option, file->name);
    return -1;
}

/* ---- the text ---- */

static int read_file(struct array_file *file, size_t *size)
{
    bool input = strcmp(file->name, "-") == 0;
    int fd = input ? STDIN_FILENO : open(file->name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int result = fd < 0 ? -errno : file_read_fd(fd, LINES_BYTES_MAX, &file->text, size);

    if (input) {
        free(file->name);
        file->name = must(strdup("standard input"));
    } else if (fd >= 0) {
        close(fd);
    }
    return result == 0 ? -1 : usage_error("--array-file: %s cannot be read: %s", file->name, strerror(-result));
}

static int refuse(const struct array_file *file, uint32_t line, const char *why)
{
    return usage_error("%s:%" PRIu32 ": the line %s", file->name, line, why);
}

static int check_text(const struct array_file *file, size_t size)
{
    const char *at = file->text;
    uint32_t number = 1;

    if (size > LINES_BYTES_MAX)
        return usage_error("%s has more than %d bytes: make several arrays of it, or put what is long into files, and "
                           "name these in its lines",
                           file->name, LINES_BYTES_MAX);
    while (*at) {
        const char *line = at;
        size_t length = lines_next(&at);
        if (!str_valid_utf8(line, length))
            return refuse(file, number, "is not valid UTF-8; Elmer carries only UTF-8");
        number += at[-1] == '\n';
    }
    if (strlen(file->text) != size)
        return refuse(file, number, "has a byte that is 0: this is no text");
    return -1;
}

int array_file_read(struct array_file *file, const char *option)
{
    const char *limit;
    size_t size = 0;
    uint32_t count;
    int result = take_option(file, option, &limit);

    if (result < 0)
        result = read_file(file, &size);
    if (result < 0)
        result = check_text(file, size);
    if (result >= 0)
        return result;
    count = lines_count(file->text);
    if (count == 0)
        return usage_error("%s is empty: the array would have no task", file->name);
    if (count > TASKS_MAX)
        return refuse(file, TASKS_MAX + 1, "is one too many: an array has at most 100000 tasks; make several of it");
    file->tasks = count == 1 ? must(str_format("1%s", limit)) : must(str_format("1-%" PRIu32 "%s", count, limit));
    return -1;
}

int array_file_use(const struct array_file *file, struct elmer_submission *s)
{
    const char *const *command = s->command;
    char why[LINES_WHY];
    size_t ncommand = 0;
    uint32_t line;

    while (command[ncommand])
        ncommand++;
    s->tasks = file->tasks;
    s->lines = file->text;
    if (lines_check(file->text, lines_count(file->text), command, ncommand, &line, why) == 0)
        return -1;
    return line > 0 ? refuse(file, line, why) : usage_error("%s: %s", file->name, why);
}
