/* pack.c - many inputs in one file. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/pack.h"

static const char magic[] = "elmer fuzz pack 1\n";

struct cursor {
    const uint8_t *data;
    size_t at, size;
};

bool pack_is_name(const char *path)
{
    size_t length = strlen(path);

    return length > strlen(".pack") && strcmp(path + length - strlen(".pack"), ".pack") == 0;
}

static bool take_text(struct cursor *cursor, const char *text)
{
    size_t length = strlen(text);

    if (cursor->size - cursor->at < length || memcmp(cursor->data + cursor->at, text, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

/* A number in its shortest form, and the newline after it. */
static bool take_number(struct cursor *cursor, size_t *number)
{
    size_t begin = cursor->at;

    *number = 0;
    while (cursor->at < cursor->size && cursor->data[cursor->at] >= '0' && cursor->data[cursor->at] <= '9') {
        if (*number > PACK_BYTES_MAX || (cursor->at > begin && *number == 0))
            return false;
        *number = *number * 10 + (size_t)(cursor->data[cursor->at++] - '0');
    }
    return cursor->at > begin && take_text(cursor, "\n");
}

static int compare(const struct pack_input *a, const void *bytes, size_t size)
{
    if (a->size != size)
        return a->size < size ? -1 : 1;
    return memcmp(a->bytes, bytes, size);
}

