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
        if (!*c || !strchr("juxr%", *c))
            return err_set(err, -1,
                           "the file name for %s contains an unknown pattern: known are %%j job id, %%u user, %%x job "
                           "name, %%r rank, %%%% percent sign",
                           what);
    }
    return 0;
}

struct facts { /* that stand for the letters */
    uint64_t job;
    const char *user, *name;
    uint32_t rank;
    bool ranks; /* for all of them: %r and %% stay, and a percent sign of a name is doubled */
};

/* What stands for the letter; number: room for it. */
static const char *piece_of(const struct facts *facts, char letter, char number[24])
{
    switch (letter) {
    case 'j':
        snprintf(number, 24, "%" PRIu64, facts->job);
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

static const char *expand(struct arena *memory, const char *pattern, const struct facts *facts)
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

const char *path_expand(struct arena *memory, const char *pattern, uint64_t job, const char *user, const char *name,
                        uint32_t rank)
{
    return expand(memory, pattern, &(struct facts){job, user, name, rank, false});
}

const char *path_expand_job(struct arena *memory, const char *pattern, uint64_t job, const char *user, const char *name)
{
    return expand(memory, pattern, &(struct facts){job, user, name, 0, true});
}
