#include "config.h"

#include "elmer/launch/paths.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

int path_check(const char *pattern, const char *what, struct err *err)
{
    for (const char *c = pattern; *c; c++) {
        if ((unsigned char)*c < ' ')
            return err_set(err, -1, "the file name for %s contains control characters", what);
        if (*c != '%')
            continue;
        c++;
        if (!*c || !strchr("juxrAa%", *c))
            return err_set(err, -1,
                           "the file name for %s contains an unknown pattern: known are %%j job id, %%u user, %%x job "
                           "name, %%r rank, %%A id of an array, %%a index of a task, %%%% percent sign",
                           what);
    }
    return 0;
}

/* What stands for the letter; number: room for it. */
static const char *piece_of(const struct path_facts *facts, char letter, char number[24])
{
    switch (letter) {
    case 'j':
        snprintf(number, 24, "%" PRIu64, facts->job);
        return number;
    case 'A':
        snprintf(number, 24, "%" PRIu64, facts->array);
        return number;
    case 'a':
        snprintf(number, 24, "%" PRId64, facts->index);
        return number;
    case 'r':
        snprintf(number, 24, "%" PRIu32, facts->rank);
        return facts->ranks ? "%r" : number;
    case 'u':
        return facts->user;
    case 'x':
        return facts->name;
    default: /* %% */
        return "%";
    }
}

static bool append(char *path, size_t *used, const char *piece, bool doubled)
{
    for (; *piece; piece++)
        for (int i = doubled && *piece == '%' ? 2 : 1; i > 0; i--) {
            if (*used + 1 >= PATH_BYTES)
                return false;
            path[(*used)++] = *piece;
        }
    return true;
}

const char *path_expand(struct arena *memory, const char *pattern, const struct path_facts *facts)
{
    char path[PATH_BYTES];
    size_t used = 0;
    for (const char *c = pattern; *c; c++) {
        char number[24] = {*c, 0};
        bool letter = *c == '%';
        const char *piece = letter ? piece_of(facts, *++c, number) : number;
        if (!append(path, &used, piece, facts->ranks && letter && *c != 'r'))
            return NULL;
    }
    path[used] = 0;
    return arena_strdup(memory, path);
}
