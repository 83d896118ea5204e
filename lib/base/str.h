/* str.h - small string helpers. */
#ifndef LIB_BASE_STR_H
#define LIB_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>

/* malloc'd printf; NULL when out of memory. */
char *str_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Copy with control characters, those that reorder a line, too, and invalid UTF-8 replaced by \xNN, cut at size with
 * "..."; returns out. */
char *str_printable(char *out, size_t size, const char *text, size_t length);
bool str_valid_utf8(const char *text, size_t length);
/* A host name: letters, digits, '-', '.', at most 255, not beginning with '-' or '.'. */
bool str_valid_hostname(const char *name);
/* Whole string as a decimal; false on sign, garbage, overflow, empty. */
bool str_to_u64(const char *text, uint64_t *out);
/* How many letters are wrong, missing, too many, or swapped with their neighbour; bounded (for "did you mean"). */
size_t str_distance(const char *a, const char *b);
/* 32 hexadecimal digits: 12 of the time in milliseconds, so that those of one time are neighbours in an index, and 20
 * from getrandom(2); out has 33 bytes. 0 or -errno. */
int str_unique_token(char *out);

#endif
