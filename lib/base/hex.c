#include "config.h"

#include "lib/base/hex.h"

#include <string.h>

void hex_write(const uint8_t *bytes, size_t size, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = 0;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_read_digits(const char *digits, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int high = digit(digits[2 * i]), low = high < 0 ? -1 : digit(digits[2 * i + 1]);
        if (low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool hex_read(const char *text, uint8_t *bytes, size_t size)
{
    return strlen(text) == 2 * size && hex_read_digits(text, bytes, size);
}
