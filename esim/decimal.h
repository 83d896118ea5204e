/* decimal.h - numbers as people write them. */
#ifndef ESIM_DECIMAL_H
#define ESIM_DECIMAL_H

#include <stdlib.h>
#include <string.h>

/* As strtod(), but no 0x10, inf and nan: *end is text then. */
static inline double decimal(const char *text, char **end)
{
    const char *at = text + strspn(text, " \t\r\n");

    at += *at == '-' || *at == '+';
    if (strspn(at, ".0123456789") > 0 && !(at[0] == '0' && (at[1] == 'x' || at[1] == 'X')))
        return strtod(text, end);
    *end = (char *)text;
    return 0;
}

#endif
