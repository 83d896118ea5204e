/* text_read.c - JSON as text that may come from anybody.
 *
 * First text_check() goes over all of it, byte by byte and within its bounds, and passes only what is JSON. Everything
 * behind it relies on that: a string ends with a quote, what is open is closed, an escape is whole. So there is one
 * place that must not trust what it reads, and all others may. */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/text.h"

/* ---- the check ---- */

struct scan {
    const char *at, *end;
    unsigned depth;
    const char *wrong; /* NULL: nothing */
};

static bool wrong(struct scan *s, const char *why)
{
    if (!s->wrong)
        s->wrong = why;
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The next byte that is no white space; '\0', which no JSON has there, at the end. */
static char peek(struct scan *s)
{
    while (s->at < s->end && is_space(*s->at))
        s->at++;
    return s->at < s->end ? *s->at : '\0';
}

static bool take(struct scan *s, char c)
{
    if (peek(s) != c)
        return false;
    s->at++;
    return true;
}

/* Four hexadecimal digits, or -1. */
static int scan_unit(struct scan *s)
{
    int value = 0;

    if (s->end - s->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*s->at++);

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Behind "\u": a character, in two halves where one unit cannot hold it. */
static bool scan_unicode(struct scan *s)
{
    int unit = scan_unit(s);

    if (unit < 0)
        return wrong(s, "an escape is not whole");
    if (unit == 0)
        return wrong(s, "a NUL in a string");
    if (unit < 0xD800 || unit > 0xDFFF)
        return true;
    if (unit >= 0xDC00 || s->end - s->at < 6 || s->at[0] != '\\' || s->at[1] != 'u')
        return wrong(s, "half a character in a string");
    s->at += 2;
    unit = scan_unit(s);
    return (unit >= 0xDC00 && unit <= 0xDFFF) || wrong(s, "half a character in a string");
}

static bool scan_escape(struct scan *s)
{
    char c = s->at < s->end ? *s->at++ : '\0';

    if (c == 'u')
        return scan_unicode(s);
    return (c != '\0' && strchr("\"\\/bfnrt", c) != NULL) || wrong(s, "an unknown escape");
}

/* Behind the opening quote. Where bytes beyond ASCII begin, all of the string from there on is checked in one go. */
static bool scan_string(struct scan *s)
{
    const char *from = NULL;

    for (;;) {
        unsigned char c;

        if (s->at == s->end)
            return wrong(s, "a string does not end");
        c = (unsigned char)*s->at++;
        if (c == '"')
            break;
        if (c < 0x20)
            return wrong(s, "a control character in a string");
        if (c >= 0x80 && !from)
            from = s->at - 1;
        if (c == '\\' && !scan_escape(s))
            return false;
    }
    return !from || str_valid_utf8(from, (size_t)(s->at - 1 - from)) || wrong(s, "a string is not UTF-8");
}

static bool scan_digits(struct scan *s)
{
    const char *from = s->at;

    while (s->at < s->end && is_digit(*s->at))
        s->at++;
    return s->at > from || wrong(s, "a number is not whole");
}

static bool scan_number(struct scan *s)
{
    if (*s->at == '-')
        s->at++;
    if (s->end - s->at >= 2 && s->at[0] == '0' && is_digit(s->at[1]))
        return wrong(s, "a number begins with 0");
    if (!scan_digits(s))
        return false;
    if (s->at < s->end && *s->at == '.') {
        s->at++;
        if (!scan_digits(s))
            return false;
    }
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
            s->at++;
        return scan_digits(s);
    }
    return true;
}

static bool scan_word(struct scan *s, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0)
        return wrong(s, "a value is missing");
    s->at += length;
    return true;
}

static bool scan_value(struct scan *s, unsigned depth);

/* Behind the bracket. */
static bool scan_items(struct scan *s, unsigned depth, bool object)
{
    const char close = object ? '}' : ']';

    if (depth == 0)
        return wrong(s, "nested deeper");
    if (take(s, close))
        return true;
    do {
        if (object && (!take(s, '"') || !scan_string(s) || !take(s, ':')))
            return wrong(s, "a key is missing");
        if (!scan_value(s, depth - 1))
            return false;
    } while (take(s, ','));
    return take(s, close) || wrong(s, "an object or list does not end");
}

static bool scan_value(struct scan *s, unsigned depth)
{
    char c = peek(s);

    if (c == '"') {
        s->at++;
        return scan_string(s);
    }
    if (c == '{' || c == '[') {
        s->at++;
        return scan_items(s, depth, c == '{');
    }
    if (c == '-' || is_digit(c))
        return scan_number(s);
    return scan_word(s, c == 't' ? "true" : c == 'f' ? "false" : "null");
}

