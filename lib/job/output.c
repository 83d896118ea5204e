#include "config.h"

#include "lib/job/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *output_path(const char *dir, const char *name, uint32_t rank)
{
    char *path = NULL;
    size_t size, length = strlen(dir);
    FILE *out = open_memstream(&path, &size);

    if (!out)
        return NULL;
    if (*name != '/')
        fprintf(out, "%s%s", dir, length > 0 && dir[length - 1] == '/' ? "" : "/");
    for (; *name; name++) {
        if (name[0] == '%' && name[1] == 'r')
            fprintf(out, "%" PRIu32, rank);
        else
            putc(*name, out);
        if (name[0] == '%' && name[1])
            name++;
    }
    if (fclose(out) == 0)
        return path;
    free(path);
    return NULL;
}
