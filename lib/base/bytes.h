/* bytes.h - amounts of memory, as people write and read them. */
#ifndef LIB_BASE_BYTES_H
#define LIB_BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

enum { BYTES_TEXT = 32 };

/* "8 GiB", "2.5 GiB", "300 MiB": in the largest unit of which there is at least one, rounded down to tenths. text. */
const char *bytes_text(char text[BYTES_TEXT], uint64_t bytes);
/* "512M", "4G", "1T": a whole number and a unit, K, M, G or T; at most 2^50. false: it is none, or 0. */
bool bytes_parse(const char *text, uint64_t *bytes);

#endif
