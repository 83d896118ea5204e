/* hex.h - bytes as lower-case hexadecimal digits, and back. */
#ifndef LIB_BASE_HEX_H
#define LIB_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void hex_write(const uint8_t *bytes, size_t size, char *text); /* 2 * size digits and a NUL */
/* The next 2 * size characters. false: one is no digit; what is behind it, or behind a NUL, is not looked at. */
bool hex_read_digits(const char *digits, uint8_t *bytes, size_t size);
/* The text is exactly 2 * size digits. */
bool hex_read(const char *text, uint8_t *bytes, size_t size);

#endif
