#include "config.h"

#include "lib/base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/clock.h"

char *str_format(const char *format, ...)
{
    char *text;
    va_list args;
    int length;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    return length < 0 ? NULL : text;
}

static bool continuation(const unsigned char *s, size_t left, size_t count)
{
    if (left <= count)
        return false;
    for (size_t i = 1; i <= count; i++)
        if ((s[i] & 0xC0) != 0x80)
            return false;
    return true;
}

/* Length of the well-formed UTF-8 character at s (RFC 3629: no overlong forms, no surrogates), 0 if there is none. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    if (left == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return 0;
    if (s[0] < 0xE0)
        return continuation(s, left, 1) ? 2 : 0;
    if (s[0] < 0xF0) {
        if (!continuation(s, left, 2) || (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))
            return 0;
        return 3;
    }
    if (!continuation(s, left, 3) || (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return 4;
}

bool str_valid_utf8(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;

    while (length > 0) {
        size_t n = utf8_length(s, length);

        if (n == 0)
            return false;
        s += n;
        length -= n;
    }
    return true;
}

/* U+202A..202E and U+2066..2069 change the order in which a line is shown, so that it says something else. */
static bool is_reordering(const unsigned char *s)
{
    return s[0] == 0xE2 &&
           ((s[1] == 0x80 && s[2] >= 0xAA && s[2] <= 0xAE) || (s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9));
}

/* C0, DEL, and C1 (which is two bytes in UTF-8): terminals act on them. */
static bool is_control(const unsigned char *s, size_t n)
{
    return (n == 1 && (s[0] < 0x20 || s[0] == 0x7F)) || (n == 2 && s[0] == 0xC2 && s[1] < 0xA0) ||
           (n == 3 && is_reordering(s));
}

char *str_printable(char *out, size_t size, const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t used = 0, keep = 0; /* keep: where "..." still fits */

    if (size == 0)
        return out;
    while (length > 0) {
        char piece[16]; /* "\xNN" for each of three bytes */
        size_t n, p = 0;

        if (s[0] >= 0x20 && s[0] < 0x7F && used + 5 < size) { /* nearly all; "..." still fits behind it */
            out[used++] = (char)*s++;
            keep = used;
            length--;
            continue;
        }
        n = utf8_length(s, length);
        if (n == 0 || is_control(s, n)) {
            n = n == 0 ? 1 : n;
            for (size_t i = 0; i < n; i++)
                p += (size_t)snprintf(piece + p, sizeof(piece) - p, "\\x%02X", s[i]);
        } else {
            memcpy(piece, s, n);
            p = n;
        }
        if (used + p >= size) {
            (void)snprintf(out + keep, size - keep, "...");
            return out;
        }
        memcpy(out + used, piece, p);
        used += p;
        if (used + 4 <= size)
            keep = used;
        s += n;
        length -= n;
    }
    out[used] = '\0';
    return out;
}

bool str_valid_hostname(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    size_t length = strlen(name);

    return length > 0 && length <= 255 && name[0] != '-' && name[0] != '.' && strspn(name, allowed) == length;
}

bool str_to_u64(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    if (!text || *text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

enum { DISTANCE_MAX = 63 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* "Optimal string alignment": nothing is changed within two letters that were swapped. */
size_t str_distance(const char *a, const char *b)
{
    size_t rows[3][DISTANCE_MAX + 1]; /* of this letter of a, and of the two before it */
    size_t m = strnlen(a, DISTANCE_MAX), n = strnlen(b, DISTANCE_MAX);

    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *row = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = least(before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), least(before[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], earlier[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

int str_unique_token(char *out)
{
    unsigned char bytes[10];

    if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) != (ssize_t)sizeof(bytes))
        return errno == 0 ? -EIO : -errno;
    (void)snprintf(out, 13, "%012" PRIx64, (uint64_t)wall_now().ms & 0xffffffffffff);
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(out + 12 + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}
