#include "config.h"

#include "elmer/launch/paths.h"

#include <inttypes.h>
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

const char *path_expand(struct arena *memory, const char *pattern, uint64_t job, const char *user, const char *name,
                        uint32_t rank)
{
    char path[PATH_BYTES];
    size_t used = 0;
    for (const char *c = pattern; *c; c++) {
        char number[24] = {*c, 0};
        const char *piece = number;
        if (*c == '%') {
            switch (*++c) {
            case 'j':
                snprintf(number, sizeof(number), "%" PRIu64, job);
                break;
            case 'r':
                snprintf(number, sizeof(number), "%" PRIu32, rank);
                break;
            case 'u':
                piece = user;
                break;
            case 'x':
                piece = name;
                break;
            default:
                break; /* %% */
            }
        }
        size_t length = strlen(piece);
        if (used + length >= sizeof(path))
            return NULL;
        memcpy(path + used, piece, length);
        used += length;
    }
    path[used] = 0;
    return arena_strdup(memory, path);
}
