#include "config.h"

#include "lib/base/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char units[] = "KMGT";
enum { DIGITS_MAX = 12 };
#define BYTES_MAX ((uint64_t)1 << 50)

const char *bytes_text(char text[BYTES_TEXT], uint64_t bytes)
{
    unsigned unit = 0;
    uint64_t one = 1024;

    while (units[unit + 1] && bytes >= one << 10) {
        one <<= 10;
        unit++;
    }
    if (bytes % one * 10 / one > 0)
        snprintf(text, BYTES_TEXT, "%" PRIu64 ".%" PRIu64 " %ciB", bytes / one, bytes % one * 10 / one, units[unit]);
    else
        snprintf(text, BYTES_TEXT, "%" PRIu64 " %ciB", bytes / one, units[unit]);
    return text;
}

bool bytes_parse(const char *text, uint64_t *bytes)
{
    size_t length = strspn(text, "0123456789");
    const char *unit = text[length] ? strchr(units, text[length]) : NULL;
    uint64_t number;
    unsigned shift;

    if (length == 0 || length > DIGITS_MAX || !unit || text[length + 1])
        return false;
    number = strtoull(text, NULL, 10);
    shift = 10 * (unsigned)(unit - units + 1);
    if (number == 0 || number > BYTES_MAX >> shift)
        return false;
    *bytes = number << shift;
    return true;
}