int text_check(const char *json, size_t size, unsigned max_depth, struct err *err)
{
    struct scan scan = {.at = json, .end = json + size};
    char c = peek(&scan);

    if (c != '{' && c != '[')
        (void)wrong(&scan, "it begins with neither { nor [");
    else if (scan_value(&scan, max_depth) && (peek(&scan) != '\0' || scan.at != scan.end))
        (void)wrong(&scan, "something follows it");
    if (!scan.wrong)
        return 0;
    if (strcmp(scan.wrong, "nested deeper") == 0)
        return err_set(err, -EBADMSG, "nested deeper than %u", max_depth);
    return err_set(err, -EBADMSG, "not a JSON message: %s (byte %zu)", scan.wrong, (size_t)(scan.at - json));
}

/* ---- behind the check ---- */

const char *text_space(const char *at)
{
    while (is_space(*at))
        at++;
    return at;
}

const char *text_string(const char *at, const char **text, size_t *length, bool *escaped)
{
    *text = ++at;
    *escaped = false;
    for (; *at != '"'; at++)
        if (*at == '\\') {
            *escaped = true;
            at++;
        }
    *length = (size_t)(at - *text);
    return at + 1;
}

static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at + 1;
}

const char *text_skip(const char *at)
{
    unsigned depth = 0;

    do {
        at = text_space(at);
        if (*at == '"') {
            at = skip_string(at);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth--;
            at++;
        } else if (*at == ',' || *at == ':') {
            at++;
        } else {
            at += strcspn(at, ",]} \t\n\r");
        }
    } while (depth > 0);
    return at;
}

static size_t put_utf8(unsigned code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

static unsigned unit_at(const char *at)
{
    unsigned value = 0;

    for (int i = 0; i < 4; i++)
        value = value * 16 + (unsigned)hex_digit(at[i]);
    return value;
}

/* Behind "\u"; *at goes on to the last digit. */
static size_t unescape_unicode(const char **at, char *out)
{
    unsigned code = unit_at(*at + 1);

    *at += 4;
    if (code >= 0xD800 && code <= 0xDFFF) {
        code = 0x10000 + ((code - 0xD800) << 10) + (unit_at(*at + 3) - 0xDC00);
        *at += 6;
    }
    return put_utf8(code, out);
}

size_t text_unescape(const char *text, size_t length, char *out)
{
    size_t used = 0;

    for (const char *at = text, *end = text + length; at < end; at++) {
        if (*at != '\\') {
            out[used++] = *at;
            continue;
        }
        switch (*++at) {
        case 'u':
            used += unescape_unicode(&at, out + used);
            break;
        case 'b':
            out[used++] = '\b';
            break;
        case 'f':
            out[used++] = '\f';
            break;
        case 'n':
            out[used++] = '\n';
            break;
        case 'r':
            out[used++] = '\r';
            break;
        case 't':
            out[used++] = '\t';
            break;
        default:
            out[used++] = *at;
            break;
        }
    }
    return used;
}

bool text_is_number(const char *at)
{
    return *at == '-' || is_digit(*at);
}

int text_whole(const char *at, int64_t *whole, const char **end)
{
    const bool negative = *at == '-';
    const uint64_t most = (uint64_t)INT64_MAX + negative;
    uint64_t value = 0;
    bool fits = true;

    for (at += negative; is_digit(*at); at++) {
        unsigned digit = (unsigned)(*at - '0');

        fits = fits && value <= (most - digit) / 10;
        value = fits ? value * 10 + digit : value;
    }
    *end = at;
    if (*at == '.' || *at == 'e' || *at == 'E') {
        *end = at + strspn(at, "0123456789.eE+-");
        return 0;
    }
    if (!fits)
        return -ERANGE;
    *whole = negative ? (int64_t)(0 - value) : (int64_t)value;
    return 1;
}

/* The text of the number as strtod() wants it in the locale that the program has chosen. */
static double slow_double(const char *at, size_t length)
{
    const char *point = localeconv()->decimal_point;
    char small[64], *text = length + strlen(point) < sizeof(small) ? small : malloc(length + strlen(point) + 1);
    size_t used = 0;
    double value;

    if (!text)
        return HUGE_VAL;
    for (size_t i = 0; i < length; i++) {
        if (at[i] == '.') {
            memcpy(text + used, point, strlen(point));
            used += strlen(point);
        } else {
            text[used++] = at[i];
        }
    }
    text[used] = '\0';
    value = strtod(text, NULL);
    if (text != small)
        free(text);
    return value;
}

int text_double(const char *at, double *value, const char **end)
{
    int64_t whole;
    int result = text_whole(at, &whole, end);

    if (result < 0)
        return result;
    *value = result == 1 ? (double)whole : slow_double(at, (size_t)(*end - at));
    return isfinite(*value) ? 0 : -ERANGE;
}
