/* replay.c - main() of a target where there is no libFuzzer: runs inputs, each once.
 *
 *   fuzz_NAME [FILE|FOLDER]..     without arguments the corpus of the target, FUZZ_CORPUS/NAME
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static unsigned long inputs;

static int run_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *data = NULL;
    size_t size = 0, got;
    char piece[65536];

    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    while ((got = fread(piece, 1, sizeof piece, file)) > 0) {
        char *grown = realloc(data, size + got);

        if (grown == NULL)
            abort();
        data = grown;
        memcpy(data + size, piece, got);
        size += got;
    }
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last line before a crash says where */
    (void)LLVMFuzzerTestOneInput((const uint8_t *)(data == NULL ? "" : data), size);
    free(data);
    inputs++;
    return 0;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int run_path(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, visible, alphasort), bad = 0;

    if (count < 0)
        return errno == ENOTDIR ? run_file(path) : (fprintf(stderr, "%s: %s\n", path, strerror(errno)), 1);
    for (int i = 0; i < count; i++) {
        char *name = NULL;

        if (asprintf(&name, "%s/%s", path, entries[i]->d_name) < 0)
            abort();
        bad |= run_path(name);
        free(name);
        free(entries[i]);
    }
    free(entries);
    return bad;
}

/* .../lt-fuzz_NAME -> NAME */
static const char *target_name(const char *program)
{
    const char *name = strstr(program, "fuzz_");

    for (const char *next = name; next != NULL; next = strstr(next + 1, "fuzz_"))
        name = next;
    return name == NULL ? "" : name + strlen("fuzz_");
}

int main(int argc, char **argv)
{
    char *corpus = NULL;
    int bad = 0;

    if (argc == 1) {
        if (asprintf(&corpus, "%s/%s", FUZZ_CORPUS, target_name(argv[0])) < 0)
            abort();
        bad = run_path(corpus);
        free(corpus);
    }
    for (int i = 1; i < argc; i++)
        bad |= run_path(argv[i]);
    printf("%lu inputs\n", inputs);
    return bad || inputs == 0;
}
