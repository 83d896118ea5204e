/* pack_main.c - the inputs of a fuzz target in one file (pack.h says how):
 *
 *   tests/fuzz/pack add PACK FILE..      put inputs into a pack, which is made if there is none
 *   tests/fuzz/pack unpack PACK FOLDER   write each input into a file of a folder that exists: NAME-0000, NAME-0001, ..
 *   tests/fuzz/pack count PACK..         print how many inputs each has
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/pack.h"

static int fail(const struct err *err)
{
    fprintf(stderr, "pack: %s\n", err->text);
    return 1;
}

static int add_file(struct pack *pack, const char *path, struct err *err)
{
    uint8_t *data;
    size_t size;
    int result = pack_slurp(path, PACK_INPUT_MAX, &data, &size, err);

    if (result != 0)
        return result;
    result = pack_add(pack, data, size, err);
    free(data);
    if (result < 0)
        err_prefix(err, "%s", path);
    return result;
}

/* All of the files or none. */
static int add(const char *path, char **files, int count)
{
    struct err err = ERR_INIT;
    struct pack pack = {0};
    int result = access(path, F_OK) == 0 ? pack_read(&pack, path, &err) : 0, added = 0;

    if (result == 0 && !pack_is_name(path))
        result = err_set(&err, -EINVAL, "%s: the name of a pack ends with .pack", path);
    for (int i = 0; i < count && result == 0; i++) {
        int there = add_file(&pack, files[i], &err);

        if (there < 0)
            result = there;
        else
            added += !there;
    }
    if (result == 0)
        result = pack_write(&pack, path, &err);
    if (result == 0)
        printf("%s: %d added, %zu inputs\n", path, added, pack.count);
    pack_fini(&pack);
    return result == 0 ? 0 : fail(&err);
}

static int write_input(const char *folder, const char *name, size_t number, const struct pack_input *input,
                       struct err *err)
{
    char path[4096];
    FILE *file;
    bool written;

    if (snprintf(path, sizeof(path), "%s/%s-%04zu", folder, name, number) >= (int)sizeof(path))
        return err_set(err, -ENAMETOOLONG, "%s: too long", folder);
    if (!(file = fopen(path, "we")))
        return err_set(err, -errno, "%s: %s", path, strerror(errno));
    written = fwrite(input->bytes, 1, input->size, file) == input->size;
    if (fclose(file) != 0 || !written)
        return err_set(err, -EIO, "%s: cannot be written: %s", path, strerror(errno));
    return 0;
}

static int unpack(const char *path, const char *folder)
{
    struct err err = ERR_INIT;
    struct pack pack;
    const char *base = !strrchr(path, '/') ? path : strrchr(path, '/') + 1;
    char *name = strndup(base, strcspn(base, "."));
    int result = !name ? err_set(&err, -ENOMEM, "no memory") : pack_read(&pack, path, &err);

    if (result != 0) {
        free(name);
        return fail(&err);
    }
    for (size_t i = 0; i < pack.count && result == 0; i++)
        result = write_input(folder, name, i, &pack.inputs[i], &err);
    if (result == 0)
        printf("%s: %zu inputs\n", path, pack.count);
    pack_fini(&pack);
    free(name);
    return result == 0 ? 0 : fail(&err);
}

static int count(char **paths, int number)
{
    for (int i = 0; i < number; i++) {
        struct err err = ERR_INIT;
        struct pack pack;

        if (pack_read(&pack, paths[i], &err) != 0)
            return fail(&err);
        printf("%s: %zu inputs, %zu bytes\n", paths[i], pack.count, pack.bytes);
        pack_fini(&pack);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 4 && strcmp(argv[1], "add") == 0)
        return add(argv[2], argv + 3, argc - 3);
    if (argc == 4 && strcmp(argv[1], "unpack") == 0)
        return unpack(argv[2], argv[3]);
    if (argc >= 3 && strcmp(argv[1], "count") == 0)
        return count(argv + 2, argc - 2);
    fprintf(stderr, "usage: pack add PACK FILE.. | pack unpack PACK FOLDER | pack count PACK..\n");
    return 2;
}
