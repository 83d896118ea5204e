/* text.h - the JSON of messages as text: what encode.c writes and decode.c reads. */
#ifndef LIB_WIRE_TEXT_H
#define LIB_WIRE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* ---- writing ---- */

/* Grows by itself. What is put after a failure is dropped. */
struct text_out {
    char *data; /* malloc'd; the caller's */
    size_t size, capacity;
    bool failed; /* out of memory */
};

void text_put(struct text_out *out, const char *bytes, size_t size);
void text_put_char(struct text_out *out, char c);
void text_put_int(struct text_out *out, int64_t value);
/* Finite; read back it is the same value. */
void text_put_double(struct text_out *out, double value);
/* Quoted. False: not UTF-8, and part of it may have been put. */
bool text_put_string(struct text_out *out, const char *text, size_t length);

/* ---- reading ---- */

/* 0: one JSON object or array and nothing but white space around it, all of it UTF-8, no NUL in a string, at most
 * max_depth deep. Else -EBADMSG and the reason. Nothing is allocated. */
int text_check(const char *json, size_t size, unsigned max_depth, struct err *err);

/* The functions that follow read text that text_check() has passed, and nothing else: `at` is where a value begins (or
 * where they say), and what they return is behind it. */
const char *text_space(const char *at);
/* Behind the value. */
const char *text_skip(const char *at);
/* A string: *text is what stands between the quotes, with its escapes where *escaped. */
const char *text_string(const char *at, const char **text, size_t *length, bool *escaped);
/* Without its escapes; out has room for length bytes. Returns the count. */
size_t text_unescape(const char *text, size_t length, char *out);
/* A number: 1 a whole one, in *whole; 0 one with a fraction or an exponent; -ERANGE a whole one that *whole cannot
 * hold. *end is behind it. */
int text_whole(const char *at, int64_t *whole, const char **end);
/* -ERANGE: a double cannot hold it, or it is whole and text_whole() could not. */
int text_double(const char *at, double *value, const char **end);
/* Does a number begin here? */
bool text_is_number(const char *at);

#endif