/* The first input that does not come before this one. */
static size_t place_of(const struct pack *pack, const void *bytes, size_t size)
{
    size_t low = 0, high = pack->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(&pack->inputs[middle], bytes, size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t file_bytes(const struct pack *pack)
{
    return sizeof(magic) + pack->bytes + (pack->count + 1) * sizeof("65536\n\n") + sizeof("end \n");
}

static int insert(struct pack *pack, size_t place, const void *bytes, size_t size)
{
    struct pack_input *grown = realloc(pack->inputs, (pack->count + 1) * sizeof(*grown));
    uint8_t *copy = malloc(size > 0 ? size : 1);

    if (grown)
        pack->inputs = grown;
    if (!grown || !copy) {
        free(copy);
        return -ENOMEM;
    }
    memmove(grown + place + 1, grown + place, (pack->count - place) * sizeof(*grown));
    memcpy(copy, bytes, size);
    grown[place] = (struct pack_input){copy, size};
    pack->count++;
    pack->bytes += size;
    /* cppcheck-suppress memleak ; the pack has it */
    return 0;
}

int pack_add(struct pack *pack, const void *bytes, size_t size, struct err *err)
{
    size_t place = place_of(pack, bytes, size);

    if (size > PACK_INPUT_MAX)
        return err_set(err, -E2BIG, "an input of %zu bytes: a pack holds inputs of at most %d", size, PACK_INPUT_MAX);
    if (place < pack->count && compare(&pack->inputs[place], bytes, size) == 0)
        return 1;
    if (file_bytes(pack) + size > PACK_BYTES_MAX)
        return err_set(err, -E2BIG, "the pack is full: it may have %d bytes", PACK_BYTES_MAX);
    return insert(pack, place, bytes, size) == 0 ? 0 : err_set(err, -ENOMEM, "no memory for an input");
}

static int parse_input(struct pack *pack, struct cursor *cursor, struct err *err)
{
    size_t begin = cursor->at, size;

    if (!take_number(cursor, &size))
        return err_set(err, -EINVAL, "byte %zu: neither the size of an input nor the end", begin);
    if (size > PACK_INPUT_MAX)
        return err_set(err, -EINVAL, "byte %zu: an input of %zu bytes, at most %d are allowed", begin, size,
                       PACK_INPUT_MAX);
    if (cursor->size - cursor->at <= size)
        return err_set(err, -EINVAL, "byte %zu: an input of %zu bytes, but only %zu follow: the file is cut", begin,
                       size, cursor->size - cursor->at);
    if (pack->count > 0 && compare(&pack->inputs[pack->count - 1], cursor->data + cursor->at, size) >= 0)
        return err_set(err, -EINVAL, "byte %zu: the inputs are not sorted, or two are equal", begin);
    if (insert(pack, pack->count, cursor->data + cursor->at, size) != 0)
        return err_set(err, -ENOMEM, "no memory for an input");
    cursor->at += size;
    if (!take_text(cursor, "\n"))
        return err_set(err, -EINVAL, "byte %zu: no newline after an input of %zu bytes", cursor->at, size);
    return 0;
}

static int parse(struct pack *pack, struct cursor *cursor, struct err *err)
{
    size_t count;

    if (!take_text(cursor, magic))
        return err_set(err, -EINVAL, "not a pack of fuzz inputs: it does not begin with \"elmer fuzz pack 1\"");
    while (!take_text(cursor, "end ")) {
        int result = cursor->at < cursor->size ? parse_input(pack, cursor, err)
                                               : err_set(err, -EINVAL, "byte %zu: no end: the file is cut", cursor->at);

        if (result != 0)
            return result;
    }
    if (!take_number(cursor, &count) || cursor->at != cursor->size)
        return err_set(err, -EINVAL, "byte %zu: something other than \"end COUNT\" at the end", cursor->at);
    if (count != pack->count)
        return err_set(err, -EINVAL, "the last line says %zu inputs, there are %zu", count, pack->count);
    return 0;
}

int pack_parse(struct pack *pack, const void *data, size_t size, struct err *err)
{
    struct cursor cursor = {data, 0, size};
    int result;

    *pack = (struct pack){0};
    result = size <= PACK_BYTES_MAX ? parse(pack, &cursor, err)
                                    : err_set(err, -EINVAL, "%zu bytes: a pack has at most %d", size, PACK_BYTES_MAX);
    if (result != 0)
        pack_fini(pack);
    return result;
}

int pack_slurp(const char *path, size_t limit, uint8_t **data, size_t *size, struct err *err)
{
    FILE *file = fopen(path, "re");
    uint8_t *grown;
    int result = 0;

    *data = NULL;
    *size = 0;
    if (!file)
        return err_set(err, -errno, "%s: %s", path, strerror(errno));
    for (;;) {
        size_t got;

        if (!(grown = realloc(*data, *size + BUFSIZ))) {
            result = err_set(err, -ENOMEM, "%s: no memory", path);
            break;
        }
        *data = grown;
        got = fread(grown + *size, 1, BUFSIZ, file);
        *size += got;
        if (ferror(file))
            result = err_set(err, -EIO, "%s: %s", path, strerror(errno));
        else if (*size > limit)
            result = err_set(err, -E2BIG, "%s: more than %zu bytes", path, limit);
        if (got == 0 || result != 0)
            break;
    }
    fclose(file);
    if (result != 0) {
        free(*data);
        *data = NULL;
    }
    return result;
}

int pack_read(struct pack *pack, const char *path, struct err *err)
{
    uint8_t *data;
    size_t size;
    int result;

    *pack = (struct pack){0};
    if ((result = pack_slurp(path, PACK_BYTES_MAX, &data, &size, err)) != 0)
        return result;
    if ((result = pack_parse(pack, data, size, err)) != 0)
        err_prefix(err, "%s", path);
    free(data);
    return result;
}

static bool write_inputs(const struct pack *pack, FILE *file)
{
    fputs(magic, file);
    for (size_t i = 0; i < pack->count; i++) {
        fprintf(file, "%zu\n", pack->inputs[i].size);
        fwrite(pack->inputs[i].bytes, 1, pack->inputs[i].size, file);
        fputc('\n', file);
    }
    fprintf(file, "end %zu\n", pack->count);
    return !ferror(file);
}

int pack_write(const struct pack *pack, const char *path, struct err *err)
{
    char *temporary;
    FILE *file;
    int result = 0;

    if (asprintf(&temporary, "%s.new", path) < 0)
        return err_set(err, -ENOMEM, "%s: no memory", path);
    file = fopen(temporary, "we");
    if (!file) {
        result = err_set(err, -errno, "%s: %s", temporary, strerror(errno));
    } else {
        bool written = write_inputs(pack, file);

        if (fclose(file) != 0 || !written || rename(temporary, path) != 0) {
            result = err_set(err, -EIO, "%s: cannot be written: %s", path, strerror(errno));
            remove(temporary);
        }
    }
    free(temporary);
    return result;
}

void pack_fini(struct pack *pack)
{
    for (size_t i = 0; i < pack->count; i++)
        free(pack->inputs[i].bytes);
    free(pack->inputs);
    *pack = (struct pack){0};
}
