/* text_write.c - JSON into a buffer. */
#include "config.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/text.h"

enum { CAPACITY_MIN = 256 };

static bool reserve(struct text_out *out, size_t more)
{
    size_t capacity = out->capacity == 0 ? CAPACITY_MIN : out->capacity;
    char *grown;

    if (out->failed)
        return false;
    if (out->capacity - out->size >= more)
        return true;
    while (capacity - out->size < more)
        capacity *= 2;
    grown = realloc(out->data, capacity);
    if (!grown) {
        out->failed = true;
        return false;
    }
    out->data = grown;
    out->capacity = capacity;
    return true;
}

void text_put(struct text_out *out, const char *bytes, size_t size)
{
    if (size == 0 || !reserve(out, size))
        return;
    memcpy(out->data + out->size, bytes, size);
    out->size += size;
}

void text_put_char(struct text_out *out, char c)
{
    if (reserve(out, 1))
        out->data[out->size++] = c;
}

void text_put_int(struct text_out *out, int64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do
        digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (value < 0)
        text_put_char(out, '-');
    text_put(out, digits + at, sizeof(digits) - at);
}

/* A program that uses libelmer may have chosen a locale whose numbers have a comma. */
static void put_digits(struct text_out *out, const char *digits)
{
    const char *point = localeconv()->decimal_point, *found = strstr(digits, point);

    if (!found) {
        text_put(out, digits, strlen(digits));
        return;
    }
    text_put(out, digits, (size_t)(found - digits));
    text_put_char(out, '.');
    text_put(out, found + strlen(point), strlen(found + strlen(point)));
}

void text_put_double(struct text_out *out, double value)
{
    char digits[40];

    if (value == trunc(value) && fabs(value) < 1e15) {
        if (signbit(value) && value == 0)
            text_put_char(out, '-');
        text_put_int(out, (int64_t)value);
        text_put(out, ".0", 2); /* so that it stays no whole number for others who read it */
        return;
    }
    (void)snprintf(digits, sizeof(digits), "%.17g", value);
    put_digits(out, digits);
}

static void put_escape(struct text_out *out, unsigned char c)
{
    static const char letters[0x20] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char text[8];

    text_put_char(out, '\\');
    if (c >= 0x20) {
        text_put_char(out, (char)c);
    } else if (letters[c] != '\0') {
        text_put_char(out, letters[c]);
    } else {
        (void)snprintf(text, sizeof(text), "u%04X", c);
        text_put(out, text, strlen(text));
    }
}

/* The first byte from at on that needs more than to be copied: an escape, or a check of whether it is UTF-8. */
static size_t plain(const char *text, size_t at, size_t length)
{
    while (at < length) {
        unsigned char c = (unsigned char)text[at];

        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\')
            break;
        at++;
    }
    return at;
}

bool text_put_string(struct text_out *out, const char *text, size_t length)
{
    size_t from = 0, at = plain(text, 0, length);
    bool ascii = true;

    text_put_char(out, '"');
    while (at < length) {
        if ((unsigned char)text[at] >= 0x80) {
            if (ascii && !str_valid_utf8(text + at, length - at))
                return false;
            ascii = false;
            at = plain(text, at + 1, length);
            continue;
        }
        text_put(out, text + from, at - from);
        put_escape(out, (unsigned char)text[at]);
        from = at + 1;
        at = plain(text, from, length);
    }
    text_put(out, text + from, length - from);
    text_put_char(out, '"');
    return true;
}
