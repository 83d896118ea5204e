/* replay.c - main() of a target where there is no libFuzzer: runs inputs, each once.
 *
 *   fuzz_NAME [FILE|FOLDER|PACK]..     without arguments the corpus of the target: FUZZ_CORPUS/NAME.pack and, if there
 *                                      are inputs with names, the folder FUZZ_CORPUS/NAME
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/pack.h"

static unsigned long inputs;

static int fail(const struct err *err)
{
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

static int run_file(const char *path)
{
    struct err err = ERR_INIT;
    uint8_t *data;
    size_t size;

    if (pack_slurp(path, PACK_BYTES_MAX, &data, &size, &err) != 0)
        return fail(&err);
    fprintf(stderr, "%s\n", path); /* the last line before a crash says where */
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
    return 0;
}

static int run_pack(const char *path)
{
    struct err err = ERR_INIT;
    struct pack pack;

    if (pack_read(&pack, path, &err) != 0)
        return fail(&err);
    for (size_t i = 0; i < pack.count; i++) {
        fprintf(stderr, "%s: input %04zu (`pack unpack` makes files of them)\n", path, i);
        (void)LLVMFuzzerTestOneInput(pack.inputs[i].bytes, pack.inputs[i].size);
        inputs++;
    }
    pack_fini(&pack);
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

    if (count < 0 && errno == ENOTDIR)
        return pack_is_name(path) ? run_pack(path) : run_file(path);
    if (count < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
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

    for (const char *next = name; next; next = strstr(next + 1, "fuzz_"))
        name = next;
    return !name ? "" : name + strlen("fuzz_");
}

static int run_corpus(const char *name)
{
    char *pack = NULL, *folder = NULL;
    int bad;

    if (asprintf(&pack, "%s/%s.pack", FUZZ_CORPUS, name) < 0 || asprintf(&folder, "%s/%s", FUZZ_CORPUS, name) < 0)
        abort();
    bad = run_path(pack);
    if (access(folder, F_OK) == 0)
        bad |= run_path(folder);
    free(pack);
    free(folder);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = argc == 1 ? run_corpus(target_name(argv[0])) : 0;

    for (int i = 1; i < argc; i++)
        bad |= run_path(argv[i]);
    printf("%lu inputs\n", inputs);
    return bad || inputs == 0;
}
