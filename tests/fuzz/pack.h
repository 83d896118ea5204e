/* pack.h - many inputs of a fuzz target in one file, so that a corpus is not a thousand files of the tree:
 *
 *   elmer fuzz pack 1\n
 *   SIZE\n BYTES \n       for each input; the inputs are sorted by size, then by bytes, and no two are equal
 *   end COUNT\n
 *
 * The same inputs give the same file. All numbers are decimal; an input is at most PACK_INPUT_MAX bytes, a pack at most
 * PACK_BYTES_MAX. Errors are for a person: what is wrong at which byte. */
#ifndef TESTS_FUZZ_PACK_H
#define TESTS_FUZZ_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { PACK_INPUT_MAX = 64 * 1024, PACK_BYTES_MAX = 16 * 1024 * 1024 };

struct pack_input {
    uint8_t *bytes; /* never NULL; malloc'd of exactly size bytes (of 1 if it is empty) */
    size_t size;
};
struct pack {
    struct pack_input *inputs;
    size_t count;
    size_t bytes; /* of all inputs */
};

/* Does the file's name say that it is one? */
bool pack_is_name(const char *path);
/* 0, or a negative errno: -EINVAL for what is not a pack. After a failure the pack is empty. */
int pack_parse(struct pack *pack, const void *data, size_t size, struct err *err);
int pack_read(struct pack *pack, const char *path, struct err *err);
/* Copy an input into its place; 1 if it is there already. -E2BIG: too large, or the pack is full. */
int pack_add(struct pack *pack, const void *bytes, size_t size, struct err *err);
/* Replace the file as a whole. */
int pack_write(const struct pack *pack, const char *path, struct err *err);
void pack_fini(struct pack *pack);

/* The whole of a file of at most limit bytes, malloc'd; *size says how many. -E2BIG if it is larger. */
int pack_slurp(const char *path, size_t limit, uint8_t **data, size_t *size, struct err *err);

#endif
