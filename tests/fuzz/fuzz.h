/* fuzz.h - what the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput(); with clang it is linked
 * with libFuzzer, with any other compiler with replay.c, which runs the inputs of its corpus once. */
#ifndef ELMER_TESTS_FUZZ_H
#define ELMER_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold for every input: else say which and abort. */
#define FUZZ_CHECK(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                    \
    } while (0)
_Noreturn void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- input.c: decisions drawn from the input; all are 0 or empty when it is used up ---- */

struct input {
    const uint8_t *at;
    size_t left;
};
uint8_t input_byte(struct input *input);
uint64_t input_below(struct input *input, uint64_t below); /* from one byte; below > 0 */
/* Mostly small, sometimes at an edge; at most limit. */
uint64_t input_number(struct input *input, uint64_t limit);
/* malloc'd, NUL-terminated; a line of the input without its newline. */
char *input_line(struct input *input);
char *input_rest(struct input *input);
/* A message of that type within all limits of the table; free with wire_message_fini(). Texts are valid UTF-8. */
void input_message(struct input *input, enum wire_type type, struct wire_message *message);
/* One of the types that the sender (a WIRE_FROM_ bit) may send. */
enum wire_type input_type(struct input *input, unsigned sender);

/* ---- same.c ---- */

bool wire_same(const struct wire_message *a, const struct wire_message *b);

#endif
